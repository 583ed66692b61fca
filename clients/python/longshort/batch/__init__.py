"""Corpora scored and classified by Longshort servers: every document once, whatever comes in between.

    summary = longshort.batch.score("corpus/*.parquet", "scored", server="127.0.0.1:8500", model="enwiki")

Needs `pip install 'longshort[batch]'`. The program longshort-batch does the same.
"""

from __future__ import annotations

try:
    from longshort.batch.api import BatchOptions, classify, score
    from longshort.batch.failures import BatchError, InUse, ModelChanged, Refused, TooManyErrors
    from longshort.batch.pool import Pool
    from longshort.batch.rows import RowError
    from longshort.batch.summary import Summary
    from longshort.batch.verifying import Verified, verify
except ModuleNotFoundError as error:
    if (error.name or "longshort").startswith("longshort"):
        raise
    missing = (error.name or "").partition(".")[0]
    raise ModuleNotFoundError(
        f"longshort.batch needs {missing}: pip install 'longshort[batch]'", name=missing
    ) from None

__all__ = [
    "BatchError",
    "BatchOptions",
    "InUse",
    "ModelChanged",
    "Pool",
    "Refused",
    "RowError",
    "Summary",
    "TooManyErrors",
    "Verified",
    "classify",
    "score",
    "verify",
]
