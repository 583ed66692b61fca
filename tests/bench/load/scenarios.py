"""The scenarios: their runs and figures. A function's docstring is the scenario's help."""

from __future__ import annotations

import base64
import json
import subprocess
import threading

from bench.load import models
from bench.load.bench import ELEMENT_BYTES, IDS, Bench, median, percentile, ratio
from bench.load.kept_ends import KINDS, KeptEnds
from bench.load.processes import MemorySamples, ServerProcess
from bench.load.trace_sink import TraceSink

# More than a stream generates while it is measured.
ENDLESS = 10_000_000
# Of the overload: seconds in which its queues fill, and calls that may wait.
WARM_UP = 5
ROOM = 8


def streams(bench: Bench) -> None:
    """Tokens per second of many streams together against one, each behind a full memory."""
    options = bench.options
    model = bench.language_model()
    limits = (f"--max-streams={options.streams}", f"--max-generate-tokens={ENDLESS}")
    with bench.serve(model, *limits) as server:
        workload = f"generate,{IDS},prompt={model.full}"
        reading = bench.first_token(server, f"{workload},tokens=2", seed=100)

        def decode(count: int, seed: int) -> dict:
            # All streams must have read their prompts when the measuring begins; nothing ends before it does. Those
            # that generate take their part of every step, so the last prompts are read more slowly than the first.
            times_alone = 2 if count == 1 else 5
            warm_up = f"--warm-up={times_alone * count * reading + 2:.1f}s"
            title = f"{'one stream' if count == 1 else f'{count} streams'}, {model.name}"
            arguments = [warm_up, f"--seconds={options.seconds}s", "--grace=0s", f"--seed={seed}"]
            load = f"--workload={workload},tokens={ENDLESS},concurrency={count}"
            (done,) = bench.load(server, title, load, *arguments)
            if any(value is not None for value in done["timeline"]["first_token_p50"]):
                print("  careful: a stream was still reading its prompt when the measuring began")
            return done

        one, many = decode(1, seed=200), decode(options.streams, seed=300)
    target = 6 if model.name == "enwiki" else 3
    name = f"{options.streams} streams against one, tokens/s ({model.name}, M={model.memory}, {options.precision})"
    bench.at_least(name, ratio(many["tokens_per_second"], one["tokens_per_second"]), target)
    jitter = ratio(percentile(many, "inter_token", "p99"), percentile(many, "inter_token", "p50"))
    bench.at_most(f"between tokens, {options.streams} streams: p99 against p50", jitter, 3)
    bench.report("one stream", one["tokens_per_second"], "tok/s")
    bench.report(f"{options.streams} streams", many["tokens_per_second"], "tok/s")
    bench.report("reading one prompt", ratio(model.full, reading), "tok/s")


def shared_prefix(bench: Bench) -> None:
    """Time to the first token behind a shared prefix: the first time against the second."""
    options = bench.options
    model = bench.language_model()
    shared = options.prefix_tokens
    workload = f"generate,{IDS},prompt={shared + 64},shared={shared},tokens=2"
    first, second = [], []
    with bench.serve(model) as server:
        bench.first_token(server, f"{workload},prefix=1000", seed=1)  # touches memory for the first time
        for prefix in range(options.repeats):
            # The same prefix; the 64 tokens behind it differ.
            first.append(bench.first_token(server, f"{workload},prefix={prefix}", seed=100 + prefix))
            second.append(bench.first_token(server, f"{workload},prefix={prefix}", seed=200 + prefix))
    name = f"first token behind {shared:,} shared tokens: first time against second"
    bench.at_least(name, ratio(median(first), median(second)), 10)
    bench.report(f"first time, median of {options.repeats}", 1000 * median(first), "ms")
    bench.report("second time", 1000 * median(second), "ms")


