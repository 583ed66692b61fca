"""Measures the 44M model at several memory lengths; prints a table, the plan's count of bytes beside the real one."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from golden import checkpoints, formula

ROOT = Path(__file__).resolve().parents[2]
CASE = ROOT / "tests/golden/language_model/f_full_formula_seed/config.json"
SEGMENT_LENGTH = 256


def model_directory(config: dict, memory_length: int, folder: Path) -> Path:
    """The formula model with this memory, converted as any checkpoint is."""
    config = config | {"mem_len": memory_length}
    checkpoint = folder / f"{memory_length}.pt"
    checkpoints.write_language_model(checkpoint, config, formula.language_model_weights(config))
    directory = folder / f"M={memory_length}"
    command = [sys.executable, "-m", "longshort_convert", checkpoint, "--out", directory]
    subprocess.run([*command, "--segment-length", str(SEGMENT_LENGTH)], check=True, stdout=subprocess.DEVNULL)
    checkpoint.unlink()
    return directory


def planned_bytes(config: dict, memory_length: int, element_bytes: int) -> int:
    """What a stream must keep in all layers.

    W window rows, (M+L)/C and L/C vectors (keys and values), C raw rows in float32.
    """
    vectors = (memory_length + 2 * SEGMENT_LENGTH) // config["chunk_size"] * config["chunk_rank"]
    kept = 2 * (config["window_len"] + vectors) * element_bytes + 3 * config["chunk_size"] * 4
    return config["n_layer"] * config["d_model"] * kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory", type=int, nargs="+", default=[1024, 8192, 32768], help="memory lengths M in tokens")
    parser.add_argument("--preset", default="release", help="which build to measure")
    arguments = parser.parse_args()
    config = json.loads(CASE.read_text())
    program = ROOT / "build" / arguments.preset / "bin/longshort-language-model-bench"
    with tempfile.TemporaryDirectory(prefix="longshort-bench-") as scratch:
        directories = [str(model_directory(config, memory, Path(scratch))) for memory in arguments.memory]
        found = subprocess.run(
            [program, "--benchmark_format=json", *directories], check=True, stdout=subprocess.PIPE
        ).stdout
    full_attention = {"fp32": 4, "bf16": 2, "int8": 2}  # bytes of a cached number
    print(
        f"{'M':>6} {'precision':>9} {'ms/token':>9} {'prompt tokens/s':>15}"
        f" {'MiB/stream':>10} {'planned':>8} {'full attention':>14}"
    )
    rows = json.loads(found)["benchmarks"]
    for row, prompt in zip(rows[::2], rows[1::2], strict=True):  # a token a step, a prompt's piece a step
        precision = row["name"].split("/")[-4]
        memory, element = int(row["memory_tokens"]), full_attention[precision]
        keys_and_values = 2 * config["n_layer"] * config["d_model"] * memory * element
        print(
            f"{memory:>6} {precision:>9} {row['real_time']:>9.2f}"
            f" {prompt['step_tokens'] / prompt['real_time'] * 1000:>15.0f} {row['stream_bytes'] / 2**20:>10.1f}"
            f" {planned_bytes(config, memory, element) / 2**20:>8.1f} {keys_and_values / 2**20:>14.1f}"
        )


if __name__ == "__main__":
    main()
