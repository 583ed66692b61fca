"""The asynchronous client of Longshort servers."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any, Unpack, overload

from longshort import answers, convert, errors, inputs, methods, requests, session_file
from longshort._async import transport
from longshort._async.answer_stream import AsyncAnswerStream
from longshort._async.calls import AsyncCalls
from longshort._async.session import AsyncSession
from longshort._async.text_stream import AsyncTextStream
from longshort._proto import inference_pb2, models_pb2, sessions_pb2
from longshort.answers import Classification, ListedSession, Model, TextScore, Tokens
from longshort.connection import Connection, Paths, split_servers
from longshort.inputs import Document, Image, Text
from longshort.metadata import CallOptions
from longshort.requests import ClassifyOptions, GenerateOptions, ScoreOptions
from longshort.retries import DEFAULT_POLICY, Attempts, RetryPolicy
from longshort.session_file import File

# Documents of a stream that are in work; as many as servers work on.
WINDOW = 64


class AsyncClient:
    """A connection to one Longshort server, or to several.

    Connects with the first call, not here. Every call has a deadline, and is tried again where that is safe
    (RetryPolicy). Every method also takes the keywords of CallOptions: timeout, priority, request_id, traceparent,
    tracestate.

    Errors: LongshortError, by a class for each code; ValueError, TypeError and OSError for arguments that cannot be
    sent.

    Use it in a `with`, or call `close()`. After fork(), each process makes a client of its own.

    Thread: any number of calls at once.
    """

    def __init__(
        self,
        server: str | Sequence[str] = "127.0.0.1:8500",
        *,
        model: str = "",
        timeout: float = 60.0,
        retry: RetryPolicy = DEFAULT_POLICY,
        client_id: str = "",
        tls: bool = False,
        tls_ca: Paths = None,
        tls_certificate: Paths = None,
        tls_key: Paths = None,
        tls_server_name: str = "",
        token: str = "",
        token_file: Paths = None,
        insecure: bool = False,
        health_check: bool = True,
    ) -> None:
        """Reads the files; raises ValueError for what cannot be used.

        server           HOST:PORT. Several (a sequence, or with commas between) are asked in turn, as are all
                         addresses of a name. A session's calls go to one of several; behind one name, they need a
                         proxy.
        model            "name" or "name/version" of the calls that name none; may be empty if the server has one model
        timeout          seconds that a call may take, all tries together; inf is unlimited
        retry            how often failed calls are tried again
        client_id        who asks: whose sessions these are, and whose share of the server
        tls              encrypt, and trust the authorities that this system trusts; each of the next four encrypts, too
        tls_ca           PEM file of the authorities to trust instead
        tls_certificate  PEM file of the certificate that the server is shown
        tls_key          PEM file of its key
        tls_server_name  the name in the server's certificate, if it is not that in `server`
        token            is sent with every call: to this machine, or encrypted
        token_file       file of the token instead, read anew when it changes
        insecure         send the token even where others can read it
        health_check     pass over servers that say that they are not serving (False: for servers with --protect-health)

        Changed TLS files are read anew when a call finds no connection.
        """
        connection = Connection(
            servers=split_servers(server),
            tls=tls,
            tls_ca=tls_ca,
            tls_certificate=tls_certificate,
            tls_key=tls_key,
            tls_server_name=tls_server_name,
            token=token,
            token_file=token_file,
            insecure=insecure,
            health_check=health_check,
        )
        inputs.selector(model)
        self._model = model
        # By the names of models: whether they take texts, as the server said when first asked.
        self._texts: dict[str, bool] = {}
        self._calls = AsyncCalls(connection, client_id=client_id, timeout=timeout, retry=retry)

    @overload
    async def classify(
        self, items: Image | Iterable[Image], **options: Unpack[ClassifyOptions]
    ) -> list[Classification]: ...
    @overload
    async def classify(
        self, items: Text | Iterable[Document], **options: Unpack[ClassifyOptions]
    ) -> list[Classification]: ...
    async def classify(self, items: Any, **options: Unpack[ClassifyOptions]) -> list[Classification]:
        """Which classes the model gives to each item, in their order. What an item is, the model decides.

        An image is the path of a file, the bytes of one, one that is open for bytes, a numpy array ([height, width] or
        [height, width, channels]; uint8, or floats in [0, 1]) or a PIL image; of any size. Files of JPEG, PNG and WebP
        are sent as they are; Pillow, if it is installed, makes lossless PNGs of other formats. What is wrong with one
        image is its answer's `error`.

        A text is str, bytes or a sequence of token ids; a tuple of two for models that compare two. classify_stream is
        faster for many. One text that is refused is raised, as `inputs[its number]`, and no answer is returned;
        classify_stream gives the other ones theirs.

        Many items go in several calls. A model's name is looked up once.
        """
        requests.check_options(options, ClassifyOptions)
        if await self._takes_texts(options):
            return await self._classify_texts(items, options)
        found: list[Classification] = []
        for batch in inputs.image_batches(items):
            request = requests.classify_request(batch, options, self._model)
            with errors.numbered_from(len(found)):
                answer = await self._calls.unary(methods.CLASSIFY_IMAGE, request, options)
            found += convert.images(answer, len(found))
        return found

    async def _takes_texts(self, options: ClassifyOptions) -> bool:
        """Whether the classifier takes texts, and not images. Raises FailedPrecondition for a language model."""
        name = options.get("model", self._model)
        if name not in self._texts:
            call = CallOptions(timeout=options["timeout"]) if "timeout" in options else CallOptions()
            model = await self.model(name, **call)
            if model.classifier is None:
                raise convert.is_a_language_model(model.name)
            self._texts[name] = model.classifier.input == "text"
        return self._texts[name]

    async def _classify_texts(
        self, documents: Text | Iterable[Document], options: ClassifyOptions
    ) -> list[Classification]:
        texts = requests.classify_text_options(options, self._model)
        found: list[Classification] = []
        for batch in inputs.document_batches(documents):
            with errors.numbered_from(len(found)):
                answer = await self._calls.unary(methods.SCORE_TEXT, requests.score_request(batch, texts), options)
            found += convert.classifications(answer, len(found))
        return found

    async def score(self, documents: Text | Iterable[Document], **options: Unpack[ScoreOptions]) -> list[TextScore]:
        """How likely a language model finds each document, in their order.

        A document is str, bytes or a sequence of token ids. Many documents go in several calls; score_stream is
        faster for them. One document that is refused is raised, as `inputs[its number]`, and no answer is returned;
        score_stream gives the other ones theirs.
        """
        requests.check_options(options, ScoreOptions)
        texts = requests.score_options(options, self._model)
        found: list[TextScore] = []
        for batch in inputs.document_batches(documents):
            with errors.numbered_from(len(found)):
                answer = await self._calls.unary(methods.SCORE_TEXT, requests.score_request(batch, texts), options)
            found += convert.scores(answer, len(found))
        return found

    def score_stream(
        self,
        documents: transport.Source[Document],
        *,
        window: int = WINDOW,
        ordered: bool = True,
        **options: Unpack[ScoreOptions],
    ) -> AsyncAnswerStream[TextScore]:
        """The same for any number of documents, over one stream; iterates over the answers.

        window   how many documents may be read and not yet answered
        ordered  answers come in the order of the documents; otherwise as they are done, and `id` tells the place

        `timeout` is for each answer: how long none may come. See AsyncAnswerStream.
        """
        requests.check_options(options, ScoreOptions)
        texts = requests.score_options(options, self._model)
        return AsyncAnswerStream(
            self._calls, documents, texts, options, convert.stream_score, window=window, ordered=ordered
        )

    def classify_stream(
        self,
        documents: transport.Source[Document],
        *,
        window: int = WINDOW,
        ordered: bool = True,
        **options: Unpack[ClassifyOptions],
    ) -> AsyncAnswerStream[Classification]:
        """classify for any number of texts, over one stream, as score_stream."""
        requests.check_options(options, ClassifyOptions)
        texts = requests.classify_text_options(options, self._model)
        return AsyncAnswerStream(
            self._calls, documents, texts, options, convert.stream_classification, window=window, ordered=ordered
        )

    def generate(self, prompt: Text, **options: Unpack[GenerateOptions]) -> AsyncTextStream:
        """Continues the prompt (str, bytes or token ids); iterates over the text as it is generated. Leaving the
        loop ends the work. GenerateOptions tells the keywords; AsyncTextStream the rest."""
        requests.check_options(options, GenerateOptions)
        return AsyncTextStream(self._calls, requests.generate_request(prompt, options, self._model), options)

    def session(self, id: str = "", *, model: str = "", tokens: int | None = None) -> AsyncSession:
        """A conversation, which the first call begins.

        id      1 to 128 letters, digits or any of "._:-"; empty: a new one, of nobody else
        tokens  how many tokens it must hold now; 0: it must be new. None: whatever it holds, and it may be new
        """
        if not id:
            id, tokens = uuid.uuid4().hex, 0
        return AsyncSession(self._calls, id, model or self._model, tokens)

    async def list_sessions(
        self, *, all_owners: bool = False, model: str = "", **options: Unpack[CallOptions]
    ) -> list[ListedSession]:
        """The sessions that the server has of a model: one's own, or those of all clients, which with authentication
        needs the scope `manage`."""
        requests.check_options(options, CallOptions)
        question = sessions_pb2.ListSessionsRequest(model=inputs.selector(model or self._model), all_owners=all_owners)
        sessions = []
        while True:
            answer = await self._calls.unary(methods.LIST_SESSIONS, question, options)
            sessions += [answers.read(ListedSession, session) for session in answer.sessions]
            if not answer.next_page_token:
                return sessions
            question.page_token = answer.next_page_token

    async def import_session(
        self, id: str, file: File, *, model: str = "", **options: Unpack[CallOptions]
    ) -> AsyncSession:
        """The session that `export` wrote to a file (a path, or what is open for bytes) goes on here under this id.
        Made once; after Unavailable it may be here all the same, and importing it again is safe."""
        requests.check_options(options, CallOptions)
        session = self.session(id, model=model)
        questions = session_file.import_messages(id, session.model, file)
        answer = await self._calls.upload(methods.IMPORT_SESSION, questions, options, session_id=id)
        session.tokens = answer.session_tokens
        return session

    async def tokenize(self, text: Text, *, model: str = "", **options: Unpack[CallOptions]) -> Tokens:
        """The text as the model's token ids."""
        requests.check_options(options, CallOptions)
        request = inference_pb2.TokenizeRequest(
            model=inputs.selector(model or self._model), input=inputs.text_input(text)
        )
        answer = await self._calls.unary(methods.TOKENIZE, request, options)
        return answers.read(Tokens, answer, model=answer.model.name, version=answer.model.version)

    async def models(self, **options: Unpack[CallOptions]) -> list[Model]:
        """Every loaded model, by name and version; without the names of classes."""
        requests.check_options(options, CallOptions)
        answer = await self._calls.unary(methods.LIST_MODELS, models_pb2.ListModelsRequest(), options)
        return [answers.read(Model, model) for model in answer.models]

    async def model(self, model: str = "", **options: Unpack[CallOptions]) -> Model:
        """One model with all that is known of it."""
        requests.check_options(options, CallOptions)
        request = models_pb2.GetModelRequest(model=inputs.selector(model or self._model))
        answer = await self._calls.unary(methods.GET_MODEL, request, options)
        return answers.read(Model, answer)

    async def wait_ready(self, timeout: float = 60.0, *, model: str = "") -> None:
        """Returns as soon as a server answers, and serves the model if one is named here or to the client. Raises
        what was wrong last after `timeout` seconds, and at once what waiting does not change (a wrong token)."""
        wanted = model or self._model
        patience = Attempts(RetryPolicy(attempts=1 << 30, first_wait=0.1, longest_wait=1.0), timeout)
        while True:
            try:
                left = patience.remaining()
                call = CallOptions() if left is None else CallOptions(timeout=max(left, 0.001))
                await (self.model(wanted, **call) if wanted else self.models(**call))
                return
            except (errors.NotFound, errors.DeadlineExceeded, errors.Unavailable) as error:
                # That the model is not there yet is as if nobody answered.
                wait = patience.wait_until_better(error)
            await transport.sleep(wait)

    async def close(self) -> None:
        """Ends all calls and connections. May be called again."""
        await self._calls.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
