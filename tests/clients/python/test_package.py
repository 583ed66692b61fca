"""The installed package: generated files, types, and messages in a descriptor pool of their own."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from integration.server_process import ROOT, Server

from clients.python.conftest import address

PACKAGE = ROOT / "clients/python"

USER_PROGRAM = '''
"""A program that uses the client, as a user would write it."""

import asyncio
from pathlib import Path

import longshort
import numpy as np
import PIL.Image


def ask(client: longshort.Client) -> float:
    scores: list[longshort.TextScore] = client.score(["a", "b"], timeout=5.0, priority="low")
    scores += client.score("a") + client.score(b"a") + client.score([[1, 2], [3]])
    scores += client.score(str(i) for i in (1, 2))
    pairs = client.classify([("a", "b"), ("c", "d")], truncate=True)
    pairs += client.classify([np.zeros((4, 4), np.uint8), np.zeros((4, 4, 3))]) + client.classify(np.zeros((4, 4)))
    pairs += client.classify(PIL.Image.new("L", (4, 4))) + client.classify([Path("a.jpg"), Path("b.jpg")])
    for answer in client.score_stream((str(i) for i in range(3)), window=2, ordered=False):
        scores.append(answer)
    labels: list[str] = [answer.top.label for answer in client.classify("a.jpg", model="flowers", top_k=1)]
    stream = client.generate("x", max_tokens=5, temperature=0.5, stop="y", logit_bias={1: 0.5})
    text = "".join(piece for piece in stream) + stream.result.text + ",".join(labels)
    with client.session("talk") as session, session.generate(" and ") as more:
        for delta in more.deltas():
            text += delta.text
    try:
        client.wait_ready()
    except longshort.ResourceExhausted as error:
        return error.retry_after or float(error.queue_depth or 0)
    return sum(score.log_likelihood for score in scores) + len(text)


async def ask_too(client: longshort.AsyncClient) -> longshort.Generation:
    async with client:
        async for answer in client.classify_stream(["a"]):
            print(answer.classes[0].probability + 1.0)
        async with client.session() as session:
            await session.score("x")
        return await client.generate("x", request_id="mine").finish()


asyncio.run(ask_too(longshort.AsyncClient(["a:1", "b:1"], retry=longshort.RetryPolicy(attempts=2))))
'''

WRONG_PROGRAM = """
import longshort

client = longshort.Client(server=5)
client.generate("x", temprature=0.5)
client.score("x", timeout="long")
client.score("x", priority="highest")
print(client.score("x")[0].loglikelihood)
for text in longshort.AsyncClient().generate("x"):
    pass
"""


def mypy(*arguments: str | Path, cache: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={cache}", *arguments]
    return subprocess.run(command, cwd=cache, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mypy")


def test_generated_files_are_those_that_are_generated(tmp_path: Path) -> None:
    subprocess.run([sys.executable, PACKAGE / "generate", f"--into={tmp_path}"], check=True, capture_output=True)
    made = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    assert Path("_proto/contract.binpb") in made and Path("_sync/client.py") in made
    for path in made:
        assert (PACKAGE / "longshort" / path).read_bytes() == (tmp_path / path).read_bytes(), f"run generate: {path}"


def test_the_package_is_typed(cache: Path) -> None:
    done = mypy(f"--config-file={PACKAGE / 'pyproject.toml'}", PACKAGE / "longshort", cache=cache)
    assert done.returncode == 0, done.stdout


def test_programs_that_use_it_are_typed(cache: Path) -> None:
    (cache / "program.py").write_text(USER_PROGRAM)
    done = mypy("program.py", cache=cache)
    assert done.returncode == 0, done.stdout
    (cache / "wrong.py").write_text(WRONG_PROGRAM)
    done = mypy("wrong.py", cache=cache)
    found = {line.split(":")[1] for line in done.stdout.splitlines() if ": error:" in line}
    assert found == {"4", "5", "6", "7", "8", "9"}, done.stdout


def test_it_needs_grpcio_and_protobuf_only() -> None:
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    assert [line.split(">")[0] for line in project["dependencies"]] == ["grpcio", "protobuf"]


def test_a_wheel_has_all_and_leaves_nothing_behind(server: Server, tmp_path: Path) -> None:
    """The backend of pyproject.toml builds the wheel without the network. The wheel works without the checkout."""
    before = sorted(PACKAGE.rglob("*"))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "wheel", "--no-deps", "--no-build-isolation", f"--wheel-dir={tmp_path}", PACKAGE], check=True)
    assert [path for path in sorted(PACKAGE.rglob("*")) if "__pycache__" not in path.parts] == [
        path for path in before if "__pycache__" not in path.parts
    ]
    (wheel,) = tmp_path.glob("longshort-*.whl")
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
        opened.extractall(tmp_path / "installed")
    for path in (PACKAGE / "longshort").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert str(path.relative_to(PACKAGE)) in names
    program = """
