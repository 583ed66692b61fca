"""Measures a server under load, one scenario at a time, and prints ratios of one run with their targets.

The client shares the cores with the server; run nothing else meanwhile. `tests/bench/load/plot` draws the JSON.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench.load import models, scenarios
from bench.load.bench import ELEMENT_BYTES, Bench

# How long each scenario measures at a time, in seconds.
SECONDS = {"streams": 30.0, "long-prompt": 60.0, "overload": 60.0}
SECONDS |= dict.fromkeys(("identity", "http", "open-inference", "encryption", "traces"), 5.0)
# Seconds and small sizes: shows that a scenario works; its figures mean nothing.
QUICK = {
    "model": "enwiki",
    "seconds": 2.0,
    "streams": 4,
    "prefix_tokens": 512,
    "prefixes": 12,
    "long_tokens": 4096,
    "repeats": 1,
}


def parse(arguments: list[str]) -> argparse.Namespace:
    described = "".join(f"  {name:<14} {run.__doc__}\n" for name, run in scenarios.ALL.items())
    parser = argparse.ArgumentParser(
        prog="tests/bench/load/run",
        description=f"{__doc__}\nscenarios:\n{described}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("scenario", choices=scenarios.ALL, metavar="SCENARIO", help="one of the above")
    parser.add_argument("--json-dir", type=Path, help="write SCENARIO.json there")
    parser.add_argument("--build", type=Path, default=models.ROOT / "build/release", help="whose programs to run")
    model = "formula: 44M parameters (default); enwiki: the zoo's"
    parser.add_argument("--model", choices=("formula", "enwiki"), help=model)
    parser.add_argument("--memory", type=int, default=8192, help="M of the formula model, tokens (%(default)s)")
    parser.add_argument("--long-memory", type=int, default=32768, help="M in cache-count (%(default)s)")
    parser.add_argument("--precision", choices=ELEMENT_BYTES, default="bf16", help="of the server (%(default)s)")
    parser.add_argument("--cache-bytes", type=int, help="of the server's language model (the server's own default)")
    parser.add_argument("--server-option", action="append", default=[], help="pass this to the server; may be repeated")
    parser.add_argument("--seconds", type=float, help=f"how long to measure at a time (default: {SECONDS})")
    parser.add_argument("--streams", type=int, help="streams at once (16)")
    parser.add_argument("--prefix-tokens", type=int, help="tokens of a shared prefix (4096)")
    parser.add_argument("--prefixes", type=int, help="how many prefixes (1000)")
    parser.add_argument("--long-tokens", type=int, help="tokens of the long prompt (32768)")
    parser.add_argument("--rate", type=float, help="short requests per second in long-prompt (30 %% of one caller's)")
    parser.add_argument("--deadline", help="of each call in overload, as in 500ms (none)")
    repeating = "identity, http, open-inference, encryption, traces and shared-prefix"
    parser.add_argument("--repeats", type=int, help=f"how often {repeating} measure (3)")
    parser.add_argument("--quick", action="store_true", help="seconds and small sizes; the figures mean nothing")
    options = parser.parse_args(arguments)
    usual = {"model": "formula", "seconds": SECONDS.get(options.scenario, 10.0), "streams": 16, "repeats": 3}
    usual |= {"prefix_tokens": 4096, "prefixes": 1000, "long_tokens": 32768}
    for name, value in (usual | (QUICK if options.quick else {})).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    return options


def main() -> None:
    arguments = sys.argv[1:]
    options = parse(arguments)
    bench = Bench(options, arguments)
    scenarios.ALL[options.scenario](bench)
    bench.finish(options.scenario)


if __name__ == "__main__":
    main()
