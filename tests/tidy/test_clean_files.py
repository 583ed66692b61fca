"""A file that was found clean is read again as soon as anything that its result depends on is another."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidy import clean_files
from tidy.clean_files import CleanFiles

CONTENT = {
    "core/a.cc": '#include "core/a.h"\n#include "generated.h"\n#include <vector>\nint a;\n',
    "core/a.h": '# include "b.h"\n',
    "core/b.h": "int b();\n",
    "core/other.h": "int other();\n",
    "build/made/generated.h": "int generated();\n",
}


def checkout(root: Path) -> Path:
    for name, text in CONTENT.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def command(root: Path, *more: str) -> dict[str, str]:
    words = ["c++", f"-I{root}", "-isystem", f"{root}/build/made", *more, "-c", f"{root}/core/a.cc"]
    return {"directory": f"{root}/build", "file": f"{root}/core/a.cc", "command": " ".join(words)}


def results(tmp_path: Path, root: Path, tools: str = "1.0") -> CleanFiles:
    """As a new run of the script sees them."""
    clean_files.included.cache_clear()
    clean_files.digest.cache_clear()
    return CleanFiles(tmp_path / "results", root, tools)


def is_clean(tmp_path: Path, root: Path, *arguments: str, tools: str = "1.0") -> bool:
    kept = results(tmp_path, root, tools)
    return kept.has(kept.key(command(root, *arguments)))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout whose file was found clean."""
    root = checkout(tmp_path / "checkout")
    assert not is_clean(tmp_path, root)
    kept = results(tmp_path, root)
    kept.add(kept.key(command(root)))
    return root


def append(path: Path) -> None:
    with path.open("a") as file:
        file.write("int more;\n")


def test_nothing_has_changed(tmp_path: Path, root: Path) -> None:
    assert is_clean(tmp_path, root)


@pytest.mark.parametrize("name", ["core/a.cc", "core/a.h", "core/b.h", "build/made/generated.h"])
def test_what_it_includes_has_changed(tmp_path: Path, root: Path, name: str) -> None:
    append(root / name)
    assert not is_clean(tmp_path, root)


def test_what_it_does_not_include_has_changed(tmp_path: Path, root: Path) -> None:
    append(root / "core/other.h")
    assert is_clean(tmp_path, root)


def test_a_header_stands_before_another(tmp_path: Path, root: Path) -> None:
    (root / "core/generated.h").write_text("int generated();\n")
    assert not is_clean(tmp_path, root)


def test_an_argument_or_a_tool_is_another(tmp_path: Path, root: Path) -> None:
    assert not is_clean(tmp_path, root, "-DNDEBUG")
    assert not is_clean(tmp_path, root, tools="1.1")


def test_another_checkout_of_the_same_files(tmp_path: Path, root: Path) -> None:
    other = checkout(tmp_path / "elsewhere")
    assert is_clean(tmp_path, other)
    append(other / "core/b.h")
    assert not is_clean(tmp_path, other)
