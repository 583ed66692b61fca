"""Prints the slowest tests of JUnit files: slowest.py FILE... Files that are not there are left out."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

COUNT = 20


def main() -> None:
    tests = []
    for path in [Path(name) for name in sys.argv[1:]]:
        if path.is_file():
            for case in ElementTree.parse(path).iter("testcase"):
                # ctest has one name for both.
                name = ".".join(dict.fromkeys((case.get("classname"), case.get("name"))))
                tests.append((float(case.get("time", 0)), path.parent.name, name))
    for seconds, preset, name in sorted(tests, reverse=True)[:COUNT]:
        print(f"  {seconds:6.1f} s  {preset}: {name}")


if __name__ == "__main__":
    main()
