"""The bytes that the client sends for an image: files that the server decodes unchanged, others as PNG."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pytest
from longshort import inputs
from PIL import Image, ImageOps

FILES = Path(__file__).resolve().parents[2] / "models/images/files"
PIXELS = (np.arange(9 * 13 * 3).reshape(9, 13, 3) * 7 % 256).astype(np.uint8)
ORIENTATION = 0x112


def saved(image: Image.Image, kind: str, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def sent(image: inputs.Image) -> bytes:
    return inputs.image_message(image).encoded


def pixels_of(encoded: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(encoded)) as image:
        assert image.format == "PNG"
        return np.asarray(image.convert("RGB"))


@pytest.mark.parametrize("path", sorted(path for path in FILES.iterdir() if path.is_file()), ids=lambda path: path.name)
def test_what_the_server_decodes_is_sent_as_it_is(path: Path) -> None:
    file = path.read_bytes()
    assert sent(path) == sent(file) == sent(io.BytesIO(file)) == file


@pytest.mark.parametrize("kind", ["BMP", "TIFF", "PPM", "JPEG2000", "TGA"])
def test_other_formats_become_png_of_the_same_pixels(kind: str, tmp_path: Path) -> None:
    file = saved(Image.fromarray(PIXELS), kind)
    assert np.array_equal(pixels_of(sent(file)), PIXELS)
    (tmp_path / "image").write_bytes(file)
    assert sent(tmp_path / "image") == sent(str(tmp_path / "image")) == sent(file)


def test_an_image_is_sent_upright() -> None:
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    file = saved(Image.fromarray(PIXELS), "TIFF", exif=exif)
    encoded = sent(file)
    assert np.array_equal(pixels_of(encoded), np.rot90(PIXELS, -1))
    with Image.open(io.BytesIO(encoded)) as image:
        assert np.array_equal(np.asarray(ImageOps.exif_transpose(image)), np.rot90(PIXELS, -1)), "turned only once"


def tensor_of(image: inputs.Image) -> np.ndarray:
    tensor = inputs.image_message(image).tensor
    return np.frombuffer(tensor.uint8_values, np.uint8).reshape(tensor.height, tensor.width, tensor.channels)


TURNED = sorted(path for path in FILES.glob("*orientation*") if path.is_file())


@pytest.mark.parametrize("path", TURNED, ids=lambda path: path.name)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_pil_image_is_sent_as_upright_as_its_file_is_taken(path: Path) -> None:
    try:
        with Image.open(path) as opened:
            upright = ImageOps.exif_transpose(opened)
            assert np.array_equal(tensor_of(opened), np.asarray(upright))
            assert np.array_equal(tensor_of(upright), np.asarray(upright)), "turned only once"
    except SyntaxError:
        pytest.skip("Pillow refuses the metadata")


def test_a_converted_pil_image_stands_upright_too() -> None:
    with Image.open(FILES / "orientation_6.jpg") as opened:
        grey = opened.convert("L")
    assert tensor_of(grey).shape == (13, 9, 1)


def test_a_pil_image_without_a_file_is_sent_unchanged() -> None:
    assert np.array_equal(tensor_of(Image.fromarray(PIXELS)), PIXELS)


def test_the_first_frame_is_sent() -> None:
    frames = [Image.fromarray(PIXELS), Image.fromarray(255 - PIXELS)]
    file = saved(frames[0], "TIFF", save_all=True, append_images=frames[1:])
    assert np.array_equal(pixels_of(sent(file)), PIXELS)


def test_sixteen_bits_stay_sixteen_bits() -> None:
    wide = (np.arange(9 * 13, dtype=np.uint16) * 557).reshape(9, 13)
    for byte_order in ("<u2", ">u2"):
        # Pillow writes no TIFF of the other order, so the header is made here.
        mode = "I;16" if byte_order == "<u2" else "I;16B"
        image = Image.frombytes(mode, (13, 9), wide.astype(byte_order).tobytes())
        with Image.open(io.BytesIO(sent(saved(image, "TIFF")))) as read:
            assert np.array_equal(np.asarray(read), wide)


def test_a_pil_image_of_sixteen_bits_is_sent_as_its_file_is() -> None:
    with Image.open(FILES / "wide_grey.png") as opened:
        assert opened.mode == "I;16"
        with Image.open(io.BytesIO(sent(opened))) as read:
            assert np.array_equal(np.asarray(read), np.asarray(opened))


def test_colours_that_png_has_not_become_rgb() -> None:
    image = Image.fromarray(PIXELS).convert("CMYK")
    assert np.array_equal(pixels_of(sent(saved(image, "TIFF"))), np.asarray(image.convert("RGB")))


@pytest.mark.parametrize("mode", ["La", "RGBa"])
def test_premultiplied_colours_are_those_before(mode: str) -> None:
    """Pillow makes these modes where it resizes images with alpha."""
    straight = Image.fromarray(PIXELS).convert(mode.upper())
    straight.putalpha(255)
    assert np.array_equal(tensor_of(straight.convert(mode)), np.asarray(straight.convert("RGB")))


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"\n<!DOCTYPE html><title>404</title>", "an HTML page"),
        (b"\xef\xbb\xbf<HTML>", "an HTML page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "a pointer of Git LFS"),
    ],
)
def test_what_a_download_left_in_the_place_of_an_image_is_named(content: bytes, what: str, tmp_path: Path) -> None:
    path = tmp_path / "photo.jpg"
    path.write_bytes(content)
    for image in (path, str(path)):
        with pytest.raises(ValueError, match=f"^{path} is {what}"):
            sent(image)
    with pytest.raises(ValueError, match=f"^the image is {what}"):
        sent(content)


def test_what_has_no_fixed_range_is_refused() -> None:
    file = saved(Image.fromarray(np.ones((3, 4), np.float32)), "TIFF")
    with pytest.raises(ValueError, match='mode "F" has no fixed range of values'):
        sent(file)


def test_a_damaged_file_is_an_error() -> None:
    file = saved(Image.fromarray(PIXELS), "BMP")
    with pytest.raises(OSError, match="truncated"):
        sent(file[: len(file) // 2])


def test_what_pillow_does_not_know_goes_to_the_server() -> None:
    assert sent(b"%PDF-1.7") == b"%PDF-1.7"
    assert sent(b"") == b""


def test_without_pillow_the_server_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    file = saved(Image.fromarray(PIXELS), "BMP")
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert sent(file) == file
