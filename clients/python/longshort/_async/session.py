"""A conversation that a server remembers between calls."""

from __future__ import annotations

import contextlib
from typing import Unpack

from longshort import answers, errors, methods, requests, session_file
from longshort._async.calls import AsyncCalls
from longshort._async.text_stream import AsyncTextStream
from longshort._proto import sessions_pb2, types_pb2
from longshort.answers import ExportedSession, TextScore
from longshort.inputs import Text, selector, text_input
from longshort.metadata import CallOptions
from longshort.requests import GenerateOptions, ScoreOptions
from longshort.session_file import File


class AsyncSession:
    """Each call continues where the previous one ended. The first call creates the session on the server. Use the
    session in a `with`, or call `close()`; an idle session expires after the server's --session-time-to-live.

    `tokens` is the number of tokens in the session after the last answer, or None if unknown. Calls send it to the
    server (expected_tokens). This makes retries safe, and prevents a call from continuing after an answer that was
    lost. A generation that is left (by break, say) or fails keeps its prompt and the text that was read until then,
    unless nothing was read, or keep_partial is False: then the session is as before. If the server has lost this place,
    the next call raises FailedPrecondition or NotFound.

    Not thread-safe: a concurrent call raises Aborted.
    """

    def __init__(self, calls: AsyncCalls, id: str, model: str, tokens: int | None) -> None:
        self._calls = calls
        self.id = id
        self.model = model
        self.tokens = tokens

    def generate(self, prompt: Text | None = None, **options: Unpack[GenerateOptions]) -> AsyncTextStream:
        """Continues the session with the prompt (None for no new text), like Client.generate."""
        requests.check_options(options, GenerateOptions)
        request = requests.generate_request(prompt, options, self.model, self._message())
        return AsyncTextStream(self._calls, request, options, self._take)

    async def score(self, document: Text, **options: Unpack[ScoreOptions]) -> TextScore:
        """Computes the document's likelihood given the session, and appends the document to the session."""
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
        """Writes the session to a file (a path or a binary file object), which `import_session` can read for another
        server. The session also stays on this one. Raises LongshortError and OSError; then no file was changed."""
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
        """Ends the session on the server. Succeeds if it has already ended."""
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
        with contextlib.suppress(errors.LongshortError):  # the original exception matters more
            await self.close()

    def _message(self) -> types_pb2.Session:
        return types_pb2.Session(id=self.id, expected_tokens=self.tokens)

    def _take(self, tokens: int | None) -> None:
        self.tokens = tokens
