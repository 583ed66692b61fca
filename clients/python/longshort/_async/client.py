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
from longshort.answers import Classification, Embedding, ListedSession, Model, TextScore, Tokens
from longshort.connection import Connection, Paths, split_servers
from longshort.inputs import Document, Image, Text
from longshort.metadata import CallOptions
from longshort.requests import ClassifyOptions, EmbedOptions, GenerateOptions, ScoreOptions
from longshort.retries import DEFAULT_POLICY, Attempts, RetryPolicy
from longshort.session_file import File

# Documents of a stream in flight: the servers' own limit.
WINDOW = 64


class AsyncClient:
    """A connection to one Longshort server, or to several.

    Connects lazily, with the first call. Every call has a deadline, and is retried if that is safe (RetryPolicy). Every
    method also takes the keywords of CallOptions: timeout, priority, request_id, traceparent, tracestate.

    Errors: a subclass of LongshortError for each status code; ValueError, TypeError and OSError for invalid arguments.

    Use it in a `with`, or call `close()`. After fork(), each process must make its own client.

    Thread-safe.
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
        """Reads the files. Raises ValueError for invalid arguments and files.

        server           HOST:PORT. Several addresses (a sequence, or separated by commas) are used round-robin, as are
                         all addresses of a host name. The calls of a session all go to one of several addresses; if
                         one name has several addresses, sessions need a proxy.
        model            default model, "name" or "name/version"; may be empty if the server has only one model
        timeout          deadline of a call in seconds, including retries; inf means none
        retry            the retry policy of failed calls
        client_id        name of this client, which owns its sessions; with --trust-client-id it has a fair share
        tls              use TLS, and trust the CAs that this system trusts; each of the next four also enables TLS
        tls_ca           PEM file of the CAs to trust instead
        tls_certificate  PEM file of the client certificate
        tls_key          PEM file of its private key
        tls_server_name  name in the server's certificate, if it differs from the host in `server`
        token            bearer token, sent with every call over TLS or to this machine only
        token_file       file with the token instead; the client reads it again when it changes
        insecure         allow sending the token unencrypted to other machines
        health_check     skip servers that report that they are not serving (False: for servers with --protect-health)

        If a connection fails, the client reads changed TLS files again.
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
        # Cache: model name to whether the model takes texts.
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
        """Classifies the items and returns the answers in their order. The model determines whether items are images
        or texts.

        An image is a file's path or its bytes, a file opened in binary mode, a numpy array ([height, width] or
        [height, width, channels]; uint8, or floats in [0, 1]) or a PIL image, of any size. JPEG, PNG and WebP files
        are sent unchanged. Other formats are converted to PNG if Pillow is installed. If an image cannot be
        classified, its answer has an `error`.

        A text is str, bytes or a sequence of token ids; for models that compare two documents, a tuple of two texts.
        If the server refuses one text, the call raises an error that names it as `inputs[index]`. classify_stream is
        faster for many texts, and returns the answers of the others.

        Splits many items into several calls. Queries each model name once, to learn what it takes.
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

    @overload
    async def embed(self, items: Image | Iterable[Image], **options: Unpack[EmbedOptions]) -> list[Embedding]: ...
    @overload
    async def embed(self, items: Text | Iterable[Document], **options: Unpack[EmbedOptions]) -> list[Embedding]: ...
    async def embed(self, items: Any, **options: Unpack[EmbedOptions]) -> list[Embedding]:
        """Embeds the items with a classifier and returns the answers in their order: the vectors that its head reads,
        or another pooling of its last layer. numpy.array of the result is [items, width].

        Items, errors and calls are those of classify. A classifier that compares two documents embeds each document by
        itself; only models that read a pair as one text take tuples of two texts.
        """
        requests.check_options(options, EmbedOptions)
        request = requests.embed_request(options, self._model)
        batches = inputs.embed_batches(items, request, await self._takes_texts(options))
        found: list[Embedding] = []
        for batch in batches:
            with errors.numbered_from(len(found)):
                answer = await self._calls.unary(methods.EMBED, batch, options)
            found += convert.embeddings(answer, len(found))
        return found

    async def _takes_texts(self, options: ClassifyOptions | EmbedOptions) -> bool:
        """Whether the classifier takes texts rather than images. Raises FailedPrecondition for a language model."""
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
        """Computes the likelihood of each document under a language model, in their order.

        A document is str, bytes or a sequence of token ids. If the server refuses one document, the call raises an
        error that names it as `inputs[index]`. Splits many documents into several calls. score_stream is faster for
        many documents, and returns the answers of the others.
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
        """The same for any number of documents over one stream. Iterates over the answers.

        window   maximum number of documents that are read but not yet answered
        ordered  return the answers in the order of the documents; otherwise in the order in which they are finished,
                 and `id` is the document's index

        `timeout` limits the wait for each answer. See AsyncAnswerStream.
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
        """classify for any number of texts over one stream, like score_stream."""
        requests.check_options(options, ClassifyOptions)
        texts = requests.classify_text_options(options, self._model)
        return AsyncAnswerStream(
            self._calls, documents, texts, options, convert.stream_classification, window=window, ordered=ordered
        )

    def generate(self, prompt: Text, **options: Unpack[GenerateOptions]) -> AsyncTextStream:
        """Continues the prompt (str, bytes or token ids). Iterates over the text as it is generated; leaving the loop
        cancels the call. See GenerateOptions for the keywords, AsyncTextStream for the result."""
        requests.check_options(options, GenerateOptions)
        return AsyncTextStream(self._calls, requests.generate_request(prompt, options, self._model), options)

    def session(self, id: str = "", *, model: str = "", tokens: int | None = None) -> AsyncSession:
        """A session, which its first call creates on the server.

        id      1 to 128 letters, digits or any of "._:-"; if empty, a new random id
        tokens  number of tokens that the session must hold now; 0 if it must be new; None to accept any state
        """
        if not id:
            id, tokens = uuid.uuid4().hex, 0
        return AsyncSession(self._calls, id, model or self._model, tokens)

    async def list_sessions(
        self, *, all_owners: bool = False, model: str = "", **options: Unpack[CallOptions]
    ) -> list[ListedSession]:
        """Lists a model's sessions on the server: those of this client, or of all clients. With authentication, the
        latter needs the scope `manage`."""
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
        """Imports a session that `export` wrote to a file (a path or a binary file object), under this id. Not retried:
        after Unavailable, the import may have succeeded, and repeating it is safe."""
        requests.check_options(options, CallOptions)
        session = self.session(id, model=model)
        questions = session_file.import_messages(id, session.model, file)
        answer = await self._calls.upload(methods.IMPORT_SESSION, questions, options, session_id=id)
        session.tokens = answer.session_tokens
        return session

    async def tokenize(self, text: Text, *, model: str = "", **options: Unpack[CallOptions]) -> Tokens:
        """Converts the text to the model's token ids."""
        requests.check_options(options, CallOptions)
        request = inference_pb2.TokenizeRequest(
            model=inputs.selector(model or self._model), input=inputs.text_input(text)
        )
        answer = await self._calls.unary(methods.TOKENIZE, request, options)
        return answers.read(Tokens, answer, model=answer.model.name, version=answer.model.version)

    async def models(self, **options: Unpack[CallOptions]) -> list[Model]:
        """Lists the loaded models, sorted by name and version, without class names."""
        requests.check_options(options, CallOptions)
        answer = await self._calls.unary(methods.LIST_MODELS, models_pb2.ListModelsRequest(), options)
        return [answers.read(Model, model) for model in answer.models]

    async def model(self, model: str = "", **options: Unpack[CallOptions]) -> Model:
        """Returns one model with all its properties."""
        requests.check_options(options, CallOptions)
        request = models_pb2.GetModelRequest(model=inputs.selector(model or self._model))
        answer = await self._calls.unary(methods.GET_MODEL, request, options)
        return answers.read(Model, answer)

    async def wait_ready(self, timeout: float = 60.0, *, model: str = "") -> None:
        """Waits until a server answers and serves the model (the argument, or the client's default, if any). Raises the
        last error after `timeout` seconds; raises permanent errors, such as a wrong token, immediately."""
        wanted = model or self._model
        patience = Attempts(RetryPolicy(attempts=1 << 30, first_wait=0.1, longest_wait=1.0), timeout)
        while True:
            try:
                left = patience.remaining()
                call = CallOptions() if left is None else CallOptions(timeout=max(left, 0.001))
                await (self.model(wanted, **call) if wanted else self.models(**call))
                return
            except (errors.NotFound, errors.DeadlineExceeded, errors.Unavailable) as error:
                # A model that is not loaded yet counts as an unavailable server.
                wait = patience.wait_until_better(error)
            await transport.sleep(wait)

    async def close(self) -> None:
        """Ends all calls and connections. Idempotent."""
        await self._calls.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
