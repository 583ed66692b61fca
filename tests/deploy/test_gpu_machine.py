"""deploy/install, deploy/quickstart and LONGSHORT_CUDA=auto where a false nvidia-smi lists a GPU, or none."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SITE = ".venv/lib/python3.11/site-packages"

# Writes its arguments to a file, and installs nvcc where the requirements have it.
PYTHON = """#!/bin/bash
echo "$@" >>"{checkout}/pip.log"
if [[ $* == *requirements-cuda.txt* ]]; then
  mkdir -p "{cuda}/bin" "{cuda}/lib"
  printf '#!/bin/bash\\n' >"{cuda}/bin/nvcc"
  chmod +x "{cuda}/bin/nvcc"
fi
"""
# The server: answers any request until SIGTERM.
SERVER = """#!/usr/bin/python3
import http.server, json, signal, sys
open("{checkout}/server.log", "w").write(" ".join(sys.argv[1:]))
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"longshort_requests_total 1\\n")
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
port_file = next(argument for argument in sys.argv if argument.startswith("--port-file=")).split("=")[1]
open(port_file, "w").write(json.dumps({{"grpc": 1, "http": server.server_address[1]}}))
server.serve_forever()
"""


def write_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


class Machine:
    """A checkout with the scripts of deploy, and false programs around them. `version`: what the client prints."""

    def __init__(self, folder: Path, gpus: str, version: str = "longshort 0.1.0") -> None:
        self.checkout = folder / "checkout"
        shutil.copytree(ROOT / "deploy", self.checkout / "deploy")
        (self.checkout / "models/convert").mkdir(parents=True)
        shutil.copy(ROOT / "models/convert/pyproject.toml", self.checkout / "models/convert")
        self.cuda = self.checkout / SITE / "nvidia/cu13"
        known = {"checkout": self.checkout, "cuda": self.cuda}
        write_program(self.checkout / ".venv/bin/python", PYTHON.format(**known))
        write_program(self.checkout / "build/release/bin/longshort", f"#!/bin/bash\necho '{version}'\n")
        write_program(self.checkout / "build/release/bin/longshort-server", SERVER.format(**known))
        # An earlier build's, of another LibTorch.
        (self.checkout / "build/release/build.ninja").touch()
        os.utime(self.checkout / "build/release/build.ninja", (0, 0))
        self.programs = folder / "programs"
        write_program(self.programs / "nvidia-smi", f"#!/bin/bash\n{gpus}\n")
        write_program(self.programs / "cmake", f'#!/bin/bash\necho "$@" >>"{self.checkout}/cmake.log"\n')
        every = 'for name in "${@:4}"; do echo "installed $name"; done'
        write_program(self.programs / "dpkg-query", f"#!/bin/bash\n{every}\n")

    def run(self, *command: str) -> str:
        environment = {**os.environ, "PATH": f"{self.programs}:{os.environ['PATH']}"}
        done = subprocess.run(
            [self.checkout / command[0], *command[1:]],
            capture_output=True, text=True, check=False, env=environment, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def log(self, name: str) -> str:
        return (self.checkout / f"{name}.log").read_text()


A_GPU = "echo 'GPU 0: NVIDIA H200 (UUID: GPU-0)'"
NO_GPU = "echo 'NVIDIA-SMI has failed' >&2; exit 9"


def test_a_machine_with_a_gpu_gets_libtorch_with_its_libraries(tmp_path: Path) -> None:
    machine = Machine(tmp_path, A_GPU)
    machine.run("deploy/install")
    assert "deploy/requirements-cuda.txt" in machine.log("pip")
    assert (machine.cuda / "lib64").readlink() == Path("lib")
    assert (machine.cuda / "lib/libcudart.so").readlink() == Path("libcudart.so.13")


@pytest.mark.parametrize(("gpus", "arguments"), [(NO_GPU, []), (A_GPU, ["--build"])])
def test_other_machines_and_image_builds_get_libtorch_for_the_cpu(
    tmp_path: Path, gpus: str, arguments: list[str]
) -> None:
    machine = Machine(tmp_path, gpus)
    machine.run("deploy/install", *arguments)
    assert "deploy/requirements.txt" in machine.log("pip")
    assert "requirements-cuda.txt" not in machine.log("pip")


@pytest.mark.parametrize(
    ("gpus", "version", "on_gpu"),
    [
        (A_GPU, "longshort 0.1.0 (built with CUDA toolkit 13.0)", True),
        (A_GPU, "longshort 0.1.0", False),
        (NO_GPU, "longshort 0.1.0 (built with CUDA toolkit 13.0)", False),
    ],
)
def test_quickstart_serves_on_a_gpu_that_the_build_knows(tmp_path: Path, gpus: str, version: str, on_gpu: bool) -> None:
    machine = Machine(tmp_path, gpus, version)
    assert "the server stopped cleanly" in machine.run("deploy/quickstart")
    assert ("--devices=cuda:0" in machine.log("server").split()) == on_gpu
    assert "--preset release" in machine.log("cmake"), "configured with the LibTorch that is installed now"


@pytest.mark.parametrize(
    ("gpus", "complete", "expected"), [(A_GPU, True, "ON"), (A_GPU, False, "OFF"), (NO_GPU, True, "OFF")]
)
def test_auto_is_on_where_a_gpus_programs_could_start(tmp_path: Path, gpus: str, complete: bool, expected: str) -> None:
    libraries = tmp_path / SITE / "torch/lib"
    write_program(tmp_path / SITE / "torch/include/ATen/ATen.h", "")
    libraries.mkdir(parents=True)
    (tmp_path / "empty.c").touch()
    link = ["gcc", "-shared", "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN", f"-L{libraries}"]
    subprocess.run([*link, "-o", libraries / "libcufile.so", tmp_path / "empty.c"], check=True)
    subprocess.run([*link, "-o", libraries / "libtorch_cuda.so", tmp_path / "empty.c", "-lcufile"], check=True)
    if not complete:
        (libraries / "libcufile.so").unlink()
    write_program(tmp_path / "programs/nvidia-smi", f"#!/bin/bash\n{gpus}\n")
    write_program(tmp_path / "programs/nvcc", "#!/bin/bash\n")
    # What a script of CMake cannot do.
    without = "".join(f"macro({name})\nendmacro()\n" for name in ("enable_language", "find_package", "add_library"))
    script = tmp_path / "auto.cmake"
    script.write_text(
        f'{without}set(PROJECT_SOURCE_DIR "{tmp_path}")\nset(LONGSHORT_CUDA auto)\n'
        f'include("{ROOT}/cmake/LongshortCuda.cmake")\nmessage("WITH ${{LONGSHORT_WITH_CUDA}}")\n'
    )
    environment = {**os.environ, "PATH": f"{tmp_path}/programs:{os.environ['PATH']}"}
    done = subprocess.run(
        ["cmake", "-P", script], capture_output=True, text=True, check=False, env=environment, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert f"WITH {expected}" in done.stderr
    assert ("does not find its libraries" in done.stdout + done.stderr) == (gpus == A_GPU and not complete)
