"""A conversation that a server remembers between calls."""

from __future__ import annotations

import contextlib
from typing import Unpack

from longshort import answers, errors, methods, requests, session_file
from longshort._async.calls import AsyncCalls
from longshort._async.text_stream import AsyncTextStream
from longshort._proto import sessions_pb2, types_pb2
from longshort.answers import ExportedSession, Generation, TextScore
from longshort.inputs import Text, selector, text_input
from longshort.metadata import CallOptions
from longshort.requests import GenerateOptions, ScoreOptions
from longshort.session_file import File


class AsyncSession:
    """Each call goes on where the last one ended; the first one begins the session at the server. Use it in a
    `with`, which closes it in the end, or call `close()`; a session that is left alone ends after the server's
    --session-time-to-live.

    `tokens` is how many tokens the session held after the last answer; None while that is not known. Calls tell it
    to the server (expected_tokens), so that none goes on from an answer that nobody saw, and so that they can be
    tried again. A call that failed or was cancelled leaves the session as it was; if its answer was whole already,
    the next call raises FailedPrecondition.

    Thread: one call at a time (another one is Aborted).
    """

    def __init__(self, calls: AsyncCalls, id: str, model: str, tokens: int | None) -> None:
        self._calls = calls
        self.id = id
        self.model = model
        self.tokens = tokens

    def generate(self, prompt: Text | None = None, **options: Unpack[GenerateOptions]) -> AsyncTextStream:
        """Goes on with the prompt (None: from where the session ends), as Client.generate does."""
        requests.check_options(options, GenerateOptions)
        request = requests.generate_request(prompt, options, self.model, self._message())
        return AsyncTextStream(self._calls, request, options, self._take)

    async def score(self, document: Text, **options: Unpack[ScoreOptions]) -> TextScore:
        """How likely the model finds the document behind what the session holds; the session then holds it, too."""
        requests.check_options(options, ScoreOptions)
        request = requests.score_request([(text_input(document), None)], requests.score_options(options, self.model))
        request.session.CopyFrom(self._message())
        answer = await self._calls.unary(
            methods.SCORE_TEXT, request, options, session_id=self.id, safe=self.tokens is not None
        )
        score = answers.read(TextScore, answer.scores[0], model=answer.model.name, version=answer.model.version)
        self.tokens = score.session_tokens
        return score

    async def export(self, file: File, **options: Unpack[CallOptions]) -> ExportedSession:
        """Writes the session to a file (a path, or what is open for bytes), which `import_session` takes at another
        server. It stays here, too. Raises LongshortError and OSError; then no file was changed."""
        requests.check_options(options, CallOptions)
        question = sessions_pb2.ExportSessionRequest(model=selector(self.model), session_id=self.id)
        call = self._calls.begin(options, session_id=self.id)
        while True:
            stream = call.stream(methods.EXPORT_SESSION, question)
            try:
                part = await stream.read()
            except errors.LongshortError as error:
                await call.recover(error)
                continue
            try:
                with session_file.written(file) as opened:
                    header = part.header if part is not None else sessions_pb2.SessionHeader()
                    while part is not None:
                        session_file.write_part(opened, part)
                        part = await stream.read()
                return answers.read(ExportedSession, header)
            finally:
                stream.cancel()

    async def close(self, **options: Unpack[CallOptions]) -> None:
        """Ends the session at the server. Ends well if there is none any more."""
        requests.check_options(options, CallOptions)
        question = methods.end_session(selector(self.model), self.id)
        with contextlib.suppress(errors.NotFound):
            await self._calls.unary(methods.CLOSE_SESSION, question, options, session_id=self.id)

    async def __aenter__(self) -> AsyncSession:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            await self.close()
            return
        with contextlib.suppress(errors.LongshortError):  # what was raised tells more
            await self.close()

    def _message(self) -> types_pb2.Session:
        return types_pb2.Session(id=self.id, expected_tokens=self.tokens)

    def _take(self, generation: Generation) -> None:
        self.tokens = generation.session_tokens
