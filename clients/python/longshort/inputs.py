"""Converts the inputs of calls to messages: texts, images, model names."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Sequence, Sized
from numbers import Integral
from pathlib import Path
from typing import Any, Protocol

from longshort._proto import inference_pb2, types_pb2

# UTF-8 text, bytes of any value, or token ids.
Text = str | bytes | Sequence[int]
# A text, or two for classifiers that compare them.
Document = Text | tuple[Text, Text]


class PixelArray(Protocol):
    """A numpy array or similar: [height, width] or [height, width, channels] with 1 or 3 channels; uint8, or floats in
    [0, 1]."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> Any: ...
    def tobytes(self) -> bytes: ...


class PillowImage(Protocol):
    """A PIL.Image.Image."""

    @property
    def mode(self) -> str: ...
    @property
    def size(self) -> tuple[int, int]: ...
    def convert(self, mode: str) -> Any: ...
    def tobytes(self) -> bytes: ...


class BinaryFile(Protocol):
    """A binary file object, such as an open file or io.BytesIO. Read from its position to the end."""

    def read(self) -> bytes: ...


# A file's path or its bytes (JPEG, PNG, WebP, or any format of Pillow), a binary file object, or pixels.
Image = str | os.PathLike[str] | bytes | BinaryFile | PixelArray | PillowImage

# Limits of one call: enough to fill a model's batches, few enough for every server's message limit.
IMAGES_PER_CALL = 8
DOCUMENTS_PER_CALL = 64
BYTES_PER_CALL = 4 << 20

# Text files that downloads and tools leave under the names of others.
LFS_POINTER = "a pointer of Git LFS (get the file by `git lfs pull`)"
HTML = "an HTML page"
_BEGINNINGS = (
    (b"version https://git-lfs.github.com/spec/", LFS_POINTER),
    (b"<!doctype html", HTML),
    (b"<html", HTML),
)


def selector(model: str) -> types_pb2.ModelSelector:
    """Parses "name" or "name/version"; empty selects the only model of a server. Raises ValueError."""
    name, slash, version = model.partition("/")
    if not slash:
        return types_pb2.ModelSelector(name=name)
    if not name or not version.isdecimal() or int(version) < 1:
        raise ValueError(f"model is {model!r}; it must be NAME or NAME/VERSION, with a version of at least 1")
    return types_pb2.ModelSelector(name=name, version=int(version))


def text_input(text: Text) -> types_pb2.Input:
    """Raises TypeError for anything other than text, bytes or ids; ValueError for a text that UTF-8 cannot hold."""
    if isinstance(text, str):
        try:
            return types_pb2.Input(text=text)
        except UnicodeEncodeError as error:
            raise ValueError(f"the text has an unpaired surrogate at character {error.start}") from None
    if isinstance(text, (bytes, bytearray, memoryview)):
        return types_pb2.Input(raw=bytes(text))
    try:
        return types_pb2.Input(ids=types_pb2.TokenIds(ids=[int(token) for token in text]))
    except TypeError:
        raise TypeError(f"a text must be str, bytes or a sequence of token ids, not {type(text).__name__}") from None


def document_inputs(document: Document) -> tuple[types_pb2.Input, types_pb2.Input | None]:
    """Returns the document, and the second one of a pair."""
    if isinstance(document, tuple) and len(document) == 2 and not isinstance(document[0], int):
        first, second = document
        return text_input(first), text_input(second)
    return text_input(document), None


def image_message(image: Image) -> inference_pb2.Image:
    """Reads a file, and converts it to PNG if the server does not decode its format. A PIL image is turned upright, as
    its EXIF or XMP data say. An array is sent unchanged. Raises OSError, ValueError or TypeError for an invalid
    image."""
    if isinstance(image, (bytes, bytearray, memoryview)):
        return inference_pb2.Image(encoded=_decodable(bytes(image)))
    if isinstance(image, (str, os.PathLike)):
        return inference_pb2.Image(encoded=_decodable(Path(image).read_bytes(), os.fspath(image)))
    if _is_file(image):
        content = image.read()  # type: ignore[union-attr]
        if not isinstance(content, bytes):
            raise TypeError(
                f'an image file must be opened in binary mode ("rb"); reading it returned {type(content).__name__}'
            )
        return inference_pb2.Image(encoded=_decodable(content))
    if hasattr(image, "mode") and hasattr(image, "convert"):
        return _pillow_message(image)
    if hasattr(image, "shape") and hasattr(image, "dtype"):
        return _array_message(image)
    raise TypeError(
        f"an image must be a path, the bytes of a file, a file, a numpy array or a PIL image,"
        f" not {type(image).__name__}"
    )


