"""`python -m longshort`: what the program longshort does, for those without it."""

from __future__ import annotations

import signal
import sys

from longshort._command.program import main


def run() -> int:
    # Asked to end, the program ends its calls, as by Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(run())
