"""`generate`: continues a prompt."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from longshort import methods
from longshort._command import exits, files, output
from longshort._command.context import CALL, Command, Context
from longshort._command.exits import UsageError
from longshort._proto import inference_pb2, types_pb2
from longshort._sync.text_stream import TextStream
from longshort.requests import GenerateOptions, generate_request

DESCRIPTION = """python -m longshort generate [options] [--prompt=TEXT | FILE | -]

Continues the prompt: --prompt, or all of a file or of standard input (a newline at its end is part of it). The text
goes to standard output as it is generated, a closing line with the seed to standard error. Unset sampling options
are the server's defaults. They apply in the order: logit bias, repetition, frequency and presence penalty,
temperature, top-k, top-p, min-p.

With --log-probabilities, one token a line instead of text: log-probability, id, bytes. With --json, one
GenerateStreamResponse a line (with --no-stream, one GenerateResponse).

Examples:
  python -m longshort generate --prompt='The history of '
  python -m longshort generate --prompt='The history of ' --max-tokens=500 --temperature=0.7 --top-p=0.9 --seed=1
  python -m longshort generate --completions=3 --stop='.' --echo --prompt='It was '
  python -m longshort generate --session=talk --prompt='It was '
  python -m longshort generate --temperature=0 --json chapter.txt | jq -j '.delta.text // empty'
