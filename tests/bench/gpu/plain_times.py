"""Times of models in plain PyTorch, in a process of its own: what they take of a GPU's memory goes with it.

Prints one JSON object, {"seconds": [...], ...} or {"error": ...}.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import Tensor


def scattered(index: int, item: int) -> int:
    """As tests/bench/gpu/classifier_times.cc makes its items."""
    return 7919 * index + 104729 * item


def seconds_of(run: Callable[[], object], runs: int, warm_up_runs: int, seconds: float = 0) -> list[float]:
    """Of each run: more than `runs`, until they have taken that many seconds, and the warm-up a quarter of them."""
    for min_runs, min_seconds in ((warm_up_runs, seconds / 4), (runs, seconds)):
        found: list[float] = []
        while len(found) < min_runs or sum(found) < min_seconds:
            begun = time.perf_counter()
            run()
            found.append(time.perf_counter() - begun)
    return found


def seconds_in_turns(run: Callable[[], object], warm_up_runs: int, seconds: float) -> list[float]:
    """The same in turns with other programs (bench/peers/turns.py): prints "ready" after the warm-up, and then for each
    line of standard input the seconds of a run."""
    seconds_of(run, warm_up_runs, 0, seconds / 4)
    print("ready", flush=True)
    found = []
    for _ in sys.stdin:
        found += seconds_of(run, 1, 0)
        print(found[-1], flush=True)
    return found


def own_memory(name: str) -> int:
    """A line of /proc/self/status, such as VmHWM, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{name}:"))


class ResidentPeak:
    """How far this process's resident memory rises above what it is now."""

    def __init__(self) -> None:
        Path("/proc/self/clear_refs").write_text("5")  # the peak is now the current size
        self._before = own_memory("VmRSS")

    def bytes(self) -> int:
        return own_memory("VmHWM") - self._before


def load_classifier(
    directory: Path, device: torch.device, numbers: torch.dtype, *, full_attention: bool = False
) -> tuple[dict[str, Any], Any]:
    """The model's config.json, and the plain model. Only CvT can have full attention."""
    from bench.gpu.plain import cvt, long_document_encoder, parts, text_classifier, vil  # noqa: PLC0415

    kinds = {"text_classifier": text_classifier.TextClassifier, "vil": vil.Vil, "cvt": cvt.Cvt}
    if full_attention:
        kinds = {"cvt": cvt.FullCvt}
    config = json.loads((directory / "config.json").read_text())
    kind = kinds[config["architecture"]]
    if config.get("cls") == "first_token":
        kind = long_document_encoder.LongDocumentEncoder
    return config, kind(config, parts.load(directory, device, numbers))


def make_items(config: dict[str, Any], count: int, tokens: int, torch: Any) -> Tensor:
    """As tests/bench/gpu/classifier_times.cc makes them: images [B, channels, side, side] or ids [B, documents, n]."""
    if config["architecture"] == "text_classifier":
        documents = torch.arange(count * config["documents"])[:, None]
        places = torch.arange(tokens or config["max_document_tokens"])[None, :]
        ids = 1 + scattered(places, documents) % (config["vocabulary_size"] - 1)
        return ids.unflatten(0, (count, config["documents"]))
    shape = (config["channels"], config["preprocessing"]["crop_height"], config["preprocessing"]["crop_width"])
    places = torch.arange(shape[0] * shape[1] * shape[2])[None, :]
    return ((scattered(places, torch.arange(count)[:, None]) % 1021).float() / 510 - 1).unflatten(1, shape)


def numbers_of(arguments: argparse.Namespace, torch: Any) -> torch.dtype:
    return {"fp32": torch.float32, "bf16": torch.bfloat16}[arguments.precision]


