"""Checks that bfloat16, or int8 on the CPU, changes results on a device only within its bound.

Of a text's score by models/zoo/enwiki, which was trained on Wikipedia's markup and has seen none of these texts: at
most 0.003 bits per byte, and 1 % of the likeliest bytes. Of expressions by models/zoo/listops: 1 % of the likeliest
values.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LANGUAGE_MODEL, CLASSIFIER = ROOT / "models/zoo/enwiki/1", ROOT / "models/zoo/listops/1"
MOST_BITS = 0.003
LEAST_SAME = 0.99


def text(emulated: bool) -> bytes:
    """A GPU reads this project's documents. An emulated one reads some hundred bytes in seconds: so many that a percent
    of them is more than chance.
    """
    paragraph = (ROOT / "deploy/paragraph.txt").read_bytes()
    if emulated:
        return paragraph + (ROOT / "tests/clients/python/batch/held_out/enwiki.xml").read_bytes()[:640]
    return b"".join([paragraph, *(path.read_bytes() for path in sorted((ROOT / "docs").rglob("*.md")))])


def expressions(emulated: bool) -> bytes:
    """ListOps, one a line; 16 tokens at least."""
    draw = random.Random(1)

    def expression(depth: int) -> str:
        if depth == 0 or draw.random() < 0.2:
            return str(draw.randrange(10))
        parts = " ".join(expression(depth - 1) for _ in range(draw.randint(2, 5)))
        return f"[{draw.choice(['MIN', 'MAX', 'MED', 'SM'])} {parts} ]"

    count, depth = (40, 3) if emulated else (4000, 5)
    found: list[str] = []
    while len(found) < count:
        made = expression(depth)
        if len(made.split()) >= 16:
            found.append(made)
    return "".join(f"{line}\n" for line in found).encode()


def judge_text(found: dict[str, float], precision: str = "bf16") -> list[str]:
    """What does not hold."""
    wrong = []
    change = found[f"{precision}_bits_per_token"] - found["fp32_bits_per_token"]
    if not abs(change) <= MOST_BITS:
        wrong.append(f"bits per byte change by {change:+.5f}; at most {MOST_BITS} is allowed")
    if not found["same_likeliest_token"] >= LEAST_SAME:
        wrong.append(f"the likeliest byte is the same in {found['same_likeliest_token']:.4f}; {LEAST_SAME} is needed")
    return wrong


def judge_classes(found: dict[str, float]) -> list[str]:
    """What does not hold."""
    if found["same_likeliest_class"] >= LEAST_SAME:
        return []
    return [f"the likeliest class is the same in {found['same_likeliest_class']:.4f}; {LEAST_SAME} is needed"]


def measure(model: Path, content: bytes, device: str, programs: Path, precision: str) -> dict[str, float]:
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        command = [
            programs / "longshort-bf16-difference", f"--model={model}", f"--file={file.name}", f"--device={device}",
            f"--precision={precision}",
        ]  # fmt: skip
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def run(device: str, programs: Path, precision: str) -> int:
    emulated = device.startswith("emulated:")
    read = measure(LANGUAGE_MODEL, text(emulated), device, programs, precision)
    classified = measure(CLASSIFIER, expressions(emulated), device, programs, precision)
    wrong = judge_text(read, precision) + judge_classes(classified)
    print(
        f"{precision}: {read['tokens']} bytes, {read['fp32_bits_per_token']:.5f} bits per byte in float32, "
        f"{read[f'{precision}_bits_per_token']:.5f} in {precision}, the same likeliest byte in "
        f"{read['same_likeliest_token']:.4f}; {classified['items']} expressions, the same likeliest value in "
        f"{classified['same_likeliest_class']:.4f}, probabilities change by up to {classified['largest_change']:.4f}"
        f"{''.join(f'; FAIL: {what}' for what in wrong)}"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", required=True)
    parser.add_argument("--programs", type=Path, required=True)
    parser.add_argument("--precision", choices=["bf16", "int8"], default="bf16")
    arguments = parser.parse_args()
    sys.exit(run(arguments.device, arguments.programs, arguments.precision))
