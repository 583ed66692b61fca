"""The window of a stream: the documents whose answers were not yet returned to the caller."""

from __future__ import annotations

from collections.abc import Iterator

from longshort._proto import inference_pb2
from longshort.inputs import Document, document_inputs

Answer = inference_pb2.ScoreTextsResponse


class Window:
    """At most `size` documents, each of which is answered exactly once.

    A document's id is its index, from 0.
    """

    def __init__(self, size: int, ordered: bool) -> None:
        """`ordered`: return the answers in the order of the documents, and keep early ones."""
        if size < 1:
            raise ValueError(f"window is {size}; it must be at least 1")
        self._size = size
        self._ordered = ordered
        self._unanswered: dict[int, inference_pb2.ScoreTextsRequest] = {}
        self._answers: dict[int, Answer] = {}
        self._next_id = 0
        self._next_out = 0
        self._ended = False

    def has_room(self) -> bool:
        """Whether another document may be read."""
        return not self._ended and len(self._unanswered) + len(self._answers) < self._size

    def add(self, document: Document) -> inference_pb2.ScoreTextsRequest:
        """Adds the document and returns its message."""
        first, second = document_inputs(document)
        request = inference_pb2.ScoreTextsRequest(id=self._next_id, input=first, second_input=second)
        self._unanswered[self._next_id] = request
        self._next_id += 1
        return request

    def end(self) -> None:
        """Marks the end of the documents."""
        self._ended = True

    @property
    def ended(self) -> bool:
        return self._ended

    def unanswered(self) -> Iterator[inference_pb2.ScoreTextsRequest]:
        """Returns the unanswered messages in order, for a new stream."""
        return iter(list(self._unanswered.values()))

    def count_unanswered(self) -> int:
        return len(self._unanswered)

    def answer(self, answer: Answer) -> None:
        """Stores an answer; ignores one with an unknown id."""
        if self._unanswered.pop(answer.id, None) is not None:
            self._answers[answer.id] = answer

    def take(self) -> Answer | None:
        """Returns the next answer for the caller, if it has arrived."""
        if not self._ordered:
            return self._answers.pop(next(iter(self._answers))) if self._answers else None
        answer = self._answers.pop(self._next_out, None)
        if answer is not None:
            self._next_out += 1
        return answer
