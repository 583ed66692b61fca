"""tests/gpu/run, rehearsed on the emulated device."""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from gpu import served
from gpu.__main__ import main as gpu_main
from gpu.bf16 import judge_classes, judge_text
from gpu.bundle import check_size, libraries_of, travelling_bytes
from gpu.kernel_times import Kernel, kernels_of
from gpu.machine import misfits
from gpu.pieces import CORRECTNESS, DAYS, PIECES, ROOT, SANITIZED, Place
from gpu.served import difference

BUILD = Path(os.environ.get("LONGSHORT_BUILD") or ROOT / "build/release")
BENCHES = ["bench-streams", "bench-served", "bench-lengths", "bench-images", "bench-texts"]

emulated = pytest.mark.skipif(platform.machine() != "x86_64", reason="the emulator switches stacks on x86-64 only")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ROOT / "tests/gpu/run", *arguments], capture_output=True, text=True, check=False)


def results_of(folder: Path) -> dict[str, bytes]:
    """The files of the one archive that a check leaves."""
    assert [path.name for path in folder.iterdir()] == ["results.tar.gz"]
    with tarfile.open(folder / "results.tar.gz") as archive:
        return {
            member.name.removeprefix("./"): archive.extractfile(member).read()
            for member in archive.getmembers()
            if member.isfile()
        }


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A machine's checkout with an unpacked bundle of emulated GPUs, without build tree and .venv."""
    folder = tmp_path_factory.mktemp("elsewhere")
    run("bundle", str(folder / "gpu.tar.xz"), "--emulated").check_returncode()
    checkout = folder / "checkout"
    command = ["git", "ls-files", "-z", "deploy", "docs", "models", "tests"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, checkout / name)
    with tarfile.open(folder / "gpu.tar.xz") as bundle:
        bundle.extractall(checkout)
    return checkout


def rehearse(checkout: Path, *pieces: str) -> subprocess.CompletedProcess[str]:
    """With fresh device memory of zeros, as a GPU's."""
    python = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{python}:{os.environ['PATH']}", "LONGSHORT_DEVICE_ZEROED": "1"}
    return subprocess.run(
        [checkout / "tests/gpu/run", "check", *pieces, "--device=emulated:0"],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip


@pytest.mark.slow
@emulated
def test_a_bundle_is_rehearsed_elsewhere(elsewhere: Path) -> None:
    pieces = ["machine", "instructions", "kernels", "device", "models", "graphs"]
    done = rehearse(elsewhere, *pieces)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith(("ok  ", "FAIL", "----", "gpu:"))]
    assert [line.split(":")[0] for line in lines] == [*(f"ok   {piece}" for piece in pieces), "gpu", "gpu"]
    assert lines[-2] == "gpu: 6 of 6 pieces hold on emulated:0"
    assert re.fullmatch(r"gpu: \d+\.\d of 570 s", lines[-1])


@pytest.mark.slow
@emulated
def test_a_server_answers_every_kind_of_call_and_bf16_keeps_its_bound(elsewhere: Path) -> None:
    done = rehearse(elsewhere, "server", "bf16")
    assert done.returncode == 0, done.stdout + done.stderr
    for rpc in ("Generate", "ScoreTexts", "ClassifyImage"):
        assert f"({rpc})" in done.stdout


@pytest.mark.slow
@emulated
def test_benchmarks_run_in_a_small_form_and_leave_their_numbers(tmp_path: Path) -> None:
    done = run("check", *BENCHES, "--device=emulated:0", f"--out={tmp_path}")
    assert done.returncode == 0, done.stdout + done.stderr
    results = results_of(tmp_path)
    pieces = json.loads(results["results.json"])["pieces"]
    assert [(piece["piece"], piece["status"]) for piece in pieces] == [(name, "ok") for name in BENCHES]
    for name in BENCHES:
        assert b"eager PyTorch" in results[f"{name}.log"]
        found = json.loads(results[f"{name}.json"])
        assert found["peaks"]["copy_bytes"] > 0
        assert found["rows"]


