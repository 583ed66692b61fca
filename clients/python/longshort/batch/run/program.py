"""`longshort-batch`: the command line of `score`, `classify`, `embed` and `verify`."""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from longshort.batch.inputs.memory import DEFAULT_MEMORY
from longshort.batch.inputs.shards import SHARD_BYTES, SHARD_ROWS
from longshort.batch.inputs.sources import FORMATS
from longshort.batch.output.shard_files import OUTPUT_FORMATS
from longshort.batch.output.verifying import verify
from longshort.batch.report.counts import MIN_SUCCESS
from longshort.batch.report.failures import BatchError, InUse, Refused, TooFewResults
from longshort.batch.report.summary import Summary
from longshort.batch.run import api, command_line
from longshort.batch.run.command_line import Parser, UsageError, at_least, duration, percentage, size, with_options
from longshort.batch.run.options import BatchOptions
from longshort.batch.run.signals import handle_signals
from longshort.batch.run.task import RUN_BEGUN
from longshort.errors import LongshortError
from longshort.version import __version__

_USAGE = """longshort-batch score|classify|embed INPUT... --out=FOLDER [options]
       longshort-batch verify FOLDER..."""
_DESCRIPTION = """Scores, classifies or embeds corpora, each row exactly once. To resume a run that was interrupted (by
Ctrl-C, kill -9 or a crash of the machine), run the same command again.

INPUT is a file, a folder (searched recursively, without hidden files) or a pattern, local or an fsspec URL:
  .jsonl, .ndjson         each line is a JSON object with the document in its field "text". Also .gz, .zst, .bz2, .xz
  .parquet                each row is a document, in the column "text"
  .warc, .wet             each record is a document: conversion, and response and resource with text. Also as above
  .txt, .md, .html, ...   each file is one document
Other files are not read: the summary counts them. --format reads files of other names.

The output FOLDER has
  rows/      results, one file for each shard: Parquet or JSON lines. Columns: input and ordinal (the row's key),
             text_hash, the carried columns, and the results
  errors/    rows without a result, with the reason
  manifest/  a description of the run, and the list of finished shards: files that it does not list are ignored

verify reads all files of a run and compares them with the manifest. The exit code is 5 if a file is missing or wrong.

Examples:
  longshort-batch score corpus/*.parquet --out=scored --model=enwiki
  longshort-batch score books.jsonl.zst --out=scored --region-tokens=2048 --server=a:8500 --server=b:8500
  longshort-batch classify pages/ --out=classified --model=languages --truncate --top-k=1
  longshort-batch embed pages/ --out=embedded --model=languages --truncate --normalize
"""

_EXIT_CODES = """Exit codes:
  0  done; some rows may have errors
  1  an option is invalid
  2  refused; do not retry unchanged: an input is missing, unreadable or has changed; the inputs, options or model are
     not those of the run in the folder; or a server refused a call (NOT_FOUND, PERMISSION_DENIED, ...)
  3  no server was available for --patience, or another run uses the folder; retry later
  4  Ctrl-C or SIGTERM
  5  any other error: too many errors, a full disk, or verify found a missing or wrong file
  6  fewer rows than --min-success have results, or none, or the first 100 all have the same error, or the inputs have
     no rows; also for verify
"""

_RESUME = "run the same command again to resume"


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
    parser.add_argument(
        "command", choices=("score", "classify", "embed", "verify"), metavar="COMMAND", help=argparse.SUPPRESS
    )
    parser.add_argument("inputs", nargs="+", metavar="INPUT", help=argparse.SUPPRESS)
    _add_options(parser)
    _add_shards(parser)
    _add_servers(parser)
    return parser


