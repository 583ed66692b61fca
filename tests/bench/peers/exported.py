"""Times of a classifier's plain PyTorch form, exported to ONNX, in another runtime; a process of its own.

The last line that it prints is one JSON object, {"seconds": [...], "logits": [...]} or {"error": ...}.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.gpu.plain_times import load_classifier, make_items, seconds_in_turns, seconds_of

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    Run = Callable[[NDArray[Any]], NDArray[Any]]


def export(model: Any, batch: Tensor, path: Path) -> None:
    """Writes the network for batches of this shape, which is what both runtimes compile best."""
    import torch  # noqa: PLC0415

    class Network(torch.nn.Module):
        def forward(self, items: Tensor) -> Tensor:
            return model.logits(items)

    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.logits(batch[:1])  # what is made once is made now, and is a constant of the graph
        part = path.with_suffix(".part")
        torch.onnx.export(
            Network(), (batch,), part, dynamo=True, external_data=False, input_names=["items"],
            output_names=["logits"], verbose=False,
        )  # fmt: skip
    part.rename(path)


def onnxruntime(path: Path, threads: int, precision: str) -> Run:
    import onnxruntime  # noqa: PLC0415

    if precision != "fp32":
        raise ValueError(f"ONNX Runtime has no {precision} on CPUs")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda items: session.run(["logits"], {"items": items})[0]


def openvino(path: Path, threads: int, precision: str) -> Run:
    import openvino  # noqa: PLC0415

    # By default it would compute in bfloat16 where the processor can.
    hints = {"PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1, "INFERENCE_NUM_THREADS": threads,
             "INFERENCE_PRECISION_HINT": {"fp32": "f32", "bf16": "bf16"}[precision]}  # fmt: skip
    request = openvino.Core().compile_model(path, "CPU", hints).create_infer_request()
    return lambda items: request.infer([items])[0]


RUNTIMES = {"onnxruntime": onnxruntime, "openvino": openvino}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runtime", choices=RUNTIMES)
    parser.add_argument("--device", choices=["cpu"], required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--onnx", type=Path, required=True, help="made from the model if it is not there")
    parser.add_argument("--items", type=int, required=True)
    parser.add_argument("--tokens", type=int, default=0, help="of each document; 0: as many as the model takes")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--precision", choices=["fp32", "bf16"], required=True)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--warm-up-runs", type=int, default=1)
    parser.add_argument("--run-seconds", type=float, default=0)
    parser.add_argument("--in-turns", action="store_true", help="a batch for each line of input")
    arguments = parser.parse_args()
    try:
        import torch  # noqa: PLC0415

        config, model = load_classifier(arguments.model, torch.device("cpu"), torch.float32)
        batch = make_items(config, arguments.items, arguments.tokens, torch)
        if not arguments.onnx.exists():
            export(model, batch, arguments.onnx)
        run = RUNTIMES[arguments.runtime](arguments.onnx, arguments.threads, arguments.precision)
        items = batch.numpy()
        if arguments.in_turns:
            seconds = seconds_in_turns(lambda: run(items), arguments.warm_up_runs, arguments.run_seconds)
        else:
            seconds = seconds_of(lambda: run(items), arguments.runs, arguments.warm_up_runs, arguments.run_seconds)
        found = {"seconds": seconds, "logits": run(items)[-1].tolist()}
    except Exception as error:  # the table reports any error of a runtime
        found = {"error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
