"""tests/report.py names what failed, with the reason, from what ctest and pytest write."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("report.py")

PYTEST = """import pytest
def test_passes(): pass
@pytest.mark.parametrize("size", [3, 4])
def test_of_sizes(size): assert size == 3, f"the size is {size}"
@pytest.fixture
def server(): raise OSError("no server")
def test_of_a_server(server): pass
"""
GOOGLETEST = """
[ RUN      ] Room.IsOpen
[       OK ] Room.IsOpen (0 ms)
[ RUN      ] Room.IsClosed
/a/room_test.cc:12: Failure
Value of: room.closed()

  Actual: false
[  FAILED  ] Room.IsClosed (0 ms)
[ RUN      ] Room.HasDoors
/a/room_test.cc:20: Failure
"""


def report(what: str, *files: Path) -> list[str]:
    command = [sys.executable, PROGRAM, what, *files]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.fixture
def of_ctest(tmp_path: Path) -> Path:
    output = tmp_path / "output"
    output.write_text(GOOGLETEST)
    folder = tmp_path / "release"
    folder.mkdir()
    (folder / "CTestTestfile.cmake").write_text(f"""
add_test(room_test sh -c "cat {output}; exit 1")
add_test(passes true)
add_test(crashes sh -c "echo about to crash; kill -SEGV $$")
add_test(sanitized sh -c "echo ==1==ERROR: AddressSanitizer: heap-use-after-free; echo more; exit 1")
add_test(hangs sleep 60)
""")
    command = ["ctest", "--test-dir", folder, "--output-junit", "ctest.xml", "--timeout", "1"]
    subprocess.run(command, capture_output=True, check=False)
    return folder / "ctest.xml"


@pytest.fixture
def of_pytest(tmp_path: Path) -> Path:
    folder = tmp_path / "image"
    folder.mkdir()
    (folder / "test_sizes.py").write_text(PYTEST)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", folder, folder]
    subprocess.run([*command, f"--junit-xml={folder}/pytest.xml"], cwd=folder, capture_output=True, check=False)
    return folder / "pytest.xml"


def test_each_failure_is_one_line_with_its_reason(of_ctest: Path, of_pytest: Path) -> None:
    lines = report("failed", of_ctest, of_pytest)
    hangs = lines.pop(3)
    assert hangs.startswith("FAILED  release: hangs: it ended after 1.")
    crashes = lines.pop(1)
    assert crashes.startswith("FAILED  release: crashes: it ended after 0.")
    assert crashes.endswith("s; its last line: about to crash")
    assert lines == [
        "FAILED  release: room_test: Room.IsClosed: /a/room_test.cc:12: Failure Value of: room.closed() Actual: false",
        "FAILED  release: sanitized: ==1==ERROR: AddressSanitizer: heap-use-after-free",
        "FAILED  image: test_sizes.test_of_sizes[4]: test_sizes.py:4: AssertionError: the size is 4 assert 4 == 3",
        'FAILED  image: test_sizes.test_of_a_server: test_sizes.py:6: failed on setup with "OSError: no server"',
    ]


def test_the_slowest_test_comes_first(of_ctest: Path, tmp_path: Path) -> None:
    lines = report("slowest", of_ctest, tmp_path / "absent.xml")
    assert len(lines) == 5
    assert lines[0].split()[1:] == ["s", "release:", "hangs"]
