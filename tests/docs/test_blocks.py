"""Each block of sh and Python of the documentation runs as it stands, in its page's order, or NOT_RUN says why not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from integration.server_process import ROOT

from docs.blocks import PAGES, Block, blocks_of
from docs.fresh_shell import FreshShell

# By page: the first words of each block that the test does not run, and the reason.
NOT_RUN = {
    "README.md": {
        "deploy/quickstart --keep": "installs and builds",
    },
    "clients/python/README.md": {
        "pip install ./clients/python": "network",
    },
    "docs/adding_a_model.md": {
        "cmake --build build/release --target longshort-server": "names a new model",
    },
    "docs/batch.md": {
        ".venv/bin/pip install './clients/python[batch]'": "network",
        "kubectl apply -k deploy/kubernetes/batch/shared": "cluster: tests/kubernetes/test_batch.py",
        "tools/batches/measure": "downloaded data, 20 minutes",
    },
    "docs/batch_pipelines.md": {
        "pip install './clients/python[ray]'": "network",
        "import longshort.ray": "slow: test_ray.py runs it",
        "start = longshort.ray.StartServer": "lines for the program before",
        "context = ray.data.DataContext.get_current()": "lines for the program before",
        "pip install './clients/python[datatrove]'": "network",
    },
    "docs/gpu.md": {
        "tar xf gpu.tar.xz": "GPU",
        "find held_out -name '*.jpg'": "downloaded data",
        "PYTHONPATH=tests .venv/bin/python -m bench.gpu.plot": "results of a GPU",
    },
    "docs/http.md": {
        "openapi-python-client generate": "test_openapi.py runs it",
    },
    "docs/operations/container.md": {
        "docker build": "network: tests/image",
        "docker run": "containers: tests/image",
    },
    "docs/operations/dashboards.md": {
        "deploy/observe --load": "network; runs until Ctrl-C: test_observe.py",
        ".venv/bin/python deploy/grafana/generate": "writes to deploy: test_dashboards.py",
    },
    "docs/operations/install.md": {
        "deploy/install": "installs and builds",
    },
    "docs/operations/kubernetes.md": {
        "kubectl apply": "cluster",
        "kubectl -n longshort create secret generic longshort-envoy-tls": "cluster",
        "kubectl -n longshort create secret generic longshort-envoy-client": "cluster",
        "config = json.dumps": "cluster",
        "kubectl -n longshort create secret generic longshort-tls": "cluster",
        "kubectl kustomize deploy/my-overlay": "names a reader's overlay",
    },
    "docs/operations/load.md": {
        ".venv/bin/pip install -r tests/bench/requirements.txt": "network, 10 minutes",
    },
    "docs/operations/metrics.md": {
        "prometheus --config.file": "runs until Ctrl-C: test_prometheus.py",
    },
    "docs/operations/models.md": {
        ".venv/bin/python -m longshort_convert checkpoint_best.pt": "official checkpoints",
        ".venv/bin/python -m longshort_convert roberta-imdb": "official checkpoints",
    },
    "docs/operations/open_inference.md": {
        ".venv/bin/pip install 'tritonclient[grpc]'": "network",
        "perf_analyzer": "a program of NVIDIA's: open_inference_protocol/test_tools.py",
    },
    "docs/operations/openai.md": {
        "from langchain_openai": "slow: test_clients.py runs it",
        "from llama_index": "slow: test_clients.py runs it",
        "import litellm": "slow: test_clients.py runs it",
        "lm-eval run": "slow: test_lm_eval.py runs it",
        "build/release/bin/longshort token new lm-eval": "slow: test_lm_eval.py runs it",
        "export OPENAI_API_KEY": "slow: test_lm_eval.py runs it",
    },
    "docs/operations/proxies.md": {
        "cp deploy/envoy/*.yaml /etc/envoy/": "writes to /etc: test_envoy.py",
    },
    "docs/operations/run.md": {
        "build/release/bin/longshort-server": "writes to /run; the other server has the HTTP port: test_unix_socket.py",
    },
    "docs/operations/security.md": {
        "build/release/bin/longshort-server --model-repository=DIR": "names a reader's hosts: test_tls_clients.py",
    },
    "docs/operations/wheel.md": {
        "deploy/wheel": "builds: tests/image",
        "python3 -m venv NEW": "network: tests/image",
    },
    "docs/training.md": {
        "cmake --build build/release": "the shell has the programs, no build",
        "build/release/bin/longshort-train text-classifier reviews.csv": "10 minutes",
        "python3 -m venv build/zoo": "network",
        "build/release/bin/longshort-train image-classifier photos": "an hour",
        "build/release/bin/longshort-train text-classifier complaints.csv": "trains for all steps",
        ".venv/bin/python -m longshort_convert roberta-base": "official checkpoints",
    },
    "docs/other_languages.md": {
        "grpcurl": "grpcurl is not in Debian 12",
        "package=example.org/you/longshortv1": "Go's plugins for protoc",
        "mkdir -p stubs\nprotoc": "Java's plugin for protoc",
        "npm install": "network",
        "mkdir -p stubs\nnpx": "Node.js",
    },
}

# What blocks print, as regular expressions.
PRINTS = {
    "README.md": {
        "curl 127.0.0.1:8501/longshort.v1.Inference/Generate": r'"finishReason":.*data: \[DONE\]',
        "from openai import OpenAI": r".{100}",
        "import longshort": r".{100}",
        "build/release/bin/longshort models": r"enwiki.*German.*longshort_requests_total",
        "build/release/bin/longshort --server=localhost:8600": r"enwiki.*text_completion",
    },
    "docs/http.md": {
        "curl": r'"models":.*"scores":.*"completions":.*"ids":',
    },
    "docs/operations/open_inference.md": {
        "import numpy": r":sunflower.*:German.*:French.*\[-\d",
    },
}


def write_corpus(folder: Path) -> None:
    """What the reader of docs/batch.md and docs/batch_pipelines.md has: texts as Parquet and as JSON lines."""
    (folder / "corpus").mkdir()
    paragraph = (ROOT / "deploy/paragraph.txt").read_text()
    texts = [paragraph[:length] for length in (100, 200, 300)]
    for name in ("a", "b"):
        ids = [f"{name}{number}" for number in range(len(texts))]
        pq.write_table(pa.table({"text": texts, "id": ids}), folder / f"corpus/{name}.parquet")
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    (folder / "pages.jsonl.zst").write_bytes(zstandard.ZstdCompressor().compress(lines.encode()))


def write_documents(folder: Path) -> None:
    (folder / "sentences.txt").write_text("The cat sat.\n")


def write_examples(folder: Path) -> None:
    """What the reader of docs/training.md has: texts with one of two labels."""
    texts = [{"text": f"{word} text {number}", "label": word} for number in range(40) for word in ("good", "bad")]
    for name in ("train", "held_out"):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(text) + "\n" for text in texts))


def write_token(folder: Path) -> None:
    (folder / "alice.token").write_text("a-token-of-at-least-32-characters\n")


# The files that a page's reader has.
FILES: dict[str, Callable[[Path], None]] = {
    "clients/python/README.md": write_token,
    "docs/batch.md": write_corpus,
    "docs/batch_pipelines.md": write_corpus,
    "docs/operations/load.md": write_documents,
    "docs/training.md": write_examples,
}

COMMANDS = {page: blocks_of(page, "sh", "python") for page in PAGES}


def those_that_begin(page: str, beginning: str) -> list[Block]:
    return [block for block in COMMANDS[page] if block.code.startswith(beginning)]


LEFT_OUT = [
    block for page, rows in NOT_RUN.items() for beginning in rows for block in those_that_begin(page, beginning)
]


@pytest.mark.parametrize("page", [page for page, blocks in COMMANDS.items() if set(blocks) - set(LEFT_OUT)])
def test_the_commands_of_a_page_run(page: str, tmp_path: Path) -> None:
    shell = FreshShell(tmp_path)
    FILES.get(page, lambda folder: None)(shell.checkout)
    blocks = [block for block in COMMANDS[page] if block not in LEFT_OUT]
    printed = dict(zip(blocks, shell.run(blocks), strict=True))
    for beginning, pattern in PRINTS.get(page, {}).items():
        (block,) = those_that_begin(page, beginning)
        assert re.search(pattern, printed[block], re.DOTALL), printed[block]


def test_each_row_is_about_one_block() -> None:
    for table in (NOT_RUN, PRINTS):
        for page, rows in table.items():
            for beginning in rows:
                assert len(those_that_begin(page, beginning)) == 1, f"{page}: {beginning}"


def test_every_block_of_commands_is_found() -> None:
    """None has a language that stands for another one, such as bash or shell."""
    languages = {block.language for page in PAGES for block in blocks_of(page)}
    assert languages <= {"sh", "python", "", "cmake", "cpp", "go", "java", "js", "json", "nginx", "yaml"}
