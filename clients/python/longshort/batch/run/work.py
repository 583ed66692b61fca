"""The queue of documents that wait for a server."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from longshort._proto import inference_pb2, types_pb2
from longshort.batch.run.long_documents import LongScore
from longshort.inputs import Document, document_inputs

Answer = inference_pb2.ScoreTextsResponse
AnyAnswer = Answer | LongScore
# After this many lost connections, a document is sent alone. After this many more, it becomes an error.
LOSSES = 3


@dataclass(slots=True, eq=False)
class Job:
    """A document to score."""

    # None once it was answered.
    document: Document | None
    # Its approximate bytes in a message.
    bytes: int
    # Called once with the answer, in the event loop's thread.
    on_answer: Callable[[AnyAnswer], None]
    # How often a connection was lost while a server had it.
    losses: int = 0
    # When it was sent, by the loop's clock.
    sent: float = 0.0

    def request(self, id: int) -> inference_pb2.ScoreTextsRequest:
        assert self.document is not None
        first, second = document_inputs(self.document)
        return inference_pb2.ScoreTextsRequest(id=id, input=first, second_input=second)

    def finish(self, answer: AnyAnswer) -> None:
        self.document = None
        self.on_answer(answer)

    def fail(self, code: int, message: str) -> None:
        """`code`: a value of google.rpc.Code."""
        self.finish(Answer(error=types_pb2.ItemError(code=code, message=message)))

    @property
    def alone(self) -> bool:
        """Whether it must be sent alone."""
        return self.losses >= LOSSES


class Work:
    """Waiting documents, in order. Documents that a server returns go first.

    Thread: that of the event loop.
    """

    def __init__(self) -> None:
        self._waiting: deque[Job] = deque()
        self._suspects: deque[Job] = deque()

    def put(self, jobs: Iterable[Job]) -> None:
        self._waiting.extend(jobs)

    def requeue(self, jobs: Iterable[Job]) -> None:
        for job in reversed(list(jobs)):
            (self._suspects if job.alone else self._waiting).appendleft(job)

    def take(self, unanswered: int) -> Job | None:
        """The next document for a server with `unanswered` documents; None if there is none. A document that must be
        sent alone waits until the server has no other."""
        if self._suspects:
            return self._suspects.popleft() if unanswered == 0 else None
        return self._waiting.popleft() if self._waiting else None

    def __len__(self) -> int:
        return len(self._waiting) + len(self._suspects)
