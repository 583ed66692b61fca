"""When a run ends because of its rows' errors."""

from __future__ import annotations

from longshort.batch.inputs.rows import Row
from longshort.batch.report.counts import cause
from longshort.batch.report.failures import BatchError, TooFewResults, TooManyErrors

# If so many first rows all have the same error, the run ends.
FIRST_ROWS = 100


class ErrorLimits:
    """Thread: one."""

    def __init__(self, *, max_errors: int | None, errors_before: int, check_first: bool) -> None:
        """
        max_errors   includes `errors_before`, the errors of earlier runs
        check_first  end if the first rows all have the same error
        """
        self._max_errors = max_errors
        self._errors = errors_before
        # The causes of the first rows' errors, while there is no other result.
        self._first_causes: list[str] | None = [] if check_first else None
        # Why the run ends, if it does.
        self.failure: BatchError | None = None

    def add_result(self) -> None:
        self._first_causes = None

    def add_error(self, row: Row, index: int) -> None:
        """`index`: of the row in this run, from 0."""
        self._errors += 1
        message = row.error.message if row.error else ""
        if index < FIRST_ROWS and self._first_causes is not None:
            self._first_causes.append(cause(message))
            if len(set(self._first_causes)) > 1:
                self._first_causes = None
            elif len(self._first_causes) == FIRST_ROWS:
                self._fail(TooFewResults(_first_rows_message(row, message)))
        if self._max_errors is not None and self._errors > self._max_errors:
            self._fail(
                TooManyErrors(
                    f"{self._errors} rows have errors; max_errors is {self._max_errors}. The last is row {row.ordinal}"
                    f" of {row.input}: {message}. The folder errors of the output has those of finished shards. To"
                    " resume, run the same command with a larger max_errors"
                )
            )

    def _fail(self, failure: BatchError) -> None:
        self.failure = self.failure or failure


def _first_rows_message(row: Row, message: str) -> str:
    advice = "Correct the inputs or the options"
    if message.startswith('there is no "'):
        advice = "Give the field or column with the documents by --text (text=)"
    return (
        f"the first {FIRST_ROWS} rows all have the same error, so the run has ended. Row {row.ordinal} of {row.input}:"
        f" {message}. {advice}; with --min-success=0 (min_success=0) a run goes on after such a beginning"
    )
