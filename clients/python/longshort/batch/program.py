"""`longshort-batch`: the program around `score` and `classify`."""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

from longshort.batch import api, command_line
from longshort.batch.command_line import Parser, UsageError, at_least, duration, with_options
from longshort.batch.failures import BatchError, InUse, Refused
from longshort.batch.inputs import FORMATS
from longshort.batch.output import OUTPUT_FORMATS
from longshort.batch.shards import SHARD_BYTES, SHARD_ROWS
from longshort.batch.signals import end_by_sigterm
from longshort.batch.summary import Summary
from longshort.batch.verifying import verify
from longshort.errors import LongshortError
from longshort.version import __version__

_USAGE = """longshort-batch score|classify INPUT... --out=FOLDER [options]
       longshort-batch verify FOLDER..."""
_DESCRIPTION = """Scores or classifies corpora: each row once, whatever comes in between. A run that was ended, by
Ctrl-C, kill -9 or the machine, goes on when the same command is run again.

INPUT is a file, a folder (all files in it and in its folders, but hidden ones) or a pattern, of this machine or an
fsspec URL:
  .jsonl, .ndjson (also .gz, .zst)  a JSON object a line, with the document in its field "text"
  .parquet                          a document a row, in the column "text"
  .warc, .wet (also .gz)            a document a record: conversion, and response and resource of text
  any other                         each file is one document

FOLDER then has
  rows/      results, a file a shard: Parquet or JSON lines. Columns: input and ordinal (the row's key), text_hash, what
             is carried through, and the results
  errors/    rows without one, with the reason
  manifest/  what the run is of, and which shards are done: what is not listed there does not count

verify reads all that a run has written and compares it with the manifest; exit code 5 if anything is missing or wrong.

Examples:
  longshort-batch score corpus/*.parquet --out=scored --model=enwiki
  longshort-batch score books.jsonl.zst --out=scored --region-tokens=2048 --server=a:8500 --server=b:8500
  longshort-batch classify reviews/ --out=classified --model=movie_reviews --truncate --top-k=1
"""

_EXIT_CODES = """Exit codes:
  0  done, rows with errors included
  1  an option is wrong
  2  refused, and will be again: an input is missing, cannot be read or has changed; other inputs, options or another
     model than the folder was begun with; or what a server refuses (NOT_FOUND, PERMISSION_DENIED, ...)
  3  no server was there for --patience, or another run has the folder: later may do
  4  Ctrl-C or SIGTERM
  5  anything else: too many errors, a full disk, verify has found something missing or wrong
"""


def make_parser() -> Parser:
    parser = Parser(
        prog="longshort-batch",
        usage=_USAGE,
        description=_DESCRIPTION,
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"longshort {__version__}")
    parser.add_argument("command", choices=("score", "classify", "verify"), metavar="COMMAND", help=argparse.SUPPRESS)
    parser.add_argument("inputs", nargs="+", metavar="INPUT", help=argparse.SUPPRESS)
    _add_options(parser)
    _add_shards(parser)
    _add_servers(parser)
    return parser


def _add_options(parser: Parser) -> None:
    add = parser.add_argument_group("Rows and results").add_argument
    add("--out", metavar="FOLDER", help="Where results go: a folder, or an fsspec URL (s3://...).")
    add("--format", choices=FORMATS, help="What all inputs are. Default: the ends of their names tell.")
    add("--text", metavar="COLUMN", default="text", help='The column that is scored. Default "text".')
    add(
        "--carry",
        metavar="COLUMN",
        action="append",
        help="A column that is carried through; may be given often. Default: all others. (JSON lines: as one column"
        ' "fields".) --carry= alone carries none.',
    )
    add("--output", choices=OUTPUT_FORMATS, default="parquet", help="Default parquet.")
    add(
        "--region-tokens",
        metavar="N",
        type=at_least(1),
        default=0,
        help="score: also the bits of each N tokens (region_bits).",
    )
    add(
        "--top-k", metavar="N", type=at_least(1), help="classify: how many of the likeliest classes to tell. Default 5."
    )
    add("--truncate", action="store_true", help="classify: of a document that is too long, read the beginning.")
    add("--second", metavar="COLUMN", default="", help="classify: the second document, for models that compare two.")
    add("--max-errors", metavar="N", type=at_least(0), help="Stop after more rows with errors. Default: never.")
    add("--quiet", action="store_true", help="Tell nothing but the summary, and what ends the run.")
    add("--json", action="store_true", help="Progress (every 30 s) and summary as JSON lines.")


def _add_shards(parser: Parser) -> None:
    add = parser.add_argument_group("Shards, and parts of a cluster").add_argument
    add("--shard-rows", metavar="N", type=at_least(1), default=SHARD_ROWS, help=f"At the most. Default {SHARD_ROWS}.")
    add(
        "--shard-bytes",
        metavar="N",
        type=at_least(1),
        default=SHARD_BYTES,
        help=f"After so many, a shard takes no more rows. Default {SHARD_BYTES}.",
    )
    add("--part", metavar="I", type=at_least(0), default=0, help="Do the shards of part I only, from 0. Default 0.")
    add("--parts", metavar="N", type=at_least(1), default=1, help="How many parts there are. Default 1.")