def long_prompt(bench: Bench) -> None:
    """Short requests while long prompts are read, one after the other, against short requests alone."""
    options = bench.options
    model = bench.language_model()
    short = f"generate,name=short,{IDS},prompt=64,tokens=16"
    long = f"generate,name=long,{IDS},prompt={options.long_tokens},tokens=1,concurrency=1"
    with bench.serve(model) as server:
        probe = ["--warm-up=1s", f"--seconds={options.seconds / 4}s", "--seed=100"]
        (alone,) = bench.load(server, "one caller", f"--workload={short},concurrency=1", *probe, quiet=True)
        rate = options.rate or 0.3 * alone["answers_per_second"]
        arguments = ["--warm-up=2s", f"--seconds={options.seconds}s", "--grace=120s"]
        workload = f"--workload={short},rate={rate:.3f}"
        (unloaded,) = bench.load(server, "short requests alone", workload, "--seed=200", *arguments)
        title = "short requests beside a long prompt"
        # Other prompts than before, which the cache cannot know.
        loaded, reading = bench.load(server, title, workload, f"--workload={long}", "--seed=300", *arguments)
    beside = f"beside a prompt of {options.long_tokens:,} tokens, against alone"
    for kind, what in (("OK", "short requests' p99"), ("first_token", "their first token's p99")):
        value = ratio(percentile(loaded, kind, "p99"), percentile(unloaded, kind, "p99"))
        if kind == "OK":
            bench.at_most(f"{what} {beside}", value, 3)
        else:
            bench.report(f"{what} {beside}", value, "x")
    bench.report("short requests", rate, "/s")
    bench.report("reading the long prompt beside them", percentile(reading, "first_token", "p50"), "s")


def overload(bench: Bench) -> None:
    """Five times what the server can do, for a minute, against 80 % of it."""
    options = bench.options
    model = bench.language_model()
    deadline = f",deadline={options.deadline}" if options.deadline else ""
    workload = f"generate,{IDS},prompt=64,tokens=16{deadline}"
    seconds = f"--seconds={options.seconds}s"
    max_streams = f"--max-streams={options.streams}"
    with bench.serve(model, max_streams) as server:
        probe = ["--warm-up=2s", f"--seconds={options.seconds / 3}s", "--grace=60s", "--seed=100"]
        capacity = f"--workload={workload},concurrency={2 * options.streams}"
        (most,) = bench.load(server, "capacity: callers that wait for their answers", capacity, *probe)
        able = most["answers_per_second"]
    # Who runs a server decides how long calls may wait: here so long that at 80 % load, with random arrivals, fewer
    # than one in a hundred is refused. A server that does one call after the other must have room for eight then.
    patience = ROOM / able
    bounded = f"--max-queue-time={max(1, 1000 * patience):.0f}ms"
    with bench.serve(model, max_streams, bounded) as server, bench.echo_server() as echo:
        # One connection carries 1024 calls; more would wait in the client, where the server cannot refuse them.
        arguments = ["--connections=16", f"--warm-up={WARM_UP}s", seconds, "--grace=60s"]
        calm_load = f"--workload={workload},rate={0.8 * able:.3f}"
        (calm,) = bench.load(server, "80 % of capacity", calm_load, "--seed=200", *arguments)
        echoed = ["--workload=score,name=echo,rate=20", f"--warm-up={WARM_UP}s", seconds]
        with MemorySamples(server) as memory:
            echo_load = bench.start_load(echo, "bare gRPC echo beside the overload", *echoed)
            # Other prompts than before, which the cache cannot know.
            stormy_load = f"--workload={workload},rate={5 * able:.3f}"
            (stormy,) = bench.load(server, "500 % of capacity", stormy_load, "--seed=300", *arguments)
            (bare,) = bench.finish_load(echo_load)
        bench.runs[-2]["resident_bytes"] = memory.samples  # the last run is the echo's
    # Calls that are cut off were admitted, and are slower than any that were answered: without them there is no p99.
    whole = stormy["cut_off"] <= 0.01 * stormy["answered"]
    admitted = ratio(percentile(stormy, "OK", "p99"), percentile(calm, "OK", "p99")) if whole else None
    bench.at_most("p99 of admitted requests at 500 % against 80 % of capacity", admitted, 2)
    refused = ratio(percentile(stormy, "RESOURCE_EXHAUSTED", "p99"), percentile(bare, "OK", "p99"))
    bench.at_most("p99 of refusals against a bare gRPC echo", refused, 5)
    # The first fifth may still touch memory for the first time.
    fifths = [WARM_UP + share * options.seconds for share in (0.2, 0.4, 0.8, 1)]
    growth = ratio(memory.peak(*fifths[2:]), memory.peak(*fifths[:2]))
    bench.at_most("memory at the end of the overload against its second fifth", growth, 1.05)
    bench.report("calls may wait for (--max-queue-time)", 1000 * patience, "ms")
    bench.report("capacity", able, "/s")
    bench.report("answered at 500 %", stormy["answers_per_second"], "/s")
    bench.report("refused at 500 %", ratio(stormy["refused"], stormy["measured_seconds"]), "/s")
    bench.report("failed otherwise (deadlines, for instance) at 500 %", stormy["failed"], "calls")
    bench.report("admitted, but not answered a minute after the end", stormy["cut_off"], "calls")