def _add_options(parser: Parser) -> None:
    add = parser.add_argument_group("Rows and results").add_argument
    add("--out", metavar="FOLDER", help="Output folder: a path, or an fsspec URL (s3://...).")
    add("--format", choices=FORMATS, help="Format of all inputs. Default: determined by the file names.")
    add("--text", metavar="COLUMN", default="text", help='Column with the documents. Default "text".')
    add(
        "--carry",
        metavar="COLUMN",
        action="append",
        help="Column to copy to the output; may be repeated. Default: all others (for JSON lines, as one column"
        ' "fields"), without columns of bytes with more than 1 KiB a value, such as images. A single --carry= copies'
        " none.",
    )
    add("--output", choices=OUTPUT_FORMATS, default="parquet", help="Format of the results. Default parquet.")
    add(
        "--region-tokens",
        metavar="N",
        type=at_least(1),
        default=0,
        help="score: also compute the bits of each region of N tokens (region_bits).",
    )
    add("--top-k", metavar="N", type=at_least(1), help="classify: number of classes, most probable first. Default 5.")
    add("--truncate", action="store_true", help="classify, embed: truncate documents to the model's maximum length.")
    add(
        "--pooling",
        choices=("cls", "mean"),
        help="embed: the CLS token's row, or the mean of all tokens' rows. Default: what the model's head reads.",
    )
    add("--normalize", action="store_true", help="embed: divide each vector by its length.")
    add(
        "--second",
        metavar="COLUMN",
        default="",
        help="classify, embed: column of the second document, for models that compare or join two.",
    )
    add(
        "--min-success",
        metavar="PERCENT",
        type=percentage,
        default=MIN_SUCCESS,
        help="Fail (exit code 6) if fewer rows have results, or if there are no rows, and at once if the first 100 rows"
        " all have the same error. 0: never. Default 50.",
    )
    add("--max-errors", metavar="N", type=at_least(0), help="Stop if more than N rows have errors. Default: never.")
    add("--quiet", action="store_true", help="Print only the summary, and the error that ends the run.")
    add("--json", action="store_true", help="Print progress (every 30 s) and summary as JSON lines.")


def _add_shards(parser: Parser) -> None:
    add = parser.add_argument_group("Shards, and parts of a cluster").add_argument
    add(
        "--shard-rows",
        metavar="N",
        type=at_least(1),
        default=SHARD_ROWS,
        help=f"Maximum rows in a shard. Default {SHARD_ROWS}.",
    )
    add(
        "--shard-bytes",
        metavar="N",
        type=at_least(1),
        default=SHARD_BYTES,
        help=f"Bytes of documents and carried columns after which a shard ends. Default {SHARD_BYTES}.",
    )
    add(
        "--memory",
        metavar="SIZE",
        type=size,
        default=DEFAULT_MEMORY,
        help="Memory that the program may use, such as 512MB or 2GB. A row may have a 32nd of it, a page of a Parquet"
        " file and a shard a 16th. Default 512MB.",
    )
    add(
        "--part", metavar="I", type=at_least(0), default=0, help="Process only the shards of part I, from 0. Default 0."
    )
    add("--parts", metavar="N", type=at_least(1), default=1, help="Number of parts. Default 1.")


def _add_servers(parser: Parser) -> None:
    add = parser.add_argument_group("Servers").add_argument
    add(
        "--server",
        metavar="HOST:PORT",
        action="append",
        help="Address of a server; may be repeated. Each address of a host name is a server. Default 127.0.0.1:8500.",
    )
    add("--model", metavar="NAME[/VERSION]", default="", help="Model to use; optional if the servers have only one.")
    add("--priority", choices=("low", "normal", "high"), default="low", help="Priority over other calls. Default low.")
    add("--client-id", metavar="ID", default="", help="Name of this client.")
    add(
        "--timeout",
        metavar="TIME",
        type=duration,
        default=1800.0,
        help="If a server sends no answer for this time, its documents go to other servers. Default 30m.",
    )
    add(
        "--patience",
        metavar="TIME",
        type=duration,
        default=600.0,
        help="Time without any available server after which the run stops. Default 10m.",
    )
    add(
        "--tls",
        action="store_true",
        help="Use TLS, and trust the system's CAs. Each of the next four also enables TLS.",
    )
    add("--tls-ca", metavar="FILE", help="PEM file of the CAs to trust instead.")
    add("--tls-certificate", metavar="FILE", help="PEM file of the client certificate.")
    add("--tls-key", metavar="FILE", help="PEM file of its private key.")
    add("--tls-server-name", metavar="NAME", default="", help="Name in the server's certificate.")
    add("--token-file", metavar="FILE", help="File of the bearer token to send with every call.")
    add("--insecure", action="store_true", help="Allow sending the token unencrypted to other machines.")


