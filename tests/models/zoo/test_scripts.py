"""The scripts beside the zoo's models, as they are run."""

import importlib.util
import io
import itertools
import json
import math
import random
import re
import statistics
import string
import subprocess
import sys
import tarfile
from pathlib import Path
from types import ModuleType

import pytest

ZOO = Path(__file__).parents[3] / "models" / "zoo"
LANGUAGES = dict(line.split("\t")[:2] for line in (ZOO / "languages" / "languages.tsv").read_text().splitlines()[1:])


def run(script: str, *arguments: object, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ZOO / script), *map(str, arguments)]
    return subprocess.run(command, input=given, capture_output=True, text=True, check=False)


def load(script: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("script", ZOO / script)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_lines(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def answer(label: str, name: str = "-") -> str:
    return json.dumps({"name": name, "classification": {"classes": [{"label": label}, {"label": "other"}]}}) + "\n"


def test_languages_hold_out_the_same_topics_in_all_languages(tmp_path: Path) -> None:
    """42 pages of two sentences: one that all pages have, and one that names language and page."""
    pages = [
        "".join(pair) for pair in itertools.permutations(("lake", "moon", "hill", "fern", "gold", "wind", "rose"), 2)
    ]
    archive = tmp_path / "translations.tar"
    with tarfile.open(archive, "w") as tar:
        for code in LANGUAGES.values():
            entry = '#. x\n#: {0}.xhp\nmsgctxt ""\n"{0}.xhp\\n"\nmsgid "{1}"\nmsgstr ""\n"<b>{2}</b> "\n"{3}"\n\n'
            content = "".join(
                entry.format(page, "The same", f"Sentence of {code}", "of all pages")
                + entry.format(
                    page, f"It is {page}", f"Sentence in {code} about", page + " &amp; nothing" + " else" * 20
                )
                for page in pages
            )
            content += entry.format("moon", "It is", f"A fuzzy sentence in {code}", "left out").replace(
                "\nmsgctxt", "\n#, fuzzy\nmsgctxt", 1
            )
            content += entry.format(
                "moon", f"It is not translated into {code}", f"It is not translated into {code}", "left out"
            )
            member = tarfile.TarInfo(f"translations/source/{code}/helpcontent2/text.po")
            member.size = len(content.encode())
            tar.addfile(member, io.BytesIO(content.encode()))
    done = run("languages/prepare.py", archive, tmp_path / "out", "--train=60", "--held-out=9")
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, set[str]]] = {}
    for part in ("train", "held_out_letters_lost", "held_out"):
        of_part = found[part] = {}
        for line in read_lines(tmp_path / f"out/{part}.jsonl"):
            of_part.setdefault(line["label"], set()).update(re.findall(r"about (\w{8}) & nothing", line["text"]))
    assert found["held_out"]["Danish"] and found["held_out"]["Danish"] == found["held_out"]["Thai"]
    assert not found["held_out"]["Danish"] & set().union(*found["train"].values())
    assert set(found["train"]) == set(LANGUAGES)
    lines = {
        part: (tmp_path / f"out/{part}.jsonl").read_text().splitlines() for part in ("train", "train_plain", "held_out")
    }
    assert not any("left out" in line for part in lines.values() for line in part)
    assert set(lines["train_plain"]) < set(lines["train"]) and not any("<p>" in line for line in lines["train_plain"])
    assert found["held_out_letters_lost"]["Danish"] < found["held_out"]["Danish"]


def test_shares_count_the_likeliest_language_and_both_of_a_mixture(tmp_path: Path) -> None:
    texts = tmp_path / "mixed.jsonl"
    texts.write_text('{"label": "Danish + Thai"}\n{"label": "Thai + Danish"}\n')
    classes = [{"label": "Danish", "probability": 0.6}, {"label": "Thai", "probability": 0.3}, {"label": "Welsh"}]
    given = json.dumps({"classification": {"classes": classes}}) + "\n"
    assert run("languages/shares.py", texts, given=given + given).stdout == (
        "mixed: accuracy 0.5000, 1 of 2, calibration error 0.1000; both languages 1.0000, "
        "the second's median share 0.60\n  Thai as Danish 1\n"
    )


