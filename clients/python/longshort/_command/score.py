"""`score`: how likely a language model finds documents, or which classes a classifier gives them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from longshort import errors
from longshort._command import exits, files, output
from longshort._command.context import CALL, Command, Context, at_least
from longshort._command.exits import UsageError
from longshort._command.files import NamedDocument
from longshort._proto import inference_pb2, models_pb2, types_pb2
from longshort._sync.answer_stream import AnswerStream
from longshort.inputs import Document, document_inputs

DESCRIPTION = """python -m longshort score [options] [FILE|FOLDER|PATTERN|-]...

Scores each file (or standard input) as one document: its bytes from the first to the last, a newline at the end
included. A folder stands for all files in it and in its folders, a pattern in quotes ('reviews/*.txt') for what it
matches. The server works on many documents at a time over one stream; results come in the order of the documents. A
document that cannot be scored is told beside its name and the others go on; a closing line tells how many. The exit
code is then 2, or 3 if all were only refused by a full server, or 1 if none could be read. If the server is lost,
what is unanswered is sent again, also to another one of several (--server=A,B).

Language models: the model carries its memory through the document, however long it is. A line a document:
  tokens          tokens in the document
  scored          how many of them were scored: all but the first, which nothing comes before
  log-likelihood  sum of the natural logarithms of the scored tokens' probabilities (nats)
  bits/byte       -log2 likelihood per scored byte; bits/char per character, for character vocabularies
  tokens/s        how fast the server read it
With --log-probabilities a line a scored token comes behind it: log-probability, id, bytes.

Classifiers: a table a document, the likeliest classes with their probabilities. A document longer than the model
takes is refused, or with --truncate read as far as it takes.

Many small documents in one file: with --lines each line is a document, named FILE:LINE. With --json-lines each line
is an object {"text": ..., "name": ...} (the name may be left out, other fields are passed over).

Two documents, for models that compare them: --second names the second one, once for each file, in their order. With
--lines, a tab parts the two; with --json-lines, they are the fields "text" and "second_text".

With --json, one object a document: {"name": ..., "fingerprint": ..., "precision": ..., ...}, these two of the model,
with the fields of ScoreTextResponse for language models, of TextClassification and "model" for classifiers, or
{"name": ..., "error": {...}}. Lists without elements are left out.

Examples:
  python -m longshort score book.txt
  printf 'The cat sat.' | python -m longshort score --log-probabilities --top-alternatives=3
  python -m longshort score --json book.txt | jq '.scores[0].bits_per_byte'
  python -m longshort score --model=reviews --truncate --top-k=1 reviews/
  python -m longshort score --model=reviews --lines --json reviews.txt > scored.jsonl
  python -m longshort score --model=citations --second cited.txt citing.txt
