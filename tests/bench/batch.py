"""longshort-batch beside `longshort score` or `longshort classify`: the same documents and server, in alternation.

    tests/bench/batch MODEL FILE... [--count=N] [--rounds=N] [--classify] [--server-option=OPTION]...

FILE.jsonl has an object a line with its document in "text". Other files are texts, whose documents are the first N
pieces of 1,500 bytes. longshort reads each document from a file of its own, longshort-batch all from one of JSON lines.
Each round scores the documents with both clients, from the start of the program to its end, and the next round in the
other order. Prints seconds, the client's CPU seconds, documents a second, and the server's steps.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from integration.server_process import ROOT, Server

PIECE = 1500  # bytes


def documents_of(files: list[Path], count: int) -> list[str]:
    """At most `count` documents of the files, which are JSON lines or texts. Those of texts are ASCII."""
    documents: list[str] = []
    for file in files:
        content = file.read_text()
        if file.suffix == ".jsonl":
            documents += [json.loads(line)["text"] for line in content.splitlines()]
        else:
            letters = content.encode("ascii", "ignore").decode()
            documents += [letters[at : at + PIECE] for at in range(0, len(letters) - PIECE + 1, PIECE)]
    return documents[:count]


def measure(command: list[str], out: Path) -> tuple[float, float]:
    """Seconds, and CPU seconds, of a program that ends well."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with out.open("wb") as file:
        subprocess.run(command, stdout=file, stderr=subprocess.DEVNULL, check=True)
    seconds, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def steps(server: Server) -> tuple[float, float]:
    """Steps or batches of the server so far, and their seconds."""
    names = ("longshort_step_duration_seconds", "longshort_batch_duration_seconds")
    count, seconds = (sum(server.metric(f"{name}_{what}") for name in names) for what in ("count", "sum"))
    return count, seconds


def run(model: str, texts: list[str], rounds: int, classify: bool, server_options: list[str]) -> None:
    count = len(texts)
    times: dict[str, list[tuple[float, float]]] = {"longshort": [], "longshort-batch": []}
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        files, documents = scratch / "documents", scratch / "documents.jsonl"
        files.mkdir()
        documents.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        for number, text in enumerate(texts):
            (files / f"{number:06}.txt").write_text(text)
        with Server(ROOT / "models/zoo", scratch / "server", *server_options) as server:
            shared = [
                f"--server=127.0.0.1:{server.grpc_port}",
                f"--model={model}",
                *(["--truncate"] if classify else []),
            ]
            command = "classify" if classify else "score"
            program = [str(ROOT / "build/release/bin/longshort"), command, "--json", *shared]
            batch = [sys.executable, "-m", "longshort.batch", command, *shared]
            for turn in range(rounds):
                commands = {
                    "longshort": [*program, str(files)],
                    "longshort-batch": [*batch, str(documents), f"--out={scratch / f'out{turn}'}"],
                }
                for name in sorted(commands, reverse=turn % 2 == 1):
                    before = steps(server)
                    seconds, cpu = measure(commands[name], scratch / "printed")
                    times[name].append((seconds, cpu))
                    made, took = (now - then for now, then in zip(steps(server), before, strict=True))
                    print(
                        f"{name}: {seconds:.2f} s, {cpu:.2f} s of CPU, {count / seconds:.1f} documents/s;"
                        f" {made:.0f} steps of the server took {took:.2f} s",
                        flush=True,
                    )
    ratios = [one[0] / other[0] for one, other in zip(times["longshort"], times["longshort-batch"], strict=True)]
    for name, found in times.items():
        seconds, cpu = (statistics.median(values) for values in zip(*found, strict=True))
        print(f"{name}: median {seconds:.2f} s, {cpu:.2f} s of CPU, {count / seconds:.1f} documents/s")
    share = 100 * statistics.median(ratios)
    print(f"longshort-batch has {share:.0f} % of longshort's documents/s (median of {rounds} rounds)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="of models/zoo")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--count", type=int, default=200, help="documents, at most (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--classify", action="store_true", help="the model is a classifier")
    parser.add_argument("--server-option", action="append", default=[], metavar="OPTION")
    given = parser.parse_args()
    texts = documents_of(given.files, given.count)
    run(given.model, texts, given.rounds, given.classify, given.server_option)


if __name__ == "__main__":
    main()
