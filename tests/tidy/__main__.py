"""Runs clang-tidy over the C++ files of the project except tests/. Skips files that were clean before.

Caches the result "clean" of each file by its content in ~/.cache/longshort-tidy (or XDG_CACHE_HOME). Reads a file with
a finding again each time. Exit status: 0 if no file has a finding, else 1.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tidy.clean_files import CleanFiles, digest

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build/tidy"
CLANG_TIDY = ROOT / ".venv/bin/clang-tidy"
# Clang does not know these options.
GCC_ONLY = [f"--removed-arg={option}" for option in ("-findirect-inlining", "-finline-small-functions")]


def main() -> int:
    arguments = parse_arguments()
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    clean = CleanFiles(home / "longshort-tidy", ROOT, tools())
    commands = [command for command in json.loads((BUILD / "compile_commands.json").read_text()) if is_own(command)]
    # Before they are read: a change made meanwhile has another key.
    keys = {command["file"]: clean.key(command) for command in commands}
    left = [command for command in commands if arguments.all or not clean.has(keys[command["file"]])]
    print(f"{len(commands) - len(left)} of {len(commands)} files were found clean before", flush=True)

    def check(command: dict[str, str]) -> tuple[str, float, subprocess.CompletedProcess[str]]:
        start = time.monotonic()
        words = [CLANG_TIDY, "-p", BUILD, "--quiet", *GCC_ONLY, command["file"]]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        return command["file"], time.monotonic() - start, done

    findings = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for number, (file, seconds, done) in enumerate(pool.map(check, left), 1):
            print(f"[{number}/{len(left)}] {seconds:.1f} s {file}".replace(f"{ROOT}/", ""), flush=True)
            if done.returncode == 0 and not done.stdout.strip():
                clean.add(keys[file])
            else:
                # Of standard error, only what explains a run that found nothing and failed.
                findings.append(done.stdout.strip() or f"{file}: exit status {done.returncode}\n{done.stderr}")
    # Repeated at the end of the log.
    lines = {line for text in findings for line in text.splitlines() if " error: " in line or " warning: " in line}
    print("\n".join([*findings, *sorted(lines)]).replace(f"{ROOT}/", ""), end="\n" if findings else "")
    print(f"{len(left) - len(findings)} of {len(left)} files that were read are clean")
    return 1 if findings else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="PYTHONPATH=tests .venv/bin/python -m tidy", description=__doc__)
    parser.add_argument("--all", action="store_true", help="read every file, whatever was found before")
    return parser.parse_args()


def is_own(command: dict[str, str]) -> bool:
    """A file of the project, or a list of such files that are compiled together (cmake/LongshortUnity.cmake)."""
    path = Path(command["file"])
    if path.parent.name == "Unity":
        path = ROOT / re.findall(r'#include "(.+)"', path.read_text())[-1]
        return path.exists() and path.relative_to(ROOT).parts[0] != "tests"
    return path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] not in ("build", "tests")


def tools() -> str:
    """What else a result depends on: clang-tidy and its configuration, and the libraries' headers."""
    version = [CLANG_TIDY, "--version"]
    packages = ["dpkg-query", "--show", "*-dev", "g++*"]
    runs = [subprocess.run(words, capture_output=True, text=True, check=True) for words in (version, packages)]
    files = [ROOT / ".clang-tidy", ROOT / "deploy/requirements.txt", *Path(__file__).parent.glob("*.py")]
    return "\n".join([*(run.stdout for run in runs), *(digest(path) for path in sorted(files))])


if __name__ == "__main__":
    sys.exit(main())
