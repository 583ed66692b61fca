"""`session`: takes conversations that a server remembers to another, or ends them."""

from __future__ import annotations

import json
import sys
from typing import Any

from longshort import methods
from longshort._command import exits, output
from longshort._command.context import CALL, Command, Context
from longshort._command.exits import UsageError
from longshort._proto import sessions_pb2

DESCRIPTION = """python -m longshort session [options] export ID FILE|-
       python -m longshort session [options] import ID FILE|-
       python -m longshort session [options] close ID

A session is a conversation that a server remembers between calls (session.id of a request), for one client
(--client-id).

export  Writes the session to FILE, or to standard output: its tokens and its cache. It stays on the server, too.
import  Gives a server the session in FILE, under the name ID, which may be another one. It goes on there with the very
        same results, and nothing is read again.
close   Ends the session and frees what it holds.

Servers let sessions go and come if they share a --session-key-file. A session goes on with the same model only (by
fingerprint), and belongs to its client. The files are those of the C++ client.

Examples:
  python -m longshort --server=a:8500 --model=enwiki session export talk talk.session
  python -m longshort --server=b:8500 --model=enwiki session import talk talk.session
  python -m longshort --server=a:8500 --model=enwiki session close talk
"""


def add_options(parser: Any) -> None:
    parser.add_argument("action", choices=("export", "import", "close"))
    parser.add_argument("id", metavar="ID")
    parser.add_argument("file", nargs="?", metavar="FILE")


def run(context: Context) -> int:
    action, id, file = context.options.action, context.options.id, context.options.file
    if (file is None) != (action == "close"):
        raise UsageError("session takes export ID FILE, import ID FILE, or close ID")
    if not id:
        raise UsageError("the session's id is empty")
    if action == "close":
        question = sessions_pb2.CloseSessionRequest(model=context.model, session_id=id)
        context.calls.unary(methods.CLOSE_SESSION, question, CALL, session_id=id)
        return exits.OK
    try:
        return _export(context, id, file) if action == "export" else _import(context, id, file)
    except OSError as error:
        doing = "written" if action == "export" else "read"
        raise UsageError(f"{file} cannot be {doing}: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(str(error)) from None


def _export(context: Context, id: str, file: str) -> int:
    session = context.client.session(id, model=context.options.model)
    found = session.export(sys.stdout.buffer if file == "-" else file)
    sys.stdout.buffer.flush()
    text = f"session {id}: {found.session_tokens} tokens, {found.data_bytes} bytes"
    if context.options.json:
        text = json.dumps({name: str(value) for name, value in found.to_dict().items()}, separators=(",", ":"))
    if file == "-":
        output.tell(text)
    else:
        output.write(text + "\n")
    return exits.OK


def _import(context: Context, id: str, file: str) -> int:
    session = context.client.import_session(id, sys.stdin.buffer if file == "-" else file, model=context.options.model)
    tokens = session.tokens
    output.write(f'{{"session_tokens":"{tokens}"}}\n' if context.options.json else f"session {id}: {tokens} tokens\n")
    return exits.OK


COMMAND = Command("session", "Move conversations between servers, or end them", DESCRIPTION, add_options, run)
