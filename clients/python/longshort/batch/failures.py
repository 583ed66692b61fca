"""What ends a run before its time. What was written before stays valid, and the run can be resumed."""

from __future__ import annotations


class BatchError(Exception):
    """A run that ended before all rows were done. Its message says what is wrong and what to do."""


class Refused(BatchError):
    """The run cannot begin, or cannot go on here: other inputs, options or another model than it was begun with, or a
    folder that holds something else."""


class InUse(BatchError):
    """Another run has the folder, or the part. It passes."""


class ModelChanged(Refused):
    """A server has another model under the same name than the run was begun with."""


class TooManyErrors(BatchError):
    """More rows than `max_errors` have failed."""


class InputDamaged(Exception):
    """The content of an input file is broken from here on; becomes the error of one row."""