def test_flowers_keep_the_split_of_the_archive_and_the_attribution(tmp_path: Path) -> None:
    archive = tmp_path / "flowers.tar"
    files = {"train/rose/a.jpg": b"1", "test/rose/b.jpg": b"2", "ATTRIBUTION.tsv": b"thanks"}
    with tarfile.open(archive, "w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(f"flowers/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    first = run("flowers/prepare.py", archive, tmp_path / "out")
    assert (tmp_path / "out/train/rose/a.jpg").read_bytes() == b"1"
    assert (tmp_path / "out/held_out/rose/b.jpg").read_bytes() == b"2"
    assert (tmp_path / "out/ATTRIBUTION.tsv").read_bytes() == b"thanks"
    assert run("flowers/prepare.py", archive, tmp_path / "again").stdout == first.stdout


def evaluate(expression: str) -> int:
    """By a stack of operators and values, as the model's card defines them."""
    functions = {"[MIN": min, "[MAX": max, "[MED": lambda values: int(statistics.median(values)),
                 "[SM": lambda values: sum(values) % 10}  # fmt: skip
    stack: list[list[object]] = [[]]
    for symbol in expression.split():
        if symbol in functions:
            stack.append([symbol])
        elif symbol == "]":
            operator, *values = stack.pop()
            stack[-1].append(functions[operator](values))
        else:
            stack[-1].append(int(symbol))
    ((value,),) = stack
    return value


def test_expressions_have_their_values_and_lengths_and_occur_once() -> None:
    script = load("listops/expressions.py")
    rows = script.random_expressions(60, seed=3, lengths=range(16, 113), bins=4)
    assert all(str(evaluate(text)) == value for text, value in rows)
    lengths = sorted(len(text.split()) for text, _ in rows)
    assert (
        lengths[0] >= 16 and lengths[14] < 40 <= lengths[15] and lengths[44] < 89 <= lengths[45] and lengths[-1] < 113
    )
    assert len(dict(rows)) == 60
    assert rows == script.random_expressions(60, seed=3, lengths=range(16, 113), bins=4)
    assert rows != script.random_expressions(60, seed=4, lengths=range(16, 113), bins=4)
    assert script.OPERATORS["[MED"]([5, 1, 4, 2]) == 3 and script.OPERATORS["[MED"]([3, 0, 1]) == 1


def test_listops_leaves_the_held_out_expressions_out_of_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ZOO / "listops"))
    script = load("listops/prepare.py")
    first = [(f"[MAX {number} 2 ]", "x") for number in range(5500)]
    made = {
        1: first,
        2: [("[SM 9 9 ]", "8")],
        2021: [first[5499], first[0]],
        2022: [("[SM 9 9 ]", "8"), ("[MIN 1 2 ]", "1")],
    }
    monkeypatch.setattr(script, "random_expressions", lambda count, seed, **_: made[seed])
    data = script.demo_data(held_out_only=False)
    assert data["held_out_short"] == first[5000:] and data["held_out_lra"] == made[2]
    assert data["train"] == [*first[:5000], ("[MIN 1 2 ]", "1")]
    assert script.demo_data(held_out_only=True) == {name: rows for name, rows in data.items() if name != "train"}


def test_accuracy_counts_the_likeliest_class_against_labels_or_folders(tmp_path: Path) -> None:
    labels = tmp_path / "labels.jsonl"
    labels.write_text('{"label": "pos"}\n{"label": "neg"}\n{"label": "neg"}\n')
    counted = run("accuracy.py", "reviews", "--labels", labels, given=answer("pos") + answer("pos") + answer("neg"))
    assert counted.stdout == "reviews: accuracy 0.6667, 2 of 3\n  neg 0.50, pos 1.00\n"
    counted = run("accuracy.py", "photos", given=answer("rose", "held_out/rose/1.jpg"))
    assert counted.stdout == "photos: accuracy 1.0000, 1 of 1\n  rose 1.00\n"


def test_accuracy_refuses_answers_that_are_missing_or_errors(tmp_path: Path) -> None:
    labels = tmp_path / "labels.jsonl"
    labels.write_text('{"label": "pos"}\n{"label": "neg"}\n')
    assert "1 answers to 2 items" in run("accuracy.py", "reviews", "--labels", labels, given=answer("pos")).stderr
    broken = json.dumps({"name": "held_out/rose/1.jpg", "error": {"message": "not an image"}}) + "\n"
    assert "held_out/rose/1.jpg: not an image" in run("accuracy.py", "photos", given=broken).stderr
    assert run("accuracy.py", "photos").returncode == 1


