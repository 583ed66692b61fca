"""The program around its commands: options of all, errors, exit codes."""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
from collections.abc import Sequence
from typing import NoReturn

from longshort._command import classify, exits, generate, models, output, score, session, tokenize
from longshort._command.context import Command, Context
from longshort._command.exits import UsageError
from longshort._sync.client import Client
from longshort.errors import LongshortError
from longshort.inputs import selector
from longshort.version import __version__

COMMANDS = (
    score.COMMAND,
    classify.COMMAND,
    generate.COMMAND,
    models.COMMAND,
    tokenize.COMMAND,
    session.COMMAND,
)


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f'{message}\n"{self.prog} --help" lists the options.')


def duration(text: str) -> float:
    """Seconds, of "500ms", "30s", "1m30s", "2h" or "inf"."""
    if text == "inf":
        return float("inf")
    units = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
    if not re.fullmatch(r"(\d+(\.\d+)?(ms|s|m|h))+", text):
        raise argparse.ArgumentTypeError(f"is {text!r}; it must be a time with its unit, such as 500ms, 30s or 2m")
    seconds = sum(float(number) * units[unit] for number, _, unit in re.findall(r"(\d+(\.\d+)?)(ms|s|m|h)", text))
    if seconds == 0:
        raise argparse.ArgumentTypeError(f"is {text}; it must be longer than 0")
    return seconds


def add_common_options(parser: argparse.ArgumentParser, defaults: bool) -> None:
    """Options that may stand before and behind the command's name. Behind, what is unset changes nothing."""
    group = parser.add_argument_group("Options of every command")

    def add(name: str, metavar: str, help: str, default: object = "", type: object = str) -> None:
        kept = default if defaults else argparse.SUPPRESS
        group.add_argument(name, metavar=metavar, help=help, default=kept, type=type)  # type: ignore[arg-type]

    def add_switch(name: str, help: str) -> None:
        kept = False if defaults else argparse.SUPPRESS
        group.add_argument(name, action="store_true", help=help, default=kept)

    add("--model", "NAME[/VERSION]", "Which model; may be left out if the server has one.")
    add(
        "--timeout",
        "TIME",
        "How long a call may take, as in 30s or 5m; inf is unlimited. Of several documents: how long no"
        " answer may come. Default 60s.",
        60.0,
        duration,
    )
    add("--client-id", "ID", "Who asks: sessions belong to a client, and the server is shared among them fairly.")
    add(
        "--server",
        "HOST:PORT",
        "Where the server listens; several with commas between. Default 127.0.0.1:8500.",
        "127.0.0.1:8500",
    )
    add_switch("--tls", "Encrypt, and trust the authorities that this system trusts. The options below encrypt, too.")
    add("--tls-ca", "FILE", "Trust the authorities in this PEM file instead.", None)
    add("--tls-certificate", "FILE", "PEM file of the certificate that the server is shown.", None)
    add("--tls-key", "FILE", "PEM file of its key, which not everybody may read.", None)
    add("--tls-server-name", "NAME", "The name in the server's certificate, if it is not that in --server.")
    add("--token-file", "FILE", "File of the token that is sent with every call, to this machine or encrypted.", None)
    add_switch("--insecure", "Send the token even where others can read it.")
    add_switch("--json", "Write one JSON object a line, with the field names of longshort.v1.")


def make_parser() -> Parser:
    listed = "".join(f"  {command.name:<10}{command.summary}\n" for command in COMMANDS)
    parser = Parser(
        prog="python -m longshort",
        usage="python -m longshort [options] COMMAND [options] [FILE|FOLDER|-]...",
        description="Scores and continues text and classifies images with the models of a Longshort server.\n\n"
        f'Commands:\n{listed}\n"python -m longshort COMMAND --help" explains each, with examples.',
        epilog=exits.HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_common_options(parser, defaults=True)
    parser.add_argument("--version", action="version", version=f"longshort {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", help=argparse.SUPPRESS)
    for command in COMMANDS:
        _add_command(commands, command)
    return parser


def _add_command(commands: argparse._SubParsersAction[Parser], command: Command) -> None:
    usage, _, rest = command.description.partition("\n\n")
    own = commands.add_parser(
        command.name,
        usage=usage,
        description=rest,
        epilog=exits.HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.add_options(own)
    add_common_options(own, defaults=False)


def make_client(options: argparse.Namespace) -> Client:
    try:
        return Client(
            options.server,
            timeout=options.timeout,
            client_id=options.client_id,
            tls=options.tls,
            tls_ca=options.tls_ca,
            tls_certificate=options.tls_certificate,
            tls_key=options.tls_key,
            tls_server_name=options.tls_server_name,
            token_file=options.token_file,
            insecure=options.insecure,
        )
    except ValueError as error:
        raise UsageError(with_options(str(error))) from None


def with_options(message: str) -> str:
    """The client's words, with the program's: tls_ca is --tls-ca here."""
    names = r"\b(tls_(?:ca|certificate|key|server_name)|token_file)\b"
    return re.sub(names, lambda found: "--" + found[1].replace("_", "-"), message)


def run(arguments: Sequence[str]) -> int:
    parser = make_parser()
    options = parser.parse_args(arguments)
    command = next((command for command in COMMANDS if command.name == options.command), None)
    if command is None:
        sys.stderr.write(parser.format_help())
        return exits.USAGE
    try:
        model = selector(options.model)
    except ValueError as error:
        raise UsageError(f"--{error}") from None
    with make_client(options) as client:
        return command.run(Context(client, client._calls, model, options))


def main(arguments: Sequence[str]) -> int:
    """Runs the program; its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")
    try:
        code = run(arguments)
        sys.stdout.flush()
        return code
    except UsageError as error:
        output.tell(f"longshort: {error}")
        return exits.USAGE
    except LongshortError as error:
        output.tell(f"longshort: {with_options(str(error))}")
        return exits.of_error(error)
    except KeyboardInterrupt:
        output.tell("longshort: CANCELLED: the program was interrupted")
        return exits.CANCELLED
    except BrokenPipeError:
        # What is left to be written goes nowhere, or Python complains at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        output.tell("longshort: standard output cannot be written")
        return exits.OTHER