def identity(bench: Bench) -> None:
    """The server and its engine around an identity model, against a bare gRPC echo server with the same messages."""
    options = bench.options
    workloads = {
        "ScoreText": "score,model=text,prompt=64",
        "ClassifyImage": "classify,model=image,image_side=16",
    }
    repository = models.identity(bench.scratch)
    with (
        bench.server(repository, program="longshort-identity-server") as server,
        bench.echo_server() as echo,
        bench.echo_server("--from-another-thread") as threaded,
    ):
        processes = {"echo": echo, "echo from another thread": threaded, "server": server}
        for rpc, workload in workloads.items():
            found: dict[tuple[str, int, int], list[dict]] = {}
            # Turn and turn about, so that a machine that changes its mind changes it for all.
            for turn in range(options.repeats):
                for callers, connections in ((1, 1), (8, 8), (8, 1)):
                    for name, process in processes.items():
                        arguments = ["--warm-up=0.5s", f"--seconds={options.seconds}s", f"--seed={turn}"]
                        load = [f"--workload={workload},concurrency={callers}", f"--connections={connections}"]
                        title = f"{name}, {rpc}, {_callers(callers, connections)}"
                        (done,) = bench.load(process, title, *load, *arguments)
                        found.setdefault((name, callers, connections), []).append(done)
            _compare_with_echo(bench, rpc, found)


def open_inference(bench: Bench) -> None:
    """The identity model by the Open Inference Protocol, against the same calls by longshort.v1."""
    repository = models.identity(bench.scratch)
    with bench.server(repository, program="longshort-identity-server") as server:
        for workload in ("score,model=text,prompt=64", "classify,model=image,image_side=16"):
            for callers, connections in ((1, 1), (8, 8)):
                _compare_protocols(bench, server, workload, callers, connections)


def _compare_protocols(bench: Bench, server: ServerProcess, workload: str, callers: int, connections: int) -> None:
    """What a call takes by each protocol, and how much more by the second."""
    found: dict[str, list[dict]] = {"longshort": [], "open_inference": []}
    named = f"{workload}, {_callers(callers, connections)}"
    # Turn and turn about, so that a machine that changes its mind changes it for all, and each is first as often.
    for turn in range(bench.options.repeats):
        for protocol, runs in list(found.items())[:: -1 if turn % 2 else 1]:
            load = [f"--workload={workload},protocol={protocol},concurrency={callers}", f"--connections={connections}"]
            arguments = ["--warm-up=0.5s", f"--seconds={bench.options.seconds}s", f"--seed={turn}"]
            (done,) = bench.load(server, f"{protocol}, {named}", *load, *arguments, quiet=True)
            runs.append(done)
    p50 = {protocol: median([percentile(run, "OK", "p50") for run in runs]) for protocol, runs in found.items()}
    rate = {protocol: median([run["answers_per_second"] for run in runs]) for protocol, runs in found.items()}
    for protocol in found:
        bench.report(f"{named}: {protocol}, p50", 1e6 * p50[protocol], "us")
        bench.report(f"{named}: {protocol}", rate[protocol], "/s")
    name = f"{named}: cost of a call by the Open Inference Protocol against longshort.v1"
    bench.at_most(f"{name}, p50", ratio(p50["open_inference"], p50["longshort"]), 1.15)
    bench.at_most(f"{name}, time per call", ratio(rate["longshort"], rate["open_inference"]), 1.15)


