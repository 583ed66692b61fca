"""The image of longshort-batch, beside a container of the server, as the Jobs of deploy/kubernetes/batch run them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from longshort.batch.output.verifying import entries_of

from image.conftest import BATCH_IMAGE, Container, podman, run_options

DOCUMENTS = 20


def test_a_run_in_a_pod_is_written_once(start_container: Callable[..., Container], tmp_path: Path) -> None:
    lines = [json.dumps({"text": f"Document {n} of a corpus."}) + "\n" for n in range(DOCUMENTS)]
    (tmp_path / "corpus.jsonl").write_text("".join(lines))
    out = tmp_path / "out"
    out.mkdir()
    for folder in (tmp_path, out):
        folder.chmod(0o777)
    server = start_container()
    server.wait_until_ready()
    options = [option for option in run_options() if not option.startswith("--network")]
    command = [
        "run", "--rm", f"--network=container:{server.id}", *options, f"--volume={tmp_path}:/corpus", BATCH_IMAGE,
        "score", "/corpus/corpus.jsonl", "--out=/corpus/out", "--model=enwiki", "--shard-rows=8", "--json",
    ]  # fmt: skip
    first = podman(*command)
    assert json.loads(first.stdout.splitlines()[-1])["all_rows"] == DOCUMENTS, first.stdout
    assert {os.stat(path).st_uid for path in out.glob("rows/*")} == {65532}
    assert sum(entry.scored for entry in entries_of(str(out))) == DOCUMENTS
    again = json.loads(podman(*command).stdout.splitlines()[-1])
    assert (again["rows"], again["all_rows"]) == (0, DOCUMENTS), "it was all there"
