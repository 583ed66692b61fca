"""clang-tidy reports findings in all headers of the project, except those of tests/."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_folder_with_headers_is_in_the_filter() -> None:
    configured = re.search(r"^HeaderFilterRegex: '(.*)'$", (ROOT / ".clang-tidy").read_text(), re.MULTILINE)
    folders = {path.relative_to(ROOT).parts[0] for path in ROOT.glob("[!.]*/**/*.h")} - {"build", "tests"}
    assert {"base", "core"} <= folders
    for folder in folders:
        assert re.search(configured[1], f"{ROOT}/{folder}/some_header.h"), folder
    assert not re.search(configured[1], f"{ROOT}/tests/some_header.h")