def http(bench: Bench) -> None:
    """Calls by HTTP against the same by gRPC: the identity model, an image as the body, and the first token."""
    repository = models.identity(bench.scratch)
    text = json.dumps({"model": {"name": "text"}, "inputs": [{"text": 64 * "a"}]}).encode()
    pixels = {"height": 16, "width": 16, "channels": 3, "uint8Values": base64.b64encode(bytes(768)).decode()}
    image = json.dumps({"model": {"name": "image"}, "images": [{"tensor": pixels}]}).encode()
    with bench.server(repository, program="longshort-identity-server") as server:
        for workload, path, body in (
            ("score,model=text,prompt=64", "/longshort.v1.Inference/ScoreText", text),
            ("classify,model=image,image_side=16", "/longshort.v1.Inference/ClassifyImage", image),
        ):
            for callers in (1, 8):
                _compare_with_grpc(bench, server, (workload, path, body, "application/json"), callers, 0.5)
    photo = models.ROOT / "deploy/photo.jpg"
    by_body = (f"classify,model=flowers,image={photo}", "/classify?model=flowers", photo.read_bytes(), "image/jpeg")
    with bench.server(models.ROOT / "models/zoo") as server:
        _compare_with_grpc(bench, server, by_body, 1, 1 / 1.15)
        _compare_first_tokens(bench, server)


def _compare_first_tokens(bench: Bench, server: ServerProcess) -> None:
    """Seconds to the first token behind a prompt that the cache has, by gRPC and by server-sent events."""
    prompt = 64
    request = {"model": "enwiki", "prompt": prompt * "a", "max_tokens": 2, "temperature": 0, "stream": True}
    workload = f"--workload=generate,model=enwiki,prompt={prompt},shared={prompt},tokens=2,concurrency=1"
    grpc, events = [], []
    for turn in range(bench.options.repeats):
        arguments = ["--warm-up=0.5s", f"--seconds={bench.options.seconds}s", f"--seed={turn}"]
        (done,) = bench.load(server, "gRPC, first token", workload, *arguments, quiet=True)
        grpc.append(percentile(done, "first_token", "p50"))
        body = json.dumps(request).encode()
        events.append(bench.http_load(server, "/v1/completions", body, "application/json", 1, '"text"')["p50"])
    bench.report("first token by gRPC, p50", 1000 * median(grpc), "ms")
    bench.report("first token by server-sent events, p50", 1000 * median(events), "ms")
    bench.report("server-sent events later by (aim: at most 1 ms)", 1000 * (median(events) - median(grpc)), "ms")


