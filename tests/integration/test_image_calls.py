"""What ClassifyImage does around its results, on the real server: the log of broken images, and cancellation."""

from __future__ import annotations

import json
import random
from pathlib import Path
from types import SimpleNamespace

import grpc
import numpy as np
import pytest
from reference import safetensors_file

from integration import classifier_directory
from integration.images import png, raw, some_pixels
from integration.server_process import ROOT, Server, wait_until

FILES = sorted(path for path in (ROOT / "tests/models/images/files").iterdir() if path.is_file())


def broken(file: bytes, generator: random.Random) -> bytes:
    """Cut somewhere, or with another byte somewhere, as it comes."""
    place = generator.randrange(1, len(file))
    if generator.random() < 0.5:
        return file[:place]
    return file[:place] + bytes([file[place] ^ generator.randrange(1, 256)]) + file[place + 1 :]


def test_broken_images_leave_only_the_servers_own_lines(api: SimpleNamespace, tmp_path: Path) -> None:
    classifier_directory.write_images(tmp_path / "models", "images")
    generator = random.Random(4)
    refused = dict.fromkeys((".jpg", ".png", ".webp"), 0)
    with Server(tmp_path / "models", tmp_path / "server", "--log-format=json") as server:
        stub = api.inference_grpc.InferenceStub(server.channel)
        for path in FILES:
            images = [{"encoded": broken(path.read_bytes(), generator)} for _ in range(32)]
            results = stub.ClassifyImage(api.inference.ClassifyImageRequest(images=images), timeout=60).results
            refused[path.suffix] += sum(result.HasField("error") for result in results)
        server.terminate()
        assert server.wait() == 0
        lines = [json.loads(line) for line in server.log().splitlines()]
    assert min(refused.values()) >= 10, refused
    assert [line["message"] for line in lines] == [
        "starts",
        "model configured",
        "ready",
        *["request"] * len(FILES),
        "draining",
        "drained",
    ]


@pytest.mark.parametrize("filter_name", ["nearest", "linear", "area", "cubic"])
def test_a_model_resizes_as_opencv_does(api: SimpleNamespace, tmp_path: Path, filter_name: str) -> None:
    """The file's pixels are what Debian's cv2.resize makes of its image: tests/models/images/make_opencv_files.py."""
    made_by_cv2 = safetensors_file.read(ROOT / "tests/models/images/opencv_resized.safetensors")
    classifier_directory.write_images(tmp_path / "models", "images")
    config = tmp_path / "models/images/1/config.json"
    document = json.loads(config.read_text())
    document["preprocessing"]["resize"] = {"library": "opencv", "filter": filter_name}
    config.write_text(json.dumps(document))
    middle = made_by_cv2[f"colours {filter_name} 16x24"][:, 4:20]
    images = [{"encoded": png(made_by_cv2["colours"])}, {"tensor": raw(middle)}]
    with Server(tmp_path / "models", tmp_path / "server") as server:
        stub = api.inference_grpc.InferenceStub(server.channel)
        request = api.inference.ClassifyImageRequest(images=images, all_logits=True)
        resized, given = stub.ClassifyImage(request, timeout=60).results
        assert list(resized.classification.logits) == list(given.classification.logits)


def test_a_refusal_names_the_format(api: SimpleNamespace, tmp_path: Path) -> None:
    classifier_directory.write_images(tmp_path / "models", "images")
    starts = {"TIFF": b"II*\0", "GIF": b"GIF89a", "PDF": b"%PDF-1.7"}
    with Server(tmp_path / "models", tmp_path / "server") as server:
        stub = api.inference_grpc.InferenceStub(server.channel)
        request = api.inference.ClassifyImageRequest(images=[{"encoded": start} for start in starts.values()])
        messages = [result.error.message for result in stub.ClassifyImage(request, timeout=60).results]
    for number, (name, message) in enumerate(zip(starts, messages, strict=True)):
        assert f"images[{number}]: the image is {name}; the server decodes JPEG, PNG and WebP" in message


def test_a_call_may_have_as_many_images_as_can_wait(api: SimpleNamespace, tmp_path: Path) -> None:
    classifier_directory.write_images(tmp_path / "models", "images")
    with Server(tmp_path / "models", tmp_path / "server", "--max-queued-requests=4") as server:
        limits = api.models_grpc.ModelsStub(server.channel).GetModel(api.models.GetModelRequest()).limits
        assert limits.images == 4
        stub = api.inference_grpc.InferenceStub(server.channel)
        image = {"encoded": png(some_pixels(1))}
        with pytest.raises(grpc.RpcError) as refused:
            stub.ClassifyImage(api.inference.ClassifyImageRequest(images=[image] * 5))
        assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert refused.value.details() == "number of images is 5; it must be in [1, 4]"
        results = stub.ClassifyImage(api.inference.ClassifyImageRequest(images=[image] * 4)).results
        assert all(result.HasField("classification") for result in results)


def test_a_cancelled_call_does_not_run_what_is_left_of_it(api: SimpleNamespace, tmp_path: Path) -> None:
    count = 64
    classifier_directory.write_images(tmp_path / "models", "images")
    # 25 megapixels that take a few kilobytes, so all fit in a message; each takes its while to decode.
    large = png(np.full((5000, 5000, 3), 100, np.uint8))
    with Server(tmp_path / "models", tmp_path / "server", "--preparation-threads=1") as server:
        stub = api.inference_grpc.InferenceStub(server.channel)
        call = stub.ClassifyImage.future(api.inference.ClassifyImageRequest(images=[{"encoded": large}] * count))
        wait_until(lambda: server.metric("longshort_preparation_duration_seconds_count") >= 1)
        assert call.cancel()
        wait_until(lambda: server.metric("longshort_requests_total", rpc="ClassifyImage", code="CANCELLED") == 1)
        with pytest.raises(grpc.FutureCancelledError):
            call.result()
        # What was in work when it was cancelled is finished; the others are neither decoded nor run.
        prepared = server.metric("longshort_preparation_duration_seconds_count")
        run = server.metric("longshort_batch_items_sum")
        assert 1 <= prepared < count and run <= prepared
        assert server.metric("longshort_items_total", code="CANCELLED") == count - run
        assert server.metric("longshort_items_total") == count
        # The server has nothing left of it: another image is the next that is decoded.
        one = api.inference.ClassifyImageRequest(images=[{"encoded": png(some_pixels(1))}])
        assert stub.ClassifyImage(one, timeout=60).results[0].HasField("classification")
        assert server.metric("longshort_preparation_duration_seconds_count") == prepared + 1
        assert server.metric("longshort_batch_items_sum") == run + 1
