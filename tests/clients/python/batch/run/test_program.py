"""The program longshort-batch: its output, its exit codes, and signals."""

from __future__ import annotations

import fcntl
import io
import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import longshort
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from integration.server_process import ROOT, Server, wait_until
from longshort.batch.output import folders
from longshort.batch.output.folders import open_folder
from longshort.batch.report.progress import Progress
from longshort.batch.run import api, program

from clients.python.batch.corpus import documents, read_errors, read_rows, write_jsonl
from clients.python.conftest import address

# Where the installed program begins: module and function.
PROJECT = tomllib.loads((ROOT / "clients/python/pyproject.toml").read_text())["project"]
ENTRY = PROJECT["scripts"]["longshort-batch"].split(":")
PROGRAM = [sys.executable, "-m", "longshort.batch"]


def run(*arguments: str | Path, server: Server) -> subprocess.CompletedProcess[str]:
    command = [*PROGRAM, *map(str, arguments), f"--server={address(server)}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "a.jsonl", [*documents(30), b"broken", b"broken"])


def test_a_run_ends_with_its_sum(corpus: Path, server: Server, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run("score", corpus, f"--out={out}", "--region-tokens=16", "--shard-rows=10", server=server)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("30 rows scored and 2 errors in ")
    assert f"{out} has 30 rows. 2 rows have errors: {out}/errors. The most frequent error (2 rows): the" in done.stdout
    assert {len(row["region_bits"]) for row in read_rows(out)} > {1, 2}
    again = run("score", corpus, f"--out={out}", "--region-tokens=16", "--shard-rows=10", "--json", server=server)
    printed = json.loads(again.stdout)
    counts = [printed[name] for name in ("rows", "all_rows", "all_errors", "shards_before")]
    assert counts == [0, 30, 2, 4]


def test_verify_reports_whether_all_is_there(corpus: Path, server: Server, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run("score", corpus, f"--out={out}", server=server).returncode == 0
    done = run("verify", out, server=server)
    assert done.returncode == 0
    assert done.stdout.startswith(f"{out}: 1 shards with 30 rows and 2 errors; complete. The most frequent error (2 ")
    (out / "errors/000000-00000000.jsonl").unlink()
    done = run("verify", out, server=server)
    assert done.returncode == 5 and "errors/000000-00000000.jsonl is missing" in done.stdout


def test_progress_is_json_lines_if_asked_for(corpus: Path, server: Server, tmp_path: Path) -> None:
    done = run("score", corpus, f"--out={tmp_path / 'out'}", "--json", server=server)
    events = [json.loads(line) for line in done.stderr.splitlines()]
    assert events[0]["event"] == "progress" and {"share", "rows", "seconds_left"} <= events[0].keys()
    done = run("score", corpus, f"--out={tmp_path / 'out'}", "--json", "--shard-rows=3", server=server)
    assert done.returncode == 2 and "shard_rows was 10000 and is 3" in json.loads(done.stderr)["message"]


def test_classes_of_documents(classifiers: Server, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [{"text": "abc", "other": "xyz"}, {"text": "x" * 100, "other": "y"}])
    one = [f"--out={tmp_path / 'one'}", "--model=one", "--top-k=2"]
    assert run("classify", path, *one, server=classifiers).returncode == 0
    (row,) = read_rows(tmp_path / "one")
    with longshort.Client(address(classifiers)) as client:
        wanted = client.classify("abc", model="one", top_k=2)[0].classes
    assert [(found["label"], found["index"]) for found in row["classes"]] == [(c.label, c.index) for c in wanted]
    assert row["probability"] == pytest.approx(wanted[0].probability)
    assert row["label"] == wanted[0].label and not row["truncated"]
    assert "64" in read_errors(tmp_path / "one")[0]["message"]
    cut = [f"--out={tmp_path / 'cut'}", "--model=one", "--truncate"]
    assert run("classify", path, *cut, server=classifiers).returncode == 0
    assert [(row["token_count"], row["truncated"]) for row in read_rows(tmp_path / "cut")] == [(3, False), (64, True)]
    two = [f"--out={tmp_path / 'two'}", "--model=two", "--second=other", "--truncate", "--output=jsonl"]
    assert run("classify", path, *two, server=classifiers).returncode == 0
    assert [row["token_count"] for row in read_rows(tmp_path / "two")] == [6, 65]


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_pairs_of_a_model_that_joins_them(classifiers: Server, tmp_path: Path, format: str) -> None:
    pairs = [{"text": "A question?", "other": "An answer."}, {"text": "Only one."}, {"text": "", "other": "b"}]
    path = tmp_path / f"a.{format}"
    if format == "jsonl":
        write_jsonl(path, pairs)
    else:
        pq.write_table(pa.Table.from_pylist(pairs), path)
    asked = [("A question?", "An answer."), ("", "b")]
    with longshort.Client(address(classifiers)) as client:
        classes = client.classify(asked, model="joins", top_k=3)
        vectors = client.embed(asked, model="joins", pooling="mean")
    for command, more in (("classify", ()), ("embed", ("--pooling=mean",))):
        out = tmp_path / command
        options = [f"--out={out}", "--model=joins", "--second=other", *more]
        assert run(command, path, *options, server=classifiers).returncode == 0
        rows = read_rows(out)
        for row, one, vector in zip(rows, classes, vectors, strict=True):
            if command == "classify":
                found = {each["index"]: each["probability"] for each in row["classes"]}
                assert found == pytest.approx({each.index: each.probability for each in one.classes}, abs=1e-6)
            else:
                assert row["embedding"] == pytest.approx(vector.values, abs=1e-6)
            assert row["token_count"] == sum(reading.token_count for reading in one.documents)
        (error,) = read_errors(out)
        assert error["ordinal"] == 1 and 'there is no "other"' in error["message"]
    alone = [f"--out={tmp_path / 'alone'}", "--model=joins"]
    assert run("classify", path, *alone, server=classifiers).returncode == 0
    assert len(read_rows(tmp_path / "alone")) == 3


def test_second_columns_must_suit_the_model(classifiers: Server, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [{"text": "abc", "other": "xyz"}])
    for command, model, second, reason in (
        ("classify", "one", "other", "takes one document: name no second column"),
        ("classify", "two", "", "takes two documents: name the second column"),
        ("embed", "one", "other", "takes one document: name no second column"),
        ("embed", "two", "other", "embeds each document by itself: name no second column"),
    ):
        options = [f"--out={tmp_path / 'out'}", f"--model={model}", f"--second={second}"]
        done = run(command, path, *options, server=classifiers)
        assert done.returncode == 2 and f"the model {model} {reason}" in done.stderr


@pytest.mark.parametrize("output", ["parquet", "jsonl"])
def test_embeddings_of_documents(classifiers: Server, tmp_path: Path, output: str) -> None:
    texts = [{"text": "abc"}, {"text": "x" * 100}, {"text": "another"}]
    path = write_jsonl(tmp_path / "a.jsonl", texts)
    common = ["--model=one", f"--output={output}", "--pooling=mean", "--normalize"]
    assert run("embed", path, f"--out={tmp_path / 'out'}", *common, server=classifiers).returncode == 0
    rows = read_rows(tmp_path / "out")
    with longshort.Client(address(classifiers)) as client:
        options: dict[str, Any] = {"model": "one", "pooling": "mean", "normalize": True}
        wanted = client.embed(["abc", "another"], **options)
    for row, answer in zip(rows, wanted, strict=True):
        assert row["embedding"] == pytest.approx(answer.values, abs=1e-6)
        assert not row["truncated"]
    assert [row["token_count"] for row in rows] == [3, 7]
    assert "64" in read_errors(tmp_path / "out")[0]["message"]
    cut = [f"--out={tmp_path / 'cut'}", "--model=two", "--truncate", f"--output={output}"]
    assert run("embed", path, *cut, server=classifiers).returncode == 0
    rows = read_rows(tmp_path / "cut")
    assert [(row["token_count"], row["truncated"]) for row in rows] == [(3, False), (64, True), (7, False)]
    done = run("embed", path, *cut, "--normalize", server=classifiers)
    assert done.returncode == 2 and "options.normalize was false and is true" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["score", "a.jsonl"], 1, "--out is missing"),
        (["guess", "a.jsonl", "--out=o"], 1, "invalid choice"),
        (["score", "a.jsonl", "--out=o", "--top-k=3"], 1, "--top-k is only for classify"),
        (["classify", "a.jsonl", "--out=o", "--region-tokens=3"], 1, "is only for score"),
        (["score", "a.jsonl", "--out=o", "--part=2", "--parts=2"], 1, "--part is 2; it must be below --parts"),
        (["score", "a.jsonl", "--out=o", "--shard-rows=0"], 1, "must be at least 1"),
        (["score", "a.jsonl", "--out=o", "--model=a/b/c"], 1, "it must be NAME or NAME/VERSION"),
        (["score", "a.jsonl", "--out=o", "--tls-ca=none.pem"], 1, "--tls-ca=none.pem cannot be read"),
        (["score", "a.jsonl", "--out=o", "--server=127.0.0.1"], 1, "the server 127.0.0.1 is not HOST:PORT with a port"),
        (["score", "nothing.jsonl", "--out=o"], 2, "nothing.jsonl cannot be read: No such file or directory"),
        (["score", "a.jsonl", "--out=o", "--model=stranger"], 2, "NOT_FOUND"),
        (["classify", "a.jsonl", "--out=o"], 2, "tiny is a language model: use score"),
        (["embed", "a.jsonl", "--out=o"], 2, "tiny is a language model: use score"),
        (["score", "a.jsonl", "--out=o", "--second=b"], 1, "are only for classify and embed"),
        (["embed", "a.jsonl", "--out=o", "--top-k=2"], 1, "only for classify"),
        (["classify", "a.jsonl", "--out=o", "--normalize"], 1, "are only for embed"),
    ],
)
def test_what_is_wrong_is_said_and_coded(
    corpus: Path, server: Server, arguments: list[str], code: int, message: str
) -> None:
    command = [*PROGRAM, *arguments, f"--server={address(server)}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=corpus.parent)
    assert done.returncode == code and message in done.stderr, done.stderr


def test_a_folder_that_another_run_has_is_no_lasting_refusal(corpus: Path, server: Server, tmp_path: Path) -> None:
    """The exit code is that of an unavailable server: deploy/kubernetes/batch ends a Job only by 1 and 2."""
    with open_folder(str(tmp_path / "out")).lock(0, 1):
        done = run("score", corpus, f"--out={tmp_path / 'out'}", server=server)
    assert (done.returncode, done.stderr) == (
        3,
        f"longshort-batch: {tmp_path / 'out'} is in use by another run: wait until it ends, or stop it\n",
    )


def test_a_run_stops_after_too_many_errors_and_goes_on_with_more(server: Server, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [b"broken" if i % 2 else {"text": f"row {i}"} for i in range(100)])
    out = f"--out={tmp_path / 'out'}"
    done = run("score", path, out, "--max-errors=20", "--shard-rows=10", server=server)
    assert done.returncode == 5 and "rows have errors; max_errors is 20" in done.stderr
    assert re.search(rf"The last is row \d+ of {path}: the line is not JSON", done.stderr)
    assert len(read_errors(tmp_path / "out")) <= 20
    done = run("score", path, out, "--max-errors=50", "--shard-rows=10", server=server)
    assert done.returncode == 0 and len(read_rows(tmp_path / "out")) == len(read_errors(tmp_path / "out")) == 50


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_says_how_to_go_on(server: Server, tmp_path: Path, how: signal.Signals) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", documents(2000))
    out = tmp_path / "out"
    command = [*PROGRAM, "score", str(path), f"--out={out}", "--shard-rows=50", f"--server={address(server)}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: len(list((out / "manifest").glob("shard-*"))) >= 2)
        process.send_signal(how)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 4, stderr
    assert stdout == ""
    assert stderr == (
        "longshort-batch: interrupted. The results so far stay valid: run the same command again to resume.\n"
    )
    before = len(read_rows(out))
    assert 100 <= before < 2000
    done = run("score", path, f"--out={out}", "--shard-rows=50", "--quiet", server=server)
    assert (done.returncode, done.stderr) == (0, "")
    assert [row["ordinal"] for row in read_rows(out)] == list(range(2000))


STUCK = """
import sys, time, longshort.batch.{module}
longshort.batch.{module}.{name} = lambda *_: (open("stuck", "w").close(), time.sleep(600))
from longshort.batch.run.program import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("module", "name", "how", "begun"),
    [
        ("inputs.sources", "_fingerprint", signal.SIGINT, False),  # in a thread, before the run
        ("run.task", "open_readers", signal.SIGTERM, False),  # in the main thread
        ("inputs.json_lines", "uncompressed", signal.SIGTERM, True),  # a mount that does not answer
        ("output.folders", "_write_synced", signal.SIGINT, False),  # a disk that does not answer
    ],
)
def test_a_signal_ends_a_run_that_is_stuck(
    corpus: Path, server: Server, tmp_path: Path, module: str, name: str, how: signal.Signals, begun: bool
) -> None:
    """It says how to resume the run only if there is one."""
    command = [sys.executable, "-c", STUCK.format(module=module, name=name), "score", str(corpus)]
    command += [f"--out={tmp_path / 'out'}", f"--server={address(server)}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        wait_until((tmp_path / "stuck").exists)
        process.send_signal(how)
        _, stderr = process.communicate(timeout=60)
    resume = "The results so far stay valid: run the same command again to resume."
    advice = resume if begun else "No results were written."
    assert (process.returncode, stderr) == (4, f"longshort-batch: interrupted. {advice}\n")


def test_sigterm_ends_a_run_that_ignores_ctrl_c(server: Server, tmp_path: Path) -> None:
    """sh starts a program with & so that it ignores SIGINT."""
    path = write_jsonl(tmp_path / "a.jsonl", documents(2000))
    out = tmp_path / "out"
    command = " ".join([*PROGRAM, "score", str(path), f"--out={out}", "--shard-rows=50", f"--server={address(server)}"])
    script = ["sh", "-c", f"{command} & echo $!; wait $!"]
    with subprocess.Popen(script, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        child = int(process.stdout.readline())
        wait_until(lambda: len(list((out / "manifest").glob("shard-*"))) >= 2)
        before = len(list((out / "manifest").glob("shard-*")))
        os.kill(child, signal.SIGINT)
        wait_until(lambda: len(list((out / "manifest").glob("shard-*"))) >= before + 2)
        os.kill(child, signal.SIGTERM)
        errors = process.stderr.read()
        assert process.wait(60) == 4, errors
    assert errors.startswith("longshort-batch: interrupted. The results so far stay valid")
    assert 200 <= len(read_rows(out)) < 2000


def test_a_full_disk_ends_a_run_that_goes_on_with_room(server: Server, tmp_path: Path) -> None:
    """A file system of 200 KB in a mount namespace of its own, which the test then enlarges."""
    path = write_jsonl(tmp_path / "a.jsonl", documents(600))
    disk = tmp_path / "disk"
    disk.mkdir()
    (tmp_path / "code").mkdir()
    command = " ".join([*PROGRAM, f"score {path} --out={disk}/out --shard-rows=20 --server={address(server)}"])
    script = f"""
mount -t tmpfs -o size=200k none {disk} || exit 77
{command}; echo $? > {tmp_path}/first
find {disk} -type f > {tmp_path}/files
mount -o remount,size=20m {disk}
{command}; echo $? > {tmp_path}/second
cp -r {disk}/out {tmp_path}/copied
"""
    own = [] if os.geteuid() == 0 else ["--map-root-user"]
    done = subprocess.run(
        ["unshare", "--mount", *own, "bash", "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode in (1, 77) and not (tmp_path / "first").exists():
        pytest.skip(f"mounting is not permitted here: {done.stderr}")
    assert (tmp_path / "first").read_text() == "5\n"
    assert "cannot be written: No space left on device. The results so far stay valid" in done.stderr
    # No half of a file is left in the way.
    assert not [line for line in (tmp_path / "files").read_text().splitlines() if "/.unfinished/" in line][1:]
    assert (tmp_path / "second").read_text() == "0\n", done.stderr
    assert [row["ordinal"] for row in read_rows(tmp_path / "copied")] == list(range(600))


def test_the_extra_of_datatrove_has_what_its_blocks_import() -> None:
    assert {"orjson", "regex"} <= set(PROJECT["optional-dependencies"]["datatrove"])


@pytest.mark.parametrize(
    ("part", "extra", "gone"),
    [("batch", "batch", "warcio"), ("ray", "ray", "fsspec"), ("datatrove", "datatrove", "fsspec")],
)
def test_without_its_packages_it_says_what_to_install(part: str, extra: str, gone: str) -> None:
    """The message names the repository, since PyPI may have another package of that name some day."""
    program = f"import sys; sys.modules['{gone}'] = None; import longshort.{part}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    wanted = f"ModuleNotFoundError: longshort.{part} needs {gone}: pip install './clients/python[{extra}]', in the "
    assert done.stderr.splitlines()[-1].startswith(wanted), done.stderr


START = f"import sys; {{}}; sys.argv[1:] = ['--help']; from {ENTRY[0]} import {ENTRY[1]}; sys.exit({ENTRY[1]}())"


@pytest.mark.parametrize(
    ("before", "code", "message"),
    [
        ("sys.modules['warcio'] = None", 1, "longshort-batch: longshort.batch needs warcio: pip install "),
        # As if Ctrl-C came while it loads: a module that raises what Python then raises.
        ("sys.path.insert(0, 'interrupted')", 4, "longshort-batch: interrupted\n"),
    ],
)
def test_a_program_that_cannot_begin_says_so_in_a_line(tmp_path: Path, before: str, code: int, message: str) -> None:
    (tmp_path / "interrupted").mkdir()
    (tmp_path / "interrupted/warcio.py").write_text("raise KeyboardInterrupt")
    command = [sys.executable, "-c", START.format(before)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(message) and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (ValueError("token_file: there is none"), 1, "--token-file: there is none"),
        (pa.ArrowInvalid("no such encoding"), 5, "ArrowInvalid: no such encoding"),
        (ImportError("install s3fs"), 5, "ImportError: install s3fs"),
    ],
)
def test_an_error_of_a_library_is_no_wrong_option(
    error: Exception, code: int, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(api, "score", fail)
    monkeypatch.setattr(program, "handle_signals", lambda *_: None)
    assert program.main(["score", "a.jsonl", "--out=out"]) == code
    assert says in capsys.readouterr().err


def test_a_lock_can_be_shared_on_nfs(tmp_path: Path) -> None:
    """NFS makes flock a lock of POSIX, and such a lock for sharing needs a file that can be read."""
    with folders._open_lock(str(tmp_path / "lock")) as lock:
        fcntl.lockf(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("style", "wanted"),
    [
        ("lines", " 55.0 %  50 rows, 0.5 rows/s, 7 tokens/s, 3m00s left\n"),
        ("bar", "\r\033[K[#############...........]  55.0 %  50 rows, 0.5 rows/s, 7 tokens/s, 3m00s left"),
        ("quiet", ""),
    ],
)
def test_progress_reports_what_is_left(style: Any, wanted: str) -> None:
    clock, file = Clock(), io.StringIO()
    progress = Progress(style, 1000, file, clock)
    progress.skip(300)
    clock.now = 100.0
    # A quarter of the inputs in 100 s, so the 45 % that are left take 180 s.
    for _ in range(50):
        progress.advance(True, 14, 5)
    progress.show()
    progress.show()
    assert file.getvalue() == wanted
