"""Checks kernels, backends and speed on a GPU: `check` runs pieces, `day` those of a short loan of a machine, `bundle`
packs what another machine needs. `count` compares what can be counted without a GPU."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from gpu import bundle, counts
from gpu.pieces import CORRECTNESS, DAYS, PIECES, ROOT, Place, environment

SECONDS = 570
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


def arguments_of() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tests/gpu/run",
        description=__doc__,
        epilog="Here: tests/gpu/run bundle gpu.tar.xz. There, in a checkout: tar xf gpu.tar.xz && tests/gpu/run check "
        "--device=cuda:0 --out=results. Rehearsed without a GPU: tests/gpu/run check --device=emulated:0.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    pack = commands.add_parser("bundle", help="build with CUDA, and pack programs and libraries")
    pack.add_argument("out", type=Path)
    pack.add_argument(
        "--libtorch", type=Path, metavar="FOLDER", help="the wheel's folder torch; without, that of .venv"
    )
    pack.add_argument("--emulated", action="store_true", help="the programs of build/release, for a rehearsal")
    check = commands.add_parser("check", help="run pieces; exit status 0 if all hold")
    check.add_argument(
        "pieces", nargs="*", metavar="PIECE", help=f"of {', '.join(PIECES)}; without names, all but the benchmarks"
    )
    check.add_argument("--device", default="cuda:0", help="cuda:N, or emulated:N for a rehearsal")
    check.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="write results.tar.gz there: results.json, what the benchmarks measured, and each piece's output; pieces "
        "of an earlier check stay",
    )
    check.add_argument(
        "--seconds", type=float, default=SECONDS, help="of all pieces; those that do not fit fail (%(default)s)"
    )
    check.add_argument("--no-compile", action="store_true", help="measure no torch.compile, which takes minutes")
    day = commands.add_parser("day", help="run the pieces that fit one call on a machine that is lent for minutes")
    day.add_argument("number", nargs="?", type=int, choices=DAYS, default=1, help="%(choices)s; without, 1")
    day.add_argument("--device", default="cuda:0", help="as for check")
    day.add_argument("--out", type=Path, metavar="FOLDER", help="as for check")
    count = commands.add_parser("count", help="compare tests/models/gpu/counts.txt with this tree, without a GPU")
    count.add_argument("--write", action="store_true", help="write the file")
    arguments = parser.parse_args()
    if unknown := [piece for piece in getattr(arguments, "pieces", []) if piece not in PIECES]:
        parser.error(f"no piece {unknown[0]}; there are {', '.join(PIECES)}")
    return arguments


def main() -> int:
    arguments = arguments_of()
    if arguments.command == "count":
        return counts.count(write=arguments.write)
    if arguments.command == "bundle":
        print(f"{arguments.out}: {bundle.make(arguments.out, arguments.libtorch, emulated=arguments.emulated)} bytes")
        return 0
    if arguments.command == "day":
        seconds, pieces = DAYS[arguments.number]
        return run(arguments, list(pieces), seconds, named=False, compiles=False)
    pieces = arguments.pieces or list(CORRECTNESS)
    return run(arguments, pieces, arguments.seconds, named=bool(arguments.pieces), compiles=not arguments.no_compile)


def run(arguments: argparse.Namespace, pieces: list[str], seconds: float, *, named: bool, compiles: bool) -> int:
    preset = "release" if arguments.device.startswith("emulated:") else "cuda"
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="longshort-gpu-") as scratch:
        place = Place(ROOT / "build" / preset / "bin", arguments.device, Path(scratch), compiles=compiles)
        status = Check(place, arguments.out, started + seconds).run(pieces, named=named)
    print(f"gpu: {time.monotonic() - started:.1f} of {seconds:g} s")
    return status


class Check:
    """Runs pieces until `end`. If `out` is given, archives their output there after each piece."""

    def __init__(self, place: Place, out: Path | None, end: float) -> None:
        self.place, self.end = place, end
        self.archive = out / "results.tar.gz" if out else None
        if self.archive is not None and self.archive.exists():
            with tarfile.open(self.archive) as earlier:
                earlier.extractall(place.out)

    def run(self, names: list[str], *, named: bool) -> int:
        """`named`: a piece that cannot be done here is a failure."""
        if not self.place.is_emulated and shutil.which("nvidia-smi"):
            subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv"], check=False)
        results = []
        for name in names:
            results.append(self._run_piece(name))
            print(results[-1].line(), flush=True)
            self._keep(results)
        if len(results) > 1:
            print("", *table(results), sep="\n")
        held = sum(result.status == "ok" for result in results)
        left_out = [result.piece for result in results if result.status == "left out"]
        not_shown = f"; not shown: {', '.join(left_out)}" if left_out else ""
        print(f"gpu: {held} of {len(names)} pieces hold on {self.place.device}{not_shown}")
        return 0 if held > 0 and held + (0 if named else len(left_out)) == len(names) else 1

    def _run_piece(self, name: str) -> Result:
        command = PIECES[name](self.place)
        if isinstance(command, str):
            return Result(name, "left out", 0, f"left out: {command}")
        started = time.monotonic()
        if started >= self.end:
            return Result(name, "FAIL", 0, "not run: the time of --seconds is over; run it in a call of its own")
        # Its output goes to a file, because another machine may return only a few lines.
        log = self.place.out / f"{name}.log"
        try:
            with log.open("wb") as written:
                status: object = subprocess.run(
                    command, env=environment(self.place), cwd=ROOT, check=False, timeout=self.end - started,
                    stdout=written if self.archive else None, stderr=subprocess.STDOUT if self.archive else None,
                ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            status = "a timeout"
        except OSError as error:
            status = error
        if self.archive:
            lines = log.read_text(errors="replace").splitlines()
            tables = [line for line in lines if line.startswith("|")]
            print(*(lines[-SHOWN_LINES:] if status != 0 else tables or lines[-1:]), sep="\n")
        return Result(name, "ok" if status == 0 else "FAIL", time.monotonic() - started, f"status {status}")

    def _keep(self, results: list[Result]) -> None:
        """Writes the archive. Of pieces of an earlier check, those that were not run again stay."""
        if self.archive is None:
            return
        path = self.place.out / "results.json"
        before = json.loads(path.read_text())["pieces"] if path.exists() else []
        kept = [piece for piece in before if piece["piece"] not in {result.piece for result in results}]
        new = [asdict(result) for result in results]
        path.write_text(json.dumps({"device": self.place.device, "pieces": kept + new}, indent=1) + "\n")
        self.archive.parent.mkdir(parents=True, exist_ok=True)
        # Renamed when complete: a killed check leaves the results of the pieces before.
        beside = self.archive.with_name("results.tar.gz.part")
        with tarfile.open(beside, "w:gz") as archive:
            archive.add(self.place.out, ".")
        beside.rename(self.archive)


def table(results: list[Result]) -> list[str]:
    width = max(len(result.piece) for result in results)
    return [f"{one.piece:<{width}}  {one.status:<8} {one.seconds:>6.1f} s  {summary(one)}" for one in results]


def summary(result: Result) -> str:
    first = (PIECES[result.piece].__doc__ or "").splitlines()[0]
    return first if result.status == "ok" else result.why


if __name__ == "__main__":
    sys.exit(main())
