"""`score` and `classify`: add result columns to a dataset."""

from __future__ import annotations

from typing import Any, Literal, Unpack

import ray.data

from longshort.batch.output.result_columns import columns
from longshort.batch.run.addresses import connection_of
from longshort.batch.run.options import ServerOptions, texts_to_classify, texts_to_score
from longshort.ray.actor import Actor, Plan
from longshort.ray.own_server import StartServer
from longshort.requests import check_options

# Maximum restarts of a server and its actor. After more failures, a document is probably the cause.
_RESTARTS = 10


class RayOptions(ServerOptions, total=False):
    """Keyword arguments of `score` and `classify`, besides those of longshort.batch.run.options.ServerOptions: server,
    model, priority, client_id, timeout, patience, ...

    start        start a server for each actor, instead of using `server`
    concurrency  number of actors; default 2
    num_cpus     processors that Ray reserves for each actor; default 0.5. With `start`: give the processors of the
                 server, usually all of a node
    num_gpus     GPUs that Ray reserves for each actor; default 0
    batch_size   rows in a batch; each actor has two batches in flight. Default 256
    text         the column to score: strings, bytes or lists of token ids; default "text"
    """

    start: StartServer
    concurrency: int
    num_cpus: float
    num_gpus: float
    batch_size: int
    text: str


def score(dataset: ray.data.Dataset, *, region_tokens: int = 0, **options: Unpack[RayOptions]) -> ray.data.Dataset:
    """Adds the likelihood of each row under a language model to the dataset.

    The new columns are `log_likelihood`, `token_count`, `scored_token_count`, `bits_per_byte`, `bits_per_character`,
    with `region_tokens` also `region_bits` (see docs/batch.md), and `text_hash`, `fingerprint` (of the model) and
    `error`: null, or the reason why there are no results.

    Each row appears once. Ray determines the order: use a column of your own to identify rows.

    Raises ValueError for invalid options. Later errors are raised where the dataset is used.
    """
    texts_to_score(region_tokens)  # raises early, rather than in an actor
    return _map(dataset, "score", options, region_tokens=region_tokens)


def classify(
    dataset: ray.data.Dataset,
    *,
    top_k: int = 5,
    truncate: bool = False,
    second: str = "",
    **options: Unpack[RayOptions],
) -> ray.data.Dataset:
    """Adds a text classifier's classes of each row to the dataset; otherwise like `score`.

    The new columns are `label`, `class_index`, `probability`, `classes`, `token_count`, `truncated`, `text_hash`,
    `fingerprint` and `error`.

    top_k     number of classes to return, most probable first
    truncate  truncate documents to the model's maximum length; otherwise longer ones are errors
    second    the column of the second document, for models that compare or join two
    """
    texts_to_classify(top_k, truncate)
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
    check_options(options, RayOptions)
    start = options.get("start")
    if start is not None and "server" in options:
        raise ValueError(
            "server and start cannot be combined: give server addresses, or let each actor start its own server"
        )
    concurrency = options.get("concurrency", 2)
    batch_size = options.get("batch_size", 256)
    if concurrency < 1 or batch_size < 1:
        raise ValueError(f"concurrency is {concurrency} and batch_size {batch_size}: both must be at least 1")
    connection_of(options)
    pool: dict[str, Any] = {name: value for name, value in options.items() if name in ServerOptions.__optional_keys__}
    if command == "score":
        own["region_tokens"] = region_tokens
    texts = (options.get("text", "text"), *([second] if second else []))
    num_cpus = options.get("num_cpus", 0.5)
    plan = Plan(command, texts, columns(command, region_tokens), pool | own, start, num_cpus)
    # Two batches: one is in flight while the other is read and written, so that servers are never idle.
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
