"""Scores, classifies and embeds corpora with Longshort servers: every document exactly once, despite interruptions.

    summary = longshort.batch.score("corpus/*.parquet", "scored", server="127.0.0.1:8500", model="enwiki")

Run `pip install './clients/python[batch]'` in the repository to install it. The program longshort-batch does the same.
"""

from __future__ import annotations

from longshort._extras import missing

try:
    from longshort.batch.inputs.rows import RowError
    from longshort.batch.output.verifying import Verified, verify
    from longshort.batch.report.failures import BatchError, InUse, ModelChanged, Refused, TooFewResults, TooManyErrors
    from longshort.batch.report.summary import Summary
    from longshort.batch.run.api import classify, embed, score
    from longshort.batch.run.options import BatchOptions
    from longshort.batch.run.pool import Pool
except ModuleNotFoundError as error:
    raise missing("longshort.batch", "batch", error) from None

__all__ = [
    "BatchError",
    "BatchOptions",
    "InUse",
    "ModelChanged",
    "Pool",
    "Refused",
    "RowError",
    "Summary",
    "TooFewResults",
    "TooManyErrors",
    "Verified",
    "classify",
    "embed",
    "score",
    "verify",
]