def _add_servers(parser: Parser) -> None:
    add = parser.add_argument_group("Servers").add_argument
    add(
        "--server",
        metavar="HOST:PORT",
        action="append",
        help="Where a server listens; may be given often. A name of several addresses is a server each. Default"
        " 127.0.0.1:8500.",
    )
    add("--model", metavar="NAME[/VERSION]", default="", help="Which model; may be left out if there is one.")
    add("--priority", choices=("low", "normal", "high"), default="low", help="Against other calls. Default low.")
    add("--client-id", metavar="ID", default="", help="Who asks.")
    add(
        "--timeout",
        metavar="TIME",
        type=duration,
        default=1800.0,
        help="How long a server may give no answer while it has documents. Default 30m.",
    )
    add(
        "--patience",
        metavar="TIME",
        type=duration,
        default=600.0,
        help="How long no server may be there before the run stops. Default 10m.",
    )
    add("--tls", action="store_true", help="Encrypt, and trust the system's authorities. The next four encrypt, too.")
    add("--tls-ca", metavar="FILE", help="Trust the authorities in this PEM file instead.")
    add("--tls-certificate", metavar="FILE", help="PEM file of the certificate that the server is shown.")
    add("--tls-key", metavar="FILE", help="PEM file of its key.")
    add("--tls-server-name", metavar="NAME", default="", help="The name in the server's certificate.")
    add("--token-file", metavar="FILE", help="File of the token that is sent with every call.")
    add("--insecure", action="store_true", help="Send the token even where others can read it.")


def run(arguments: Sequence[str]) -> int:
    """Raises UsageError, BatchError, LongshortError, KeyboardInterrupt."""
    options = make_parser().parse_args(arguments)
    if options.command == "verify":
        return _verify(options.inputs)
    _check_command(options)
    shared: dict[str, Any] = {
        name: getattr(options, name)
        for name in (
            *("model", "format", "text", "output", "max_errors", "shard_rows", "shard_bytes", "part", "parts"),
            *("priority", "client_id", "timeout", "patience", "tls", "tls_ca", "tls_certificate", "tls_key"),
            *("tls_server_name", "token_file", "insecure"),
        )
    }
    servers = [server for one in options.server or ["127.0.0.1:8500"] for server in one.split(",")]
    carry = None if options.carry is None else [name for name in options.carry if name]
    shared |= {"server": servers, "carry": carry, "progress": _style(options)}
    work: Callable[..., Summary] = api.score if options.command == "score" else api.classify
    own: dict[str, Any] = {"region_tokens": options.region_tokens}
    if options.command == "classify":
        own = {"top_k": options.top_k or 5, "truncate": options.truncate, "second": options.second}
    try:
        summary = work(options.inputs, options.out, **own, **shared)
    except ValueError as error:
        raise UsageError(with_options(str(error))) from None
    sys.stdout.write((json.dumps(summary.to_dict()) if options.json else str(summary)) + "\n")
    return command_line.OK


def _verify(folders: Sequence[str]) -> int:
    complete = True
    for folder in folders:
        found = verify(folder)
        complete &= found.complete
        sys.stdout.write(f"{folder}: {found}\n")
    return command_line.OK if complete else command_line.OTHER


def _style(options: argparse.Namespace) -> str:
    if options.quiet:
        return "quiet"
    if options.json:
        return "json"
    return "bar" if sys.stderr.isatty() else "lines"


def _check_command(options: argparse.Namespace) -> None:
    if not options.out:
        raise UsageError("--out is missing: where do results go?")
    if options.command == "classify" and options.region_tokens:
        raise UsageError("--region-tokens is for score")
    if options.command == "score" and (options.top_k or options.truncate or options.second):
        raise UsageError("--top-k, --truncate and --second are for classify")
    if options.part >= options.parts:
        raise UsageError(f"--part is {options.part}; it must be below --parts, which is {options.parts}")


def main(arguments: Sequence[str]) -> int:
    """Runs the program; its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")
    end_by_sigterm()
    as_json = "--json" in arguments
    try:
        code = run(arguments)
        sys.stdout.flush()
        return code
    except UsageError as error:
        return _failed(str(error), command_line.USAGE, as_json)
    except BatchError as error:
        code = command_line.REFUSED if isinstance(error, Refused) else command_line.OTHER
        return _failed(str(error), command_line.UNAVAILABLE if isinstance(error, InUse) else code, as_json)
    except LongshortError as error:
        later = "What was written before stays valid: run the same command again to go on."
        return _failed(f"{with_options(str(error))}. {later}", command_line.exit_code(error), as_json)
    except (KeyboardInterrupt, asyncio.CancelledError):
        message = "interrupted. Shards that are written stay: run the same command again to go on."
        return _failed(message, command_line.CANCELLED, as_json)


def _failed(message: str, code: int, as_json: bool) -> int:
    told = json.dumps({"event": "error", "message": message}) if as_json else f"longshort-batch: {message}"
    sys.stderr.write(told + "\n")
    sys.stderr.flush()
    return code
