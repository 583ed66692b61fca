"""What happens to texts: capitals, lost spaces, lost letters, markup, and parts in another language."""

import random
import re


def without_spaces(text: str, _: random.Random) -> str:
    return re.sub(r"\s", "", text)


def capitals(text: str, _: random.Random) -> str:
    return text.upper()


def small_letters(text: str, _: random.Random) -> str:
    return text.lower()


def letters_lost(text: str, draw: random.Random) -> str:
    """One character in ten is missing."""
    return "".join(one for one in text if draw.random() >= 0.1)


def letters_changed(text: str, draw: random.Random) -> str:
    """One character in ten is a random ASCII letter."""
    return "".join(draw.choice("abcdefghijklmnopqrstuvwxyz") if draw.random() < 0.1 else one for one in text)


def in_markup(text: str, draw: random.Random) -> str:
    """HTML with tags around every third word."""
    tags = ('<a href="/page/{}.html">{}</a>', '<span class="c{}">{}</span>', '<b id="n{}">{}</b>', "<td{}>{}</td>")
    words = [
        draw.choice(tags).format(draw.randrange(1000), word) if draw.random() < 0.33 else word
        for word in text.split(" ")
    ]
    return "<p>" + " ".join(words) + "</p>"


KINDS = {
    one.__name__: one for one in (without_spaces, capitals, small_letters, letters_lost, letters_changed, in_markup)
}


def joined(text: str, other: str, share: float, draw: random.Random) -> str:
    """As many bytes as `text`, of which `share` are those of `other`, at the beginning or at the end."""
    size = len(text.encode())
    second = other.encode()[: int(size * share)].decode(errors="ignore")
    first = text.encode()[: size - len(second.encode())].decode(errors="ignore")
    return " ".join((first, second) if draw.random() < 0.5 else (second, first))