def run(arguments: Sequence[str]) -> int:
    """Raises UsageError, BatchError, LongshortError, KeyboardInterrupt."""
    options = make_parser().parse_args(arguments)
    if options.command == "verify":
        return _verify(options.inputs, options.min_success)
    _check_command(options)
    known = BatchOptions.__optional_keys__
    shared: dict[str, Any] = {name: value for name, value in vars(options).items() if name in known}
    servers = [server for one in options.server or ["127.0.0.1:8500"] for server in one.split(",")]
    carry = None if options.carry is None else [name for name in options.carry if name]
    shared |= {"server": servers, "carry": carry, "progress": _style(options)}
    works: dict[str, Callable[..., Summary]] = {"score": api.score, "classify": api.classify, "embed": api.embed}
    own: dict[str, Any] = {"region_tokens": options.region_tokens}
    if options.command == "classify":
        own = {"top_k": options.top_k or 5, "truncate": options.truncate, "second": options.second}
    if options.command == "embed":
        own = {"pooling": options.pooling or "", "normalize": options.normalize}
        own |= {"truncate": options.truncate, "second": options.second}
    try:
        _print(works[options.command](options.inputs, options.out, **own, **shared), options.json)
    except ValueError as error:
        if type(error) is not ValueError:  # not of an option, but of a library
            raise
        raise UsageError(with_options(str(error))) from None
    except TooFewResults as error:
        if error.summary is not None:
            _print(error.summary, options.json)
        raise
    return command_line.OK


def _print(summary: Summary, as_json: bool) -> None:
    sys.stdout.write((json.dumps(summary.to_dict()) if as_json else str(summary)) + "\n")
    sys.stdout.flush()


def _verify(folders: Sequence[str], min_success: float) -> int:
    code = command_line.OK
    for folder in folders:
        found = verify(folder)
        failed = found.too_few(min_success)
        sys.stdout.write(f"{folder}: {found}\n")
        if failed:
            sys.stdout.write(f"{folder}: {failed}\n")
        if not found.complete:
            code = command_line.OTHER
        elif failed and code == command_line.OK:
            code = command_line.TOO_FEW
    return code


def _style(options: argparse.Namespace) -> str:
    if options.quiet:
        return "quiet"
    if options.json:
        return "json"
    return "bar" if sys.stderr.isatty() else "lines"


def _check_command(options: argparse.Namespace) -> None:
    if not options.out:
        raise UsageError("--out is missing: give the output folder")
    if options.command != "score" and options.region_tokens:
        raise UsageError("--region-tokens is only for score")
    if options.command == "score" and (options.truncate or options.second):
        raise UsageError("--truncate and --second are only for classify and embed")
    if options.command != "classify" and options.top_k:
        raise UsageError("--top-k is only for classify")
    if options.command != "embed" and (options.pooling or options.normalize):
        raise UsageError("--pooling and --normalize are only for embed")
    if options.part >= options.parts:
        raise UsageError(f"--part is {options.part}; it must be below --parts, which is {options.parts}")


def main(arguments: Sequence[str]) -> int:
    """Runs the program and returns its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")
    as_json = "--json" in arguments
    handle_signals(lambda: _interrupted(as_json), command_line.CANCELLED)
    try:
        code = run(arguments)
        sys.stdout.flush()
        return code
    except UsageError as error:
        return _failed(str(error), command_line.USAGE, as_json)
    except BatchError as error:
        codes = {Refused: command_line.REFUSED, InUse: command_line.UNAVAILABLE, TooFewResults: command_line.TOO_FEW}
        code = next((code for kind, code in codes.items() if isinstance(error, kind)), command_line.OTHER)
        return _failed(str(error), code, as_json)
    except LongshortError as error:
        code = command_line.exit_code(error)
        later = "once this is corrected, the same command resumes" if code == command_line.REFUSED else _RESUME
        return _failed(f"{with_options(str(error))}. {_advice(later)}", code, as_json)
    except (KeyboardInterrupt, asyncio.CancelledError):
        return _interrupted(as_json)
    except Exception as error:
        traceback.print_exc()
        return _failed(f"{type(error).__name__}: {error}. {_advice(_RESUME)}", command_line.OTHER, as_json)


def _interrupted(as_json: bool) -> int:
    return _failed(f"interrupted. {_advice(_RESUME)}", command_line.CANCELLED, as_json)


def _advice(later: str) -> str:
    """What becomes of the results. `later`: how to resume a run."""
    if not RUN_BEGUN.is_set():
        return "No results were written."
    return f"The results so far stay valid: {later}."


def _failed(message: str, code: int, as_json: bool) -> int:
    line = json.dumps({"event": "error", "message": message}) if as_json else f"longshort-batch: {message}"
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
    return code
