"""Checks the GPU's kernels and backends on a device: `check` runs pieces, `bundle` packs what another machine needs."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from pathlib import Path

from gpu import bundle
from gpu.pieces import PIECES, ROOT, Place, environment

PIECE_SECONDS = 570


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="tests/gpu/run",
        description=__doc__,
        epilog="Here: tests/gpu/run bundle /tmp/gpu.tar.gz. There: tar xzf gpu.tar.gz && longshort-gpu/tests/gpu/run "
        "check --device=cuda:0. Rehearsed without a GPU: tests/gpu/run check --device=emulated:0.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    pack = commands.add_parser("bundle", help="build with CUDA, and pack programs, libraries and cases")
    pack.add_argument("out", type=Path)
    check = commands.add_parser("check", help="run pieces, each in less than ten minutes; exit status 0 if all hold")
    check.add_argument("pieces", nargs="*", metavar="PIECE", help=f"of {', '.join(PIECES)}; all if none is named")
    check.add_argument("--device", default="cuda:0", help="cuda:N, or emulated:N for a rehearsal")
    arguments = parser.parse_args()
    if arguments.command == "bundle":
        print(f"{arguments.out}: {bundle.make(arguments.out)} bytes")
        return 0
    if unknown := [piece for piece in arguments.pieces if piece not in PIECES]:
        parser.error(f"no piece {unknown[0]}; there are {', '.join(PIECES)}")
    preset = "release" if arguments.device.startswith("emulated:") else "cuda"
    return run(arguments.pieces or list(PIECES), Place(ROOT / "build" / preset / "bin", arguments.device))


def run(names: list[str], place: Place) -> int:
    if not place.is_emulated and shutil.which("nvidia-smi"):
        subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv"], check=False)
    held = 0
    left_out = 0
    for name in names:
        command = PIECES[name](place)
        if isinstance(command, str):
            print(f"---- {name}: left out: {command}", flush=True)
            left_out += 1
            continue
        started = time.monotonic()
        variables = environment(place)
        try:
            status = subprocess.run(command, env=variables, cwd=ROOT, check=False, timeout=PIECE_SECONDS).returncode
        except subprocess.TimeoutExpired:
            status = "a timeout"
        except OSError as error:
            status = error
        held += status == 0
        seconds = time.monotonic() - started
        print(f"{'ok  ' if status == 0 else 'FAIL'} {name}: status {status}, {seconds:.1f} s", flush=True)
    print(f"gpu: {held} of {len(names)} pieces hold on {place.device}, {left_out} left out")
    return 0 if held + left_out == len(names) and held > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