def _compare_with_grpc(
    bench: Bench, server: ServerProcess, ways: tuple[str, str, bytes, str], callers: int, least: float
) -> None:
    """What a call takes by gRPC and by HTTP, turn and turn about. `ways`: the workload; path, body and content type."""
    workload, path, body, kind = ways
    grpc, posted = [], []
    for turn in range(bench.options.repeats):
        load = [f"--workload={workload},concurrency={callers}", f"--connections={callers}"]
        arguments = ["--warm-up=0.5s", f"--seconds={bench.options.seconds}s", f"--seed={turn}"]
        (done,) = bench.load(server, f"gRPC, {workload}", *load, *arguments, quiet=True)
        grpc.append(done)
        posted.append(bench.http_load(server, path, body, kind, callers))
    named = f"{workload.rpartition('/')[2]}, {_callers(callers, callers)}"
    rates = [median([run["answers_per_second"] for run in grpc]), median([run["calls_per_second"] for run in posted])]
    p50s = [median([percentile(run, "OK", "p50") for run in grpc]), median([run["p50"] for run in posted])]
    for protocol, rate, p50 in zip(("gRPC", "HTTP"), rates, p50s, strict=True):
        bench.report(f"{named}: {protocol}", rate, "/s")
        bench.report(f"{named}: {protocol}, p50", 1e6 * p50, "us")
    bench.at_least(f"{named}: calls/s by HTTP against gRPC", ratio(rates[1], rates[0]), least)


def encryption(bench: Bench) -> None:
    """The identity model with TLS, and with a token too, against without: both sides encrypt on the same processors."""
    repository = models.identity(bench.scratch)
    certificates = bench.scratch / "certificates"
    subprocess.run([models.ROOT / "deploy/throw-away-certificates", certificates], check=True)
    options = [f"--tls-certificate={certificates}/server.pem", f"--tls-key={certificates}/server.key"]
    trusting = f"--tls-ca={certificates}/ca.pem"
    token, line = bench.new_token()
    program = "longshort-identity-server"
    with (
        bench.server(repository, program=program) as plain,
        bench.server(repository, *options, program=program) as encrypted,
        bench.server(repository, *options, f"--token-file={line}", program=program) as guarded,
    ):
        ways = {
            "without TLS": (plain, []),
            "TLS": (encrypted, [trusting]),
            "TLS and token": (guarded, [trusting, f"--token-file={token}"]),
        }
        for workload in ("score,model=text,prompt=64", "classify,model=image,image_side=224"):
            for callers, connections in ((1, 1), (8, 8), (8, 1)):
                _compare_ways(bench, ways, workload, callers, connections)


def _compare_ways(
    bench: Bench, ways: dict[str, tuple[ServerProcess, list[str]]], workload: str, callers: int, connections: int
) -> None:
    """Calls per second by each way, and each against the first."""
    rates: dict[str, list[float]] = {way: [] for way in ways}
    named = f"{workload}, {_callers(callers, connections)}"
    # Turn and turn about, so that a machine that changes its mind changes it for all.
    for turn in range(bench.options.repeats):
        for way, (server, more) in ways.items():
            load = [f"--workload={workload},concurrency={callers}", f"--connections={connections}", *more]
            arguments = ["--warm-up=0.5s", f"--seconds={bench.options.seconds}s", f"--seed={turn}"]
            (done,) = bench.load(server, f"{way}, {named}", *load, *arguments, quiet=True)
            rates[way].append(done["answers_per_second"])
    first, *others = rates
    bench.report(f"{named}: {first}", median(rates[first]), "/s")
    for way in others:
        bench.report(f"{named}: {way}", median(rates[way]), "/s")
        bench.report(f"{named}: {way} against {first}", ratio(median(rates[way]), median(rates[first])), "x")


def traces(bench: Bench) -> None:
    """The identity model with every call traced to a collector that takes everything, against without."""
    repository = models.identity(bench.scratch)
    program = "longshort-identity-server"
    with (
        TraceSink() as collector,
        bench.server(repository, program=program) as plain,
        bench.server(
            repository, f"--otlp-endpoint={collector.address}", "--trace-sample-ratio=1", program=program
        ) as traced,
    ):
        for workload in ("score,model=text,prompt=64", "classify,model=image,image_side=16"):
            for callers, connections in ((1, 1), (8, 8), (8, 1)):
                _compare_traced(bench, plain, traced, workload, callers, connections)
        for name in ("longshort_spans_exported_total", "longshort_spans_dropped_total"):
            bench.report(name, traced.metric(name), "spans")