"""
_HEADER = "    tokens     scored  log-likelihood  bits/byte  bits/char   tokens/s  document\n"
Answer = inference_pb2.ScoreTextsResponse


def add_options(parser: Any) -> None:
    group = parser.add_argument_group("Options")
    add = group.add_argument
    add("--lines", action="store_true", help="Each line is a document (two with a tab between, for models of two).")
    add("--json-lines", action="store_true", help='Each line is a JSON object with the document in its field "text".')
    add("--second", metavar="FILE", action="append", default=[], help="Classifiers of two: the second document.")
    add("--ids", action="store_true", help="Documents list token ids instead of text.")
    add("--truncate", action="store_true", help="Classifiers: of a longer document, read the first tokens.")
    add(
        "--top-k",
        metavar="N",
        type=at_least(1),
        help="Classifiers: how many of the likeliest classes to show. Default 5.",
    )
    add("--logits", action="store_true", help="Classifiers: show the logits of all classes too.")
    add("--log-probabilities", action="store_true", help="Language models: print each token's log-probability.")
    add("--top-alternatives", metavar="N", type=int, default=0, help="With it, the N likeliest tokens at each place.")
    add("--timings", action="store_true", help="With --json, show where each document's time went.")
    parser.add_argument("files", nargs="*", metavar="FILE")


def run(context: Context) -> int:
    options = context.options
    if options.lines and options.json_lines:
        raise UsageError("give --lines or --json-lines, not both")
    names = files.collect(options.files, lambda name: True)
    second_names = files.collect(options.second, lambda name: True) if options.second else []
    model = context.describe_model()
    if model.HasField("classifier") and model.classifier.input != models_pb2.CLASSIFIER_INPUT_TEXT:
        raise errors.FailedPrecondition(
            f'the model {model.name} ({model.architecture}) takes images; "python -m longshort classify" works with it'
        )
    _check_options(options, model, len(names), len(second_names))
    if options.lines or options.json_lines:
        pairs = model.classifier.documents == 2
        total = files.count_lines(names)
        return _score(context, model, files.line_documents(names, options.json_lines, pairs, options.ids), total)
    return _score(context, model, files.file_documents(names, second_names, options.ids), len(names))


def _check_options(options: Any, model: models_pb2.Model, names: int, second_names: int) -> None:
    """Whether the options suit the model and each other."""
    if not model.HasField("classifier"):
        if options.truncate or options.top_k is not None or options.logits or options.second:
            raise UsageError(
                f"--truncate, --top-k, --logits and --second are for classifiers; {model.name} is a language model"
            )
        return
    if options.log_probabilities or options.top_alternatives:
        raise UsageError(
            f"--log-probabilities and --top-alternatives are for language models; {model.name} is a classifier"
        )
    by_lines = options.lines or options.json_lines
    if second_names and by_lines:
        raise UsageError("lines hold both documents: give --second without them")
    if second_names and model.classifier.documents != 2:
        raise UsageError(f"--second: the model {model.name} takes one document")
    if model.classifier.documents == 2 and not by_lines and second_names != names:
        raise UsageError(
            f"the model {model.name} takes two documents: {second_names} second ones (--second) were given for {names}"
            " first ones. Pairs may also be lines: --lines, with a tab between, or --json-lines"
        )


def _score(context: Context, model: models_pb2.Model, documents: Iterator[NamedDocument], total: int) -> int:
    options = context.options
    texts = inference_pb2.ScoreTextsOptions(
        # The version that GetModel described, whatever is loaded meanwhile.
        model=types_pb2.ModelSelector(name=model.name, version=model.version),
        token_log_probabilities=options.log_probabilities,
        top_alternatives=options.top_alternatives,
        truncate=options.truncate,
        top_k=options.top_k or 0,
        all_logits=options.logits,
    )
    printer = _Printer(options.json, options.timings, model, total)
    sendable = printer.note(documents, options.truncate)
    window = max(1, model.limits.window)
    try:
        for answer in AnswerStream(context.calls, sendable, texts, CALL, _same, window=window, ordered=True):
            printer.print(answer)
        printer.print_failures()
    except errors.LongshortError:
        printer.summarize()
        output.tell(f"longshort: {printer.finished} documents were answered, then it ended:")
        raise
    return printer.summarize()


def _same(answer: Answer) -> Answer:
    return answer


class _Printer:
    """Results in the order of the documents; those that could not be sent stand at their places."""

    def __init__(self, json: bool, timings: bool, model: models_pb2.Model, total: int) -> None:
        self._model = model
        self._json = json
        self._timings = timings
        self._progress = output.Progress("documents", total)
        self._failures = output.ItemFailures("documents", json)
        # Read and not told of: the name, and the error of what was not sent.
        self._waiting: deque[tuple[str, types_pb2.ItemError | None]] = deque()
        self.finished = 0
        if not model.HasField("classifier") and not json:
            output.write(_HEADER)

    def note(self, documents: Iterator[NamedDocument], truncate: bool) -> Iterator[Document]:
        """Those that can be sent; remembers all."""
        for named in documents:
            try:
                if named.document is None:
                    raise _Unsendable(named.code, named.message)
                document = _fit(named.document, self._model, truncate)
            except _Unsendable as error:
                self._waiting.append((named.name, output.item_error(error.code, error.message)))
                continue
            self._waiting.append((named.name, None))
            yield document

    def print(self, answer: Answer) -> None:
        self.print_failures()
        name, _ = self._waiting.popleft()
        self._progress.hide()
        if answer.HasField("error"):
            self._failures.add(name, answer.error)
        elif answer.HasField("classification"):
            self._print_classification(name, answer)
        else:
            self._print_score(name, answer)
        self._advance()

    def print_failures(self) -> None:
        """Those before the next answer."""
        while self._waiting and (error := self._waiting[0][1]) is not None:
            name, _ = self._waiting.popleft()
            self._progress.hide()
            self._failures.add(name, error, unread=error.code == exits.code_number("NOT_FOUND"))
            self._advance()

    def summarize(self) -> int:
        self._progress.hide()
        return self._failures.summarize(self.finished)

    def _advance(self) -> None:
        self._progress.advance()
        self.finished += 1

    def _print_classification(self, name: str, answer: Answer) -> None:
        found = answer.classification
        if self._json:
            if not self._timings:
                found.classification.ClearField("timings")
            output.write_answer_json(name, answer.model, self._model, found)
            return
        readings = [f"{one.token_count} tokens{', truncated' if one.truncated else ''}" for one in found.documents]
        output.write_classes(f"{name}  ({'; '.join(readings)})", found.classification)

    def _print_score(self, name: str, answer: Answer) -> None:
        score = answer.score
        if self._json:  # as ScoreText gives it
            if not self._timings:
                score.ClearField("timings")
            usage = types_pb2.Usage(prompt_tokens=score.token_count)
            response = inference_pb2.ScoreTextResponse(scores=[score], model=answer.model, usage=usage)
            output.write_answer_json(name, types_pb2.ModelSelector(), self._model, response)
            return
        by_byte = f"{score.bits_per_byte:.4f}" if score.HasField("bits_per_byte") else "-"
        by_character = f"{score.bits_per_character:.4f}" if score.HasField("bits_per_character") else "-"
        seconds = score.timings.prefill_seconds
        rate = f"{score.token_count / seconds:.0f}" if seconds > 0 else "-"
        counts = f"{score.token_count:10d} {score.scored_token_count:10d} {score.log_likelihood:15.4f}"
        output.write(f"{counts} {by_byte:>10} {by_character:>10} {rate:>10}  {name}\n")
        output.write("".join(output.token_line(token) for token in score.tokens))


class _Unsendable(Exception):
    """A document that the server would refuse, and with it the whole stream if it is too large a message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def _fit(document: Any, model: models_pb2.Model, truncate: bool) -> Any:
    """The document as it may be sent; with `truncate`, cut so that the server still sees that it goes on."""
    # What the program reads is bytes or ids, and pairs of them.
    if truncate and model.tokenizer == "bytes_plus_one":
        kept = model.classifier.max_document_tokens + 1
        document = (document[0][:kept], document[1][:kept]) if isinstance(document, tuple) else document[:kept]
    first, second = document_inputs(document)
    request = inference_pb2.ScoreTextsRequest(id=1 << 32, input=first, second_input=second)
    size = request.ByteSize()
    if size > model.limits.message_bytes > 0:
        limit = model.limits.message_bytes
        raise _Unsendable(
            "INVALID_ARGUMENT",
            f"it takes a message of {size} bytes; the server takes at most {limit} (--max-message-bytes)",
        )
    return document


COMMAND = Command("score", "Score texts: log-likelihood, or the likeliest classes", DESCRIPTION, add_options, run)
