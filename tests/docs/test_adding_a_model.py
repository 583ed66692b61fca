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


def test_the_list_has_every_family_and_each_has_its_entries() -> None:
    listed = re.search(r"set\(LONGSHORT_FAMILIES ([\w ]+) CACHE", (ROOT / "models/families/CMakeLists.txt").read_text())
    assert listed
    assert sorted(listed[1].split()) == [folder.name for folder in FAMILIES]
    for folder in FAMILIES:
        code = "".join(path.read_text() for path in folder.glob("*.cc"))
        for entry in ("FamilyConfig Config() {", "FamilyLoader Loader() {"):
            inside = rf"namespace {folder.name} {{\n.*^{re.escape(entry)}"
            assert re.search(inside, code, re.DOTALL | re.MULTILINE), entry
