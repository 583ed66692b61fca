"""`classify`: which classes a model gives to images."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from longshort import errors, methods
from longshort._command import files, output
from longshort._command.context import CALL, Command, Context, at_least
from longshort._command.exits import UsageError
from longshort._proto import inference_pb2, models_pb2, types_pb2

DESCRIPTION = """python -m longshort classify [options] FILE|FOLDER|PATTERN|-...

Shows which classes the model gives to each image, likeliest first, with their probabilities. The server decodes
JPEG, PNG, WebP, BMP and TIFF, and resizes and crops each image as the model wants it.

Images are files, folders (their images and those of the folders in them, found by extension), patterns in quotes
('a/*.jpg'), or - for standard input. Results come in the order of the files. An image that the server does not take,
or that cannot be read, is told beside its name and the others go on; a closing line tells how many there were. The
exit code is then 2, or 3 if all were only refused by a full server, or 1 if none could be read.

With --json, one object an image: {"name": FILE, "classification": {...}} or {"name": FILE, "error": {...}}.

Examples:
  python -m longshort classify photo.jpg
  python -m longshort classify --top-k=1 photos
  python -m longshort classify 'photos/2024-*.jpg' more.png
  python -m longshort classify --json photos | jq -r '[.name, .classification.classes[0].label] | @tsv'
"""
# Calls that run at the same time: the server prepares the images of one while the model works on those of another.
_CALLS_IN_FLIGHT = 4
_IMAGES_PER_CALL = 8
_BYTES_PER_CALL = 4 << 20


@dataclass
class Batch:
    """Some of the files, in order: those that were sent, and those that cannot be."""

    names: list[str] = field(default_factory=list)
    failures: dict[int, tuple[types_pb2.ItemError, bool]] = field(default_factory=dict)
    images: list[inference_pb2.Image] = field(default_factory=list)


def add_options(parser: Any) -> None:
    group = parser.add_argument_group("Options")
    group.add_argument("--top-k", metavar="N", type=at_least(1), default=5, help="How many classes to show. Default 5.")
    group.add_argument("--logits", action="store_true", help="Show the logits of all classes too.")
    parser.add_argument("files", nargs="*", metavar="FILE")


def run(context: Context) -> int:
    if not context.options.files and sys.stdin.isatty():
        raise UsageError("name an image, a folder, or - for standard input")
    names = files.collect(context.options.files, files.is_image, missing_is_an_error=False)
    model = context.describe_model()
    if model.classifier.input not in (
        models_pb2.CLASSIFIER_INPUT_IMAGE,
        models_pb2.CLASSIFIER_INPUT_PIXEL_SEQUENCE,
    ):
        raise errors.FailedPrecondition(f"the model {model.name} ({model.architecture}) takes no images")
    failures = output.ItemFailures("images", context.options.json)
    progress = output.Progress("images", len(names))
    try:
        for batch, results in _answers(context, model, names):
            _print(batch, results, failures, progress, context.options.json)
    finally:
        progress.hide()
    return failures.summarize(len(names))


def _answers(
    context: Context, model: models_pb2.Model, names: list[str]
) -> Iterator[tuple[Batch, list[inference_pb2.ImageResult]]]:
    """In the order of the files, with some calls under way."""
    # The version that GetModel described, whatever is loaded meanwhile.
    selected = types_pb2.ModelSelector(name=model.name, version=model.version)

    def ask(batch: Batch) -> list[inference_pb2.ImageResult]:
        if not batch.images:
            return []
        request = inference_pb2.ClassifyImageRequest(
            model=selected, images=batch.images, top_k=context.options.top_k, all_logits=context.options.logits
        )
        return list(context.calls.unary(methods.CLASSIFY_IMAGE, request, CALL).results)

    with ThreadPoolExecutor(_CALLS_IN_FLIGHT) as threads:
        under_way: deque[tuple[Batch, Future[list[inference_pb2.ImageResult]]]] = deque()
        try:
            for batch in _batches(names, model.limits):
                under_way.append((batch, threads.submit(ask, batch)))
                if len(under_way) == _CALLS_IN_FLIGHT:
                    first, answer = under_way.popleft()
                    yield first, answer.result()
            for first, answer in under_way:
                yield first, answer.result()
        except BaseException:
            context.client.close()  # ends what is under way: its results would come behind a gap
            raise


def _batches(names: list[str], limits: models_pb2.Limits) -> Iterator[Batch]:
    """Files are read as batches are asked for."""
    most = max(1, min(_IMAGES_PER_CALL, limits.images))
    batch, size = Batch(), 0
    for name in names:
        try:
            content = files.read(name)
            failure = None if len(content) <= limits.image_bytes else _too_large(len(content), limits.image_bytes)
        except OSError as error:
            content, failure = b"", (output.item_error("NOT_FOUND", error.strerror or str(error)), True)
        size += len(content)
        if batch.names and (len(batch.names) == most or size > _BYTES_PER_CALL):
            yield batch
            batch, size = Batch(), len(content)
        if failure is None:
            batch.images.append(inference_pb2.Image(encoded=content))
        else:
            batch.failures[len(batch.names)] = failure
        batch.names.append(name)
    if batch.names:
        yield batch


def _too_large(size: int, limit: int) -> tuple[types_pb2.ItemError, bool]:
    message = f"the file has {size} bytes; the server takes at most {limit} in one image"
    return output.item_error("INVALID_ARGUMENT", message), False


def _print(
    batch: Batch,
    results: list[inference_pb2.ImageResult],
    failures: output.ItemFailures,
    progress: output.Progress,
    json: bool,
) -> None:
    sent = 0
    for place, name in enumerate(batch.names):
        progress.hide()
        if place in batch.failures:
            error, unread = batch.failures[place]
            failures.add(name, error, unread)
        else:
            result = results[sent]
            if result.HasField("error"):
                # The server names an image by its place in the call; here the file's name stands beside it.
                result.error.message = result.error.message.removeprefix(f"images[{sent}]: ")
                failures.add(name, result.error)
            elif json:
                output.write_named_json(name, result)
            else:
                output.write_classes(name, result.classification)
            sent += 1
        progress.advance()


COMMAND = Command("classify", "Classify images: the likeliest classes of each", DESCRIPTION, add_options, run)
