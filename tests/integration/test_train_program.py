"""The program longshort-train, as a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from integration.server_process import BINARY, ROOT, Server, wait_until

pytestmark = [
    pytest.mark.cpu_only("training runs on the CPU"),
    pytest.mark.not_sanitized("the trainer's C++ tests are"),
]

MODEL = ("--layers=1", "--model-width=16", "--heads=2", "--feed-forward-width=16", "--batch=2", "--shards=2")


def test_variables_that_bind_openmps_threads_are_ignored(tmp_path: Path) -> None:
    """They would bind every thread to the first CPU."""
    variables = {"OMP_PROC_BIND": "true", "GOMP_CPU_AFFINITY": "0"}
    text, log = tmp_path / "mine.txt", tmp_path / "log"
    text.write_text("The same again and again. " * 10_000)
    command = [BINARY.with_name("longshort-train"), text, f"--out={tmp_path}/mine/1", *MODEL]
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [*command, "--steps=1000000"], stdout=output, stderr=output, env=os.environ | variables
        ) as training,
    ):
        try:
            tasks = Path(f"/proc/{training.pid}/task")
            wait_until(lambda: "step" in log.read_text())
            assert len(list(tasks.iterdir())) >= 2
            for task in tasks.iterdir():
                assert os.sched_getaffinity(int(task.name)) == os.sched_getaffinity(0), task.name
        finally:
            training.kill()
    for name, value in variables.items():
        assert f"ignores the environment's {name}={value}, which would bind or limit its threads" in log.read_text()


def refusal(*arguments: object) -> str:
    done = subprocess.run(
        [BINARY.with_name("longshort-train"), *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--from={zoo}/listops/1", "--vocabulary={zoo}/listops/1/vocabulary.txt"], "--vocabulary and --from"),
        (["--from={zoo}/listops/1", "--config={zoo}/listops/1/config.json"], "--config and --from"),
        (["--from={zoo}/listops/1", "--size=medium"], "--size"),
        (["--config={zoo}/listops/1/config.json", "--size=medium"], "--size"),
        (["--held-out={data}", "--held-out-fraction=0.2"], "--held-out-fraction and --held-out"),
        (["--keep-best", "--held-out-interval=0"], "--keep-best needs evaluations"),
        (["--config={zoo}/listops/1/config.json"], "config.json: its tokenizer reads vocabulary.txt; give it with"),
        (["--problem=regression", "--label-column=text"], "a regression needs a number such as 3.5"),
        (["--text-column=review"], "no field 'review'; name the field with --text-column"),
    ],
)
def test_options_that_mean_nothing_together_are_refused(tmp_path: Path, options: list[str], why: str) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text('{"label": "0", "text": "[MAX 1 2 ]"}\n{"label": "1", "text": "[MIN 1 2 ]"}\n')
    named = {"zoo": ROOT / "models/zoo", "data": data}
    given = [option.format(**named) for option in options]
    assert why in refusal("text-classifier", data, f"--out={tmp_path}/mine/1", *given)


def test_data_that_are_not_there_leave_no_folder(tmp_path: Path) -> None:
    for command in ("text-classifier", "image-classifier", "language-model"):
        why = refusal(command, tmp_path / "mistyped", f"--out={tmp_path}/models/mine/1")
        assert f"{tmp_path}/mistyped: there is no such file or folder to train on" in why
    assert "/mistyped' is neither a command nor a file" in refusal(
        tmp_path / "mistyped", f"--out={tmp_path}/models/a/1"
    )
    assert not (tmp_path / "models").exists()


def test_labels_that_differ_only_by_normal_form_are_found_whatever_the_character(tmp_path: Path) -> None:
    characters = [chr(point) for point in range(sys.maxunicode + 1)]
    apart = [one for one in characters if unicodedata.normalize("NFD", one) != one]
    apart = [one for one in apart if not unicodedata.name(one).startswith("CJK COMPATIBILITY IDEOGRAPH")]
    assert len(apart) == 1059 + 11172, "without and with Korean syllables"
    data, held_out = tmp_path / "data.jsonl", tmp_path / "held_out.jsonl"
    labels = [f"{ord(one)} {form}" for one in apart for form in (one, unicodedata.normalize("NFD", one))]
    data.write_text("".join(json.dumps({"label": label, "text": label}) + "\n" for label in labels))
    held_out.write_text(json.dumps({"label": labels[0], "text": "held out"}) + "\n")
    why = refusal("text-classifier", data, f"--held-out={held_out}", f"--out={tmp_path}/mine/1")
    assert f"; {len(apart) - 10} more groups; write them in one form" in why


def trained(data: Path, repository: Path, *options: str) -> str:
    """What the trainer prints at the end of a run that learns whether a text has an x and a y."""
    command = [BINARY.with_name("longshort-train"), "text-classifier", data, f"--out={repository}/its name/1", *options]
    recipe = ("--steps=150", "--batch=16", "--group=16", "--warmup-steps=10", "--learning-rate=3e-3")
    return subprocess.run([*command, *recipe], capture_output=True, text=True, check=True).stdout


def served(printed: str, repository: Path, folder: Path, texts: list[str]) -> tuple[str, list[dict[str, float]]]:
    """The model's problem type, and the scores of each text, by the client. The printed commands are called as they
    are, with more options."""
    serve, call = (line[len("serve it:  ") :] for line in printed.splitlines()[-2:])
    checked = subprocess.run(["sh", "-c", f"{serve} --check-config"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    with Server(repository, folder) as server:
        options = f"--server=127.0.0.1:{server.grpc_port}"
        pasted = subprocess.run(["sh", "-c", f"{call} {options}"], capture_output=True, text=True, check=False)
        assert pasted.returncode == 0, pasted.stderr
        client = [BINARY.with_name("longshort"), options, "--model=its name"]
        described = subprocess.run([*client, "models"], capture_output=True, text=True, check=True).stdout
        scores = []
        for text in texts:
            command = [*client, "classify", "--json", "-"]
            answer = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
            found: Any = json.loads(answer)["classification"]["classes"]
            scores.append({one["label"]: one["probability"] for one in found})
    return described, scores


TEXTS = ["f" * (i % 5 + 1) + "x" * (i % 2 == 0) + "g" * (i % 7) + "y" * (i % 3 == 0) for i in range(96)]


def test_a_model_of_several_labels_is_served_as_one(tmp_path: Path) -> None:
    repository = tmp_path / "it's here"
    rows = [{"text": text, "label": [letter for letter in "xy" if letter in text]} for text in TEXTS]
    data = tmp_path / "topics.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    printed = trained(data, repository, "--problem=multi-label")
    assert "held-out micro-F1 " in printed and "exact match " in printed
    described, scores = served(printed, repository, tmp_path, TEXTS[:6])
    assert "multi_label_classification" in described
    for text, of_text in zip(TEXTS, scores, strict=False):
        assert {label: score > 0.5 for label, score in of_text.items()} == {letter: letter in text for letter in "xy"}


def test_a_regression_is_served_in_the_unit_of_its_data(tmp_path: Path) -> None:
    repository = tmp_path / "it's here"
    data = tmp_path / "ratings.csv"
    wanted = [1e6 + 2000 * ("x" in text) + 1000 * ("y" in text) for text in TEXTS]
    data.write_text("text;stars\n" + "".join(f"{text};{number}\n" for text, number in zip(TEXTS, wanted, strict=True)))
    printed = trained(data, repository, "--problem=regression", "--label-column=stars")
    assert "held-out mean squared error " in printed and "; R2 0.9" in printed
    described, scores = served(printed, repository, tmp_path, TEXTS[:6])
    assert "regression" in described
    for number, of_text in zip(wanted, scores, strict=False):
        assert of_text == {"stars": pytest.approx(number, abs=300)}, "1,118 is the numbers' standard deviation"
