"""Turns what a person types into a cluster request: `--gpu 24GB`, `--gpu H100:2`, `--memory 8GB`. Pure."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from windrow.errors import WindrowClientError

_SIZE = re.compile(r"^(\d+(?:\.\d+)?)\s*([KMGT])(i?)B?$", re.IGNORECASE)
_POWERS = {"K": 1, "M": 2, "G": 3, "T": 4}
_SPAN = re.compile(r"^(\d+(?:\.\d+)?)([smhd]?)$")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


def parse_size(text: str) -> int:
    """`24GB` is 24 * 10**9 bytes, `24GiB` 24 * 2**30; raises WindrowClientError on anything else."""
    match = _SIZE.match(text.strip())
    if match is None:
        raise WindrowClientError(f"{text!r} is not a size. Write for example 24GB or 512MiB.")
    number, unit, binary = match.groups()
    return int(float(number) * (1024 if binary else 1000) ** _POWERS[unit.upper()])


def parse_span(text: str) -> float:
    """`90s`, `30m`, `8h`, `2d` or seconds; raises WindrowClientError on anything else."""
    match = _SPAN.match(text.strip())
    if match is None or float(match[1]) <= 0:
        raise WindrowClientError(f"{text!r} is not a time. Write for example 90s, 30m, 8h or 2d.")
    return float(match[1]) * _SECONDS[match[2]]


def parse_gpu(text: str) -> dict[str, Any]:
    """`24GB` (one GPU with at least that), `2` (two of any), `H100:2` (two of that model), `24GB:2`."""
    what, _, count = text.strip().partition(":")
    if count and not (count.isdigit() and 1 <= int(count) <= 1024):
        raise WindrowClientError(f"--gpu {text}: {count!r} is not a number of GPUs.")
    gpus = int(count or 1)
    if not count and what.isdigit():
        return {"gpus": int(what)}
    if _SIZE.match(what):
        return {"gpus": gpus, "gpu_memory_bytes": parse_size(what)}
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9 ._+-]{0,63}", what):
        raise WindrowClientError(f"--gpu {text}: write a memory size (24GB), a model (H100), or either with :count.")
    return {"gpus": gpus, "gpu_model": what}


def parse_env(pairs: Sequence[str]) -> dict[str, str]:
    """`NAME=value` pairs."""
    env: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise WindrowClientError(f"--env {name!r}: write NAME=value, or NAME for what your environment has.")
        env[name] = value
    return env


def read_requirements(path: Path) -> list[str]:
    """The packages that a requirements file names; raises WindrowClientError for options, which are the host's own."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise WindrowClientError(f"{path} cannot be read: {error}") from None
    found = [line for raw in lines if (line := re.sub(r"(^|\s)#.*$", "", raw).strip())]
    for line in found:
        if line.startswith("-") or line.endswith("\\"):
            raise WindrowClientError(
                f"{path}: {line[:80]!r} is not a package. Write one per line, as numpy or numpy==2.4."
            )
    return found


def registry_login(text: str) -> dict[str, str]:
    """`NAME:PASSWORD`, as a file or a pipe holds it; the password may have colons."""
    name, colon, password = text.strip().partition(":")
    if not colon or not name or not password:
        raise WindrowClientError("A registry's login is one line of NAME:PASSWORD.")
    return {"username": name, "password": password}


def cluster_request(
    *,
    argv: Sequence[str],
    kind: str = "box",
    name: str | None = None,
    gpu: str | None = None,
    part: str | None = None,
    cpus: int = 1,
    memory: str | None = None,
    image: str | None = None,
    env: Sequence[str] = (),
    ports: Sequence[int] = (),
    host: str | None = None,
    tier: str | None = None,
    runtime: str | None = None,
    max_price: str | None = None,
    await_files: bool = False,
    hosts: int = 1,
    restart_members: bool = False,
    ssh_keys: Sequence[str] = (),
    notebook: bool = False,
    login: str | None = None,
    max_duration: str | None = None,
    budget: str | None = None,
    idle: str | None = None,
    volumes: Sequence[str] = (),
) -> dict[str, Any]:
    """The body of POST /clusters; what was not said is left out. login: NAME:PASSWORD for the image's registry."""
    request: dict[str, Any] = {"kind": kind, "cpus": cpus, "argv": list(argv), "await_files": await_files}
    request |= parse_gpu(gpu) if gpu else {}
    optional = {
        "name": name,
        "slice": part,
        "image": image,
        "host_id": host,
        "tier": tier,
        "runtime": runtime,
        "max_price_per_hour": max_price,
        "memory_bytes": parse_size(memory) if memory else None,
        "env": parse_env(env) or None,
        "ports": list(ports) or None,
        "hosts": hosts if hosts > 1 else None,
        "restart_members": restart_members or None,
        "ssh_keys": list(ssh_keys) or None,
        "notebook": notebook or None,
        "registry_login": registry_login(login) if login is not None else None,
        "max_duration_seconds": parse_span(max_duration) if max_duration else None,
        "budget": budget,
        "idle_seconds": parse_span(idle) if idle else None,
        "volumes": list(volumes) or None,
    }
    return request | {key: value for key, value in optional.items() if value is not None}
