"""`python -m longshort` beside the C++ client: the same options give the same results and exit codes."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from integration.server_process import BINARY, ROOT, Server, wait_until
from longshort._command.program import main

from clients.python.conftest import address

PHOTO = str(ROOT / "deploy/photo.jpg")
PARAGRAPH = str(ROOT / "deploy/paragraph.txt")
README = ROOT / "clients/python/README.md"
PROGRAMS = {"python": [sys.executable, "-m", "longshort"], "cpp": [str(BINARY.with_name("longshort"))]}


def run(
    server: Server | None, *arguments: str, program: str = "python", given: bytes = b"", folder: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    where = [] if server is None else [f"--server={address(server)}"]
    return subprocess.run(
        [*PROGRAMS[program], *where, *arguments], input=given, capture_output=True, timeout=60, cwd=folder, check=False
    )


def lines(done: subprocess.CompletedProcess[bytes]) -> list[Any]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def without_times(value: Any) -> Any:
    """What the timings say is of each call; numbers as close as JSON has them."""
    if isinstance(value, dict):
        return {key: sorted(inner) if key == "timings" else without_times(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [without_times(inner) for inner in value]
    return round(value, 4) if isinstance(value, float) else value


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("files")
    (made / "a.txt").write_text("The cat sat.\n")
    (made / "b.txt").write_bytes(b"\xff\xfe bytes")
    (made / "empty.txt").write_text("")
    (made / "lines.txt").write_text("one\r\ntwo\n\nfour")
    (made / "lines.jsonl").write_text(
        '{"text": "one", "name": "first"}\n{"text": "two\\nlines"}\nno json\n{"name": "nothing"}\n'
    )
    (made / "images").mkdir()
    (made / "images/photo.JPG").write_bytes(Path(PHOTO).read_bytes())
    (made / "images/broken.png").write_bytes(b"no image")
    (made / "images/notes.txt").write_text("not wanted")
    (made / "images/.hidden.jpg").write_bytes(b"")
    return made


SAME = {
    "models": ["models"],
    "models as JSON": ["models", "--json"],
    "a language model": ["models", "--model=enwiki"],
    "an image classifier": ["models", "--model=flowers"],
    "a text classifier as JSON": ["--json", "--model=movie_reviews", "models"],
    "tokens": ["--model=enwiki", "tokenize", "a.txt", "b.txt"],
    "pieces": ["--model=enwiki", "tokenize", "--pieces", "a.txt", "b.txt"],
    "tokens as JSON": ["--model=enwiki", "tokenize", "--json", "a.txt"],
    "one score as JSON": ["--model=enwiki", "score", "--json", "a.txt"],
    "scores as JSON": ["--model=enwiki", "score", "--json", "a.txt", "b.txt", "empty.txt", "a.txt"],
    "a pattern": ["--model=enwiki", "score", "--json", "?.txt"],
    "log-probabilities": ["--model=enwiki", "score", "--json", "--log-probabilities", "--top-alternatives=2", "a.txt"],
    "lines": ["--model=enwiki", "score", "--json", "--lines", "lines.txt"],
    "with timings": ["--model=enwiki", "score", "--json", "--timings", "--lines", "lines.txt"],
    "JSON lines": ["--model=enwiki", "score", "--json", "--json-lines", "lines.jsonl"],
    "classes of texts": ["--model=movie_reviews", "score", "--truncate", "a.txt", "b.txt"],
    "classes of texts as JSON": ["--model=movie_reviews", "score", "--json", "--logits", "a.txt", "b.txt"],
    "classes of images": ["--model=flowers", "classify", "--top-k=2", "--logits", "images"],
    "classes of images as JSON": ["--model=flowers", "classify", "--json", "images", "none.png", PHOTO],
    "generated": ["--model=enwiki", "generate", "--prompt=The ", "--temperature=0", "--max-tokens=20"],
    "several": ["--model=enwiki", "generate", "--prompt=The ", "--seed=3", "--completions=3", "--max-tokens=9"],
    "at once": ["--model=enwiki", "generate", "--prompt=The ", "--seed=3", "--no-stream", "--json", "--max-tokens=9"],
    "tokens of it": [
        "--model=enwiki",
        "generate",
        "--prompt=The ",
        "--seed=3",
        "--log-probabilities",
        "--max-tokens=9",
    ],
    "stopped": ["--model=enwiki", "generate", "--prompt=The ", "--seed=3", "--stop= ", "--echo", "--raw"],
    "biased": ["--model=enwiki", "generate", "--prompt=The ", "--logit-bias=65:100", "--max-tokens=5"],
    "no model": ["--model=nobody", "tokenize", "a.txt"],
    "a wrong number": ["--model=enwiki", "generate", "--prompt=The ", "--temperature=-1"],
    "the wrong model": ["--model=flowers", "score", "a.txt"],
    "no images": ["--model=enwiki", "classify", PHOTO],
    "images none of which can be read": ["--model=flowers", "classify", "none.jpg"],
    "no file": ["--model=enwiki", "score", "none.txt"],
    "an empty folder's pattern": ["--model=flowers", "classify", "none*.jpg"],
    "options of classifiers": ["--model=enwiki", "score", "--truncate", "a.txt"],
    "options of language models": ["--model=movie_reviews", "score", "--log-probabilities", "a.txt"],
    "no such option": ["--nothing", "models"],
    "no such command": ["nothing"],
    "an argument too many": ["models", "more"],
    "a wrong time": ["--timeout=5", "models"],
    "a wrong version": ["--model=enwiki/0", "models"],
    "no session": ["--model=enwiki", "session", "close", "nobody"],
    "no action": ["session", "open", "x"],
    "no address": ["--server=127.0.0.1:1", "models"],
}


@pytest.mark.parametrize("arguments", SAME.values(), ids=SAME.keys())
def test_results_are_those_of_the_cpp_client(zoo: Server, folder: Path, arguments: list[str]) -> None:
    ours = run(zoo, *arguments, folder=folder)
    theirs = run(zoo, *arguments, program="cpp", folder=folder)
    assert ours.returncode == theirs.returncode, ours.stderr
    assert b"Traceback" not in ours.stderr
    if "--json" in arguments:
        assert without_times(lines(ours)) == without_times(lines(theirs))
    else:
        assert ours.stdout == theirs.stdout
    if theirs.returncode:
        assert ours.stderr


def test_scores_for_people(zoo: Server, folder: Path) -> None:
    """All but the rate, which is of each call."""
    rate = re.compile(rb" +\S+(  \S+)$", re.MULTILINE)
    arguments = ["--model=enwiki", "score", "--log-probabilities", "a.txt", "b.txt"]
    ours, theirs = (run(zoo, *arguments, program=program, folder=folder) for program in PROGRAMS)
    assert rate.sub(rb"\1", ours.stdout) == rate.sub(rb"\1", theirs.stdout)


def test_streamed_events_are_those_of_the_contract(zoo: Server) -> None:
    done = run(zoo, "--model=enwiki", "generate", "--prompt=The ", "--max-tokens=20", "--json")
    events = lines(done)
    assert list(events[0]) == ["start"] and list(events[-1]) == ["summary"]
    assert sum(int(event["delta"]["token_count"]) for event in events if "delta" in event) == 20


def test_input_comes_from_standard_input(zoo: Server) -> None:
    ids = run(zoo, "--model=enwiki", "tokenize", given=b"a cat").stdout
    again = run(zoo, "--model=enwiki", "tokenize", "--ids", given=ids)
    assert again.stdout == ids
    scored = run(zoo, "--model=enwiki", "score", "--ids", "--json", given=ids)
    assert lines(scored)[0]["name"] == "-"
    assert lines(scored)[0]["scores"][0]["token_count"] == "5"
    generated = run(zoo, "--model=enwiki", "generate", "--max-tokens=3", "--echo", given=b"The ")
    assert generated.stdout.startswith(b"The ")
    classified = run(zoo, "--model=flowers", "classify", "-", given=Path(PHOTO).read_bytes())
    assert b"sunflower" in classified.stdout
    wrong = run(zoo, "--model=enwiki", "tokenize", "--ids", given=b"1 two 3")
    assert wrong.returncode == 1 and b'--ids: "two" is not a token id' in wrong.stderr


def test_a_document_too_large_for_a_message_leaves_the_others(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "large.txt").write_text("x" * 5000)
    (tmp_path / "small.txt").write_text("x" * 50)
    with Server(repository, tmp_path / "server", "--max-message-bytes=4096") as server:
        done = run(server, "score", "--json", "small.txt", "large.txt", "small.txt", folder=tmp_path)
    assert done.returncode == 2
    answers = lines(done)
    assert [set(answer) for answer in answers[::2]] == [
        {"name", "fingerprint", "precision", "scores", "model", "usage"}
    ] * 2
    assert "the server takes at most 4096 (--max-message-bytes)" in answers[1]["error"]["message"]
    assert b"of 3 documents, 1 refused" in done.stderr


def test_sessions_are_moved(server: Server, tmp_path: Path) -> None:
    begun = run(server, "generate", "--session=moved", "--prompt=It was ", "--max-tokens=5")
    assert begun.returncode == 0
    exported = run(server, "session", "export", "moved", "talk.session", folder=tmp_path)
    assert re.fullmatch(rb"session moved: 12 tokens, \d+ bytes\n", exported.stdout)
    imported = run(server, "session", "import", "moved-2", "talk.session", folder=tmp_path)
    assert imported.stdout == b"session moved-2: 12 tokens\n"
    piped = run(server, "--json", "session", "export", "moved-2", "-")
    assert json.loads(piped.stderr)["session_tokens"] == "12"
    again = run(server, "--json", "session", "import", "moved-3", "-", given=piped.stdout)
    assert lines(again) == [{"session_tokens": "12"}]
    for id in ("moved", "moved-2", "moved-3"):
        assert run(server, "session", "close", id).returncode == 0
    assert run(server, "session", "close", "moved").returncode == 2
    gone = run(server, "generate", "--session=moved", "--session-must-exist", "--prompt=x")
    assert gone.returncode == 2
    damaged = run(server, "session", "import", "x", "-", given=piped.stdout[:-9])
    assert damaged.returncode == 1 and b"no exported session, or was damaged" in damaged.stderr


def test_help_teaches() -> None:
    whole = run(None, "--help")
    assert whole.returncode == 0
    for command in ("score", "classify", "generate", "models", "tokenize", "session"):
        assert command in whole.stdout.decode()
        own = run(None, command, "--help").stdout.decode()
        assert "Examples:\n" in own and "--timeout" in own and "Exit codes:" in own
        for option in set(re.findall(r"--[a-z-]+", own)):
            if option not in ("--max-message-bytes", "--session-key-file"):
                assert re.search(rf"^  {option}\b", own, re.MULTILINE) or option in ("--help",), option
    assert run(None, "--version").stdout.startswith(b"longshort 0.")
    assert run(None).returncode == 1


def test_the_readme_names_all_that_only_the_cpp_client_has(capsys: pytest.CaptureFixture[str]) -> None:
    """Commands and options of each, as --help tells them."""

    def helped(kind: str, *command: str) -> str:
        if kind == "cpp":
            return run(None, *command, "--help", program=kind).stdout.decode()
        with pytest.raises(SystemExit):
            main([*command, "--help"])
        return capsys.readouterr().out

    def commands(kind: str) -> set[str]:
        listed = helped(kind).partition("Commands:")[2].partition("\n\n")[0]
        return set(re.findall(r"^  ([a-z]+) ", listed, re.MULTILINE))

    def options(kind: str, command: str) -> set[str]:
        return set(re.findall(r"^  (--[a-z-]+)", helped(kind, command), re.MULTILINE)) - {"--help", "--version"}

    def actions(kind: str) -> set[str]:
        return set(re.findall(r"\bsession (list|drain|export|import|close)\b", helped(kind, "session")))

    shared = commands("python")
    missing = {f"`{command}`" for command in commands("cpp") - shared}
    missing |= {f"`session {action}`" for action in actions("cpp") - actions("python")}
    for command in shared:
        ours, theirs = options("python", command), options("cpp", command)
        assert ours <= theirs
        if command != "session":  # whose options are those of its actions
            missing |= {f"`{command} {option}`" for option in theirs - ours - {"--flagfile"}}
    section = README.read_text().partition("Only that one has:")[2].partition("`--timeout`")[0]
    assert missing == set(re.findall(r"`(?:[a-z]+|session [a-z]+|score --[a-z]+)`", section))


def test_the_client_s_words_name_options(zoo: Server, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret")
    done = run(None, "--server=example.org:1", f"--token-file={tmp_path}/token", "models")
    assert done.returncode == 1 and b"give --tls-ca or" in done.stderr
    done = run(zoo, "--tls-ca=/nowhere", "models")
    assert done.returncode == 1 and b"--tls-ca=/nowhere cannot be read" in done.stderr


@pytest.fixture
def endless(server: Server) -> Iterator[subprocess.Popen[bytes]]:
    """A program that generates and does not end by itself."""
    # What runs in the background of a shell ignores Ctrl-C.
    command = ["env", "--default-signal=INT", *PROGRAMS["python"], f"--server={address(server)}", "--timeout=inf"]
    process = subprocess.Popen(
        [*command, "generate", "--prompt=x", "--max-tokens=60000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_the_work(endless: subprocess.Popen[bytes], server: Server, how: signal.Signals) -> None:
    assert endless.stdout is not None and endless.stderr is not None
    assert endless.stdout.read(1), endless.stderr.read()
    endless.send_signal(how)
    _, told = endless.communicate(timeout=60)
    assert endless.returncode == 4
    assert told == b"longshort: CANCELLED: the program was interrupted\n"
    wait_until(lambda: server.metric("longshort_streams_active") == 0)


def test_a_reader_who_leaves_ends_the_work(endless: subprocess.Popen[bytes], server: Server) -> None:
    assert endless.stdout is not None and endless.stderr is not None
    assert endless.stdout.read(1), endless.stderr.read()
    endless.stdout.close()
    assert endless.wait(60) == 5
    assert endless.stderr.read() == b"longshort: standard output cannot be written\n"
    wait_until(lambda: server.metric("longshort_streams_active") == 0)


def test_a_timeout_ends_the_work(server: Server) -> None:
    done = run(server, "--timeout=300ms", "generate", "--prompt=x", "--max-tokens=60000")
    assert done.returncode == 4 and b"DEADLINE_EXCEEDED" in done.stderr


def test_a_terminal_sees_how_far_it_is(server: Server, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("some text\n" * 3000)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*PROGRAMS["python"], f"--server={address(server)}", "score", "--lines", "--json", "lines.txt"],
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        stdin=subprocess.DEVNULL,
        cwd=tmp_path,
    )
    os.close(theirs)
    seen = bytearray()

    def look() -> None:
        while select.select([ours], [], [], 60)[0]:
            try:
                seen.extend(os.read(ours, 65536))
            except OSError:  # the end of a terminal
                return

    looking = threading.Thread(target=look)
    looking.start()
    assert process.wait(60) == 0
    looking.join(60)
    os.close(ours)
    assert re.search(rb"\[#+-*\]  \d+/3000 documents  [\d.]+/s  \d+ s left", seen)
    assert seen.endswith(b"\r\x1b[K"), "nothing of it stays"
