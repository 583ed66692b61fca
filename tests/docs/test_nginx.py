"""docs/operations/proxies.md: its configuration of a real nginx forwards streams at once, and bodies of 8 MB."""

from __future__ import annotations

from pathlib import Path

import pytest
from integration.server_process import ROOT

from docs.blocks import Block, block_of
from docs.fresh_shell import FreshShell

NGINX = ROOT / "build/nginx/usr/sbin/nginx"

# nginx.conf needs more than the page's servers, which are in its place. Another server has nginx's defaults.
CONFIGURATION = """
daemon off;
master_process off;
pid nginx.pid;
events {{}}
http {{
access_log off;
client_body_temp_path body;
proxy_temp_path proxy;
fastcgi_temp_path fastcgi;
uwsgi_temp_path uwsgi;
scgi_temp_path scgi;
{servers}
server {{ listen 8082; location / {{ proxy_pass http://127.0.0.1:8501; }} }}
}}
"""

# A server whose silent streams send a comment every 100 ms; nginx in front of it.
START = f"""
build/release/bin/longshort-server --model-repository=models/zoo --keepalive-interval=100ms
{NGINX} -p "$PWD/nginx" -c nginx.conf -e stderr &
until curl 127.0.0.1:8080/readyz; do kill -0 $!; sleep 0.1; done
"""

# By its defaults nginx would hold 4 KB of an answer back, which are 300 comments.
STREAM = """
import http.client, json
text = open("deploy/paragraph.txt").read() * 1000
body = json.dumps({"model": "enwiki", "prompt": text, "stream": True})
for port in (8080, 8082):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", "/v1/completions", body, {"content-type": "application/json"})
    print(len(connection.getresponse().read1()))
"""

BODY = """
import http.client, io
import longshort, numpy
from PIL import Image
noise = numpy.random.default_rng(1).integers(0, 256, (1600, 1700, 3), numpy.uint8)
file = io.BytesIO()
Image.fromarray(noise).save(file, "png")
connection = http.client.HTTPConnection("127.0.0.1", 8080, timeout=60)
connection.request("POST", "/classify?model=flowers", file.getvalue(), {"content-type": "image/png"})
print(len(file.getvalue()), connection.getresponse().status)
with longshort.Client("127.0.0.1:8081") as client:
    print(len(client.classify([file.getvalue()], model="flowers")))
"""

GRPC = """
import longshort
with longshort.Client("127.0.0.1:8081", model="enwiki") as client:
    print(len("".join(client.generate("The history of ", max_tokens=50))) > 20)
    print(sum(score.error is None for score in client.score_stream(["one", "two"])))
"""


@pytest.mark.skipif(not NGINX.exists(), reason="build/nginx is missing: run deploy/install --tests")
def test_nginx_forwards_streams_at_once_and_large_bodies(tmp_path: Path) -> None:
    servers = block_of("docs/operations/proxies.md", "server {")
    shell = FreshShell(tmp_path)
    (shell.checkout / "nginx").mkdir()
    (shell.checkout / "nginx/nginx.conf").write_text(CONFIGURATION.format(servers=servers.code))
    programs = [Block("", "python", program) for program in (STREAM, BODY, GRPC)]
    _, stream, body, grpc = shell.run([Block("", "sh", START), *programs])
    assert all(0 < int(first) < 1000 for first in stream.split())
    size, status, images = (int(word) for word in body.split())
    assert 8_000_000 < size < 8 << 20 and status == 200 and images == 1
    assert grpc.split() == ["True", "2"]
