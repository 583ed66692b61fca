"""`python -m longshort.batch` is the program `longshort-batch`."""

from __future__ import annotations

import sys

from longshort._extras import run_batch

if __name__ == "__main__":
    sys.exit(run_batch())
