"""`score` and `classify`: a dataset with the columns of results beside its own."""

from __future__ import annotations

from typing import Any, Literal, Unpack

import ray.data

from longshort.batch import results
from longshort.batch.connecting import ConnectionOptions, connection_of
from longshort.batch.scorer import Priority
from longshort.ray.actor import Actor, Plan
from longshort.ray.own_server import StartServer

# A server that ends is started again, with its actor, so often. More is no accident: a document ends it each time.
_RESTARTS = 10


class RayOptions(ConnectionOptions, total=False):
    """What `score` and `classify` take besides, and besides where servers are (as longshort.Client).

    start        a server of its own for each actor, in place of `server`
    concurrency  how many actors; default 2
    num_cpus     processors that Ray reserves for each; default 0.5. With `start`: what the server has, of a node all
    num_gpus     GPUs that Ray reserves for each; default 0
    batch_size   rows that an actor takes at once; it has two batches on their way. Default 256
    model        "name" or "name/version"; may be left out if the servers have one
    text         the column that is scored: strings, bytes or lists of token ids; default "text"
    priority     how documents weigh against other calls; default "low"
    client_id    who asks
    timeout      seconds that a server may give no answer while it has documents, before others get them; default 1800
    patience     seconds that no server may be there, before the dataset fails; default 600
    """

    start: StartServer
    concurrency: int
    num_cpus: float
    num_gpus: float
    batch_size: int
    model: str
    text: str
    priority: Priority
    client_id: str
    timeout: float
    patience: float


def score(dataset: ray.data.Dataset, *, region_tokens: int = 0, **options: Unpack[RayOptions]) -> ray.data.Dataset:
    """How likely a language model finds each row: the dataset, with more columns.

    They are `log_likelihood`, `token_count`, `scored_token_count`, `bits_per_byte`, `bits_per_character`, with
    `region_tokens` also `region_bits` (docs/batch.md tells each), and of every row `text_hash`, `fingerprint` (of the
    model) and `error`: null, or why there are no results.

    Each row comes once. In which order is up to Ray: a column of your own is what tells rows apart.

    Raises ValueError for wrong options. What goes wrong later fails the dataset where it is used.
    """
    if region_tokens < 0:
        raise ValueError(f"region_tokens is {region_tokens}; it must be at least 0")
    return _map(dataset, "score", options, region_tokens=region_tokens)


def classify(
    dataset: ray.data.Dataset,
    *,
    top_k: int = 5,
    truncate: bool = False,
    second: str = "",
    **options: Unpack[RayOptions],
) -> ray.data.Dataset:
    """Which classes a text classifier gives to each row; as `score` otherwise.

    The columns are `label`, `class_index`, `probability`, `classes`, `token_count`, `truncated`, and those three.

    top_k     how many of the likeliest classes to tell
    truncate  of a document that is longer than the model takes, read the beginning instead of making it an error
    second    the column of the second document, for models that compare two
    """
    if top_k < 1:
        raise ValueError(f"top_k is {top_k}; it must be at least 1")
    return _map(dataset, "classify", options, top_k=top_k, truncate=truncate, second=second)


def _map(
    dataset: ray.data.Dataset,
    command: Literal["score", "classify"],
    options: RayOptions,
    *,
    second: str = "",
    region_tokens: int = 0,
    **own: Any,
) -> ray.data.Dataset:
    known = RayOptions.__required_keys__ | RayOptions.__optional_keys__
    for name in options:
        if name not in known:
            raise TypeError(f"unexpected keyword argument {name!r}; there are: {', '.join(sorted(known))}")
    start = options.get("start")
    if start is not None and "server" in options:
        raise ValueError("server and start: give the addresses of servers, or have each actor start its own")
    concurrency = options.get("concurrency", 2)
    batch_size = options.get("batch_size", 256)
    if concurrency < 1 or batch_size < 1:
        raise ValueError(f"concurrency is {concurrency} and batch_size {batch_size}: both must be at least 1")
    connection: Any = {name: value for name, value in options.items() if name in _CONNECTION}
    connection_of(connection)  # raises here what would be raised in an actor
    pool = {name: value for name, value in options.items() if name in _OF_POOL}
    if command == "score":
        own["region_tokens"] = region_tokens
    texts = (options.get("text", "text"), *([second] if second else []))
    num_cpus = options.get("num_cpus", 0.5)
    plan = Plan(command, texts, results.columns(command, region_tokens), {**connection, **pool, **own}, start, num_cpus)
    # Of two batches one is on its way while the other is read and written, so that servers never wait.
    strategy = ray.data.ActorPoolStrategy(
        size=concurrency,
        max_tasks_in_flight_per_actor=4,
        max_concurrent_calls_per_actor=2,
        enable_true_multi_threading=True,
    )
    return dataset.map_batches(
        Actor,
        fn_constructor_args=(plan,),
        batch_format="pyarrow",
        batch_size=batch_size,
        compute=strategy,
        num_cpus=num_cpus,
        num_gpus=options.get("num_gpus", 0),
        udf_modifying_row_count=False,
        ray_remote_args_fn=None if start is None else _restarts,
    )


def _restarts() -> dict[str, Any]:
    return {"max_restarts": _RESTARTS, "max_task_retries": _RESTARTS}


_CONNECTION = ConnectionOptions.__required_keys__ | ConnectionOptions.__optional_keys__
_OF_POOL = ("model", "priority", "client_id", "timeout", "patience")