"""
# Options that are the library's, under its names.
_GIVEN = (
    "max_tokens",
    "completions",
    "stop",
    "echo",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "repetition_penalty",
    "frequency_penalty",
    "presence_penalty",
    "seed",
    "top_alternatives",
)


def _logit_bias(text: str) -> tuple[int, float]:
    id, _, bias = text.partition(":")
    try:
        return int(id), float(bias)
    except ValueError:
        raise argparse.ArgumentTypeError(
            "must be a token id and a number with a colon between, such as 65:-1.5"
        ) from None


def add_options(parser: Any) -> None:
    group = parser.add_argument_group("Options")
    add = group.add_argument
    add("--prompt", metavar="TEXT", help="What to continue.")
    add("--ids", action="store_true", help="The prompt lists token ids instead of text.")
    add("--max-tokens", metavar="N", type=int, default=0, help="Tokens to generate at the most. Default 256.")
    add("--completions", metavar="N", type=int, default=1, help="How many continuations, 1 to 16.")
    add("--session", metavar="ID", help="Go on where the last call with this id (and --client-id) ended.")
    add("--session-must-exist", action="store_true", help="Refuse to begin it.")
    add(
        "--stop",
        metavar="TEXT",
        action="append",
        default=[],
        help="Ends a continuation before this text; up to 16 times.",
    )
    add("--echo", action="store_true", help="Begin each continuation with the prompt.")
    add("--temperature", metavar="X", type=float, help="0 takes the likeliest token every time; otherwise in (0, 100].")
    add("--top-k", metavar="N", type=int, help="Keep the N likeliest tokens; 0 keeps all.")
    add("--top-p", metavar="X", type=float, help="Keep the fewest tokens whose probabilities reach X, in (0, 1].")
    add("--min-p", metavar="X", type=float, help="Keep tokens with at least X times the likeliest's probability.")
    add("--repetition-penalty", metavar="X", type=float, help="Make tokens that were seen less likely, in (0, 100].")
    add(
        "--frequency-penalty",
        metavar="X",
        type=float,
        help="Subtract X from a logit each time its token was generated.",
    )
    add("--presence-penalty", metavar="X", type=float, help="Subtract X from a logit once its token was generated.")
    add("--logit-bias", metavar="ID:X", type=_logit_bias, action="append", default=[], help="Add X to a token's logit.")
    add("--seed", metavar="N", type=int, help="Repeat a run: the same seed gives the same tokens.")
    add("--log-probabilities", action="store_true", help="Print tokens with their log-probabilities instead of text.")
    add("--top-alternatives", metavar="N", type=int, default=0, help="With it, the N likeliest tokens at each place.")
    add("--raw", action="store_true", help="Write the model's bytes even where they are not UTF-8.")
    add("--no-stream", action="store_true", help="Ask for the whole answer at once.")
    parser.add_argument("files", nargs="*", metavar="FILE")


def run(context: Context) -> int:
    request = _request(context)
    if context.options.no_stream:
        safe = not request.session.id
        answer = context.calls.unary(methods.GENERATE, request, CALL, session_id=request.session.id, safe=safe)
        if context.options.json:
            output.write_json(answer)
        else:
            _Printer(context.options).print_whole(answer)
        return exits.OK
    printer = _Printer(context.options)
    for message in TextStream(context.calls, request, CALL).messages():
        if context.options.json:
            output.write_json(message)
        else:
            printer.print(message)
    return exits.OK


def _request(context: Context) -> inference_pb2.GenerateRequest:
    options = context.options
    if options.prompt is not None and options.files:
        raise UsageError("give --prompt or a file, not both")
    if len(options.files) > 1:
        raise UsageError("generate takes one prompt")
    if options.session == "":
        raise UsageError("--session is empty; it must be the session's id")
    if options.session_must_exist and options.session is None:
        raise UsageError("--session-must-exist needs --session")
    session = None
    if options.session is not None:
        session = types_pb2.Session(id=options.session, must_exist=options.session_must_exist)
    given = GenerateOptions(
        **{name: getattr(options, name) for name in _GIVEN if getattr(options, name) is not None},  # type: ignore[typeddict-item]
        logit_bias=dict(options.logit_bias),
        token_log_probabilities=options.log_probabilities,
        return_raw=options.raw,
        model=options.model,
    )
    try:
        return generate_request(_prompt(options), given, "", session)
    except ValueError as error:  # a number that its field cannot hold
        raise UsageError(str(error)) from None


def _prompt(options: argparse.Namespace) -> Any:
    name = (options.files or ["-"])[0]
    try:
        content = files.read(name) if options.prompt is None else options.prompt.encode(errors="surrogateescape")
        return files.as_text(content, options.ids)
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(str(error)) from None


class _Printer:
    """Shows completions to a person as they are generated: one as it comes; of several the first unfinished one,
    each under a line "--- INDEX ---", while the others wait. The closing summary goes to standard error."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._tokens = options.log_probabilities
        self._raw = options.raw
        self._waiting = [b""] * max(1, options.completions)
        self._finishes = [""] * len(self._waiting)
        self._current = 0
        self._seed = 0
        self._decode_seconds = 0.0
        self._write_heading()

    def print(self, message: inference_pb2.GenerateStreamResponse) -> None:
        event = message.WhichOneof("event")
        if event == "start":
            self._seed = message.start.seed
        elif event == "delta":
            self._add(message.delta)
        elif event == "end":
            self._end(message.end)
        elif event == "summary":
            self._summarize(message.summary.usage)

    def print_whole(self, answer: inference_pb2.GenerateResponse) -> None:
        self._seed = answer.seed
        for completion in answer.completions:
            self._add(completion)
            self._end(completion)
        self._summarize(answer.usage)

    def _add(self, part: inference_pb2.CompletionDelta | inference_pb2.Completion) -> None:
        if self._tokens:
            content = "".join(output.token_line(token) for token in part.tokens).encode()
        else:
            content = part.raw if self._raw else part.text.encode()
        if part.index == self._current:
            self._write(content)
        elif part.index < len(self._waiting):
            self._waiting[part.index] += content

    def _end(self, end: inference_pb2.CompletionEnd | inference_pb2.Completion) -> None:
        self._decode_seconds = max(self._decode_seconds, end.timings.decode_seconds)
        stopped = end.finish_reason == inference_pb2.FINISH_REASON_STOP
        self._finishes[end.index] = f"stop {output.quote_bytes(end.stop.encode())}" if stopped else "length"
        while self._current < len(self._finishes) and self._finishes[self._current]:
            if len(self._finishes) > 1:
                self._write(b"\n")
            self._current += 1
            self._write_heading()

    def _write_heading(self) -> None:
        if len(self._waiting) > 1 and self._current < len(self._waiting):
            self._write(f"--- {self._current} ---\n".encode() + self._waiting[self._current])

    def _write(self, content: bytes) -> None:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()

    def _summarize(self, usage: types_pb2.Usage) -> None:
        finishes = ", ".join(self._finishes)
        rate = f" at {usage.generated_tokens / self._decode_seconds:.1f} a second" if self._decode_seconds else ""
        read = f"{usage.prompt_tokens} tokens read, {usage.generated_tokens} generated{rate}"
        output.tell(f"\n[{finishes}, {read}, seed {self._seed}]")


COMMAND = Command("generate", "Continue a prompt; text is shown as it is generated", DESCRIPTION, add_options, run)
