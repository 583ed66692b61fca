"""Every method of both clients, with real servers."""

from __future__ import annotations

import io
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc
import longshort
import numpy as np
import pandas
import PIL.Image
import pytest
from integration.server_process import ROOT, Server, wait_until

from clients.python.conftest import address
from clients.python.drivers import Driver

PHOTO = ROOT / "deploy/photo.jpg"


def test_models_are_listed_and_described(driver: Driver, zoo_client: Any) -> None:
    listed = driver.done(zoo_client.models())
    assert [model.name for model in listed] == ["enwiki", "flowers", "languages", "listops"]
    assert listed[0].language_model.layers > 0 and listed[0].classifier is None
    flowers = driver.done(zoo_client.model("flowers/1"))
    assert flowers.classifier.input == "image"
    assert flowers.classifier.labels == ("daisy", "dandelion", "rose", "sunflower", "tulip")
    assert driver.done(zoo_client.model()).name == "enwiki", "the client's model"


def test_texts_become_token_ids(driver: Driver, zoo_client: Any) -> None:
    tokens = driver.done(zoo_client.tokenize("a cat"))
    assert tokens.pieces == (b"a", b" ", b"c", b"a", b"t")
    assert driver.done(zoo_client.tokenize(tokens.ids)).ids == tokens.ids
    assert driver.done(zoo_client.tokenize(b"a cat")).ids == tokens.ids


def test_documents_are_scored_whatever_they_are_given_as(driver: Driver, zoo_client: Any) -> None:
    ids = driver.done(zoo_client.tokenize("The cat sat.")).ids
    scores = driver.done(zoo_client.score(["The cat sat.", b"The cat sat.", ids, np.array(ids)]))
    assert [score.id for score in scores] == [0, 1, 2, 3]
    assert len({round(score.log_likelihood, 3) for score in scores}) == 1
    for one in (ids, np.array(ids)):  # without a list around it, as a str
        (alone,) = driver.done(zoo_client.score(one))
        assert alone.token_count == len(ids)
    first = scores[0]
    assert (first.token_count, first.scored_token_count) == (12, 11)
    assert first.bits_per_byte == pytest.approx(-first.log_likelihood / math.log(2) / 11)
    (single,) = driver.done(zoo_client.score("The cat sat.", token_log_probabilities=True, top_alternatives=2))
    assert sum(token.log_probability for token in single.tokens) == pytest.approx(first.log_likelihood, abs=1e-3)
    assert [len(token.alternatives) for token in single.tokens] == [2] * 11


def test_more_documents_than_a_call_takes(driver: Driver, client: Any) -> None:
    scores = driver.done(client.score(f"document {i}" for i in range(70)))
    assert [score.id for score in scores] == list(range(70))
    assert [score.token_count for score in scores] == [len(f"document {i}") for i in range(70)]


def test_what_is_wrong_with_one_document_of_a_call_is_raised_with_its_number(driver: Driver, client: Any) -> None:
    """The number is right although the client makes several calls of 64 documents."""
    documents = ["good"] * 100 + [""] + ["good"] * 9
    with pytest.raises(longshort.InvalidArgument, match=r"^INVALID_ARGUMENT: inputs\[100\]"):
        driver.done(client.score(documents))
    scores = driver.collect(client.score_stream(documents))
    assert [score.id for score in scores if score.error] == [100] and len(scores) == 110


def test_text_classifiers_name_classes(driver: Driver, zoo_client: Any) -> None:
    texts = ["Please open the file in a new window before you print this page.", "dull" * 3000]
    answers = driver.done(zoo_client.classify(texts, model="languages", truncate=True, logits=True))
    assert [answer.documents[0].truncated for answer in answers] == [False, True]
    assert answers[0].top.label == "English"
    assert len(answers[0].classes) == 5 and len(answers[0].logits) == 54
    streamed = driver.collect(zoo_client.classify_stream(texts, model="languages", truncate=True))
    assert [answer.top for answer in streamed] == [answer.top for answer in answers]