def test_results_of_pieces_that_are_not_run_again_stay(tmp_path: Path) -> None:
    run("check", "machine", "--device=emulated:0", f"--out={tmp_path}")
    done = run("check", "memcheck", "--device=emulated:0", f"--out={tmp_path}")
    assert done.returncode == 1, "a piece that was asked for is left out"
    assert "gpu: 0 of 1 pieces hold on emulated:0; not shown: memcheck" in done.stdout
    results = results_of(tmp_path)
    pieces = json.loads(results["results.json"])["pieces"]
    assert [(piece["piece"], piece["status"]) for piece in pieces] == [("machine", "ok"), ("memcheck", "left out")]
    assert results["machine.log"]


def test_pieces_that_do_not_fit_into_the_time_fail() -> None:
    done = run("check", "machine", "device", "--device=emulated:0", "--seconds=0")
    assert done.returncode == 1
    assert "FAIL machine: not run: the time of --seconds is over" in done.stdout


def test_each_day_fits_a_loan_and_has_pieces_of_the_check() -> None:
    assert {piece for _, pieces in DAYS.values() for piece in pieces} == {*CORRECTNESS, "kernel-times", "bench-streams"}
    assert DAYS[1][0] + DAYS[2][0] <= 11 * 60, "the first two fit one start of a machine that is lent for 15 minutes"


def test_a_day_prints_the_seconds_of_each_piece_and_of_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    ran = []

    def piece(place: Place) -> list[str]:
        """Does nothing."""
        ran.append(place.compiles)
        return ["true"]

    for name in DAYS[3][1]:
        monkeypatch.setitem(PIECES, name, piece)
    monkeypatch.setattr(sys, "argv", ["run", "day", "3", "--device=emulated:0", f"--out={tmp_path}"])
    assert gpu_main() == 0
    assert ran == [False] * len(DAYS[3][1]), "torch.compile takes minutes"
    printed = capsys.readouterr().out
    assert re.findall(r"^ok   (\S+): status 0, \d+\.\d s$", printed, re.MULTILINE) == list(DAYS[3][1])
    assert re.search(r"^gpu: \d+\.\d of 570 s\n\Z", printed, re.MULTILINE)
    assert len(json.loads(results_of(tmp_path)["results.json"])["pieces"]) == 3


@pytest.mark.parametrize(
    ("bundle", "checkout", "fits"), [(21_000_000, 42_108_864, True), (21_000_000, 42_108_865, False)]
)
def test_a_bundle_leaves_4_megabytes_of_what_may_travel(bundle: int, checkout: int, fits: bool) -> None:
    if fits:
        check_size(bundle, checkout)
        return
    with pytest.raises(RuntimeError, match="the bundle has 21000000 bytes, the checkout 42108865; at most 63108864"):
        check_size(bundle, checkout)


