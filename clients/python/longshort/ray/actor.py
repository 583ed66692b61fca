"""A Ray actor that holds the connections and adds the result columns to batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import grpc
import pyarrow as pa  # type: ignore[import-untyped]

from longshort.batch.inputs.arrow_values import values
from longshort.batch.inputs.rows import RowError, checked_document, text_hash
from longshort.batch.run.pool import Pool
from longshort.inputs import Document
from longshort.ray.own_server import OwnServer, StartServer

# Columns of every result.
OWN_COLUMNS = pa.schema([("text_hash", pa.string()), ("fingerprint", pa.string()), ("error", pa.string())])


@dataclass(frozen=True, slots=True)
class Plan:
    """The arguments of the actors."""

    command: Literal["score", "classify"]
    # The columns of the document, or of both documents.
    texts: tuple[str, ...]
    # The result columns.
    columns: pa.Schema
    # Keywords of Pool.
    pool: dict[str, Any]
    start: StartServer | None
    # Processors that Ray has reserved.
    num_cpus: float


class Actor:
    """Thread-safe: processes any number of batches concurrently."""

    def __init__(self, plan: Plan) -> None:
        """Raises RuntimeError if a server does not start, and the exceptions of Pool."""
        self._plan = plan
        where = dict(plan.pool)
        self._server: OwnServer | None = None
        if plan.start is not None:
            self._server = OwnServer(plan.start, plan.num_cpus)
            where["server"] = self._server.address
        self._pool = Pool(plan.command, documents=len(plan.texts), **where)

    def __call__(self, batch: pa.Table) -> pa.Table:
        """Returns the batch with the result columns. Raises ValueError if a column is missing or exists already, and
        the exceptions of Pool.results."""
        self._check(batch.column_names)
        documents, hashes, errors = self._documents(batch)
        valid = [one for one in documents if one is not None]
        answers = iter(self._pool.results(valid))
        found: list[dict[str, Any] | None] = []
        for place, document in enumerate(documents):
            answer = None if document is None else next(answers)
            if isinstance(answer, RowError):
                errors[place] = answer
                answer = None
            found.append(answer)
        messages = [None if error is None else f"{error.code.name}: {error.message}" for error in errors]
        fingerprints = [self._pool.model.fingerprint] * len(documents)
        for field, column in zip(OWN_COLUMNS, (hashes, fingerprints, messages), strict=True):
            batch = batch.append_column(field, pa.array(column, field.type))
        for field in self._plan.columns:
            results = [None if one is None else one[field.name] for one in found]
            batch = batch.append_column(field, pa.array(results, field.type))
        return batch

    def _check(self, names: Sequence[str]) -> None:
        for name in self._plan.texts:
            if name not in names:
                raise ValueError(f'the dataset has no column "{name}"; it has: {", ".join(names)}')
        for name in (*OWN_COLUMNS.names, *self._plan.columns.names):
            if name in names:
                raise ValueError(
                    f'the dataset already has a column "{name}", which is a result column: rename or drop it first'
                )

    def _documents(self, batch: pa.Table) -> tuple[list[Document | None], list[str | None], list[RowError | None]]:
        """Returns for each row the document and its hash, or the error."""
        documents: list[Document | None] = []
        hashes: list[str | None] = []
        errors: list[RowError | None] = []
        columns = [values(batch.column(name)) for name in self._plan.texts]
        for row in zip(*columns, strict=True):
            try:
                document = checked_document(row, self._plan.texts)
            except ValueError as error:
                documents.append(None)
                hashes.append(None)
                errors.append(RowError(grpc.StatusCode.INVALID_ARGUMENT, str(error)))
                continue
            documents.append(document)
            hashes.append(text_hash(document))
            errors.append(None)
        return documents, hashes, errors
