"""`tokenize`: a text as the model's token ids."""

from __future__ import annotations

from typing import Any

from longshort import methods
from longshort._command import exits, files, output
from longshort._command.context import CALL, Command, Context
from longshort._command.exits import UsageError
from longshort._proto import inference_pb2
from longshort.inputs import text_input

DESCRIPTION = """python -m longshort tokenize [options] [FILE|-]...

Prints the token ids of each file (or of standard input) on a line; other commands take such a line back with --ids.
With --pieces, one token a line: its id, and the bytes that it stands for.

Examples:
  printf 'a cat' | python -m longshort tokenize
  printf 'a cat' | python -m longshort tokenize --pieces
  printf 'a cat' | python -m longshort tokenize | python -m longshort score --ids
"""


def add_options(parser: Any) -> None:
    parser.add_argument("--pieces", action="store_true", help="One token a line, with its bytes.")
    parser.add_argument("--ids", action="store_true", help="The input lists token ids, which are checked and returned.")
    parser.add_argument("files", nargs="*", metavar="FILE")


def run(context: Context) -> int:
    for name in context.options.files or ["-"]:
        (named,) = files.file_documents([name], [], context.options.ids)
        if named.document is None:
            raise UsageError(f"{name}: {named.message}")
        request = inference_pb2.TokenizeRequest(model=context.model, input=text_input(named.document))  # type: ignore[arg-type]
        answer = context.calls.unary(methods.TOKENIZE, request, CALL)
        if context.options.json:
            output.write_json(answer)
        elif context.options.pieces:
            for id, piece in zip(answer.ids, answer.pieces, strict=True):
                output.write(f"{id:6d}  {output.quote_bytes(piece)}\n")
        else:
            output.write(" ".join(map(str, answer.ids)) + "\n")
    return exits.OK


COMMAND = Command("tokenize", "Turn texts into the model's token ids", DESCRIPTION, add_options, run)
