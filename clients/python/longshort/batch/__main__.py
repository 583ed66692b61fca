"""`longshort-batch` and `python -m longshort.batch`."""

from __future__ import annotations

import sys


def run() -> int:
    try:
        from longshort.batch.program import main
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("longshort"):
            raise
        sys.stderr.write(f"longshort-batch: {error.name} is missing: pip install 'longshort[batch]'\n")
        return 1
    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(run())