def _compare_traced(
    bench: Bench, plain: ServerProcess, traced: ServerProcess, workload: str, callers: int, connections: int
) -> None:
    """Calls per second of turns that follow each other, one against the other: what a busy machine does to both is
    none of theirs. And the processor time that a call takes of the server."""
    named = f"{workload}, {_callers(callers, connections)}"
    ratios: list[float] = []
    cost: dict[ServerProcess, list[float]] = {plain: [], traced: []}
    for turn in range(bench.options.repeats):
        rates: dict[ServerProcess, float] = {}
        # Each is first as often.
        for server in (plain, traced)[:: -1 if turn % 2 else 1]:
            load = [f"--workload={workload},concurrency={callers}", f"--connections={connections}"]
            arguments = ["--warm-up=0.3s", f"--seconds={bench.options.seconds}s", f"--seed={turn}"]
            before = server.metric("process_cpu_seconds_total"), server.metric("longshort_requests_total")
            (done,) = bench.load(server, named, *load, *arguments, quiet=True)
            after = server.metric("process_cpu_seconds_total"), server.metric("longshort_requests_total")
            rates[server] = done["answers_per_second"]
            cost[server].append((after[0] - before[0]) / (after[1] - before[1]))
        ratios.append(rates[traced] / rates[plain])
    bench.at_least(f"{named}: calls/s with traces against without", median(ratios), 0.97)
    bench.report(f"{named}: calls/s with traces", rates[traced], "/s")
    times = f"{named}: processor time of the server, a call"
    bench.report(times, 1e6 * median(cost[plain]), "us")
    bench.report(f"{times} that is traced", 1e6 * median(cost[traced]), "us")


def _callers(callers: int, connections: int) -> str:
    if callers == 1:
        return "1 caller"
    return f"{callers} callers, {'one connection' if connections == 1 else 'a connection each'}"


def _compare_with_echo(bench: Bench, rpc: str, found: dict[tuple[str, int, int], list[dict]]) -> None:
    """The echo that answers from another thread shows how much of the difference is the cost of that in gRPC."""
    names = ("echo", "echo from another thread", "server")
    threaded = names[1]
    p50 = {name: median([percentile(run, "OK", "p50") for run in found[name, 1, 1]]) for name in names}
    bench.at_most(f"{rpc}, 1 caller: p50 against echo", ratio(p50["server"], p50["echo"]), 1.6)
    bench.report(f"{rpc}, 1 caller: p50 of an {threaded} against echo", ratio(p50[threaded], p50["echo"]), "x")
    for name in names:
        bench.report(f"{rpc}, {name}, 1 caller: p50", 1e6 * p50[name], "us")
    for connections in (8, 1):
        callers = _callers(8, connections)
        rate = {name: median([run["answers_per_second"] for run in found[name, 8, connections]]) for name in names}
        bench.at_least(f"{rpc}, {callers}: calls/s against echo", ratio(rate["server"], rate["echo"]), 0.6)
        bench.report(f"{rpc}, {callers}: an {threaded} against echo", ratio(rate[threaded], rate["echo"]), "x")
        for name in names:
            bench.report(f"{rpc}, {name}, {callers}", rate[name], "/s")


def cache_count(bench: Bench) -> None:
    """How many streams of full context a GiB of cache holds, against full attention's keys and values."""
    options = bench.options
    model = bench.language_model(options.long_memory)
    workload = f"generate,{IDS},prompt={model.memory},tokens=512"
    with bench.serve(model, "--max-streams=1") as server:
        peak = _peak_of_metric(bench, server, workload)
    full = model.full_attention_bytes(ELEMENT_BYTES[options.precision])
    name = f"streams per GiB against full attention (M={model.memory:,}, {options.precision})"
    bench.at_least(name, ratio(full, peak), 12)
    bench.report("cache bytes of one stream (longshort_cache_bytes, used)", peak, "bytes")
    bench.report("full attention's keys and values of M tokens", full, "bytes")
    bench.report("streams per GiB", ratio(2**30, peak), "")
    bench.report("full attention's", ratio(2**30, full), "")


