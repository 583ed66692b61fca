"""`python -m longshort`: what the program longshort does, for those without it."""

from __future__ import annotations

import sys

from longshort._command.program import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
