"""docs/adding_a_model.md: its files are there, and a family is one folder that needs no other family's."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FAMILIES = sorted(path.parent for path in (ROOT / "models/families").glob("*/CMakeLists.txt"))
PAGE = (ROOT / "docs/adding_a_model.md").read_text()


def test_every_file_of_the_page_exists() -> None:
    paths = re.findall(r"`((?:base|docs|models|tests)/[\w./*<>{},-]+)`", PAGE)
    assert len(paths) > 15
    for path in paths:
        for family in ("cvt", "text_classifier") if "<family>" in path else ("",):
            assert list(ROOT.glob(path.replace("<case>", "*").replace("<family>", family))), path


@pytest.mark.parametrize("folder", FAMILIES, ids=lambda folder: folder.name)
def test_a_family_is_one_folder(folder: Path) -> None:
    assert {f"{folder.name}_config.h", f"{folder.name}_config.cc", f"{folder.name}_costs.cc"} <= {
        path.name for path in folder.iterdir()
    }
    for path in folder.iterdir():
        for family in re.findall(r'#include "models/families/(\w+)/', path.read_text()):
            assert family == folder.name, path


def test_both_tables_have_the_same_families() -> None:
    tables = [
        re.findall(r'^    \{"(\w+)", ', (ROOT / f"models/families/{name}.cc").read_text(), re.MULTILINE)
        for name in ("load_model", "describe")
    ]
    assert tables[0] == tables[1]
    assert sorted(tables[0]) == [folder.name for folder in FAMILIES]
