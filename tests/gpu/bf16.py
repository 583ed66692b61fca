"""What bfloat16 changes of a text's score on a device: at most 0.003 bits per byte, and 1 % of the likeliest bytes.

The model is models/zoo/enwiki, which was trained on Wikipedia's markup and has seen none of these texts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "models/zoo/enwiki/1"
MOST_BITS = 0.003
LEAST_SAME = 0.99


def texts(device: str) -> list[Path]:
    """An emulated GPU reads some hundred bytes in seconds: a paragraph. A GPU reads this project's documents."""
    paragraph = ROOT / "deploy/paragraph.txt"
    return [paragraph] if device.startswith("emulated:") else [paragraph, *sorted((ROOT / "docs").rglob("*.md"))]


def judge(found: dict[str, float]) -> list[str]:
    """What does not hold."""
    wrong = []
    change = found["bf16_bits_per_token"] - found["fp32_bits_per_token"]
    if not abs(change) <= MOST_BITS:
        wrong.append(f"bits per byte change by {change:+.5f}; at most {MOST_BITS} is allowed")
    if not found["same_likeliest_token"] >= LEAST_SAME:
        wrong.append(f"the likeliest byte is the same in {found['same_likeliest_token']:.4f}; {LEAST_SAME} is needed")
    return wrong


def run(device: str, programs: Path) -> int:
    with tempfile.NamedTemporaryFile() as text:
        for path in texts(device):
            text.write(path.read_bytes())
        text.flush()
        command = [
            programs / "longshort-bf16-difference", f"--model={MODEL}", f"--text={text.name}", f"--device={device}"
        ]  # fmt: skip
        found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    wrong = judge(found)
    print(
        f"bf16: {found['tokens']} bytes, {found['fp32_bits_per_token']:.5f} bits per byte in float32, "
        f"{found['bf16_bits_per_token']:.5f} in bfloat16, the same likeliest byte in "
        f"{found['same_likeliest_token']:.4f}{''.join(f'; FAIL: {what}' for what in wrong)}"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", required=True)
    parser.add_argument("--programs", type=Path, required=True)
    arguments = parser.parse_args()
    sys.exit(run(arguments.device, arguments.programs))
