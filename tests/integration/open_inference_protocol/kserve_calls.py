"""Calls a server by KServe's own client, and says what came as JSON: its messages have the names of tritonclient's, so
that one process cannot have both.

Usage: kserve_calls.py families ADDRESS | kserve_calls.py refused ADDRESS | kserve_calls.py rest ADDRESS, of HTTP
"""

from __future__ import annotations

import asyncio
import json
import sys
import types
from importlib.util import find_spec
from typing import Any

import grpc
import httpx
import numpy as np

# Only the client: the package itself wants Kubernetes' library.
_package = types.ModuleType("kserve")
_package.__path__ = list(find_spec("kserve").submodule_search_locations)
sys.modules["kserve"] = _package

from kserve.inference_client import InferenceGRPCClient, InferenceRESTClient, RESTConfig  # noqa: E402
from kserve.protocol.grpc.grpc_predict_v2_pb2 import RepositoryModelLoadRequest  # noqa: E402
from kserve.protocol.infer_type import InferInput, InferRequest, RequestedOutput  # noqa: E402


def request(model: str, name: str, data: list[Any], datatype: str = "BYTES", **more: Any) -> InferRequest:
    """Of one input of typed contents."""
    shape = more.pop("shape", [len(data)])
    return InferRequest(model_name=model, infer_inputs=[InferInput(name, shape, datatype, data=data)], **more)


def describe(answer: Any) -> dict[str, Any]:
    """An answer, with whether it was typed."""
    outputs = {
        one.name: [value.decode() if isinstance(value, bytes) else value for value in one.data or []]
        for one in answer.outputs
    }
    return {"id": answer.id, "outputs": outputs, "typed": all(one._raw_data is None for one in answer.outputs)}


async def families(client: InferenceGRPCClient) -> dict[str, Any]:
    """A call of each family."""
    pixels = [17 * value % 256 for value in range(4 * 4 * 3)]
    classes = RequestedOutput("logits", {"classification": 2})
    sampling = {"max_tokens": 6, "temperature": "0.0", "seed": 1}
    return {
        "live": await client.is_server_live(),
        "ready": await client.is_server_ready(),
        "models": [await client.is_model_ready(name) for name in ("tiny", "stranger")],
        "text": describe(await client.infer(request("texts", "document", ["good", "bad"], request_id="mine"))),
        "classes": describe(await client.infer(request("texts", "document", ["good"], request_outputs=[classes]))),
        "pixels": describe(await client.infer(request("images", "image", pixels, "UINT8", shape=[4, 4, 3]))),
        "prompt": describe(await client.infer(request("tiny", "prompt", ["hello"], parameters=sampling))),
        "score": describe(await client.infer(request("tiny", "document", ["hello", "you"]))),
    }


async def rest(client: InferenceRESTClient, base: str) -> dict[str, Any]:
    """The same calls by REST, and one with binary data."""

    async def infer(model: str, asked: InferRequest) -> dict[str, Any]:
        return describe(await client.infer(base, asked, model_name=model))

    pixels = np.array([17 * value % 256 for value in range(4 * 4 * 3)], np.uint8).reshape(4, 4, 3)
    binary = InferInput("image", [4, 4, 3], "UINT8")
    binary.set_data_from_numpy(pixels, binary_data=True)
    classes = RequestedOutput("logits", {"classification": 2})
    sampling = {"max_tokens": 6, "temperature": 0.0, "seed": 1}
    try:
        await client.infer(base, request("texts", "document", [7], shape=[1]), model_name="texts")
        error = None
    except httpx.HTTPStatusError as refused:
        error = str(refused)
    flat = [int(value) for value in pixels.ravel()]
    return {
        "live": await client.is_server_live(base),
        "ready": await client.is_server_ready(base),
        "models": [await client.is_model_ready(base, name) for name in ("tiny", "stranger")],
        "text": await infer("texts", request("texts", "document", ["good", "bad"], request_id="mine")),
        "classes": await infer("texts", request("texts", "document", ["good"], request_outputs=[classes])),
        "pixels": await infer("images", request("images", "image", flat, "UINT8", shape=[4, 4, 3])),
        "binary": await infer("images", InferRequest(model_name="images", infer_inputs=[binary])),
        "prompt": await infer("tiny", request("tiny", "prompt", ["hello"], parameters=sampling)),
        "score": await infer("tiny", request("tiny", "document", ["hello", "you"])),
        "error": error,
    }


async def refused(client: InferenceGRPCClient) -> dict[str, Any]:
    """The error of a load on a server that is stopping, over the client's channel with its retries."""
    try:
        await client._client_stub.RepositoryModelLoad(RepositoryModelLoadRequest(model_name="texts"), timeout=60)
    except grpc.RpcError as error:
        return {"code": error.code().name}
    return {"code": "OK"}


async def main() -> None:
    what, address = sys.argv[1:]
    if what == "rest":
        async with InferenceRESTClient(RESTConfig(protocol="v2", timeout=60)) as by_http:
            print(json.dumps(await rest(by_http, f"http://{address}")))
        return
    client = InferenceGRPCClient(address)
    print(json.dumps(await {"families": families, "refused": refused}[what](client)))
    await client.close()


if __name__ == "__main__":
    asyncio.run(main())
