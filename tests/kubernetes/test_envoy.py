"""The component envoy with a real Envoy in front of a real server, both with what their pods have."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import grpc
import pytest
from integration import model_directory
from integration.envoy_process import BINARY, EnvoyProcess
from integration.server_process import Server, wait_until
from longshort._proto import inference_pb2

from kubernetes.rendered import Rendered, render_with_components
from kubernetes.test_servers import PORTS, Secrets


class Pod:
    """The files of Envoy's pod in a folder, with paths and addresses of this machine."""

    def __init__(self, rendered: Rendered, folder: Path, secrets: Secrets) -> None:
        pod = rendered.one("Deployment", "envoy")["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        self._places: dict[str, Path] = {}
        files: dict[Path, bytes] = {}
        for mount in container["volumeMounts"]:
            volume = volumes[mount["name"]]
            place = self._places[mount["mountPath"]] = folder / Path(mount["mountPath"]).name
            place.mkdir(parents=True)
            if "configMap" in volume:
                data = rendered.one("ConfigMap", volume["configMap"]["name"])["data"]
                files |= {place / name: text.encode() for name, text in data.items()}
            else:
                content = secrets.files[volume["secret"]["secretName"]]
                items = volume["secret"].get("items", [{"key": name, "path": name} for name in content])
                files |= {place / item["path"]: content[item["key"]] for item in items}
        self.configuration = Path(self.here(container["args"][1]))
        for path, content in files.items():
            path.write_bytes(content)
            if path.suffix == ".yaml":
                path.write_text(self.here(path.read_text()))

    def here(self, text: str) -> str:
        for place in sorted(self._places, key=len, reverse=True):
            text = text.replace(f"{place}/", f"{self._places[place]}/").replace(
                f"{place}}}", f"{self._places[place]}}}"
            )
        return text

    def change(self, old: str, new: str) -> None:
        text = self.configuration.read_text()
        assert old in text
        self.configuration.write_text(text.replace(old, new))


@pytest.mark.parametrize("components", [("envoy",), ("envoy", "mtls")], ids="+".join)
def test_calls_go_through_envoy_to_the_servers(components: tuple[str, ...], tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o755)
    rendered = render_with_components(tmp_path / "own", *components)
    secrets = Secrets(tmp_path / "server")
    model_directory.write(tmp_path / "models")
    arguments = rendered.arguments_at(tmp_path, {"/models": tmp_path / "models", **secrets.mount(rendered)})
    pod = Pod(rendered, tmp_path / "envoy", secrets)
    trusted = secrets.authority.pem if "mtls" in components else None
    with Server(tmp_path / "models", tmp_path / "log", *arguments, *PORTS, trusted=trusted) as server:
        pod.change("address: 0.0.0.0, port_value: 8443", "address: 127.0.0.1, port_value: 0")
        pod.change("port_value: 9901", "port_value: 0")
        pod.change(
            "address: longshort-servers, port_value: 8500", f"address: localhost, port_value: {server.grpc_port}"
        )
        pod.change(
            "address: longshort-servers, port_value: 8501", f"address: localhost, port_value: {server.http_port}"
        )
        check = [BINARY, "--mode", "validate", "-c", pod.configuration]
        done = subprocess.run(check, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0 and "deprecated" not in done.stderr.lower(), done.stderr
        with EnvoyProcess(tmp_path / "envoy", pod.configuration) as envoy:
            wait_until(lambda: envoy.health(server.grpc_port) == {True})
            credentials = grpc.ssl_channel_credentials(secrets.proxy.pem)
            with grpc.secure_channel(
                f"localhost:{envoy.port}", credentials, [("grpc.enable_http_proxy", 0)]
            ) as channel:
                tokenize = channel.unary_unary(
                    "/longshort.v1.Inference/Tokenize",
                    request_serializer=inference_pb2.TokenizeRequest.SerializeToString,
                    response_deserializer=inference_pb2.TokenizeResponse.FromString,
                )
                question = inference_pb2.TokenizeRequest(input={"text": "x"})
                bearer = [("authorization", f"Bearer {secrets.token}")]
                assert tokenize(question, metadata=bearer, timeout=30).ids
                if trusted:
                    refused = tokenize.future(question, timeout=30)
                    assert refused.code() == grpc.StatusCode.UNAUTHENTICATED
