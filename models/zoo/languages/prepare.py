#!/usr/bin/env python3
"""Makes labelled texts in 54 languages for longshort-train from LibreOffice's translations.

The archive is the source of Debian's package libreoffice, libreoffice_7.4.7.orig-translations.tar.xz. A topic is a
page of the help or a source file of the user interface, the same in all languages. By a hash of its name, a tenth of
the topics is held out, in all languages. A sentence that several topics contain stays only in the first.
"""

import argparse
import csv
import hashlib
import html
import json
import math
import random
import re
import tarfile
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import damage

with (Path(__file__).parent / "languages.tsv").open() as table:
    CODES = {row["label"]: row for row in csv.DictReader(table, delimiter="\t")}
LANGUAGES = {label: row["libreoffice"] for label, row in CODES.items()}
LENGTHS = (20, 40, 100, 1000)  # bytes of the held-out pieces
SHORTEST, MIDDLE, LONGEST = 24, 512, 4096  # bytes of a training text: three in four are at most MIDDLE
ENTRY = re.compile(
    r'^#: (?P<topic>[^\s:]+).*\n(?:#.*\n)*msgctxt (?:.*\n)+?msgid (?P<id>(?:".*"\n)+)msgstr (?P<text>(?:".*"\n?)+)',
    re.MULTILINE,
)
LATIN = dict(zip("абвгдђежзијклмнопрстћуфхцчш", "abvgdđežzijklmnoprstćufhcčš", strict=True)) | {
    "љ": "lj",
    "њ": "nj",
    "џ": "dž",
}
LATIN |= {cyrillic.upper(): latin.capitalize() for cyrillic, latin in LATIN.items()}

