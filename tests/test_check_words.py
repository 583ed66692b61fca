"""tests/check_words finds what its list names, and long sentences and ellipses of docs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("check_words")


def run(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, PROGRAM, "--root", root]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/stop_words.txt").write_text('# a comment\nutilise\twrite "use"\nin order to\twrite "to"\n')
    (tmp_path / "core").mkdir()
    return tmp_path


def test_text_without_stop_words_passes(checkout: Path) -> None:
    (checkout / "core/a.h").write_text("// The unutilised pages are in order. To free them, evict.\n")
    done = run(checkout)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_stop_word_is_reported_with_its_place_and_advice(checkout: Path) -> None:
    (checkout / "core/a.h").write_text("int a;\n// Utilise in order to test.\n")
    done = run(checkout)
    assert done.returncode == 1
    assert done.stdout == 'core/a.h:2: "Utilise": write "use"\ncore/a.h:2: "in order to": write "to"\n'


def test_a_long_sentence_of_a_page_is_reported_and_one_in_a_code_block_or_table_is_not(checkout: Path) -> None:
    long = "word " * 36
    page = f"# Title\n\nShort.\n{long}.\n\n```\n{long}\n```\n\n| {long} |\n\n- {'word ' * 35}.\n"
    (checkout / "README.md").write_text(page)
    done = run(checkout)
    assert done.returncode == 1
    assert [line.split(": ")[:2] for line in done.stdout.splitlines()] == [
        ["README.md:3", "a sentence of 36 words, at most 35"]
    ]


@pytest.mark.parametrize(
    ("sentence", "advice"),
    [
        ("With `byte_level_bpe`:", "write a sentence with a subject and a verb before the colon"),
        ("- Of a client certificate:\n  its subject.", "write a sentence with a subject and a verb before the colon"),
        ("The limits are its own.", "repeat the noun after own"),
        ("Limits and metrics are theirs, too.", "repeat the noun"),
    ],
)
def test_an_ellipsis_of_a_page_is_reported(checkout: Path, sentence: str, advice: str) -> None:
    (checkout / "README.md").write_text(f"# Title\n\n{sentence}\n")
    done = run(checkout)
    assert done.returncode == 1
    assert done.stdout.startswith(f"README.md:3: an ellipsis: {advice}: ")
    assert done.stdout.count("\n") == 1


def test_a_sentence_with_a_verb_before_the_colon_and_a_noun_after_own_is_no_ellipsis(checkout: Path) -> None:
    page = "# Of words:\n\nWith another port, give the command:\n\n- The queue has its own thread.\n"
    (checkout / "README.md").write_text(page)
    done = run(checkout)
    assert (done.returncode, done.stdout) == (0, "")


def test_a_pattern_without_advice_is_refused(checkout: Path) -> None:
    (checkout / "tests/stop_words.txt").write_text("# x\nutilise\n")
    done = run(checkout)
    assert done.returncode == 2
    assert "line 2: want a pattern, a tab, and what to write: 'utilise'" in done.stderr
