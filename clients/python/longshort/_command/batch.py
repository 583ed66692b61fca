"""The first steps of `longshort-batch`: loading what it needs, which may be missing or interrupted."""

from __future__ import annotations

import sys

from longshort._command import exits
from longshort._command.output import tell


def run() -> int:
    try:
        from longshort.batch.program import main
    except ModuleNotFoundError as error:
        tell(f"longshort-batch: {error}")
        return exits.USAGE
    except KeyboardInterrupt:
        tell("longshort-batch: interrupted")
        return exits.CANCELLED
    return main(sys.argv[1:])