def test_files_that_are_not_tracked_travel_and_ignored_ones_do_not(tmp_path: Path) -> None:
    for name, size in {"tracked": 1, "new": 10, "ignored": 100, "gpu.tar.xz": 1000}.items():
        (tmp_path / name).write_bytes(b"." * size)
    (tmp_path / ".gitignore").write_text("ignored\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "tracked", ".gitignore"], cwd=tmp_path, check=True)
    assert travelling_bytes(tmp_path, tmp_path / "gpu.tar.xz") == 1 + 10 + len("ignored\n")


def test_a_piece_that_fails_is_reported(tmp_path: Path) -> None:
    # Nothing is built for CUDA here, or there is no GPU.
    done = run("check", "device", "kernels", "--device=cuda:0", f"--out={tmp_path}")
    if "FAIL" not in done.stdout:
        pytest.skip("there is a GPU")
    assert done.returncode == 1
    assert "FAIL kernels: " in done.stdout
    assert "pieces hold on cuda:0" in done.stdout


@emulated
def test_what_pieces_and_sanitizers_select_is_there() -> None:
    """A filter that selects no test passes."""
    emulated_place = Place(BUILD / "bin", "emulated:0", Path())
    commands = [PIECES[name](emulated_place) for name in ("instructions", "kernels", "device", "models", "graphs")]
    commands += [[emulated_place.kernel_tests, f"--gtest_filter={name}"] for name in SANITIZED]
    for command in commands:
        listed = subprocess.run([*command, "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout
        assert "\n  " in listed, command


@pytest.mark.parametrize(
    ("said", "counted", "exit_code", "failures"), [("a", 1, 0, 0), ("b", 1, 0, 1), ("a", 0, 0, 1), ("a", 1, 1, 1)]
)
def test_a_server_that_answers_counts_or_ends_otherwise_fails(
    monkeypatch: pytest.MonkeyPatch, said: str, counted: int, exit_code: int, failures: int
) -> None:
    class Other(served.Server):
        start_seconds = 0.0

        def __init__(self, program: Path, device: str, folder: Path) -> None:
            del program, folder
            self.is_tested = device != "cpu"
            self.answered = 0

        def answer(self, client: Path, call: served.Call) -> dict[str, object]:
            del client, call
            self.answered += counted
            return {"completions": [{"text": said if self.is_tested else "a"}]}

        def requests(self, rpc: str) -> float:
            del rpc
            return self.answered

        def stop(self) -> int:
            return exit_code if self.is_tested else 0

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(served, "Server", Other)
    assert served.run("emulated:0", BUILD / "bin") == failures


def test_a_machine_with_another_pytorch_gets_advice() -> None:
    built_with = {"torch": "2.11.0+cu130", "cuda": "13.0"}
    assert misfits(built_with, "2.11.1", "13.1") == []
    (wrong,) = misfits(built_with, "2.9.1", "13.0")
    assert wrong.startswith("PyTorch is 2.9.1, and the programs were built with 2.11.0+cu130; build the bundle again")
    assert len(misfits(built_with, "2.8.0", "12.8")) == 2


def test_a_python_without_packages_says_which_are_missing(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT / "tests/gpu", checkout / "tests/gpu", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    environment = {"PATH": f"{tmp_path}/bare/bin:{os.environ['PATH']}"}

    def run_there(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [checkout / "tests/gpu/run", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    assert run_there("--help").returncode == 0
    done = run_there("check", "machine", "--device=cuda:0")
    assert done.returncode == 1
    for name in ("torch", "numpy", "safetensors"):
        assert f"/bare/bin/python3 has no {name}: " in done.stdout, done.stdout + done.stderr


def test_an_unknown_piece_is_refused() -> None:
    done = run("check", "everything", "--device=emulated:0")
    assert done.returncode == 2
    assert "no piece everything" in done.stderr


@pytest.mark.parametrize(
    ("change", "same", "wrong"),
    [(0.0029, 0.991, 0), (-0.0031, 0.991, 1), (0.0031, 0.989, 2), (float("nan"), 1.0, 1)],
)
def test_bf16_is_judged_by_its_bound(change: float, same: float, wrong: int) -> None:
    found = {"fp32_bits_per_token": 2.0, "bf16_bits_per_token": 2.0 + change, "same_likeliest_token": same}
    assert len(judge_text(found)) == wrong
    assert len(judge_classes({"same_likeliest_class": same})) == (same < 0.99)


def test_answers_that_differ_are_reported() -> None:
    answer = {"completions": [{"text": "a"}], "scores": [{"log_likelihood": -3.0, "token_count": 4}]}
    assert difference(answer, answer) == ""
    assert "instead of ['b']" in difference(answer, answer | {"completions": [{"text": "b"}]})
    off = answer | {"scores": [{"log_likelihood": -3.1, "token_count": 4}]}
    assert "/scores/0/log_likelihood is -3.0 instead of -3.1" in difference(answer, off)
    assert difference({}, {}) != ""


def test_a_bundle_takes_abseil_along_but_not_the_system() -> None:
    names = [path.name for path in libraries_of(BUILD / "bin/cuda_kernels_test")]
    assert any(name.startswith("libabsl_status.so") for name in names)
    assert not any(name.startswith(("libc.so", "libstdc++.so", "libm.so")) for name in names)


def test_the_launches_of_a_kernel_are_summed() -> None:
    """As ncu 2025.3 writes them."""
    name = "void longshort::models::cuda::(anonymous namespace)::Keep(KeepRows)"
    lines = [
        "==PROF== Connected to process 7",
        '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"',
        f'"0","{name}","gpu__time_duration.sum","us","1.50"',
        f'"0","{name}","dram__bytes.sum","Kbyte","2.00"',
        f'"1","{name}","gpu__time_duration.sum","ns","1,500"',
    ]
    assert kernels_of(lines) == {"Keep": Kernel(launches=2, seconds=pytest.approx(3e-6), bytes=2000)}
