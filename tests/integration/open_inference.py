"""tritonclient, and a server with a model of each family."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np
import tritonclient.grpc as triton
from numpy.typing import NDArray

from integration import classifier_directory, model_directory
from integration.server_process import Server

SECONDS = 60


def write_models(repository: Path) -> None:
    """A language model `tiny`, classifiers of texts `texts`, of pairs `pairs`, and of images `images`."""
    model_directory.write(repository)
    classifier_directory.write_text(repository, "texts", 1)
    classifier_directory.write_text(repository, "pairs", 2)
    classifier_directory.write_images(repository, "images")


@contextmanager
def client_of(server: Server) -> Iterator[triton.InferenceServerClient]:
    with triton.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client:
        yield client


def tensor(name: str, values: NDArray[Any], datatype: str) -> triton.InferInput:
    made = triton.InferInput(name, list(values.shape), datatype)
    made.set_data_from_numpy(values)
    return made


def strings(name: str, *values: bytes) -> triton.InferInput:
    """An input of BYTES, [n, 1]."""
    return tensor(name, np.array(values, dtype=object).reshape(-1, 1), "BYTES")


def prompt(text: bytes) -> triton.InferInput:
    return tensor("prompt", np.array([text], dtype=object), "BYTES")


def text_of(result: Any, output: str = "text") -> str:
    return result.as_numpy(output)[0].decode()


class Stream:
    """The stream of a client, and what has come by it."""

    def __init__(self, client: triton.InferenceServerClient) -> None:
        self.client = client
        self.answers: Queue[tuple[Any, Any]] = Queue()
        client.start_stream(callback=lambda result, error: self.answers.put((result, error)))

    def send(self, model: str, inputs: Sequence[triton.InferInput], name: str, **options: Any) -> None:
        self.client.async_stream_infer(model, inputs, request_id=name, **options)

    def next(self) -> Any:
        """The next result."""
        result, error = self.answers.get(timeout=SECONDS)
        assert error is None, error
        return result

    def next_error(self) -> Any:
        result, error = self.answers.get(timeout=SECONDS)
        assert error is not None, result.get_response()
        return error

    def until_final(self) -> list[Any]:
        """The results up to the one that says that it is the last."""
        results = [self.next()]
        while not is_final(results[-1]):
            results.append(self.next())
        return results


def is_final(result: Any) -> bool:
    return result.get_response().parameters["triton_final_response"].bool_param