def test_a_method_for_other_models_names_the_right_one(driver: Driver, zoo_client: Any) -> None:
    with pytest.raises(longshort.FailedPrecondition, match="languages is a classifier: use classify"):
        driver.done(zoo_client.score("xy", model="languages"))
    with pytest.raises(longshort.FailedPrecondition, match="enwiki is a language model: use score"):
        driver.done(zoo_client.classify("xy"))
    with pytest.raises(ValueError, match="truncate is for texts"):
        driver.done(zoo_client.classify(PHOTO, model="flowers", truncate=True))
    with pytest.raises(longshort.FailedPrecondition):
        driver.collect(zoo_client.score_stream(["xy"], model="languages"))
    with pytest.raises(longshort.FailedPrecondition):
        driver.collect(zoo_client.classify_stream(["xy"]))


def test_images_are_classified_whatever_they_are_given_as(driver: Driver, zoo_client: Any) -> None:
    pixels = PIL.Image.open(PHOTO)
    array = np.asarray(pixels)
    content = PHOTO.read_bytes()
    images = [PHOTO, str(PHOTO), content, pixels, array, array.astype(np.float32) / 255, io.BytesIO(content)]
    answers = driver.done(zoo_client.classify(images, model="flowers", top_k=5))
    assert [answer.id for answer in answers] == list(range(7))
    for answer in answers:
        assert answer.top.label == "sunflower"
        assert answer.top.probability == pytest.approx(answers[0].top.probability, abs=0.02)
        assert sum(entry.probability for entry in answer.classes) == pytest.approx(1, abs=1e-5)
    assert answers[4].classes == answers[3].classes, "the same pixels"
    with PHOTO.open("rb") as file:
        (read,) = driver.done(zoo_client.classify(file, model="flowers", top_k=5))
    (single,) = driver.done(zoo_client.classify(io.BytesIO(content), model="flowers", top_k=5))
    assert read.classes == single.classes == answers[2].classes == answers[6].classes
    mirrored = array[:, ::-1]  # a view, not contiguous
    views = driver.done(zoo_client.classify([mirrored, mirrored.copy()], model="flowers", logits=True))
    assert views[0].logits == views[1].logits and len(views[0].logits) == 5


def test_grey_and_transparent_images(driver: Driver, zoo_client: Any) -> None:
    photo = PIL.Image.open(PHOTO)
    images = [photo.convert("L"), photo.convert("RGBA"), photo.convert("P"), np.asarray(photo.convert("L"))]
    answers = driver.done(zoo_client.classify(images, model="flowers"))
    assert [answer.error for answer in answers] == [None] * 4
    assert answers[0].classes == answers[3].classes


