"""The scripts beside the zoo's models, as they are run."""

import io
import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ZOO = Path(__file__).parents[3] / "models" / "zoo"


def run(script: str, *arguments: object, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ZOO / script), *map(str, arguments)]
    return subprocess.run(command, input=given, capture_output=True, text=True, check=False)


def read_lines(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def answer(label: str, name: str = "-") -> str:
    return json.dumps({"name": name, "classification": {"classes": [{"label": label}, {"label": "other"}]}}) + "\n"


def test_reviews_are_split_by_the_tags_of_their_names(tmp_path: Path) -> None:
    archive = tmp_path / "reviews.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("movie_reviews/README", "not a review")
        for name in ("neg/cv799_1.txt", "pos/cv800_2.txt", "pos/cv000_3.txt"):
            file.writestr(f"movie_reviews/{name}", f"text of {name}, d\u00e9j\u00e0 vu".encode("latin-1"))
    assert run("movie_reviews/prepare.py", archive, tmp_path / "out").returncode == 0
    assert read_lines(tmp_path / "out" / "train.jsonl") == [
        {"label": "neg", "text": "text of neg/cv799_1.txt, d\u00e9j\u00e0 vu"},
        {"label": "pos", "text": "text of pos/cv000_3.txt, d\u00e9j\u00e0 vu"},
    ]
    assert [line["label"] for line in read_lines(tmp_path / "out" / "held_out.jsonl")] == ["pos"]


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


def test_listops_leaves_the_held_out_expressions_out_of_training(tmp_path: Path) -> None:
    rows = {
        "short_train": "[MAX 1 2 ]\t2\n[MIN 1 2 ]\t1\n",
        "short_test": "[MAX 1 2 ]\t2\n",
        "lra_test": "[SM 9 9 ]\t8\n",
    }
    for name, lines in rows.items():
        (tmp_path / f"{name}.tsv").write_text("Source\tTarget\n" + lines)
    generator = "import sys; open(sys.argv[2].split('=')[0], 'w').write('Source\\tTarget\\n[SM 9 9 ]\\t8\\n')"
    (tmp_path / "gen.py").write_text(generator)
    assert run("listops/prepare.py", tmp_path, tmp_path / "out", "--short=1", "--long=1").returncode == 0
    assert read_lines(tmp_path / "out" / "train.jsonl") == [{"label": "1", "text": "[MIN 1 2 ]"}]
    assert (tmp_path / "out" / "vocabulary.txt").read_text() == "1\n2\nX\n[MIN\n"


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
