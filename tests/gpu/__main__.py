"""Checks kernels, backends and speed on a GPU: `check` runs pieces, `bundle` packs what another machine needs."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from gpu import bundle
from gpu.pieces import PIECES, ROOT, Place, environment

PIECE_SECONDS = 570
SHOWN_LINES = 40


@dataclass(frozen=True)
class Result:
    """What became of a piece."""

    piece: str
    status: str  # ok, FAIL, or left out
    seconds: float
    why: str = ""

    def line(self) -> str:
        word = {"left out": "----"}.get(self.status, self.status)
        return f"{word:<4} {self.piece}: {self.why or 'status 0'}, {self.seconds:.1f} s"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="tests/gpu/run",
        description=__doc__,
        epilog="Here: tests/gpu/run bundle /tmp/gpu.tar.gz. There: tar xzf gpu.tar.gz && longshort-gpu/tests/gpu/run "
        "check --device=cuda:0 --out=results. Rehearsed without a GPU: tests/gpu/run check --device=emulated:0.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    pack = commands.add_parser("bundle", help="build with CUDA, and pack programs, libraries and cases")
    pack.add_argument("out", type=Path)
    pack.add_argument(
        "--libtorch", type=Path, metavar="FOLDER", help="the wheel's folder torch; without, that of .venv"
    )
    check = commands.add_parser("check", help="run pieces, each in less than ten minutes; exit status 0 if all hold")
    check.add_argument("pieces", nargs="*", metavar="PIECE", help=f"of {', '.join(PIECES)}; all if none is named")
    check.add_argument("--device", default="cuda:0", help="cuda:N, or emulated:N for a rehearsal")
    check.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="write results.json, what the benchmarks measured, and each piece's output there; pieces of an earlier "
        "check stay",
    )
    arguments = parser.parse_args()
    if arguments.command == "bundle":
        print(f"{arguments.out}: {bundle.make(arguments.out, arguments.libtorch)} bytes")
        return 0
    if unknown := [piece for piece in arguments.pieces if piece not in PIECES]:
        parser.error(f"no piece {unknown[0]}; there are {', '.join(PIECES)}")
    preset = "release" if arguments.device.startswith("emulated:") else "cuda"
    names = arguments.pieces or list(PIECES)
    with tempfile.TemporaryDirectory(prefix="longshort-gpu-") as scratch:
        out = (arguments.out or Path(scratch)).resolve()
        out.mkdir(parents=True, exist_ok=True)
        return run(names, Place(ROOT / "build" / preset / "bin", arguments.device, out), arguments.out is not None)


def run(names: list[str], place: Place, keeps_output: bool) -> int:
    if not place.is_emulated and shutil.which("nvidia-smi"):
        subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv"], check=False)
    results = []
    for name in names:
        results.append(run_piece(name, place, keeps_output))
        print(results[-1].line(), flush=True)
        write_results(place, results)
    if len(results) > 1:
        print("", *table(results), sep="\n")
    held, left_out = (sum(result.status == status for result in results) for status in ("ok", "left out"))
    print(f"gpu: {held} of {len(names)} pieces hold on {place.device}, {left_out} left out")
    return 0 if held + left_out == len(names) and held > 0 else 1


def run_piece(name: str, place: Place, keeps_output: bool) -> Result:
    command = PIECES[name](place)
    if isinstance(command, str):
        return Result(name, "left out", 0, f"left out: {command}")
    started = time.monotonic()
    # Its output goes to a file, because another machine may return only a few lines.
    log = place.out / f"{name}.log"
    try:
        with log.open("wb") as written:
            status: object = subprocess.run(
                command, env=environment(place), cwd=ROOT, check=False, timeout=PIECE_SECONDS,
                stdout=written if keeps_output else None, stderr=subprocess.STDOUT if keeps_output else None,
            ).returncode  # fmt: skip
    except subprocess.TimeoutExpired:
        status = "a timeout"
    except OSError as error:
        status = error
    if keeps_output:
        lines = log.read_text(errors="replace").splitlines()
        tables = [line for line in lines if line.startswith("|")]
        print(*(lines[-SHOWN_LINES:] if status != 0 else tables or lines[-1:]), sep="\n")
    return Result(name, "ok" if status == 0 else "FAIL", time.monotonic() - started, f"status {status}")


def write_results(place: Place, results: list[Result]) -> None:
    """Of pieces that were run before, those that were not run again stay."""
    path = place.out / "results.json"
    before = json.loads(path.read_text())["pieces"] if path.exists() else []
    new = [asdict(result) for result in results]
    kept = [piece for piece in before if piece["piece"] not in {result.piece for result in results}]
    path.write_text(json.dumps({"device": place.device, "pieces": kept + new}, indent=1) + "\n")


def table(results: list[Result]) -> list[str]:
    width = max(len(result.piece) for result in results)
    return [f"{one.piece:<{width}}  {one.status:<8} {one.seconds:>6.1f} s  {summary(one)}" for one in results]


def summary(result: Result) -> str:
    first = (PIECES[result.piece].__doc__ or "").splitlines()[0]
    return first if result.status == "ok" else result.why


if __name__ == "__main__":
    sys.exit(main())
