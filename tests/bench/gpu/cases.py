"""The cases: what is measured, and the targets, which are one H100's."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterator
from typing import Any

from bench.gpu.bench import Bench, MeasurementError, Row, beside, logits_differ, median, percentile, preset, shown

# The 44M parameters of the paper's base model.
BASE = {
    "architecture": "language_model",
    "layers": 12,
    "model_width": 512,
    "heads": 8,
    "feed_forward_width": 2048,
    "chunk_size": 16,
    "chunk_rank": 1,
    "window_length": 512,
    "memory_length": 8192,
    "segment_length": 256,
    "vocabulary_size": 208,
    "window_position_clamp": 0,
    "chunk_position_clamp": 0,
    "pre_layer_norm": True,
    "projection_bias": False,
    "activation": "gelu",
    "tokenizer": "none",
}
TINY = {"layers": 2, "model_width": 32, "heads": 2, "feed_forward_width": 64, "window_length": 32, "memory_length": 32,
        "segment_length": 32}  # fmt: skip
TINY_VIL = {
    "stages": "l1,h2,d32,n1,s1,g1,p4,f7,a0,r4_l2,h2,d32,n1,s0,g1,p2,f7,a0,r4_l3,h2,d32,n1,s0,g0,p1,f7,a0,r4",
    "image_size": 56,
    "classes": 10,
    "preprocessing": preset("vil-ls-medium-224")["preprocessing"] | {"crop_height": 56, "crop_width": 56},
}
TINY_CVT = {
    "stage_widths": [32, 64],
    "stage_heads": [1, 2],
    "stage_depths": [1, 1],
    "projection_ranks": [4, 4],
    "window_sizes": [4, 2],
    "embedding_kernels": [7, 3],
    "embedding_strides": [4, 2],
    "embedding_paddings": [2, 1],
    "classes": 10,
    "preprocessing": preset("cvt-ls-13-224")["preprocessing"] | {"crop_height": 32, "crop_width": 32},
}
TINY_TOKENS = 64
TOKEN_SECONDS, STREAMS_SHARE, PROMPT_SHARE, MANY_P99_SECONDS = 150e-6, 0.75, 0.25, 30e-3
TEXT_RATIO, TEXT_SECONDS = 10, 1.2e-3
FLOAT32_SHARE = 0.8
PRECISIONS = ("fp32", "bf16")
# More tokens than a stream generates while it is measured.
ENDLESS = 100_000


def _language_model(bench: Bench, memory: int) -> tuple[str, dict[str, Any]]:
    config = BASE | {"memory_length": memory} | (TINY if bench.tiny else {})
    return f"language-model-{config['memory_length']}", config


def _steps(bench: Bench, memory: int = 8192, **options: int) -> dict[str, Any]:
    """`longshort-gpu-bench streams` on the base model."""
    name, config = _language_model(bench, memory)
    few = {"steps": 2, "warm_up_steps": 1} if bench.tiny else {}
    return bench.measure("streams", model=bench.model(name, config), precision="bf16", **options, **few)


def _plain_steps(bench: Bench, items: int, tokens: int, ours: float) -> dict[str, str]:
    """The cells of plain PyTorch. Of tokens, some chunks are ended among the runs."""
    name, config = _language_model(bench, 8192)
    runs = {"runs": 4, "warm_up_runs": 1} if bench.tiny else {"runs": 64, "warm_up_runs": 32}
    options = {
        "model": bench.model(name, config), "items": items, "tokens": tokens, "precision": "bf16", **runs
    }  # fmt: skip
    return _both(bench, "streams", options, ours)


def _both(bench: Bench, kind: str, options: dict[str, Any], ours: float) -> dict[str, str]:
    eager = beside(bench.plain(kind, **options), ours)
    compiled = beside(bench.plain(kind, **options, compile=True), ours) if bench.compiles else ""
    return {"eager": eager, "compiled": compiled}


def _bandwidth(bench: Bench, found: dict[str, Any]) -> float:
    return found["step_bytes"] / bench.peaks["copy_bytes"] / median(found["step_seconds"])


def streams(bench: Bench) -> Iterator[Row]:
    """The language model, 44M parameters, bf16."""
    found = _steps(bench)
    token, share = median(found["step_seconds"]), _bandwidth(bench, found)
    plain = _plain_steps(bench, 1, 1, statistics.fmean(found["step_seconds"]))
    yield Row(
        "1 stream, M = 8,192: a token", shown(token), "150 us; then 80; bandwidth's bound 38", token <= TOKEN_SECONDS,
        f"{share:.1%} of bandwidth", **plain, numbers=found,
    )  # fmt: skip

    count = 3 if bench.tiny else 256
    found = _steps(bench, streams=count)
    step, share = median(found["step_seconds"]), _bandwidth(bench, found)
    plain = _plain_steps(bench, count, 1, statistics.fmean(found["step_seconds"]))
    yield Row(
        f"{count} streams: a step", f"{shown(step)}, {count / step:.0f} tokens/s", "75 % of bandwidth's bound",
        share >= STREAMS_SHARE, f"{share:.1%} of bandwidth", **plain, numbers=found,
    )  # fmt: skip

    piece = 32 if bench.tiny else 4096
    found = _steps(bench, step_tokens=piece)
    step = median(found["step_seconds"])
    share = found["step_flops"] / step / bench.peaks["bf16_flops"]
    # A segment at a time: as many streams as have that many tokens together.
    segment = TINY["segment_length"] if bench.tiny else BASE["segment_length"]
    plain = _plain_steps(bench, piece // segment, segment, statistics.fmean(found["step_seconds"]))
    yield Row(
        f"a prompt's {piece:,} tokens", f"{shown(step)}, {piece / step:.0f} tokens/s", "25 % of bf16's peak",
        share >= PROMPT_SHARE, f"{share:.1%} of bf16", **plain, numbers=found,
    )  # fmt: skip

    count, prompt = (3, 16) if bench.tiny else (1000, 256)
    found = _steps(bench, memory=32768, streams=count, prompt_tokens=prompt, **({} if bench.tiny else {"steps": 1000}))
    p99, share = percentile(found["step_seconds"], 99), _bandwidth(bench, found)
    yield Row(
        f"{count:,} streams, M = 32,768, and {prompt} tokens of a prompt in each step: p99 of a step", shown(p99),
        "30 ms", p99 <= MANY_P99_SECONDS, f"{share:.1%} of bandwidth", numbers=found,
    )  # fmt: skip


def served(bench: Bench) -> Iterator[Row]:
    """The same through a server, as its clients see it: streams that all begin with the same long text."""
    for count, memory, warm_up in [(2, 8192, 1)] if bench.tiny else [(256, 8192, 30), (1000, 32768, 120)]:
        name, config = _language_model(bench, memory)
        model = bench.model(name, config)
        full = config["memory_length"] + config["segment_length"]
        seconds = 1 if bench.tiny else 20
        few = {"steps": 1, "warm_up_steps": 0, "read_before": 0}
        stream_bytes = bench.measure("streams", model=model, precision="bf16", **few)["stream_bytes"]
        found = bench.served(
            model,
            ["--precision=bf16", f"--max-streams={count}", f"--max-generate-tokens={ENDLESS}",
             f"--cache-bytes={(count + 1) * stream_bytes}", "--max-queue-time=1h"],
            [f"--workload=generate,ids=4:200,prompt={full},shared={full - 16},tokens={ENDLESS},concurrency={count}",
             f"--connections={-(-count // 256)}", f"--warm-up={warm_up}s", f"--seconds={seconds}s", "--grace=0s"],
        )  # fmt: skip
        between = found["inter_token_seconds"]
        reading = any(value is not None for value in found["timeline"]["first_token_p50"])
        careful = "; careful: prompts were still read" if reading else ""
        yield Row(
            f"a server, {count:,} streams, M = {memory:,}: p99 between tokens",
            f"{shown(between['p99'])}, {found['tokens_per_second']:.0f} tokens/s{careful}",
            "30 ms", between["p99"] <= MANY_P99_SECONDS, numbers=found,
        )  # fmt: skip


def lengths(bench: Bench) -> Iterator[Row]:
    """Time and memory by length, as the paper's Figure 3: a text of n tokens, M = n, beside full attention."""
    for count in [32, 64] if bench.tiny else [1024 << doubled for doubled in range(8)]:
        piece = min(count, 4096)
        name, config = _language_model(bench, count)
        # The text before fills the memory, so each of the n tokens sees as much as it ever can.
        steps = {"steps": count // piece, "warm_up_steps": 2, "read_before": config["memory_length"]}
        found = bench.measure(
            "streams", model=bench.model(name, config), precision="bf16", step_tokens=piece, **steps
        )  # fmt: skip
        ours = sum(found["step_seconds"])
        runs = {"runs": 1 if bench.tiny else 3, "warm_up_runs": 1}
        options = {"model": bench.model(name, config), "tokens": count, "precision": "bf16", **runs}
        fused = bench.plain("full_attention", **options, fused=True)
        written_out = bench.plain("full_attention", **options, fused=False)
        segment = {**options, "tokens": config["segment_length"], "runs": max(1, count // config["segment_length"])}
        eager = bench.plain("streams", **segment)
        if "seconds" in eager:
            eager["seconds"] = [sum(eager["seconds"])]
        numbers = {"tokens": count, "longshort": found, "full_attention_fused": fused,
                   "full_attention_written_out": written_out, "eager": eager}  # fmt: skip
        yield Row(
            f"{count:,} tokens, M = n", f"{shown(ours)}, {found['used_memory'] / 2**20:.0f} MiB",
            share=f"full attention, fused: {beside(fused, ours)}; written out: {beside(written_out, ours)}",
            eager=beside(eager, ours), numbers=numbers,
        )  # fmt: skip


def _classifier(bench: Bench, case: str, precision: str, name: str, config: dict[str, Any], tokens: int = 0) -> Row:
    """A batch of 32, without its target. Only float32 is compiled by PyTorch, too, which takes it minutes."""
    items = 2 if bench.tiny else 32
    runs = {"runs": 2, "warm_up_runs": 1} if bench.tiny else {}
    options = {
        "model": bench.model(name, config), "items": items, "tokens": tokens, "precision": precision, **runs
    }  # fmt: skip
    found = bench.measure("classifier", **options)
    seconds = median(found["batch_seconds"])
    share = found["batch_flops"] / seconds / bench.peaks[f"{precision}_flops"]
    eager = bench.plain("classifier", **options)
    if logits_differ(eager, found["logits"], precision):
        raise MeasurementError(f"{case}: plain PyTorch's logits {eager['logits'][:4]} are not {found['logits'][:4]}")
    compiled = bench.plain("classifier", **options, compile=True) if bench.compiles and precision == "fp32" else {}
    # Both bring the items from memory that is not pinned.
    copy = f"; PyTorch copies the items in {shown(median(eager['copy_seconds']))}" if "copy_seconds" in eager else ""
    return Row(
        f"{case}, {precision}, batch of {items}", shown(seconds),
        share=f"{share:.1%} of {precision}{copy}", eager=beside(eager, seconds),
        compiled=beside(compiled, seconds) if compiled else "", numbers=found | {"eager": eager, "compiled": compiled},
    )  # fmt: skip


def images(bench: Bench) -> Iterator[Row]:
    """The image classifiers at 224 x 224; the paper's times are a V100's. A limit is that of bfloat16."""
    for case, name, tiny, limit, paper in (
        ("ViL-LS-Medium", "vil-ls-medium-224", TINY_VIL, 3.5e-3, 75),
        ("ViL-LS-Base", "vil-ls-base-224", TINY_VIL, 5e-3, 113),
        ("CvT*-LS-13", "cvt-ls-13-224", TINY_CVT, 3e-3, 83),
    ):
        if bench.tiny and "Base" in case:
            continue  # Medium's size is all that is made small
        for precision in PRECISIONS:
            row = _classifier(bench, case, precision, name, preset(name) | (tiny if bench.tiny else {}))
            seconds = median(row.numbers["batch_seconds"])
            if precision == "fp32":
                target = f"{FLOAT32_SHARE:.0%} of fp32's peak"
                row.met = row.numbers["batch_flops"] / seconds / bench.peaks["fp32_flops"] >= FLOAT32_SHARE
            else:
                target, row.met = f"{limit * 1e3:g} ms", seconds <= limit
            row.target = f"{target} (paper: {paper} ms)"
            yield row


def texts(bench: Bench) -> Iterator[Row]:
    """The text classifiers of Long Range Arena, beside plain PyTorch of the same precision."""
    cases = (("ListOps, 2,000 tokens", "lra-listops"), ("Text, 4,000 tokens", "lra-text"))
    for (case, name), precision in itertools.product(cases, PRECISIONS):
        row = _classifier(bench, case, precision, name, preset(name), TINY_TOKENS if bench.tiny else 0)
        seconds, eager = row.numbers["batch_seconds"], row.numbers["eager"]
        if name == "lra-text" and precision == "bf16":
            row.target, row.met = f"{TEXT_SECONDS * 1e3:g} ms", median(seconds) <= TEXT_SECONDS
        else:
            row.target = f"{TEXT_RATIO}x eager"
            if "seconds" in eager:
                row.met = statistics.fmean(eager["seconds"]) / statistics.fmean(seconds) >= TEXT_RATIO
        yield row


GROUPS: dict[str, Callable[[Bench], Iterator[Row]]] = {
    "streams": streams, "served": served, "lengths": lengths, "images": images, "texts": texts,
}  # fmt: skip