import sys
sys.path.insert(0, sys.argv[1])
import longshort
assert longshort.__file__.startswith(sys.argv[1])
with longshort.Client(sys.argv[2]) as client:
    assert client.models()[0].name == "tiny"
"""
    subprocess.run([sys.executable, "-c", program, tmp_path / "installed", address(server)], check=True, cwd=tmp_path)


OWN_STUBS = """
import sys
from pathlib import Path
from grpc_tools import protoc

folder, proto, address, order = sys.argv[1:]
changed = Path(folder) / "proto/longshort/v1"
changed.mkdir(parents=True)
for path in Path(proto).glob("longshort/v1/*.proto"):
    text = path.read_text()
    # Stubs of another version: in one pool, two files that differ end the program.
    (changed / path.name).write_text(text.replace("message KeepAlive {}", "message KeepAlive { string newer = 1; }"))
into = ["protoc", f"--proto_path={folder}/proto", f"--python_out={folder}", f"--grpc_python_out={folder}"]
assert protoc.main([*into, *map(str, changed.glob("*.proto"))]) == 0

def ours():
    import longshort
    with longshort.Client(address) as client:
        assert client.generate("x", max_tokens=1).finish().usage.generated_tokens == 1

def theirs():
    import grpc
    from longshort.v1 import inference_pb2, inference_pb2_grpc
    assert inference_pb2.KeepAlive(newer="x").newer == "x"
    with grpc.insecure_channel(address) as channel:
        stub = inference_pb2_grpc.InferenceStub(channel)
        assert stub.Tokenize(inference_pb2.TokenizeRequest(input={"text": "x"})).ids

if order == "ours first":
    ours()
    sys.path.insert(0, folder)
    theirs()
else:
    sys.path.insert(0, folder)
    theirs()
    ours()
"""


@pytest.mark.parametrize("order", ["ours first", "theirs first"])
def test_stubs_of_your_own_stand_beside_it(server: Server, tmp_path: Path, order: str) -> None:
    command = [sys.executable, "-c", OWN_STUBS, tmp_path, ROOT / "proto", address(server), order]
    subprocess.run(command, check=True, timeout=120, cwd=tmp_path)


def test_it_is_installed_in_an_environment_of_its_own(tmp_path: Path) -> None:
    """The environment has only its two dependencies, and none of the tests' other packages."""
    venv.create(tmp_path / "bare", with_pip=False)
    python = tmp_path / "bare/bin/python"
    program = """
import sys
sys.path += sys.argv[1:]
before = set(sys.modules)
import longshort
allowed = {"longshort", "grpc", "google", "typing_extensions"}
others = {name.split(".")[0] for name in set(sys.modules) - before} - allowed - set(sys.stdlib_module_names)
# gRPC imports its own companions if they are there.
assert not {name for name in others if not name.startswith(("_", "grpc_", "cython"))}, others
"""
    import grpc

    packages = str(Path(grpc.__file__).parents[1])
    subprocess.run([python, "-c", program, PACKAGE, packages], check=True, timeout=60)
