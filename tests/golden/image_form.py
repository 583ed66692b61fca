"""Form `image_preprocess`: images, and the expected pixels and normalised values of preprocessing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from golden import programs
from golden.outcome import CaseError, Outcome

# A grey level, as a normalised value: the channels' standard deviations are at most 0.229.
_VALUE_OF_A_LEVEL = 1 / 255 / 0.229 + 1e-6


def judge(case: Path, config: dict[str, Any], build: programs.Build) -> Outcome:
    """Differences are in grey levels, of which one is allowed. Errors: CaseError."""
    io = case / "io.safetensors"
    if not io.is_file():
        raise CaseError("io.safetensors is not there")
    lines = programs.json_lines_of(build, "longshort-golden-images", f"--file={io}", f"--cases={case / 'config.json'}")
    names = [entry["case"] for entry in config["cases"]]
    if not names or [line["case"] for line in lines] != names:
        raise CaseError(f"longshort-golden-images reported {[line['case'] for line in lines]}, not of {names}")
    differences: dict[str, float] = {}
    for line in lines:
        differences[f"{line['case']} pixels"] = programs.number_of(line["largest_difference"])
        differences[f"{line['case']} values"] = (
            programs.number_of(line["largest_tensor_difference"]) / _VALUE_OF_A_LEVEL
        )
    return Outcome(differences, 1.0)
