"""Assembles a generation from the messages of its stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from longshort._proto import inference_pb2
from longshort.answers import Completion, Delta, Generation, Token, Usage, read


def ids_text(text: str, tokens: Sequence[Token]) -> str:
    """The ids as text, for tokens of a model without vocabulary; otherwise empty."""
    if text or any(token.raw for token in tokens):
        return ""
    return " ".join(str(token.id) for token in tokens)


class Assembly:
    """Receives the messages of GenerateStream in order."""

    def __init__(self) -> None:
        self._start = inference_pb2.StreamStart()
        self._parts: dict[int, list[Delta]] = {}
        self._ends: dict[int, inference_pb2.CompletionEnd] = {}
        self._summary: inference_pb2.StreamSummary | None = None

    def add(self, message: inference_pb2.GenerateStreamResponse) -> Delta | None:
        """Returns the message's delta, if it has one."""
        event = message.WhichOneof("event")
        if event == "start":
            self._start = message.start
        elif event == "end":
            self._ends[message.end.index] = message.end
        elif event == "summary":
            self._summary = message.summary
        elif event == "delta":
            delta = read(Delta, message.delta)
            if ids := ids_text(delta.text, delta.tokens):
                has_text = any(part.text for part in self._parts.get(delta.index, ()))
                delta = replace(delta, text=f" {ids}" if has_text else ids)
            self._parts.setdefault(delta.index, []).append(delta)
            return delta
        return None

    def text(self, index: int = 0) -> str:
        """The text of a completion received so far."""
        return "".join(delta.text for delta in self._parts.get(index, ()))

    def generation(self) -> Generation | None:
        """The whole generation, after its summary was received."""
        if self._summary is None:
            return None
        return Generation(
            completions=tuple(self._completion(index) for index in sorted(self._ends)),
            model=self._start.model.name,
            version=self._start.model.version,
            seed=self._start.seed,
            usage=read(Usage, self._summary.usage),
            session_tokens=self._summary.session_tokens if self._summary.HasField("session_tokens") else None,
        )

    def _completion(self, index: int) -> Completion:
        deltas = self._parts.get(index, [])
        tokens: list[Token] = []
        for delta in deltas:
            tokens += delta.tokens
        return read(
            Completion,
            self._ends[index],
            text=self.text(index),
            raw=b"".join(delta.raw for delta in deltas),
            tokens=tuple(tokens),
        )
