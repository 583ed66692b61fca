"""One client without a token that calls itself by many names, one after the other, to have the queue of many."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from hostile.messages import GENERATE_STREAM, LANGUAGE_MODEL, field, model, text
from hostile.target import Target, main

CONNECTIONS, NAMES, CALLS = 6, 8, 120  # names of a connection, calls of a name


def generation(tokens: int) -> bytes:
    return model(LANGUAGE_MODEL) + field(2, text("the ")) + field(3, tokens)


async def many_names(target: Target) -> None:
    async with AsyncExitStack() as stack:
        for number in range(CONNECTIONS):
            connection = await stack.enter_async_context(target.by_grpc())
            # The server measures steps before it predicts how long a queue will take.
            await connection.begin(target.call_headers(GENERATE_STREAM), generation(50))
            await connection.until(lambda connection=connection: connection.open == 0)
            for name in range(NAMES):
                headers = target.call_headers(GENERATE_STREAM, x_client_id=f"id-{number}-{name}")
                for _ in range(CALLS):
                    await connection.begin(headers, generation(100))
                    target.seen["calls"] += 1
                await asyncio.sleep(0.05)
        await asyncio.sleep(3600)


CLIENTS = {"names": (1, many_names)}

if __name__ == "__main__":
    main(__doc__, CLIENTS)