def classifier(arguments: argparse.Namespace, torch: Any, device: torch.device) -> dict[str, Any]:
    numbers = numbers_of(arguments, torch)
    config, model = load_classifier(arguments.model, device, numbers, full_attention=arguments.full_attention)
    batch = make_items(config, arguments.items, arguments.tokens, torch)

    def on_device(items: Tensor) -> Tensor:
        brought = items.to(device)
        return brought.to(numbers) if brought.is_floating_point() else brought

    resident = ResidentPeak()
    model.logits(on_device(batch[:1]))  # what is made once is made now
    logits = torch.compile(model.logits) if arguments.compile else model.logits

    # As a server gets them: from the host's memory.
    def run() -> Tensor:
        return logits(on_device(batch)).float().cpu()

    if arguments.in_turns:
        found = seconds_in_turns(run, arguments.warm_up_runs, arguments.run_seconds)
    else:
        found = seconds_of(run, arguments.runs, arguments.warm_up_runs, arguments.run_seconds)
    copied = seconds_of(lambda: batch.to(device).flatten()[:1].cpu(), arguments.runs, arguments.warm_up_runs)
    last = logits(on_device(batch))[-1].float().cpu().tolist()
    return {"seconds": found, "copy_seconds": copied, "logits": last, "resident_peak": resident.bytes()}


def streams(arguments: argparse.Namespace, torch: Any, device: torch.device) -> dict[str, Any]:
    """Steps of so many tokens of each stream, behind a full memory."""
    from bench.gpu.plain import language_model, parts  # noqa: PLC0415

    config = json.loads((arguments.model / "config.json").read_text())
    model = language_model.LanguageModel(config, parts.load(arguments.model, device, numbers_of(arguments, torch)))
    states = model.begin(arguments.items)
    states.position = config["memory_length"] + config["segment_length"]
    tokens = torch.arange(arguments.items * arguments.tokens, device=device).view(arguments.items, -1)
    tokens = tokens % config["vocabulary_size"]
    if arguments.compile:
        model.layer = torch.compile(model.layer)
        # A graph for each layer's weights, with and without the end of a chunk.
        torch._dynamo.config.recompile_limit = 4 * config["layers"]
    return {
        "seconds": seconds_of(lambda: model.read(states, tokens).float().cpu(), arguments.runs, arguments.warm_up_runs)
    }


def full_attention(arguments: argparse.Namespace, torch: Any, device: torch.device) -> dict[str, Any]:
    """The time of a text of that many tokens, at once or behind a memory of as many tokens, and its peak memory."""
    from bench.gpu.plain.full_attention import FullAttention  # noqa: PLC0415

    config = json.loads((arguments.model / "config.json").read_text())
    model = FullAttention(config, device, numbers_of(arguments, torch), fused=arguments.fused)
    resident = ResidentPeak()
    if arguments.memory:
        model.remember(arguments.memory)
    tokens = torch.arange(arguments.tokens, device=device)[None] % config["vocabulary_size"]
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    read = seconds_of(lambda: model.read(tokens).float().cpu(), arguments.runs, arguments.warm_up_runs)
    found: dict[str, Any] = {"seconds": read, "resident_peak": resident.bytes()}
    if device.type == "cuda":
        found["used_memory"] = torch.cuda.max_memory_allocated()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["classifier", "streams", "full_attention"])
    parser.add_argument("--device", required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--items", type=int, default=1, help="of a batch; streams")
    parser.add_argument("--tokens", type=int, default=0, help="of each; 0: as many as the model takes")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--warm-up-runs", type=int, default=5)
    parser.add_argument("--run-seconds", type=float, default=0, help="of a classifier: more runs, until that long")
    parser.add_argument("--in-turns", action="store_true", help="a classifier's batches, one for each line of input")
    parser.add_argument("--threads", type=int, default=0, help="of the CPU; 0: PyTorch's default")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--full-attention", action="store_true", help="a CvT whose tokens see all tokens")
    parser.add_argument("--memory", type=int, default=0, help="of full_attention: cached tokens before the text")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--fused", action="store_true")
    arguments = parser.parse_args()
    try:
        import torch  # noqa: PLC0415

        # As Longshort computes: float32 is float32.
        torch.backends.cudnn.allow_tf32 = False
        if arguments.threads:
            torch.set_num_threads(arguments.threads)
        device = torch.device("cpu" if arguments.device.startswith("emulated:") else arguments.device)
        measure = {"classifier": classifier, "streams": streams, "full_attention": full_attention}[arguments.kind]
        with torch.inference_mode():
            found = measure(arguments, torch, device)
    except Exception as error:  # the table reports any error of PyTorch
        found = {"error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