# The sentences of each topic.
Topics = dict[str, list[str]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", type=Path, help="libreoffice_7.4.7.orig-translations.tar.xz")
    parser.add_argument("out", type=Path, help="folder to write train.jsonl and the held-out files into")
    parser.add_argument("--train", type=int, default=4000, help="training texts of each language; default 4000")
    parser.add_argument("--held-out", type=int, default=60, help="most held-out texts of a language; default 60")
    given = parser.parse_args()

    topics = read_topics(given.archive)
    train, held_out = split(topics)
    given.out.mkdir(parents=True, exist_ok=True)
    texts = list(training_texts(train, given.train, random.Random(1)))
    write(given.out, "train", [(label, text) for label, text, _ in texts])
    write(given.out, "train_plain", [(label, text) for label, text, is_plain in texts if is_plain])
    draw = random.Random(2)
    documents = [(label, text) for label in LANGUAGES for text in documents_of(held_out[label], given.held_out, draw)]
    write(given.out, "held_out", documents)
    write(given.out, "held_out_short", [(label, text_of(held_out[label], 40, draw)) for label, _ in documents])
    for name, change in damage.KINDS.items():
        write(given.out, f"held_out_{name}", [(label, change(text, draw)) for label, text in documents])
    write(given.out, "held_out_mixed", list(mixtures(documents, draw)))
    draw = random.Random(3)
    for length in LENGTHS:
        pieces = [(label, text_of(held_out[label], length, draw)) for label, _ in documents]
        write(given.out, f"held_out_{length}", pieces)


def read_topics(archive: Path) -> dict[str, Topics]:
    """For each language, the topics with their sentences."""
    label_of = {code: label for label, code in LANGUAGES.items()}
    topics: dict[str, Topics] = {label: defaultdict(list) for label in LANGUAGES}
    with tarfile.open(archive) as files:
        for member in files:
            parts = Path(member.name).parts
            if not member.name.endswith(".po") or len(parts) < 4 or parts[2] not in label_of:
                continue
            file = files.extractfile(member)
            assert file
            folder = "/".join(parts[3:-1])
            for topic, original, text in entries(file.read().decode()):
                if parts[2] == "nl" and (sentence := cleaned(original)):
                    topics["English"][f"{folder}/{topic}"].append(sentence)
                if (sentence := cleaned(text)) and is_translated(cleaned(original), sentence):
                    topics[label_of[parts[2]]][f"{folder}/{topic}"].append(sentence)
    # Real Serbian in Latin letters is rare in the archive; its Cyrillic letters have one spelling in Latin.
    for topic, sentences in topics["Serbian (Cyrillic)"].items():
        topics["Serbian (Latin)"][topic] += ["".join(LATIN.get(one, one) for one in text) for text in sentences]
    return topics


def entries(content: str) -> Iterator[tuple[str, str, str]]:
    """Topic, original and translation."""
    for entry in content.split("\n\n"):
        if "\n#, fuzzy" not in entry and (found := ENTRY.search(entry)):
            yield found["topic"], unquoted(found["id"]), unquoted(found["text"])


def unquoted(lines: str) -> str:
    text = "".join(line[1:-1] for line in lines.splitlines())
    return re.sub(r"\\(.)", lambda one: {"n": " ", "t": " "}.get(one[1], one[1]), text)


def cleaned(text: str) -> str:
    """Without markup, variables and marks of shortcuts; empty if too little is left."""
    text = html.unescape(re.sub(r"<[^>]*>", "", text))
    text = re.sub(r"%\w+|\$\w+|\$\(\w+\)|\$\{\w+\}|[~_]", "", text)
    text = " ".join(text.split())
    letters = [one for one in text if unicodedata.category(one)[0] in "LM"]
    return text if len("".join(letters).encode()) >= 12 and len(letters) * 2 > len(text) else ""


def is_translated(original: str, text: str) -> bool:
    words = set(re.findall(r"\w{2,}", text.lower()))
    return len(words & set(re.findall(r"\w{2,}", original.lower()))) * 3 < len(words)


def split(topics: dict[str, Topics]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The sentences to train on, and the others, in the order of the topics. None of a language is in both or twice."""
    train: dict[str, list[str]] = {label: [] for label in topics}
    held_out: dict[str, list[str]] = {label: [] for label in topics}
    dropped = 0
    for label, of_language in topics.items():
        seen = set()
        for topic in sorted(of_language):
            part = held_out if hashlib.sha256(topic.encode()).digest()[0] < 26 else train
            for sentence in of_language[topic]:
                same = re.sub(r"[\W\d]+", "", sentence.lower())
                dropped += same in seen
                if same not in seen:
                    part[label].append(sentence)
                seen.add(same)
        sizes = [sum(len(one.encode()) for one in part[label]) // 1000 for part in (train, held_out)]
        print(f"{label}: {sizes[0]} kB to train on, {sizes[1]} kB held out")
    print(f"{dropped} repeated sentences dropped")
    return train, held_out


def text_of(sentences: list[str], length: int, draw: random.Random) -> str:
    """About `length` bytes of successive sentences."""
    at = draw.randrange(len(sentences))
    separator = draw.choice((" ", " ", "\n"))
    text = ""
    while len(text.encode()) < length:
        text += (separator if text else "") + sentences[at % len(sentences)]
        at += 1
    return text.encode()[:length].decode(errors="ignore").strip()


def documents_of(sentences: list[str], count: int, draw: random.Random) -> Iterator[str]:
    """At most `count` documents of 200 bytes and more, which share no sentence."""
    lines = iter(sentences)
    for _ in range(count):
        length = log_uniform(200, LONGEST, draw)
        text = ""
        while len(text.encode()) < length and (line := next(lines, "")):
            text += (" " if text else "") + line
        if len(text.encode()) < 200:
            return
        yield text.encode()[:length].decode(errors="ignore")


def log_uniform(least: int, most: int, draw: random.Random) -> int:
    return int(math.exp(draw.uniform(math.log(least), math.log(most))))


def training_texts(sentences: dict[str, list[str]], count: int, draw: random.Random) -> Iterator[tuple[str, str, bool]]:
    """Texts of all lengths. Some are damaged, some are mixtures, which have the language of a random byte as label. The
    others are plain.
    """
    kinds = list(damage.KINDS.values())
    for label in sentences:
        for _ in range(count):
            length = log_uniform(SHORTEST, MIDDLE if draw.random() < 0.75 else LONGEST, draw)
            text, truth = text_of(sentences[label], length, draw), label
            plain = text
            if draw.random() < 0.25:
                other = draw.choice(list(sentences))
                share = draw.uniform(0.1, 0.5)
                text = damage.joined(text, text_of(sentences[other], length, draw), share, draw)
                truth = other if draw.random() < share else label
            if draw.random() < 0.3:
                text = draw.choice(kinds)(text, draw)
            yield truth, text, text == plain


def mixtures(documents: list[tuple[str, str]], draw: random.Random) -> Iterator[tuple[str, str]]:
    """Seven tenths of each document, then three tenths of one in another language."""
    for label, text in documents:
        other, second = draw.choice(documents)
        while other == label:
            other, second = draw.choice(documents)
        yield f"{label} + {other}", damage.joined(text, second, 0.3, draw)


def write(folder: Path, name: str, texts: list[tuple[str, str]]) -> None:
    lines = [json.dumps({"label": label, "text": text}, ensure_ascii=False) + "\n" for label, text in texts if text]
    content = "".join(lines).encode()
    (folder / f"{name}.jsonl").write_bytes(content)
    print(f"{hashlib.sha256(content).hexdigest()}  {name}.jsonl, {len(lines)} texts, {len(content) // 1000} kB")


if __name__ == "__main__":
    main()
