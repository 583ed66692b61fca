"""Documents that wait for a server, and what becomes of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from longshort._proto import inference_pb2, types_pb2
from longshort.batch.long_documents import LongScore
from longshort.inputs import Document, document_inputs

Answer = inference_pb2.ScoreTextsResponse
AnyAnswer = Answer | LongScore
# After so many lost connections a document is sent with no other beside it; after as many alone, it is to blame.
LOSSES = 3


@dataclass(slots=True, eq=False)
class Job:
    """A document that is to be scored."""

    # Gone once it was answered.
    document: Document | None
    # About its length in a message.
    bytes: int
    # Is told the answer, once, in the event loop's thread.
    done: Callable[[AnyAnswer], None]
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
        self.done(answer)

    def fail(self, code: int, message: str) -> None:
        """`code`: of google.rpc.Code."""
        self.finish(Answer(error=types_pb2.ItemError(code=code, message=message)))

    @property
    def alone(self) -> bool:
        """Whether it is to be sent with no other beside it."""
        return self.losses >= LOSSES


class Work:
    """What waits, in order. What comes back from a server goes first again.

    Thread: the event loop's.
    """

    def __init__(self) -> None:
        self._waiting: deque[Job] = deque()
        self._suspects: deque[Job] = deque()

    def put(self, jobs: Iterable[Job]) -> None:
        self._waiting.extend(jobs)

    def put_back(self, jobs: Iterable[Job]) -> None:
        for job in reversed(list(jobs)):
            (self._suspects if job.alone else self._waiting).appendleft(job)

    def take(self, unanswered: int) -> Job | None:
        """The next one for a server that has so many unanswered; None if there is none for it now: what goes alone
        waits until the server has nothing else."""
        if self._suspects:
            return self._suspects.popleft() if unanswered == 0 else None
        return self._waiting.popleft() if self._waiting else None

    def __len__(self) -> int:
        return len(self._waiting) + len(self._suspects)
