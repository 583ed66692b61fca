"""What the users of a fleet do, all at once: read and write texts, talk, classify, and make mistakes."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable

import longshort
from integration.server_process import ROOT

from dashboards.fleet import Fleet

PHOTO = (ROOT / "deploy/photo.jpg").read_bytes()
PARAGRAPH = (ROOT / "deploy/paragraph.txt").read_text()
LETTER = (ROOT / "deploy/letter.txt").read_text()
NO_RETRIES = longshort.RetryPolicy(attempts=1)


class Traffic:
    """Use as a context manager; leaving it waits for what is under way. Errors are what some calls are for."""

    def __init__(self, fleet: Fleet, thinking: float) -> None:
        """`thinking`: seconds that a user waits between two calls, on average."""
        self._fleet = fleet
        self._thinking = thinking
        self._stop = threading.Event()
        self._app = fleet.client("app", timeout=30)
        self._notebook = fleet.client("notebook", timeout=30)
        self._batch = fleet.client("batch", retry=NO_RETRIES, timeout=30)
        self._stranger = fleet.client("unknown", retry=NO_RETRIES)
        self._identity = fleet.client("app", fleet.identity)
        kinds = [self._read, self._write, self._talk, self._score, self._letter, self._look, self._echo, self._err]
        self._threads = [threading.Thread(target=self._run, args=(kind,)) for kind in kinds]

    def _run(self, act: Callable[[random.Random], None]) -> None:
        chance = random.Random(act.__name__)
        while not self._stop.is_set():
            with contextlib.suppress(longshort.LongshortError):
                act(chance)
            self._stop.wait(chance.expovariate(1 / self._thinking))

    def _read(self, chance: random.Random) -> None:
        """A text in a stream. Most prompts begin alike."""
        beginning = PARAGRAPH[: chance.choice((200, 1500, len(PARAGRAPH)))]
        prompt = beginning + "".join(chance.choices("etaoin shrdlu", k=chance.randint(0, 200)))
        model = chance.choice(("enwiki/1", "enwiki/1", "enwiki/2"))
        for _ in self._app.generate(prompt, model=model, max_tokens=chance.randint(10, 150), priority="high"):
            pass

    def _write(self, chance: random.Random) -> None:
        """A text at once, in several completions."""
        self._notebook.generate("The ", model="enwiki", max_tokens=chance.randint(10, 60), completions=2).finish()

    def _talk(self, chance: random.Random) -> None:
        """A conversation that moves to the other server."""
        here, there = chance.sample(self._fleet.servers, 2)
        name = f"talk.{chance.random()}"
        with self._fleet.client("app", here) as one, self._fleet.client("app", there) as other:
            with one.session(name, model="enwiki/1") as talk:
                for _ in range(chance.randint(1, 4)):
                    talk.generate("And then ", max_tokens=30).finish()
                file = self._fleet.folder / name
                talk.export(file)
            with other.import_session(name, file, model="enwiki/1") as talk:
                talk.generate("But ", max_tokens=30).finish()
            file.unlink()

    def _score(self, chance: random.Random) -> None:
        self._notebook.score([PARAGRAPH[chance.randint(0, 500) :] for _ in range(2)], model="enwiki")

    def _letter(self, chance: random.Random) -> None:
        """Documents for a classifier; now and then one without any text."""
        documents = [LETTER[: chance.randint(100, len(LETTER))] for _ in range(chance.randint(1, 12))]
        self._notebook.classify([*documents, *([""] if chance.random() < 0.1 else [])], model="languages")

    def _look(self, chance: random.Random) -> None:
        """Photos; now and then a damaged one."""
        photos = [PHOTO] * chance.randint(1, 6)
        self._app.classify([*photos, *([PHOTO[:2000]] if chance.random() < 0.2 else [])], model="flowers")

    def _echo(self, chance: random.Random) -> None:
        for _ in range(20):
            self._identity.classify([LETTER] * chance.randint(1, 4), model="echo")

    def _err(self, chance: random.Random) -> None:
        """A call that is wrong, late, or more than its client may have."""
        wrong: list[Callable[[], object]] = [
            lambda: self._batch.tokenize("x", model="stranger"),
            lambda: self._batch.generate("x", model="enwiki", temperature=-1).finish(),
            lambda: self._batch.generate(PARAGRAPH, model="enwiki", max_tokens=2000, timeout=0.02).finish(),
            lambda: self._stranger.models(),
        ]
        with contextlib.suppress(longshort.ResourceExhausted):
            for _ in range(4):
                self._batch.tokenize("x", model="enwiki")
        chance.choice(wrong)()

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        for client in (self._app, self._notebook, self._batch, self._stranger, self._identity):
            client.close()
