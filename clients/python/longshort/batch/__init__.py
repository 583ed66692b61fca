"""Corpora scored and classified by Longshort servers: every document once, whatever comes in between.

    summary = longshort.batch.score("corpus/*.parquet", "scored", server="127.0.0.1:8500", model="enwiki")

Needs `pip install 'longshort[batch]'`. The program longshort-batch does the same.
"""

from __future__ import annotations

from longshort.batch.api import BatchOptions, classify, score
from longshort.batch.failures import BatchError, ModelChanged, Refused, TooManyErrors
from longshort.batch.summary import Summary

__all__ = [
    "BatchError",
    "BatchOptions",
    "ModelChanged",
    "Refused",
    "Summary",
    "TooManyErrors",
    "classify",
    "score",
]
