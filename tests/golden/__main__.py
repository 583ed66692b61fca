"""Runs all reference cases below a folder: tests/golden/run [DIR]. Exits with 0 if there are cases and all pass."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from golden import classifier_forms, image_form, language_model_form, programs, tokenize_form
from golden.outcome import CaseError, Outcome

ROOT = Path(__file__).parents[2]
# Whose attention takes seconds on an emulated GPU: long streams, and windows of one patch each.
MOST_EMULATED_TOKENS = 140
NEVER_EMULATED = {"vil/f1_f0_f5", "text_classifier/encoder_long"}
FORMS: dict[str, Callable[[Path, dict[str, Any], Path], Outcome]] = {
    "language_model": language_model_form.judge,
    "text_classifier": classifier_forms.judge,
    "vil": classifier_forms.judge,
    "cvt": classifier_forms.judge,
    "tokenize": tokenize_form.judge,
    "image_preprocess": image_form.judge,
}


def main() -> int:
    arguments = parse_arguments()
    configs = sorted(arguments.directory.rglob("config.json"))
    left_out = {arguments.directory / case / "config.json" for case in arguments.without}
    if not left_out <= set(configs):
        print("golden: --without names no case", file=sys.stderr)
        return 2
    configs = [path for path in configs if path not in left_out]
    if arguments.build.device != "cpu":
        configs = [path for path in configs if runs_on(arguments.build, path.parent, json.loads(path.read_text()))]
    if not configs:
        print(f"golden: no config.json below {arguments.directory}", file=sys.stderr)
        return 1

    def outcome_of(path: Path) -> Outcome | CaseError:
        try:
            return judge(path, arguments.build)
        except CaseError as error:
            return error

    held = 0
    # Each program on a GPU has a context and graphs there.
    at_once = 4 if arguments.device.startswith("cuda:") else os.cpu_count()
    with ThreadPoolExecutor(at_once) as pool:
        for path, outcome in zip(configs, pool.map(outcome_of, configs), strict=True):
            name = path.parent.relative_to(arguments.directory.parent)
            if isinstance(outcome, CaseError):
                print(f"FAIL {name}: {outcome}", flush=True)
                continue
            held += outcome.holds
            print(f"{'ok  ' if outcome.holds else 'FAIL'} {name}: {describe(outcome)}", flush=True)
    print(f"golden: {held} of {len(configs)} cases hold")
    return 0 if held == len(configs) else 1


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests/golden/run", description=__doc__)
    parser.add_argument("directory", metavar="DIR", type=Path, nargs="?", default=Path(__file__).parent)
    parser.add_argument("--preset", help="take the programs of build/PRESET (else LONGSHORT_BUILD, else build/release)")
    parser.add_argument(
        "--device",
        default="cpu",
        help="where models run: cpu, cuda:N, or emulated:N (a GPU on the processor; the small cases only)",
    )
    parser.add_argument("--without", metavar="CASE", nargs="+", default=[], help="cases below DIR that do not run")
    arguments = parser.parse_args()
    arguments.directory = arguments.directory.resolve()
    if arguments.preset:
        folder = ROOT / "build" / arguments.preset
    else:
        folder = Path(os.environ.get("LONGSHORT_BUILD") or ROOT / "build" / "release")
    arguments.build = programs.Build(folder, arguments.device)
    return arguments


def runs_on(build: programs.Build, case: Path, config: dict[str, Any]) -> bool:
    """Whether the case has a model; on an emulated GPU that is small, with few tokens for a language model."""
    if "weights_file" not in config or not build.is_emulated:
        return "weights_file" in config
    if f"{case.parent.name}/{case.name}" in NEVER_EMULATED:
        return False
    if config["form"] == "language_model":
        tokens = sum(sum(entry["segments"]) * entry["batch"] for entry in config["io"].values())
        return config["weights_file"] is not None and tokens <= MOST_EMULATED_TOKENS
    return config["weights_file"] is not None


def judge(path: Path, build: programs.Build) -> Outcome:
    """Errors: CaseError."""
    try:
        config = json.loads(path.read_text())
        form = config["form"]
        if form not in FORMS:
            raise CaseError(f'form "{form}" is unknown (known: {", ".join(FORMS)})')
        return FORMS[form](path.parent, config, build)
    except KeyError as error:
        raise CaseError(f"config.json has no {error}") from error
    except (OSError, ValueError, TypeError) as error:
        raise CaseError(str(error)) from error


def describe(outcome: Outcome) -> str:
    modes = ", ".join(f"{mode} {difference:.1e}" for mode, difference in outcome.differences.items())
    return f"{outcome.largest:.1e}, allowed {outcome.tolerance:.0e} ({modes})"


if __name__ == "__main__":
    sys.exit(main())