def test_lra_text_has_the_archives_reviews_and_refuses_an_archive_without_some(tmp_path: Path) -> None:
    reviews = {f"{part}/{label}/{n}_7.txt": f"{part} {label} {n}" for part in ("train", "test")
               for label in ("neg", "pos") for n in range(8)}  # fmt: skip
    archive = tmp_path / "aclImdb.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for name, text in {**reviews, "train/unsup/0_0.txt": "no label", "train/pos/urls.md": "no review"}.items():
            member = tarfile.TarInfo(f"aclImdb/{name}")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    found = load("../train/lra_text/prepare.py").read_reviews(archive)
    for part, rows in found.items():
        assert sorted(row["text"] for row in rows) == sorted(text for name, text in reviews.items() if part in name)
        assert all(row["text"].split()[1] == row["label"] for row in rows)
        assert [row["label"] for row in rows] != sorted(row["label"] for row in rows), "not shuffled"
    done = run("../train/lra_text/prepare.py", archive, tmp_path / "out")
    assert done.returncode != 0
    assert "16 reviews in train, not 25000" in done.stderr
    assert not (tmp_path / "out").exists()


def test_lra_texts_damage_inserts_ten_marks_or_deletes_all() -> None:
    script = load("../train/lra_text/prepare.py")
    review = "It's \u201cgood\u201d, isn't it?<br />"
    damaged = script.with_insertions(review, random.Random(1))
    left = iter(damaged)
    assert all(letter in left for letter in review), "the review's characters stay, in their order"
    assert sum(one in string.punctuation for one in damaged) == sum(one in string.punctuation for one in review) + 10
    assert len(damaged) == len(review) + 10
    assert script.without_punctuation(review) == "Its \u201cgood\u201d isnt itbr "


def test_pathfinders_paths_stay_apart_and_each_class_has_half_of_the_images(tmp_path: Path) -> None:
    script = load("../train/lra_pathfinder/prepare.py")
    paths = script.scene(random.Random(1))
    assert [len(path) for path in paths] == [script.LONG] * 2 + [script.SHORT] * script.DISTRACTORS
    for one, other in itertools.combinations(paths, 2):
        assert min(math.dist(a[:2], b[:2]) for a in one for b in other) >= script.APART
    done = run("../train/lra_pathfinder/prepare.py", tmp_path, "--train=6", "--test=4")
    assert done.returncode == 0, done.stderr
    images = sorted(str(path.relative_to(tmp_path).parent) for path in tmp_path.glob("*/*/*.png"))
    assert images == [
        f"{part}/{label}"
        for part, count in (("test", 2), ("train", 3))
        for label in ("apart", "joined")
        for _ in range(count)
    ]
    contents = {path.read_bytes() for path in tmp_path.glob("*/*/*.png")}
    assert len(contents) == 10, "no two are equal"


def test_a_curve_has_each_evaluation_once_and_names_the_last_and_the_best(tmp_path: Path) -> None:
    evaluations = [(250, 0.2), (500, 0.3), (500, 0.35), (750, 0.31)]  # a continued run evaluates step 500 again
    lines = [f"step {step}: held-out accuracy {value:.4f} (1 of 2), loss 1.0 nats" for step, value in evaluations]
    # Steps 250 and 750 are equally accurate, and the loss decides.
    chosen = [(250, 0.4, 0.9), (500, 0.3, 0.5), (750, 0.4, 0.6)]
    lines += [f"step {step}: validation accuracy {value} (1 of 2), loss {loss} nats" for step, value, loss in chosen]
    (tmp_path / "8_32_seed_2.log").write_text("\n".join(["resuming after step 499", *lines]))
    (tmp_path / "16_2_seed_1.log").write_text("begun\n")
    picture = tmp_path / "curve.svg"
    done = run("curve.py", *sorted(tmp_path.glob("*.log")), "--steps=1000", f"--picture={picture}")
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "w 8, r 32, seed 2: last 0.3100 at step 750; best on the test 0.3500 at step 500; "
        "best by validation 0.3100 at step 750\n"
    )
    (points,) = re.findall(r'<polyline points="([^"]*)"', picture.read_text())
    xs, ys = zip(*(map(float, point.split(",")) for point in points.split()), strict=True)
    assert xs[1] - xs[0] == xs[2] - xs[1] > 0
    assert ys[1] < ys[2] < ys[0], "a higher accuracy is further up"
