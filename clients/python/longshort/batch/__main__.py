"""`python -m longshort.batch`, as `longshort-batch`."""

from __future__ import annotations

import sys

from longshort._command.batch import run

if __name__ == "__main__":
    sys.exit(run())
