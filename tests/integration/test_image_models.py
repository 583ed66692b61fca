"""ClassifyImage on CvT*-LS of several image sizes and on a classifier of pixel sequences, of the real server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import numpy as np
import pytest
from numpy.typing import NDArray

from integration import classifier_directory
from integration.classifier_directory import PIXEL_COLUMNS, PIXEL_ROWS, TEXT_LABELS
from integration.images import png, raw, some_pixels
from integration.server_process import ON_GPUS, Server

INVALID = grpc.StatusCode.INVALID_ARGUMENT
TOLERANCE = 2e-5
CVT_TOLERANCE = 5e-5
# Between an image in a batch and alone: float32 sums in another order. The layers of the GPU take LibTorch's products,
# whose order depends on the number of rows: of 250 images, each lies within 1.3e-6 of float64, batched or alone.
BATCH_TOLERANCE = 4e-6 if ON_GPUS else 2e-6
# Shorter side, crop's height and width. Neither 3 nor 2, the strides, nor the windows divide the sides of `odd`.
CVT_SIZES = {"square": (24, 24, 24), "wide": (29, 20, 29), "tall": (31, 31, 12), "odd": (19, 17, 19)}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """A server of CvT*-LS models and a classifier of pixel sequences, and what they must answer."""
    repository = tmp_path_factory.mktemp("image_models")
    cvt = {name: classifier_directory.write_cvt(repository, name, *size) for name, size in CVT_SIZES.items()}
    pixels = classifier_directory.write_pixel_sequences(repository, "pixels")
    with Server(repository, tmp_path_factory.mktemp("server"), "--max-batch-size=4") as server:
        yield SimpleNamespace(server=server, cvt=cvt, pixels=pixels)


@pytest.fixture
def classify(api: SimpleNamespace, served: SimpleNamespace) -> Any:
    """Asks `model` about images (as the contract's messages), and returns the results."""
    stub = api.inference_grpc.InferenceStub(served.server.channel)

    def call(model: str, *images: dict[str, Any]) -> Any:
        request = api.inference.ClassifyImageRequest(model={"name": model}, images=images, all_logits=True)
        return stub.ClassifyImage(request, timeout=60).results

    return call


def logits(result: Any) -> list[float]:
    assert result.HasField("classification"), result
    return list(result.classification.logits)


def centre(pixels: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """The crop; an offset of half a pixel goes to the even side."""
    top, left = (round((have - want) / 2) for have, want in zip(pixels.shape, (height, width), strict=False))
    return pixels[top : top + height, left : left + width]


@pytest.mark.parametrize("model", CVT_SIZES)
def test_cvt_classifies_images_of_several_sizes(served: SimpleNamespace, classify: Any, model: str) -> None:
    shorter, height, width = CVT_SIZES[model]
    # The shorter side is what the model wants, so nothing is resized: the crop's pixels are the file's.
    sizes = [(shorter, shorter), (shorter, shorter + 1), (shorter + 7, shorter), (shorter, 3 * shorter)]
    pixels = [some_pixels(seed, *size) for seed, size in enumerate(sizes * 2)]
    results = classify(model, *[{"encoded": png(p)} for p in pixels[:4]], *[{"tensor": raw(p)} for p in pixels[4:]])
    for image, result in zip(pixels, results, strict=True):
        want = served.cvt[model].logits(classifier_directory.normalised(centre(image, height, width)))
        assert logits(result) == pytest.approx(want, abs=CVT_TOLERANCE)


@pytest.mark.parametrize("model", [*CVT_SIZES, "pixels"])
def test_a_batch_gives_each_image_what_it_gets_alone(classify: Any, model: str) -> None:
    sizes = [(50, 31), (13, 8), (24, 24), (1, 1), (90, 200), (64, 7), (24, 24), (33, 34)]
    images = [{"encoded": png(some_pixels(seed, *size))} for seed, size in enumerate(sizes)]
    together = classify(model, *images)
    for image, result in zip(images, together, strict=True):
        (alone,) = classify(model, image)
        assert logits(result) == pytest.approx(logits(alone), abs=BATCH_TOLERANCE)
    assert len({tuple(logits(result)) for result in together}) == len(images)


def test_a_pixel_sequence_is_the_images_grey_values(served: SimpleNamespace, classify: Any) -> None:
    pixels = some_pixels(1, PIXEL_ROWS, PIXEL_COLUMNS)
    as_floats = {"float_values": {"values": (pixels / 255.0).ravel().tolist()}}
    size = {"height": PIXEL_ROWS, "width": PIXEL_COLUMNS, "channels": 3}
    results = classify("pixels", {"encoded": png(pixels)}, {"tensor": raw(pixels)}, {"tensor": size | as_floats})
    want = served.pixels.logits([classifier_directory.grey_ids(pixels)])
    for result in results:
        assert logits(result) == pytest.approx(want, abs=TOLERANCE)
        assert result.classification.classes[0].label == TEXT_LABELS[int(np.argmax(want))]


def test_grey_pixels_are_their_ids(served: SimpleNamespace, classify: Any) -> None:
    grey = some_pixels(2, PIXEL_ROWS, PIXEL_COLUMNS)[:, :, :1]
    grey[0, :3] = 0  # masked, as padding is
    (result,) = classify("pixels", {"tensor": raw(grey)})
    want = served.pixels.logits([grey.astype(np.int64).ravel()])
    assert logits(result) == pytest.approx(want, abs=TOLERANCE)


def test_another_size_is_resized_to_the_models(served: SimpleNamespace, classify: Any) -> None:
    even = np.full((31, 47, 3), (200, 30, 90), np.uint8)
    resized = np.full((PIXEL_ROWS, PIXEL_COLUMNS, 3), even[0, 0])
    (result,) = classify("pixels", {"encoded": png(even)})
    want = served.pixels.logits([classifier_directory.grey_ids(resized)])
    assert logits(result) == pytest.approx(want, abs=TOLERANCE)


@pytest.mark.parametrize("model", ["odd", "pixels"])
def test_wrong_sizes_fail_alone(classify: Any, model: str) -> None:
    good = some_pixels(3, 20, 20)
    wrong = {
        "1199": raw(good) | {"uint8_values": good.tobytes()[:-1]},  # values, one too few
        "400 x 20": raw(good) | {"height": 400},
        "2 channels": raw(good) | {"channels": 2},
        "0 x 20": raw(good) | {"width": 0},
        "65536": raw(good) | {"height": 1, "width": 65536},  # a side too long
        "-20": raw(good) | {"height": -20},
    }
    results = classify(model, {"tensor": raw(good)}, *[{"tensor": tensor} for tensor in wrong.values()])
    (alone,) = classify(model, {"tensor": raw(good)})
    assert logits(results[0]) == pytest.approx(logits(alone), abs=BATCH_TOLERANCE)
    for index, (part, result) in enumerate(zip(wrong, list(results)[1:], strict=True), start=1):
        assert result.error.code == INVALID.value[0]
        assert f"images[{index}]" in result.error.message and part in result.error.message


def test_an_all_black_image_is_no_sequence(classify: Any) -> None:
    black, good = np.zeros((9, 9, 3), np.uint8), some_pixels(4, 9, 9)
    results = classify("pixels", {"encoded": png(black)}, {"encoded": png(good)})
    assert results[0].error.code == INVALID.value[0] and "images[0]: the image is all black" in results[0].error.message
    assert results[1].HasField("classification")


def test_models_are_described(api: SimpleNamespace, served: SimpleNamespace) -> None:
    stub = api.models_grpc.ModelsStub(served.server.channel)
    odd = stub.GetModel(api.models.GetModelRequest(model={"name": "odd"}))
    assert odd.architecture == "cvt" and odd.classifier.input == api.models.CLASSIFIER_INPUT_IMAGE
    pixels = stub.GetModel(api.models.GetModelRequest(model={"name": "pixels"}))
    assert pixels.architecture == "text_classifier"
    assert pixels.classifier.input == api.models.CLASSIFIER_INPUT_PIXEL_SEQUENCE
    assert list(pixels.classifier.labels) == TEXT_LABELS


@pytest.mark.skipif("avx512_vnni" not in Path("/proc/cpuinfo").read_text(), reason="no dot products of bytes")
@pytest.mark.skipif(ON_GPUS, reason="int8 is for CPUs")
def test_int8_stays_near_float32_and_an_image_gets_in_a_batch_what_it_gets_alone(
    api: SimpleNamespace, tmp_path: Path
) -> None:
    cvt = classifier_directory.write_cvt(tmp_path / "models", "cvt", *CVT_SIZES["square"])
    pixels = [some_pixels(seed, 24, 24) for seed in range(4)]
    exact = np.array([cvt.logits(classifier_directory.normalised(image)) for image in pixels])
    without_tiles = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_VNNI"}
    with Server(tmp_path / "models", tmp_path, "--precision=int8", environment=without_tiles) as server:
        stub = api.inference_grpc.InferenceStub(server.channel)

        def ask(images: list[NDArray[np.uint8]]) -> NDArray[np.float64]:
            tensors = [{"tensor": raw(image)} for image in images]
            request = api.inference.ClassifyImageRequest(model={"name": "cvt"}, images=tensors, all_logits=True)
            return np.array([logits(result) for result in stub.ClassifyImage(request, timeout=60).results])

        together = ask(pixels)
        alone = np.concatenate([ask([image]) for image in pixels])
        models = api.models_grpc.ModelsStub(server.channel)
        (model,) = models.ListModels(api.models.ListModelsRequest(), timeout=5).models
    assert model.precision == "int8"
    difference = np.abs(together - exact).max() / np.abs(exact).max()
    assert 1e-4 < difference < 0.05, "rows are rounded to 8 bits"
    np.testing.assert_allclose(together, alone, atol=BATCH_TOLERANCE)