def _decodable(file: bytes, name: str = "the image") -> bytes:
    """Returns JPEG, PNG and WebP files unchanged; converts other formats to PNG: the first frame, rotated as its EXIF
    data say. Without Pillow, or if Pillow does not know the format, returns the file unchanged, and the server reports
    the error. Raises OSError or ValueError."""
    if file.startswith((b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n")) or (file[:4], file[8:12]) == (b"RIFF", b"WEBP"):
        return file
    if what := mistaken(file):
        raise ValueError(f"{name} is {what}; it must be a file of an image")
    try:
        from PIL import Image as pillow
        from PIL import ImageOps, UnidentifiedImageError
    except ImportError:
        return file
    try:
        with pillow.open(io.BytesIO(file)) as opened:
            image = ImageOps.exif_transpose(opened)
    except UnidentifiedImageError:
        return file
    except pillow.DecompressionBombError as error:
        raise ValueError(str(error)) from None
    if image.mode not in ("1", "L", "LA", "P", "RGB", "RGBA") and not image.mode.startswith(("I", "F")):
        image = _rgb(image)
    return _png(image)


def mistaken(head: bytes) -> str:
    """What a file is that is a text under another name, by its first bytes; empty for other files."""
    text = head[:1024].removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    return next((what for begin, what in _BEGINNINGS if text.startswith(begin)), "")


def _rgb(image: Any) -> Any:
    """Pillow converts grey with premultiplied alpha to no mode but that with alpha."""
    return (image.convert("LA") if image.mode == "La" else image).convert("RGB")


def _png(image: Any) -> bytes:
    """Raises ValueError for modes without a fixed range of values."""
    if image.mode in ("I", "F"):
        raise ValueError(f'a PIL image of mode "{image.mode}" has no fixed range of values: convert it to "L" or "RGB"')
    if image.mode.startswith("I;16"):
        image = image.convert("I").convert("I;16")  # any byte order
    encoded = io.BytesIO()
    image.save(encoded, "PNG")
    return encoded.getvalue()


def _pillow_message(image: Any) -> inference_pb2.Image:
    from PIL import ImageOps

    upright = ImageOps.exif_transpose(image)
    if upright.mode.startswith(("I", "F")):
        return inference_pb2.Image(encoded=_png(upright))  # the server makes 8 bits of 16
    pixels = upright if upright.mode in ("L", "RGB") else _rgb(upright)
    width, height = pixels.size
    channels = 1 if pixels.mode == "L" else 3
    return inference_pb2.Image(
        tensor=inference_pb2.ImageTensor(height=height, width=width, channels=channels, uint8_values=pixels.tobytes())
    )


def _array_message(array: Any) -> inference_pb2.Image:
    shape = tuple(array.shape)
    if len(shape) == 2:
        shape = (*shape, 1)
    if len(shape) != 3 or shape[2] not in (1, 3):
        raise ValueError(
            f"an array of shape {tuple(array.shape)} is not an image: it must be [height, width] or [height, width,"
            " channels] with 1 or 3 channels"
        )
    height, width, channels = shape
    tensor = inference_pb2.ImageTensor(height=height, width=width, channels=channels)
    if str(array.dtype) == "uint8":
        tensor.uint8_values = array.tobytes()
    elif str(array.dtype).startswith("float"):
        tensor.float_values.values.extend(array.ravel().tolist())
    else:
        raise ValueError(f"an image has dtype {array.dtype}; it must be uint8, or floats in [0, 1]")
    return inference_pb2.Image(tensor=tensor)


def _is_file(image: object) -> bool:
    return hasattr(image, "read")


def each_image(images: Image | Iterable[Image]) -> Iterable[Image]:
    """Wraps a single image in a list."""
    single = isinstance(images, (str, bytes, bytearray, memoryview, os.PathLike)) or hasattr(images, "tobytes")
    return [images] if single or _is_file(images) else images  # type: ignore[list-item, return-value]


def each_document(documents: Text | Iterable[Document]) -> Iterable[Document]:
    """Wraps a single text, including a sequence of token ids, in a list."""
    # An iterator is never token ids.
    is_ids = isinstance(documents, Sized) and isinstance(next(iter(documents), None), Integral)
    if is_ids or isinstance(documents, (str, bytes, bytearray, memoryview)):
        return [documents]  # type: ignore[list-item]
    return documents  # type: ignore[return-value]


def image_batches(images: Image | Iterable[Image]) -> Iterator[list[inference_pb2.Image]]:
    """Groups the images into calls. Reads them lazily."""
    batch: list[inference_pb2.Image] = []
    size = 0
    for image in each_image(images):
        message = image_message(image)
        size += message.ByteSize()
        if batch and (len(batch) == IMAGES_PER_CALL or size > BYTES_PER_CALL):
            yield batch
            batch, size = [], message.ByteSize()
        batch.append(message)
    if batch:
        yield batch


def embed_batches(items: Any, options: inference_pb2.EmbedRequest, texts: bool) -> Iterator[inference_pb2.EmbedRequest]:
    """Groups the texts or images into requests with these options."""
    for batch in document_batches(items) if texts else image_batches(items):
        request = inference_pb2.EmbedRequest()
        request.CopyFrom(options)
        for item in batch:
            if isinstance(item, inference_pb2.Image):
                request.images.append(item)
            else:
                request.inputs.append(item[0])
                request.second_inputs.extend([item[1]] if item[1] is not None else [])
        yield request


def document_batches(
    documents: Text | Iterable[Document],
) -> Iterator[list[tuple[types_pb2.Input, types_pb2.Input | None]]]:
    """Groups the documents into calls. A call has pairs or single documents."""
    batch: list[tuple[types_pb2.Input, types_pb2.Input | None]] = []
    size = 0
    for document in each_document(documents):
        first, second = document_inputs(document)
        bytes_of_it = first.ByteSize() + (second.ByteSize() if second is not None else 0)
        size += bytes_of_it
        is_other = bool(batch) and (second is None) != (batch[-1][1] is None)
        if batch and (len(batch) == DOCUMENTS_PER_CALL or size > BYTES_PER_CALL or is_other):
            yield batch
            batch, size = [], bytes_of_it
        batch.append((first, second))
    if batch:
        yield batch
