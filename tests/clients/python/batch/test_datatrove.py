"""longshort.datatrove in pipelines of the real package, on local files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import longshort
import longshort.batch
import pytest
from datatrove.data import Document
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers.jsonl import JsonlWriter
from integration.server_process import Server
from longshort.datatrove import Annotator, BitsPerByteFilter, ClassFilter

from clients.python.batch.corpus import documents, read_rows, write_jsonl
from clients.python.conftest import address

ROWS = 120


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files, one for each task."""
    folder = tmp_path_factory.mktemp("corpus")
    rows = [{"id": str(place), "text": one["text"]} for place, one in enumerate(documents(ROWS))]
    write_jsonl(folder / "a.jsonl", rows[: ROWS // 2])
    write_jsonl(folder / "b.jsonl", rows[ROWS // 2 :])
    return folder


@pytest.fixture(scope="module")
def bits(corpus: Path, server: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """The bits by longshort-batch of each id."""
    out = tmp_path_factory.mktemp("wanted")
    longshort.batch.score(str(corpus), str(out), server=address(server))
    return {json.loads(row["fields"])["id"]: row["bits_per_byte"] for row in read_rows(out)}


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]


def writer(folder: Path) -> JsonlWriter:
    return JsonlWriter(str(folder), compression=None)


def test_two_tasks_keep_what_is_below_the_bound(
    corpus: Path, bits: dict[str, float], server: Server, tmp_path: Path
) -> None:
    bound = sorted(bits.values())[ROWS // 2]
    block = BitsPerByteFilter(
        at_most=bound + 1e-6, exclusion_writer=writer(tmp_path / "dropped"), server=address(server), batch_size=7
    )
    executor = LocalPipelineExecutor(
        pipeline=[JsonlReader(str(corpus)), block, writer(tmp_path / "kept")],
        tasks=2,
        logging_dir=str(tmp_path / "logs"),
    )
    executor.run()
    kept, dropped = lines(tmp_path / "kept"), lines(tmp_path / "dropped")
    assert {row["id"] for row in kept} == {id for id, value in bits.items() if value <= bound + 1e-6}
    assert len(kept) + len(dropped) == ROWS and len({row["id"] for row in kept + dropped}) == ROWS
    for row in kept + dropped:
        assert row["metadata"]["longshort_bits_per_byte"] == pytest.approx(bits[row["id"]], abs=1e-4)
    assert {row["metadata"]["filter_reason"] for row in dropped} == {"too_many_bits"}
    # The order of each file, and a task's documents in a file of its own.
    assert [row["id"] for row in kept] == sorted((row["id"] for row in kept), key=int)
    assert len(list((tmp_path / "kept").glob("*.jsonl"))) == 2


def test_the_annotator_adds_figures_and_errors_and_keeps_all(
    bits: dict[str, float], corpus: Path, server: Server
) -> None:
    given = [Document(row["text"], row["id"], metadata={"from": "me"}) for row in lines(corpus)]
    # The reader of datatrove leaves empty documents out; another one may not.
    given.insert(3, Document("", "empty"))
    block = Annotator("score", server=[address(server)], region_tokens=32, batch_size=16)
    found = list(block.run(iter(given)))
    assert [one.id for one in found] == [one.id for one in given]
    empty = found.pop(3)
    assert empty.metadata["longshort_error"].startswith("INVALID_ARGUMENT: ")
    assert [one.metadata["longshort_bits_per_byte"] for one in found] == pytest.approx(
        [bits[one.id] for one in found], abs=1e-4
    )
    assert all(one.metadata["from"] == "me" and one.metadata["longshort_region_bits"] for one in found)
    assert block.stats["errors"].total == 1 and block.stats["annotated"].total == ROWS


def test_figures_and_errors_of_another_block_do_not_stay(server: Server) -> None:
    before = {"longshort_bits_per_byte": 0.1, "longshort_label": "other", "longshort_error": "of another model"}
    given = [Document("some text", "0", metadata=dict(before)), Document("", "1", metadata=dict(before))]
    block = BitsPerByteFilter(server=address(server), at_least=0.0)
    (kept,) = block.run(iter(given))
    assert kept.id == "0" and kept.metadata["longshort_bits_per_byte"] > 1
    assert "longshort_error" not in kept.metadata
    assert kept.metadata["longshort_label"] == "other", "a classifier's figures stay"
    assert "longshort_bits_per_byte" not in given[1].metadata
    assert block.stats["dropped_no_figure"].total == 1


def test_a_text_that_is_no_unicode_is_an_error(server: Server) -> None:
    given = [Document("four " * 40_000 + "\ud800", "0"), Document("some text", "1")]
    first, second = Annotator("score", server=address(server)).run(iter(given))
    assert first.metadata["longshort_error"].startswith("INVALID_ARGUMENT: ")
    assert second.metadata["longshort_bits_per_byte"] > 1


def test_classes_are_kept_by_their_probability(classifiers: Server) -> None:
    texts = [f"text {i} " * (1 + i) for i in range(20)]
    options: dict[str, Any] = {"server": address(classifiers), "model": "one", "truncate": True}
    annotated = list(Annotator("classify", **options).run(Document(text, text) for text in texts))
    probability = {
        one.id: {each["label"]: each["probability"] for each in one.metadata["longshort_classes"]}["good"]
        for one in annotated
    }
    low, high = sorted(probability.values())[5], sorted(probability.values())[15]
    block = ClassFilter("good", at_least=low - 1e-6, at_most=high + 1e-6, **options)
    kept = [one.id for one in block.run(Document(text, text) for text in texts)]
    assert kept == [text for text in texts if low - 1e-6 <= probability[text] <= high + 1e-6]
    assert block.stats["dropped_too_unlikely"].total == 5 and block.stats["dropped_too_likely"].total == 4
    # A document that is too long has no figure.
    short, long = Document("short", "0"), Document("long " * 1000, "1")
    block = ClassFilter("good", at_least=0.0, **{**options, "truncate": False})
    assert [one.id for one in block.run(iter([short, long]))] == ["0"]
    assert block.stats["dropped_no_figure"].total == 1
    with pytest.raises(ValueError, match="no class 'excellent'; it has: bad, good, so so"):
        list(ClassFilter("excellent", at_least=0.5, **options).run(iter([short])))


def test_the_second_document_is_in_the_metadata(classifiers: Server) -> None:
    def documents() -> list[Document]:
        given = [Document("A question?", "0", metadata={"answer": "An answer."}), Document("Another?", "1")]
        return [*given, Document("A third?", "2", metadata={"answer": 5})]

    with longshort.Client(address(classifiers)) as client:
        wanted = client.classify([("A question?", "An answer.")], model="joins")[0].classes[0]
    options: dict[str, Any] = {"server": address(classifiers), "model": "joins", "second": "answer"}
    pair, none, number = [one.metadata for one in Annotator("classify", **options).run(iter(documents()))]
    assert pair["longshort_label"] == wanted.label
    assert pair["longshort_probability"] == pytest.approx(wanted.probability)
    assert none["longshort_error"] == 'INVALID_ARGUMENT: there is no "answer"'
    assert number["longshort_error"].startswith('INVALID_ARGUMENT: "answer" is a number')
    block = ClassFilter(wanted.label, at_least=wanted.probability - 1e-6, **options)
    assert [one.id for one in block.run(iter(documents()))] == ["0"]


def test_a_second_document_must_suit_model_and_command(classifiers: Server) -> None:
    for model, second, reason in (("one", "answer", "takes one document"), ("two", "", "takes two documents")):
        block = Annotator("classify", server=address(classifiers), model=model, second=second)
        with pytest.raises(longshort.batch.Refused, match=reason):
            list(block.run(iter([Document("A question?", "0", metadata={"answer": "An answer."})])))
    with pytest.raises(ValueError, match="second is only for classify"):
        Annotator("score", second="answer")


def test_bounds_are_inclusive_and_one_is_enough(server: Server) -> None:
    found = list(Annotator("score", server=address(server)).run(iter([Document("some text", "0")])))[0]
    bits = found.metadata["longshort_bits_per_byte"]
    for bounds, reason in (
        ({"at_least": bits - 1e-4, "at_most": bits + 1e-4}, None),
        ({"at_least": bits + 1e-4}, "too_few_bits"),
        ({"at_most": bits - 1e-4}, "too_many_bits"),
    ):
        block = BitsPerByteFilter(server=address(server), **bounds)
        kept = list(block.run(iter([Document("some text", "0")])))
        assert len(kept) == (reason is None)
        assert reason is None or block.stats[f"dropped_{reason}"].total == 1


def test_wrong_options_are_errors_before_the_pipeline_starts() -> None:
    with pytest.raises(ValueError, match="at_least, at_most"):
        BitsPerByteFilter()
    with pytest.raises(ValueError, match="token: datatrove would write it to its logs"):
        Annotator("score", token="secret")
    with pytest.raises(TypeError, match="'sever'; valid are: .*server"):
        Annotator("score", sever="a:1")  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="batch_size is 0"):
        ClassFilter("good", at_least=0.5, batch_size=0)


@pytest.mark.parametrize(("model", "message"), [("tiny/3", "has no version 3"), ("absent", "no model absent")])
def test_a_model_or_version_that_is_not_there_is_not_found_before_the_first_document(
    server: Server, model: str, message: str
) -> None:
    """No other version takes its place, in any block."""
    options: dict[str, Any] = {"server": address(server), "model": model}
    blocks = [
        Annotator("score", **options),
        BitsPerByteFilter(at_most=9, **options),
        ClassFilter("good", at_least=0.5, **options),
    ]
    for block in blocks:
        documents = iter([Document("some text", "0")])
        with pytest.raises(longshort.NotFound, match=message):
            list(block.run(documents))
        assert next(documents).id == "0", "a document was taken"
