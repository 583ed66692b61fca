"""What Longshort's times stand beside does the same work. The classifiers' logits are compared in every measurement."""

from __future__ import annotations

import numpy as np
import pytest
from reference.language_model import Hyperparameters
from reference.language_model import LanguageModel as Reference

from bench.gpu.bench import logits_differ, percentile
from bench.gpu.cases import BASE, TINY

STREAMS = 2


def test_logits_of_another_model_are_noticed() -> None:
    assert not logits_differ({"logits": [1.0, -2.0]}, [1.001, -2.0], "fp32")
    assert logits_differ({"logits": [1.0, -2.0]}, [1.01, -2.0], "fp32")
    assert logits_differ({"logits": [float("nan"), -2.0]}, [1.0, -2.0], "bf16")


def test_a_percentile_is_a_value_that_was_measured() -> None:
    assert percentile([float(value) for value in range(1, 1001)], 99) == 991
    assert percentile([2.0], 99) == 2


def test_the_plain_language_model_is_the_references() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch cannot be imported", exc_type=ImportError)
    from bench.gpu.plain.language_model import LanguageModel  # noqa: PLC0415

    config = BASE | TINY | {"memory_length": 64}
    official = Hyperparameters(
        n_layer=config["layers"], d_model=config["model_width"], n_head=config["heads"],
        d_inner=config["feed_forward_width"], chunk_size=config["chunk_size"], chunk_rank=1,
        window_len=config["window_length"], mem_len=config["memory_length"], pre_ln=True, use_gelu=True, use_bias=False,
        clamp_len=-1, cpos_clamp_len=-1, vocab_size=config["vocabulary_size"],
    )  # fmt: skip
    generator = np.random.default_rng(1)
    from golden.formula import language_model_shapes  # noqa: PLC0415

    shapes = language_model_shapes(vars(official))
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
