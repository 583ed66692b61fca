"""What Longshort's times stand beside does the same work. Each measurement also compares the classifiers' logits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden import formula
from numpy.typing import NDArray
from reference import safetensors_file
from reference.language_model import Hyperparameters
from reference.language_model import LanguageModel as Reference
from reference.text_classifier import TextClassifier as TextReference
from reference.text_classifier import from_official

from bench.gpu.bench import logits_differ, percentile, preset
from bench.gpu.cases import BASE, TINY
from bench.peers.subjects import ENCODER

STREAMS = 2
GOLDEN = Path(__file__).parents[2] / "golden"
# The published networks by formula: the case, and the preset.
CLASSIFIERS = {
    "vil/medium224_formula": "vil-ls-medium-224",
    "vil/medium384_formula": "vil-ls-medium-384",
    "cvt/ls13_224_formula": "cvt-ls-13-224",
    "text_classifier/listops_full_formula": "lra-listops",
}


def torch_or_skip() -> Any:
    return pytest.importorskip(
        "torch", reason="PyTorch cannot be imported; build/peers/bin/python can (tests/bench/peers/run installs it)",
        exc_type=ImportError,
    )  # fmt: skip


def classifier_logits(config: dict[str, Any], weights: dict[str, NDArray], items: NDArray) -> NDArray:
    from bench.gpu.plain import cvt, text_classifier, vil  # noqa: PLC0415

    torch = torch_or_skip()
    kind = {"text_classifier": text_classifier.TextClassifier, "vil": vil.Vil, "cvt": cvt.Cvt}[config["architecture"]]
    model = kind(config, {name: torch.from_numpy(value) for name, value in weights.items()})
    with torch.inference_mode():
        return model.logits(torch.from_numpy(items)).numpy()


def test_logits_of_another_model_are_noticed() -> None:
    assert not logits_differ({"logits": [1.0, -2.0]}, [1.001, -2.0], "fp32")
    assert logits_differ({"logits": [1.0, -2.0]}, [1.01, -2.0], "fp32")
    assert logits_differ({"logits": [float("nan"), -2.0]}, [1.0, -2.0], "bf16")


def test_a_percentile_is_a_value_that_was_measured() -> None:
    assert percentile([float(value) for value in range(1, 1001)], 99) == 991
    assert percentile([2.0], 99) == 2


@pytest.mark.parametrize("case", CLASSIFIERS)
def test_a_plain_classifier_has_the_official_logits(case: str) -> None:
    torch_or_skip()
    config = json.loads((GOLDEN / case / "config.json").read_text())
    io = safetensors_file.read(GOLDEN / case / "io.safetensors")
    if "input_ids_0" in io:
        items = io["input_ids_0"][:1, None].astype(np.int64)  # the row without padding
        assert items.all()
    elif "input" in config["formula"]:
        entry = config["formula"]["input"]
        shape, base, scale = entry["shape"], entry["base"], entry["scale"]
        items = formula.tensor(entry["name"], shape, base, scale, config["formula"]["seed"])
    else:
        items = io["images"]
    found = classifier_logits(preset(CLASSIFIERS[case]), formula.listed_weights(config["formula"]), items)
    assert np.abs(found - io["logits"][: len(items)]).max() < 1e-4


def test_a_plain_classifier_of_two_documents_is_the_references() -> None:
    torch_or_skip()
    entry = json.loads((GOLDEN / "text_classifier/listops_full_formula/config.json").read_text())
    official, weights = entry["config"], formula.listed_weights(entry["formula"])
    head = weights["seq_classifer.mlpblock.0.weight"]
    weights["seq_classifer.mlpblock.0.weight"] = np.concatenate([head, -head, head / 2, head[:, ::-1]], axis=1)
    ids = np.random.default_rng(1).integers(1, official["vocab_size"], (2, 2, 6 * official["window_size"]))
    found = classifier_logits(preset("lra-listops") | {"documents": 2}, weights, ids)
    reference = TextReference(from_official(official), weights)
    for documents, logits in zip(ids, found, strict=True):
        assert np.abs(logits - reference.logits(list(documents))).max() < 1e-4


@pytest.mark.parametrize(("rank", "window", "dual_norm"), [(0, 40, False), (1, 8, True), (3, 5, True), (0, 7, True)])
def test_a_plain_encoder_is_the_references(rank: int, window: int, dual_norm: bool) -> None:
    torch = torch_or_skip()
    from bench.gpu.plain.long_document_encoder import LongDocumentEncoder  # noqa: PLC0415

    width, inner, tokens = 12, 20, 38
    config = ENCODER | {
        "layers": 2, "model_width": width, "heads": 2, "feed_forward_width": inner, "window_size": window,
        "projection_rank": rank, "vocabulary_size": 9, "max_sequence_length": tokens, "dual_norm": dual_norm,
    }  # fmt: skip
    generator = np.random.default_rng(rank)
    weights: dict[str, NDArray] = {}

    def linear(name: str, out: int, into: int) -> None:
        weights[f"{name}.weight"] = generator.normal(0, 0.3, (out, into))
        weights[f"{name}.bias"] = generator.normal(0, 0.3, out)

    def norm(name: str) -> None:
        weights[f"{name}.weight"] = generator.normal(1, 0.3, width)
        weights[f"{name}.bias"] = generator.normal(0, 0.3, width)

    weights["model.embeddings.word_embeddings.weight"] = generator.normal(0, 1, (9, width))
    weights["model.embeddings.position_embeddings.weight"] = generator.normal(0, 1, (tokens, width))
    norm("model.embeddings.norm")
    for layer in range(2):
        prefix = f"model.transformer_{layer}."
        for name in ("W_q", "W_k", "W_v", "W_o"):
            linear(f"{prefix}mha.{name}", width, width)
        linear(f"{prefix}mha.dconv_fc", 2 * rank, width)
        for name in ("norm1", "norm2", "mha.dual_ln_l", "mha.dual_ln_s"):
            norm(prefix + name)
        linear(prefix + "mlpblock.0", inner, width)
        linear(prefix + "mlpblock.3", width, inner)
    linear("seq_classifer.mlpblock.0", width, width)
    linear("seq_classifer.mlpblock.2", 2, width)
    ids = generator.integers(1, 9, (2, 1, tokens))
    plain = LongDocumentEncoder(config, {name: torch.from_numpy(value) for name, value in weights.items()})
    with torch.inference_mode():
        found = plain.logits(torch.from_numpy(ids)).numpy()
    reference = TextReference(config, weights)
    for documents, logits in zip(ids, found, strict=True):
        assert np.abs(logits - reference.logits(list(documents))).max() < 1e-10


def test_the_plain_language_model_is_the_references() -> None:
    torch = torch_or_skip()
    from bench.gpu.plain.language_model import LanguageModel  # noqa: PLC0415

    config = BASE | TINY | {"memory_length": 64}
    official = Hyperparameters(
        n_layer=config["layers"], d_model=config["model_width"], n_head=config["heads"],
        d_inner=config["feed_forward_width"], chunk_size=config["chunk_size"], chunk_rank=1,
        window_len=config["window_length"], mem_len=config["memory_length"], pre_ln=True, use_gelu=True, use_bias=False,
        clamp_len=-1, cpos_clamp_len=-1, vocab_size=config["vocabulary_size"],
    )  # fmt: skip
    generator = np.random.default_rng(1)
    shapes = formula.language_model_shapes(vars(official))
    names = {name.removeprefix("decoder.model."): shape for name, shape in shapes.items()}
    weights = {name: generator.normal(0, 0.2, shape).astype(np.float32) for name, shape in names.items()}
    width = config["model_width"]
    weights["pos_emb.inv_freq"] = (10000.0 ** (-np.arange(0, width, 2) / width)).astype(np.float32)
    segment = config["segment_length"]
    tokens = generator.integers(0, config["vocabulary_size"], (STREAMS, 4 * segment))
    reference = Reference(official, weights, STREAMS)
    expected = np.concatenate([reference.segment(part) for part in np.split(tokens, 4, axis=1)], axis=1)

    plain = LanguageModel(config, {name: torch.from_numpy(value) for name, value in weights.items()})
    with torch.inference_mode():
        streams = plain.begin(STREAMS)
        # Two segments as wholes, then token by token.
        ends = [segment, 2 * segment, *range(2 * segment + 1, 4 * segment + 1)]
        for begin, end in zip([0, *ends], ends, strict=False):
            found = plain.read(streams, torch.from_numpy(tokens[:, begin:end])).log_softmax(-1).numpy()
            assert np.abs(found - expected[:, end - 1]).max() < 2e-5, end
