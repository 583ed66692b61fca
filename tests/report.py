"""Reads the JUnit files of ctest and pytest. "slowest FILE..." prints the slowest tests, "failed FILE..." one line for
each test that failed, with the reason. Files that do not exist are left out."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

COUNT = 20
REASON_CHARACTERS = 300
# What a test program that is no assertion of GoogleTest says about its end.
SANITIZER = re.compile(r"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error: ")


def cases(paths: list[Path]) -> Iterator[tuple[str, ElementTree.Element]]:
    """Each test with its name, which begins with the folder of its file."""
    for path in paths:
        if path.is_file():
            for case in ElementTree.parse(path).iter("testcase"):
                # ctest has one name for both.
                name = ".".join(dict.fromkeys((case.get("classname", ""), case.get("name", ""))))
                yield f"{path.parent.name}: {name}", case


def slowest(paths: list[Path]) -> list[str]:
    tests = [(float(case.get("time", 0)), name) for name, case in cases(paths)]
    return [f"  {seconds:6.1f} s  {name}" for seconds, name in sorted(tests, reverse=True)[:COUNT]]


def reason_of_pytest(problem: ElementTree.Element) -> str:
    """The place and the message of the error."""
    places = re.findall(r"^\S+:\d+(?=: )", problem.text or "", re.MULTILINE)
    return ": ".join([*places[-1:], problem.get("message", "")])


def reason_of_ctest(case: ElementTree.Element) -> str:
    """Of GoogleTest: the first test that failed and its first assertion. Otherwise the line of a sanitizer, or the time
    and the last line: ctest does not say that a test crashed or took too long."""
    output = case.findtext("system-out") or ""
    lines = [line for line in output.splitlines() if line.strip()]
    for at, line in enumerate(lines):
        if re.search(r": Failure$", line):
            running = [one for one in lines[:at] if one.startswith("[ RUN ")]
            test = running[-1].split("] ", 1)[-1] if running else ""
            rest = itertools.takewhile(lambda one: not one.startswith("["), lines[at : at + 8])
            return " ".join([f"{test}:", *rest])
        if SANITIZER.search(line):
            return line
    return f"it ended after {float(case.get('time', 0)):.1f} s; its last line: {lines[-1] if lines else ''}"


def failed(paths: list[Path]) -> list[str]:
    found = []
    for name, case in cases(paths):
        for problem in [*case.findall("failure"), *case.findall("error")]:
            reason = reason_of_pytest(problem) if problem.text else reason_of_ctest(case)
            found.append(f"FAILED  {name}: {' '.join(reason.split())[:REASON_CHARACTERS]}")
    return found


if __name__ == "__main__":
    read = {"slowest": slowest, "failed": failed}[sys.argv[1]]
    for line in read([Path(name) for name in sys.argv[2:]]):
        print(line)
