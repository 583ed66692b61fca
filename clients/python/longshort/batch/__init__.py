"""Scores, classifies and embeds corpora with Longshort servers: every document exactly once, despite interruptions.

    summary = longshort.batch.score("corpus/*.parquet", "scored", server="127.0.0.1:8500", model="enwiki")

Run `pip install './clients/python[batch]'` in the repository to install it. The program longshort-batch does the same.
"""

from __future__ import annotations

from longshort._extras import missing

try:
    from longshort.batch.api import classify, embed, score
    from longshort.batch.batch_options import BatchOptions
    from longshort.batch.failures import BatchError, InUse, ModelChanged, Refused, TooFewResults, TooManyErrors
    from longshort.batch.pool import Pool
    from longshort.batch.rows import RowError
    from longshort.batch.summary import Summary
    from longshort.batch.verifying import Verified, verify
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
