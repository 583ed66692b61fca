"""lm-evaluation-harness, as it is, gets the bits per byte of ScoreText for held-out text of Wikipedia."""

from __future__ import annotations

import bz2
import hashlib
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from integration.server_process import ROOT, Server

LM_EVAL = ROOT / "build/lm-eval"
ENWIKI = "gensim/test/test_data/enwiki-latest-pages-articles1.xml-*.bz2"

TASK = """
task: held_out
dataset_path: json
dataset_kwargs:
  data_files: {{test: "{data}"}}
test_split: test
output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{{{text}}}}"
metric_list:
  - metric: bits_per_byte
"""


def held_out_texts() -> list[str]:
    """Pieces of the text that models/zoo/enwiki was not trained on, as its README.md says. The text (CC BY-SA 3.0) is
    not in this repository: the package gensim brings it."""
    (packed,) = LM_EVAL.glob(ENWIKI)
    whole = bz2.decompress(packed.read_bytes())
    assert hashlib.sha256(whole).hexdigest() in (ROOT / "models/zoo/enwiki/README.md").read_text()
    held_out = whole[len(whole) * 95 // 100 :]
    return [held_out[at : at + 3000].decode(errors="ignore").strip() for at in range(0, len(held_out), 80_000)]


@pytest.mark.not_sanitized("most of it is the harness's work; test_openai makes its calls")
@pytest.mark.slow
@pytest.mark.skipif(not LM_EVAL.exists(), reason="build/lm-eval is missing: run deploy/install --tests")
def test_bits_per_byte_are_those_of_score_text(tmp_path: Path, api: SimpleNamespace) -> None:
    zoo = tmp_path / "zoo"
    zoo.mkdir()
    (zoo / "enwiki").symlink_to(ROOT / "models/zoo/enwiki")
    texts = held_out_texts()
    data = tmp_path / "held_out.jsonl"
    data.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    (tmp_path / "task.yaml").write_text(TASK.format(data=data))
    with Server(zoo, tmp_path) as server:
        url = f"http://127.0.0.1:{server.http_port}/v1/completions"
        model = f"model=enwiki,base_url={url},max_length=100000"
        arguments = ["--model=local-completions", f"--model_args={model}", "--tasks=held_out"]
        arguments += ["--seed=0,1234,None,1234"]  # torch, which no task needs, is not whole in .venv
        arguments += [f"--include_path={tmp_path}", f"--output_path={tmp_path / 'out'}"]
        offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")}
        environment = os.environ | offline | {"PYTHONPATH": str(LM_EVAL)}
        done = subprocess.run(
            [sys.executable, "-m", "lm_eval", "run", *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stderr
        # The harness scores each text after the newline that ends a document.
        request = api.inference.ScoreTextRequest(inputs=[{"text": "\n" + text} for text in texts])
        scores = api.inference_grpc.InferenceStub(server.channel).ScoreText(request, timeout=300).scores
    (report,) = (tmp_path / "out").rglob("results_*.json")
    got = json.loads(report.read_text())["results"]["held_out"]["bits_per_byte,none"]
    size = sum(len(text.encode()) for text in texts)
    want = -sum(score.log_likelihood for score in scores) / math.log(2) / size
    assert got == pytest.approx(want, abs=1e-4)
