"""Errors that end a run early. The results so far stay valid, and the run can be resumed."""

from __future__ import annotations

from longshort.batch.report.summary import Summary


class BatchError(Exception):
    """A run ended before all rows were done. The message says what is wrong and what to do."""


class Refused(BatchError):
    """The run cannot begin, or cannot be resumed: the folder holds a run with other inputs, options or another model,
    or no run but other files."""


class InUse(BatchError):
    """Another run uses the folder, or the part, at the moment."""


class ModelChanged(Refused):
    """A server's model has the name of the run's model, but is a different one."""


class TooManyErrors(BatchError):
    """More than `max_errors` rows have errors."""


class TooFewResults(BatchError):
    """All rows are done, or the first ones were tried, and no row, or fewer than `min_success`, have results; or the
    inputs have no rows."""

    def __init__(self, message: str, summary: Summary | None = None) -> None:
        super().__init__(message)
        # None if the run ended early.
        self.summary = summary


class InputDamaged(Exception):
    """An input file is damaged from here on. It becomes the error of one row."""
