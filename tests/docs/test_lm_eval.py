"""docs/operations/openai.md: its commands for lm-evaluation-harness give the bits per byte of ScoreText."""

from __future__ import annotations

import bz2
import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from integration.server_process import ROOT

from docs.blocks import Block, block_of
from docs.fresh_shell import FreshShell

PAGE = "docs/operations/openai.md"
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

# The harness scores each text after the newline that ends a document.
SCORES = """
import json, longshort, math
texts = [json.loads(line)["text"] for line in open("held_out.jsonl")]
with longshort.Client("127.0.0.1:8500", model="enwiki") as client:
    scores = client.score(["\\n" + text for text in texts], timeout=300)
size = sum(len(text.encode()) for text in texts)
print(-sum(score.log_likelihood for score in scores) / math.log(2) / size)
"""


def held_out_texts() -> list[str]:
    """Pieces of the text that models/zoo/enwiki was not trained on, as its README.md says. The text (CC BY-SA 3.0) is
    not in this repository: the package gensim brings it."""
    (packed,) = LM_EVAL.glob(ENWIKI)
    whole = bz2.decompress(packed.read_bytes())
    assert hashlib.sha256(whole).hexdigest() in (ROOT / "models/zoo/enwiki/README.md").read_text()
    held_out = whole[len(whole) * 95 // 100 :]
    return [held_out[at : at + 3000].decode(errors="ignore").strip() for at in range(0, len(held_out), 80_000)]


def of_this_machine(block: Block) -> Block:
    """The same command with a task that needs no network."""
    task = "--tasks=held_out --include_path=. --output_path=out"
    seed = "--seed=0,1234,None,1234"  # torch, which no task needs, is not whole in .venv
    assert "--tasks=wikitext" in block.code
    return replace(block, code=block.code.replace("--tasks=wikitext", f"{task} {seed}"))


@pytest.mark.slow
@pytest.mark.skipif(not LM_EVAL.exists(), reason="build/lm-eval is missing: run deploy/install --tests")
@pytest.mark.parametrize("models", [["enwiki"], ["enwiki", "other"]], ids=["one language model", "two"])
def test_bits_per_byte_are_those_of_score_text(tmp_path: Path, models: list[str]) -> None:
    run = block_of(PAGE, "lm-eval run")
    serve = block_of(PAGE, "build/release/bin/longshort token new lm-eval")
    run_with_token = block_of(PAGE, "export OPENAI_API_KEY")
    shell = FreshShell(tmp_path)
    (shell.checkout / "models").unlink()
    zoo = shell.checkout / "models/zoo"
    zoo.mkdir(parents=True)
    for model in models:
        (zoo / model).symlink_to(ROOT / "models/zoo/enwiki")
    data = shell.checkout / "held_out.jsonl"
    data.write_text("".join(json.dumps({"text": text}) + "\n" for text in held_out_texts()))
    (shell.checkout / "task.yaml").write_text(TASK.format(data=data))
    blocks = [Block("", "python", SCORES)]
    blocks += [of_this_machine(run)] if len(models) == 1 else [serve, of_this_machine(run_with_token)]
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")}
    program = {"PATH": f"{LM_EVAL / 'bin'}:/usr/bin:/bin", "PYTHONPATH": str(LM_EVAL)}
    want, *_ = shell.run(blocks, **offline, **program)
    (report,) = (shell.checkout / "out").rglob("results_*.json")
    got = json.loads(report.read_text())["results"]["held_out"]["bits_per_byte,none"]
    assert got == pytest.approx(float(want), abs=1e-4)