def _peak_of_metric(bench: Bench, server: ServerProcess, workload: str) -> float:
    """The most bytes of cache that were used while one request ran."""
    over, peak = threading.Event(), [0.0]

    def watch() -> None:
        while not over.wait(0.1):
            peak[0] = max(peak[0], server.metric("longshort_cache_bytes", state="used"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        bench.first_token(server, workload, seed=1)
    finally:
        over.set()
        watcher.join()
    return peak[0]


def prefixes(bench: Bench) -> None:
    """Many prefixes: what keeping one costs, how many the cache can and does keep, and what a hit costs."""
    options = bench.options
    model = bench.language_model()
    shared, count = options.prefix_tokens, options.prefixes
    workload = f"generate,{IDS},prompt={shared + 16},shared={shared},tokens=1"
    with bench.serve(model) as server:
        bench.first_token(server, f"{workload},prefix={count}", seed=100)  # alone, to see what it keeps
        ends = KeptEnds.from_metrics(server.metric)
        arguments = ["--warm-up=0s", "--seconds=24h", "--seed=100"]
        load = f"--workload={workload},prefixes={count},requests={count},concurrency=1"
        (read,) = bench.load(server, f"{count} prefixes, each for the first time", load, *arguments)
        cold = percentile(read, "first_token", "p50")
        print("\n".join(line for line in server.metrics().splitlines() if line.startswith("longshort_cache")))
        kept = server.metric("longshort_cache_ends")
        hits = _find_hits(bench, server, workload)
    if ends is not None:
        _report_what_fits(bench, ends)
    # One that is given up leaves what was read before it as an end, while the pages of that are there.
    bench.report(f"ends that it keeps after {count:,} prefixes were read, shortened ones too", kept)
    bench.report(f"prefixes of {shared:,} tokens still there after {count:,} were read", len(hits))
    if hits:
        bench.report("first token after a hit, p50", 1000 * median(hits), "ms")
        bench.report("first token without, against with", ratio(cold, median(hits)), "x")
    bench.report("first token without, p50", 1000 * cold, "ms")


def _report_what_fits(bench: Bench, ends: KeptEnds) -> None:
    """What one end needs, and how many the cache has room for by that. Pages that no end needs do not count."""
    for kind in KINDS:
        size = f"{ends.page_bytes[kind]:,} bytes each"
        bench.report(f"{kind.replace('_', ' ')} pages that one kept end needs, {size}", ends.pages[kind])
    bench.report("bytes of one kept end", ends.bytes_of_one, "bytes")
    scarce = f"{ends.scarcest.replace('_', ' ')} pages are gone first"
    bench.report(f"ends that {ends.cache_bytes:,} bytes of cache can keep ({scarce})", ends.most)


def _find_hits(bench: Bench, server: ServerProcess, workload: str) -> list[float]:
    """Seconds to the first token of the prefixes that are still there: of which nothing had to be read again.

    From the newest to the oldest, since a miss takes the place of an older one; gives up after ten misses in a row.
    """
    hits: list[float] = []
    misses = 0
    for prefix in reversed(range(bench.options.prefixes)):
        before = server.metric("longshort_reused_tokens_total")
        seconds = bench.first_token(server, f"{workload},prefix={prefix}", seed=200)
        if server.metric("longshort_reused_tokens_total") - before >= bench.options.prefix_tokens:
            hits.append(seconds)
            misses = 0
        else:
            misses += 1
        if misses == 10:
            break
    return hits


ALL = {
    "streams": streams,
    "shared-prefix": shared_prefix,
    "long-prompt": long_prompt,
    "overload": overload,
    "identity": identity,
    "http": http,
    "open-inference": open_inference,
    "encryption": encryption,
    "traces": traces,
    "cache-count": cache_count,
    "prefixes": prefixes,
}
