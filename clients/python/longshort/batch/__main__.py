"""`longshort-batch` and `python -m longshort.batch`."""

from __future__ import annotations

import sys

from longshort.batch.program import main


def run() -> int:
    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(run())
