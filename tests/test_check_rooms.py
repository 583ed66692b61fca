"""tests/check_rooms, which holds the includes to the table of rooms."""

import subprocess
import sys
from pathlib import Path

CHECK = Path(__file__).parent / "check_rooms"

TABLE = """\
base:            # ground floor
models:
core/cache:      models
server/rpc:      core/cache
"""

FILES = {
    "base/clock.h": "",
    "models/model.h": '#include "base/clock.h"\n',
    "core/cache/pages.h": '#include <vector>\n\n#include "models/model.h"\n',
    "server/rpc/call.cc": '#include "core/cache/pages.h"\n#include "longshort/v1/inference.pb.h"\n',
    "tests/core/cache/pages_test.cc": '#include "server/rpc/call.h"\n',
}


def check(root: Path, files: dict[str, str], table: str = TABLE) -> tuple[int, str]:
    """Exit status and output of the check over a checkout of these files."""
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    for name, text in {**files, "tests/rooms.txt": table}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    run = subprocess.run([sys.executable, CHECK, "--root", root], capture_output=True, text=True)
    return run.returncode, run.stdout + run.stderr


def test_arrows_of_the_table_and_files_of_libraries_pass(tmp_path: Path) -> None:
    assert check(tmp_path, FILES) == (0, "")


def test_an_arrow_back_is_refused_and_named(tmp_path: Path) -> None:
    status, output = check(tmp_path, FILES | {"models/loader.cc": '#include "core/cache/pages.h"\n'})
    assert status == 1
    assert "models/loader.cc: models may not include core/cache (core/cache/pages.h)" in output


def test_an_import_against_the_arrows_is_refused(tmp_path: Path) -> None:
    batch = "clients/python/longshort/batch"
    table = f"{TABLE}{batch}/inputs:\n{batch}/run: {batch}/inputs\n"
    files = FILES | {f"{batch}/{name}": "" for name in ("inputs/__init__.py", "inputs/rows.py", "run/flow.py")}
    files[f"{batch}/run/work.py"] = "from longshort.batch.inputs.rows import Row\n"
    assert check(tmp_path, files, table) == (0, "")
    status, output = check(tmp_path, files | {f"{batch}/inputs/rows.py": "import longshort.batch.run.flow\n"}, table)
    assert status == 1
    assert f"{batch}/inputs/rows.py: {batch}/inputs may not include {batch}/run ({batch}/run/flow.py)" in output


def test_a_room_that_is_not_in_the_table_is_refused(tmp_path: Path) -> None:
    status, output = check(tmp_path, FILES | {"core/util/things.h": ""})
    assert status == 1
    assert "core/util/things.h: the room core/util is not in tests/rooms.txt" in output


def test_a_room_may_have_subfolders(tmp_path: Path) -> None:
    files = FILES | {"core/cache/grid/places.h": "", "server/rpc/row.h": '#include "core/cache/grid/places.h"\n'}
    assert check(tmp_path, files, TABLE.replace("core/cache:", "core/cache/:")) == (0, "")
    status, output = check(tmp_path / "flat", files)
    assert status == 1
    assert "the room core/cache/grid is not in tests/rooms.txt" in output


def test_an_unused_arrow_of_the_table_is_reported(tmp_path: Path) -> None:
    table = TABLE.replace("server/rpc:      ", "core/sampling:\nserver/rpc:      models ")
    status, output = check(tmp_path, FILES, table)
    assert status == 1
    assert "the room core/sampling has no file" in output
    assert "nothing in server/rpc includes models" in output


def test_a_table_with_a_circle_is_no_table(tmp_path: Path) -> None:
    status, output = check(tmp_path, FILES, "base:\nmodels: core/cache\ncore/cache: models\nserver/rpc: core/cache\n")
    assert status == 1
    assert "line 2: models may include core/cache, which does not stand above it" in output
