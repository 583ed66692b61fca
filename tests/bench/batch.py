"""longshort-batch beside `longshort score` or `longshort classify`: the same documents and server, in alternation.

    tests/bench/batch MODEL FILE.jsonl [--rounds=N] [--classify] [-- SERVER_OPTION...]
    tests/bench/batch MODEL movie_reviews.zip [--count=N] [--rounds=N] [-- SERVER_OPTION...]

FILE.jsonl has an object a line with its document in "text". movie_reviews.zip is nltk_data's archive; its documents are
the first 1,500 bytes of its first N reviews that are as long. longshort reads each document from a file of its own,
longshort-batch all from FILE.jsonl. Each round scores the documents with both clients, from the start of the program to
its end, and the next round in the other order. Prints seconds, the client's CPU seconds, documents a second, and the
server's steps.
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
import zipfile
from pathlib import Path

from integration.server_process import ROOT, Server

BEGINNING = 1500  # bytes of a review


def write_beginnings(reviews: Path, count: int, documents: Path) -> None:
    """Writes the beginnings of the first `count` reviews that are long enough, without characters beyond ASCII."""
    with zipfile.ZipFile(reviews) as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".txt"))
        texts = [archive.read(name).decode("latin-1").encode("ascii", "ignore")[:BEGINNING].decode() for name in names]
    beginnings = [text for text in texts if len(text) == BEGINNING][:count]
    documents.write_text("".join(json.dumps({"text": text}) + "\n" for text in beginnings))


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


def run(model: str, documents: Path, rounds: int, classify: bool, server_options: list[str]) -> None:
    texts = [json.loads(line)["text"] for line in documents.read_text().splitlines()]
    count = len(texts)
    times: dict[str, list[tuple[float, float]]] = {"longshort": [], "longshort-batch": []}
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        files = scratch / "documents"
        files.mkdir()
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
    parser.add_argument("documents", type=Path, help="FILE.jsonl or movie_reviews.zip")
    parser.add_argument("--count", type=int, default=200, help="documents of movie_reviews.zip (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--classify", action="store_true", help="the model is a classifier")
    parser.add_argument("server_options", nargs="*", metavar="SERVER_OPTION")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        documents = given.documents
        if documents.suffix == ".zip":
            documents = Path(folder) / "documents.jsonl"
            write_beginnings(given.documents, given.count, documents)
        run(given.model, documents, given.rounds, given.classify, given.server_options)


if __name__ == "__main__":
    main()