def test_what_is_wrong_with_one_image_is_its_own(driver: Driver, zoo_client: Any) -> None:
    good, bad, more = driver.done(zoo_client.classify([PHOTO, b"no image", PHOTO], model="flowers"))
    assert good.classes == more.classes and good.error is None
    assert bad.error.code == grpc.StatusCode.INVALID_ARGUMENT and bad.classes == ()
    assert json.loads(json.dumps(bad.to_dict()))["error"]["code"] == "INVALID_ARGUMENT"
    with pytest.raises(longshort.InvalidArgument, match="item 1"):
        _ = bad.top
    # The 10th goes in a second call.
    answers = driver.done(zoo_client.classify([PHOTO] * 10 + [b"no image"], model="flowers"))
    assert [answer.id for answer in answers if answer.error] == [10]
    assert answers[10].error.message.startswith("images[10]")


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.zeros((4, 4, 4), np.uint8), r"\(4, 4, 4\) is not an image"),
        (np.zeros((4, 4), np.int64), "dtype int64; it must be uint8, or floats"),
        (PIL.Image.new("I", (4, 4)), 'mode "I" has no fixed range'),
    ],
)
def test_pixels_that_cannot_be_sent_are_named(driver: Driver, zoo_client: Any, image: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        driver.done(zoo_client.classify(image, model="flowers"))


def test_files_that_are_no_images(driver: Driver, zoo_client: Any, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        driver.done(zoo_client.classify(tmp_path / "none.jpg", model="flowers"))
    with pytest.raises(TypeError, match="an image must be a path"):
        driver.done(zoo_client.classify([3.5], model="flowers"))
    with pytest.raises(TypeError, match=r'must be opened in binary mode \("rb"\); reading it returned str'):
        driver.done(zoo_client.classify(io.StringIO("no bytes"), model="flowers"))


def test_other_arguments_that_cannot_be_sent(driver: Driver, client: Any) -> None:
    with pytest.raises(TypeError, match="a text must be str, bytes or a sequence of token ids, not float"):
        driver.done(client.score([3.5]))
    with pytest.raises(TypeError, match="unexpected keyword argument 'temprature'"):
        client.generate("x", temprature=0.5)
    with pytest.raises(ValueError, match="model is 'tiny/x'; it must be NAME"):
        driver.done(client.score("xy", model="tiny/x"))
    with pytest.raises(ValueError, match="timeout is 0"):
        driver.done(client.score("xy", timeout=0))
    for wrong in ("5s", None):
        with pytest.raises(TypeError, match=f"timeout is {wrong!r}; it must be a number of seconds"):
            driver.done(client.score("xy", timeout=wrong))
        with pytest.raises(TypeError, match=f"timeout is {wrong!r}"):
            driver.done(client.wait_ready(wrong))
    with pytest.raises(ValueError, match="traceparent is 'ü'"):
        driver.done(client.score("xy", traceparent="ü"))


def test_half_a_character_is_named(driver: Driver, client: Any) -> None:
    """As json.loads makes it of "\\ud800"."""
    for call in (lambda: client.score("a\ud800b"), lambda: client.generate("a\ud800b").finish()):
        with pytest.raises(ValueError, match="^the text has an unpaired surrogate at character 1$"):
            driver.done(call())


def test_text_comes_as_it_is_generated(driver: Driver, zoo_client: Any) -> None:
    options = {"max_tokens": 50, "temperature": 0, "echo": True}
    stream = zoo_client.generate("The history of ", **options)
    with pytest.raises(RuntimeError, match="was not read to the end"):
        _ = stream.result
    pieces = driver.collect(stream)
    assert len(pieces) > 1
    assert "".join(pieces) == stream.result.text == stream.text
    assert stream.result.text.startswith("The history of ")
    assert stream.result.usage.generated_tokens == 50
    assert stream.result.completions[0].finish_reason == "length"
    again = driver.done(zoo_client.generate("The history of ", **options).finish())
    assert again.text == stream.result.text


def test_sampling_is_what_was_asked_for(driver: Driver, zoo_client: Any) -> None:
    def text(**options: Any) -> Any:
        return driver.done(zoo_client.generate("The ", max_tokens=30, **options).finish())

    options = {"seed": 7, "top_k": 20, "top_p": 0.9, "min_p": 0.01, "repetition_penalty": 1.1}
    assert text(**options).seed == 7
    assert text(**options).text == text(**options).text
    (letter,) = driver.done(zoo_client.tokenize("q")).ids
    assert text(logit_bias={letter: 100.0}, presence_penalty=0.0).text == "q" * 30
    stopped = text(logit_bias={letter: 100.0}, stop="qqq").completions[0]
    assert (stopped.finish_reason, stopped.stop, stopped.text) == ("stop", "qqq", "")


def test_several_completions_come_as_deltas(driver: Driver, zoo_client: Any) -> None:
    options = {"max_tokens": 10, "completions": 3, "token_log_probabilities": True, "return_raw": True}
    stream = zoo_client.generate("The ", **options)
    with pytest.raises(ValueError, match="iterate over deltas"):
        driver.collect(stream)
    stream = zoo_client.generate("The ", **options)
    deltas = driver.collect(stream.deltas())
    result = stream.result
    for completion in result.completions:
        own = [delta for delta in deltas if delta.index == completion.index]
        assert completion.text == "".join(delta.text for delta in own)
        assert completion.raw == b"".join(delta.raw for delta in own)
        assert len(completion.tokens) == sum(delta.token_count for delta in own) == 10
    assert [completion.index for completion in result.completions] == [0, 1, 2]


def test_answers_become_dicts_and_frames(driver: Driver, zoo_client: Any) -> None:
    scores = driver.done(zoo_client.score(["one", "two and more"]))
    frame = pandas.DataFrame(scores)
    assert list(frame.token_count) == [3, 12]
    assert list(frame.log_likelihood) == [score.log_likelihood for score in scores]
    assert list(pandas.DataFrame.from_records([score.to_dict() for score in scores]).columns) == list(frame.columns)
    (classified,) = driver.done(zoo_client.classify(PHOTO, model="flowers"))
    assert json.loads(json.dumps(classified.to_dict()))["classes"][0]["label"] == "sunflower"
    assert pandas.DataFrame(classified.classes).label[0] == "sunflower"
    with pytest.raises(AttributeError):
        classified.id = 3
    stream = zoo_client.generate("x", max_tokens=1)
    assert driver.done(stream.finish()).to_dict()["completions"][0]["finish_reason"] == "length"


def test_a_ready_server_is_not_waited_for(driver: Driver, client: Any, server: Server) -> None:
    driver.done(client.wait_ready(timeout=10))
    driver.done(client.wait_ready(timeout=10, model="tiny"))
    before = server.metric("longshort_requests_total", rpc="GetModel", code="NOT_FOUND")
    with pytest.raises(longshort.NotFound, match="there is no model other"):
        driver.done(client.wait_ready(timeout=2, model="other"))
    assert server.metric("longshort_requests_total", rpc="GetModel", code="NOT_FOUND") > before + 1, "it may be loading"


def test_errors_name_code_and_request(driver: Driver, client: Any) -> None:
    with pytest.raises(longshort.NotFound) as caught:
        driver.done(client.score("xy", model="stranger", request_id="mine"))
    error = caught.value
    assert error.code == grpc.StatusCode.NOT_FOUND
    assert error.request_id == "mine" and "[request mine]" in str(error)
    assert (error.retry_after, error.queue_depth) == (None, None)
    with pytest.raises(longshort.InvalidArgument, match="temperature") as caught:
        driver.collect(client.generate("x", temperature=-1))
    assert len(caught.value.request_id) == 32, "a random one"


def test_calls_name_their_client(driver: Driver, server: Server) -> None:
    client = driver.client(address(server), client_id="alice")
    with pytest.raises(longshort.NotFound):
        driver.done(client.score("xy", model="stranger", request_id=f"named-{driver.kind}", priority="high"))
    wait_until(lambda: f"named-{driver.kind}" in server.log())
    (line,) = [line for line in server.log().splitlines() if f"named-{driver.kind}" in line]
    assert "client=alice" in line
    with pytest.raises(longshort.InvalidArgument, match="x-priority"):
        driver.done(client.score("xy", priority="highest"))
    driver.done(client.close())


def test_a_closed_client_says_so(driver: Driver, server: Server) -> None:
    client = driver.client(address(server))
    driver.enter(client)
    assert driver.done(client.models())
    driver.leave(client)
    driver.done(client.close())
    with pytest.raises(RuntimeError, match="the client is closed"):
        driver.done(client.models())


def test_numpy_and_pillow_are_optional(zoo: Server) -> None:
    program = """
import sys
import longshort
client = longshort.Client(sys.argv[1])
assert client.classify(sys.argv[2], model="flowers")[0].top.label == "sunflower"
assert client.score("xy", model="enwiki")
for module in ("numpy", "PIL", "pandas", "opentelemetry"):
    assert module not in sys.modules, module
client.close()
"""
    subprocess.run([sys.executable, "-c", program, address(zoo), PHOTO], check=True, timeout=60)


def test_a_client_is_for_many_threads(zoo: Server) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with longshort.Client(address(zoo), model="enwiki") as client, ThreadPoolExecutor(8) as threads:
        texts = [f"text number {i}" for i in range(64)]
        found = list(threads.map(lambda text: client.tokenize(text).pieces, texts))
    assert [b"".join(pieces).decode() for pieces in found] == texts


def test_a_fork_needs_a_client_of_its_own(server: Server) -> None:
    program = """
import os, sys
import longshort
client = longshort.Client(sys.argv[1])  # before any call: gRPC itself does not fork well
if os.fork() == 0:
    try:
        client.models()
    except RuntimeError as error:
        os._exit(0 if "before fork" in str(error) else 1)
    os._exit(2)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
assert client.models()
client.close()
"""
    subprocess.run([sys.executable, "-c", program, address(server)], check=True, timeout=60)
