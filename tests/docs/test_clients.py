"""docs/operations/openai.md: its programs for LangChain, LlamaIndex and LiteLLM run as they stand."""

from __future__ import annotations

from pathlib import Path

import pytest
from integration.server_process import ROOT

from docs.blocks import block_of
from docs.fresh_shell import FreshShell

CLIENTS = ROOT / "build/openai-clients"


@pytest.mark.slow
@pytest.mark.skipif(not CLIENTS.exists(), reason="build/openai-clients is missing: run deploy/install --tests")
@pytest.mark.parametrize(
    ("beginning", "last"), [("from langchain_openai", "2"), ("from llama_index", "64"), ("import litellm", "1")]
)
def test_a_client_continues_and_embeds_a_text(tmp_path: Path, beginning: str, last: str) -> None:
    block = block_of("docs/operations/openai.md", beginning)
    environment = {"PYTHONPATH": str(CLIENTS), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    (printed,) = FreshShell(tmp_path).run([block], **environment)
    assert len(printed.encode()) > 100, "200 tokens of one byte or more"
    assert printed.endswith(f"{last}\n"), "the number of vectors, or their width"
