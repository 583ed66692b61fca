"""What Classify, Embed and Models show beyond the likeliest class."""

from __future__ import annotations

import io
import math
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image

from integration.browser import Browser, Keys
from integration.page.views import MARKS, PHOTO, press_copy, show
from integration.server_process import Server, wait_until

pytestmark = MARKS

SVG = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10">
<rect width="10" height="10" fill="green"/><circle cx="5" cy="5" r="3" fill="yellow"/></svg>"""


def test_all_classes_and_their_names_are_shown(browser: Browser) -> None:
    wait_until(lambda: len(browser.all("#models-list > li")) == 7)
    card = next(card for card in browser.all("#models-list > li") if card.text.startswith("languages"))
    assert "54 classes: show their names" in card.text
    browser.all("#models-list details summary")[0].click()
    names = [one.text for one in browser.all("#models-list details li")]
    assert len(names) == 54 and {"German", "French"} <= set(names)
    show(browser, "classify")
    browser.choose("classify-model", "languages")
    browser.write("classify-text", "Wohin fährt dieser Zug, und wann kommt er an?")
    browser.id("classify-text").send_keys(Keys.CONTROL, Keys.ENTER)
    browser.wait_for_text("classify-status", "All are classified.")
    assert len(browser.all("#classify-results .bar")) == 5
    assert browser.id("classify-length").is_displayed()
    browser.all("#classify-results summary")[0].click()
    wait_until(lambda: len(browser.all("#classify-results .bar")) == 54)
    labels = [one.text.split("\n")[0] for one in browser.all("#classify-results .bar")]
    assert set(labels) == set(names) and labels[0] == "German"
    lines = press_copy(browser, "#classify-results button").splitlines()
    assert len(lines) == 54 and lines[0].startswith("German\t")
    assert math.fsum(float(line.split("\t")[1]) for line in lines) == pytest.approx(1, abs=1e-4)
    browser.click("classify-clear")


def test_examples_are_classified(browser: Browser) -> None:
    show(browser, "classify")
    browser.choose("classify-model", "flowers")
    browser.click("classify-example")
    browser.wait_for_text("classify-status", "All are classified.")
    assert "daisy.png" in browser.all("#classify-results > li")[0].text
    assert not browser.id("classify-length").is_displayed()
    assert browser.all("#classify-results .bar")[0].text.startswith("daisy")
    browser.click("classify-clear")
    both = ["classify-text", "classify-text-2"]
    for model, fields in (("languages", both[:1]), ("pairs", both), ("text_or_pair", both)):
        browser.choose("classify-model", model)
        browser.click("classify-example")
        assert all(browser.id(field).get_attribute("value") for field in fields)
        browser.id(fields[-1]).send_keys(Keys.CONTROL, Keys.ENTER)
        browser.wait_for_text("classify-status", "All are classified.")
        browser.click("classify-clear")


def test_a_model_that_joins_pairs_takes_one_text_too(browser: Browser) -> None:
    show(browser, "classify")
    for model, says in (("text_or_pair", "All are classified."), ("pairs", "There is no text yet")):
        browser.choose("classify-model", model)
        browser.write("classify-text", "One text")
        browser.write("classify-text-2", "")
        browser.id("classify-text").send_keys(Keys.CONTROL, Keys.ENTER)
        browser.wait_for_text("classify-status", says)
    assert len(browser.all("#classify-results > li")) == 1
    browser.click("classify-clear")


def test_images_of_any_kind_are_classified(browser: Browser, tmp_path: Path) -> None:
    """The browser draws what the server does not decode. A file that it cannot draw has its reason."""
    photo = Image.open(PHOTO).convert("RGB")
    files = [tmp_path / f"photo.{kind}" for kind in ("gif", "bmp", "webp", "png")]
    for file in files:
        photo.save(file)
    (tmp_path / "drawn.svg").write_text(SVG)
    (tmp_path / "empty.jpg").touch()
    (tmp_path / "notes.jpg").write_text("not an image")
    cut = io.BytesIO()
    photo.save(cut, "JPEG")
    (tmp_path / "cut.jpg").write_bytes(cut.getvalue()[:500])
    (tmp_path / "photo.tiff").write_bytes(b"II*\0" + b"\0" * 100)
    names = ["drawn.svg", "empty.jpg", "notes.jpg", "cut.jpg", "photo.tiff"]
    files += [tmp_path / name for name in names]
    show(browser, "classify")
    browser.choose("classify-model", "flowers")
    assert browser.id("classify-file").get_attribute("accept") == "image/*"
    browser.id("classify-file").send_keys("\n".join(map(str, files)))
    browser.wait_for_text("classify-status", "5 of 9 are classified.")
    cards = [card.text for card in browser.all("#classify-results > li")]
    assert all("sunflower" in card.split("\n")[1] for card in cards[:4]), cards
    assert ["drawn by the browser" in card for card in cards] == [True, True, False, False, True] + 4 * [False]
    assert all("." in card.split("\n")[1] and "%" not in card for card in cards[5:]), cards
    browser.click("classify-clear")


def test_an_image_that_is_too_large_is_drawn_smaller(browser: Browser, tmp_path: Path) -> None:
    """A photo of noise stays large as PNG, whatever the browser does."""
    photo = Image.open(PHOTO).convert("RGB").resize((3000, 2250))
    noise = Image.merge("RGB", [Image.effect_noise(photo.size, 80) for _ in range(3)])
    Image.blend(photo, noise, 0.4).save(tmp_path / "large.png", compress_level=1)
    assert (tmp_path / "large.png").stat().st_size > 9_000_000, "the server takes 8 MiB"
    show(browser, "classify")
    browser.choose("classify-model", "flowers")
    browser.id("classify-file").send_keys(str(tmp_path / "large.png"))
    browser.wait_for_text("classify-status", "All are classified.")
    assert "drawn by the browser" in browser.all("#classify-results > li")[0].text
    browser.click("classify-clear")


@pytest.mark.parametrize("kind", ["png", "jpg"])
def test_an_image_of_too_many_pixels_is_drawn_smaller(browser: Browser, tmp_path: Path, kind: str) -> None:
    """30 megapixels in few bytes; the server takes 25."""
    Image.open(PHOTO).convert("RGB").resize((6000, 5000), Image.Resampling.NEAREST).save(tmp_path / f"large.{kind}")
    show(browser, "classify")
    browser.choose("classify-model", "flowers")
    browser.id("classify-file").send_keys(str(tmp_path / f"large.{kind}"))
    browser.wait_for_text("classify-status", "All are classified.")
    assert "drawn by the browser" in browser.all("#classify-results > li")[0].text
    browser.click("classify-clear")


def test_two_texts_are_embedded_side_by_side(browser: Browser, page: Server, api: SimpleNamespace) -> None:
    texts = ["Das Wetter ist heute schön.", "Bonjour à tous les amis !"]
    show(browser, "embed")
    browser.choose("embed-model", "languages")
    browser.click("embed-start")
    browser.wait_for_text("embed-status", "type both")
    for number, text in enumerate(texts, 1):
        browser.write(f"embed-text-{number}", text)
    request = api.inference.EmbedRequest(model={"name": "languages"}, inputs=[{"text": text} for text in texts])
    stub = api.inference_grpc.InferenceStub(page.channel)
    for pooling in ("POOLING_UNSPECIFIED", "POOLING_MEAN"):
        browser.id("embed-pooling").find_element("css selector", f"option[value={pooling}]").click()
        browser.id("embed-text-2").send_keys(Keys.CONTROL, Keys.ENTER)
        request.pooling = api.types.Pooling.Value(pooling)
        one, two = (result.embedding.values for result in stub.Embed(request, timeout=60).results)
        cosine = sum(a * b for a, b in zip(one, two, strict=True)) / math.hypot(*one) / math.hypot(*two)
        wait_until(lambda want=f"{cosine:.4f}": want in browser.id("embed-totals").text)
    assert [card.text.split("\n")[0] for card in browser.all("#embed-vectors > li")] == texts
    copied = press_copy(browser, "#embed-vectors button")
    assert copied.startswith("[") and copied.count(",") == len(one) - 1
    browser.click("embed-example")
    values = [browser.id(f"embed-text-{number}").get_attribute("value") for number in (1, 2)]
    assert values[0] != values[1] and "" not in values
