"""`python -m longshort.batch`, as `longshort-batch`."""

from __future__ import annotations

import sys

from longshort._extras import run_batch

if __name__ == "__main__":
    sys.exit(run_batch())
