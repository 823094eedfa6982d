"""What a person asks of an agent that is not running: what is wrong here (doctor), and take it away (uninstall)."""

import asyncio
import http.client
import os
import shutil
import socket
import ssl
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from windrow_agent.core.discovery import Copy, Seed
from windrow_agent.enrol import load_seeds
from windrow_agent.resolver import Resolver
from windrow_agent.runtimes import docker_socket, sandbox
from windrow_proto.clock import SystemRng
from windrow_proto.dns_names import SERVICE
from windrow_proto.enrol import Identity, IdentityFolder, fetch_regions
from windrow_proto.errors import WindrowError
from windrow_proto.ids import HostId
from windrow_proto.units import DAY, GIB, SECOND
from windrow_proto.wire_link import decode_region_map

DIAL_S: Final = 5.0
FREE_BYTES_WANTED: Final = 2 * GIB
SKEW_S: Final = 5.0
"""Beyond this the Master flags the host; leases and bills do not depend on it."""
STATE: Final = (
    "identity",
    "journal",
    "spool",
    "process",
    "docker",
    "regions.bin",
    "seeds.txt",
    "agent.lock",
    "agent.json",
)
"""All that an agent keeps in its folder."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. repair is empty where nothing is wrong."""

    is_good: bool
    what: str
    repair: str = ""


def examine(data_dir: Path, docker_url: str) -> Iterator[Finding]:
    """Look at everything an agent needs, cheapest first. Blocking; each step has a deadline."""
    yield _folder(data_dir)
    identity = None
    folder = IdentityFolder(data_dir / "identity")
    try:
        identity = folder.load()
        yield Finding(True, f"member {identity.subject_id} of {identity.master_url}")
    except WindrowError:
        repair = "Join: windrow-agent join https://MASTER:8443 --token-file FILE"
        yield Finding(False, f"no identity in {folder.path}", repair)
    if identity is not None:
        yield from _identity(folder, identity)
        for place in load_seeds(data_dir):
            yield _copy(identity, place) if isinstance(place, Copy) else _seed(identity, place)
    yield from _runtimes(data_dir, docker_url)
    yield _driver()


def _folder(data_dir: Path) -> Finding:
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe = data_dir / ".doctor"
        probe.write_bytes(b"x")
        probe.unlink()
        free = shutil.disk_usage(data_dir).free
    except OSError as error:
        return Finding(False, f"{data_dir} cannot be written: {error.strerror}", "Give the agent's user this folder.")
    if free < FREE_BYTES_WANTED:
        return Finding(
            False, f"{data_dir} has {free // 2**20} MiB left", "Free some space: spool and workloads need it."
        )
    return Finding(True, f"{data_dir} has {free // GIB} GiB left")


def _identity(folder: IdentityFolder, identity: Identity) -> Iterator[Finding]:
    mode = stat.S_IMODE(os.stat(folder.path / "identity.json").st_mode)
    if mode & 0o077:
        yield Finding(False, f"others may read {folder.path}", f"chmod -R go= {folder.path}")
    left_ns = identity.not_after_ns - time.time_ns()
    if left_ns > 0:
        yield Finding(True, f"certificate valid for {left_ns // (3600 * SECOND)} h more")
    elif left_ns > -30 * DAY:
        yield Finding(True, "certificate expired; the agent renews it by itself when it starts")
    else:
        repair = "Join again: windrow-agent uninstall, then windrow-agent join."
        yield Finding(False, "certificate expired more than 30 days ago", repair)
    yield _master(identity)
    points = decode_region_map(identity.region_map).points if identity.region_map else ()
    for point in points:
        yield _tcp(point.address, f"Access {point.access_id} in {point.region}")
    if not points:
        yield Finding(False, "no Access is known", "Join again, or ask the operator whether an Access is up.")


def _master(identity: Identity) -> Finding:
    parts = urlsplit(identity.master_url)
    context = ssl.create_default_context(cadata=identity.tls.ca_pem.decode())
    connection = http.client.HTTPSConnection(parts.hostname or "", parts.port or 443, timeout=DIAL_S, context=context)
    try:
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        answer.read(4096)
        told = answer.getheader("Date")
    except (OSError, http.client.HTTPException) as error:
        repair = "Check that the Master runs, its address, and that no firewall is in between."
        return Finding(False, f"the Master at {identity.master_url} cannot be reached: {error}", repair)
    finally:
        connection.close()
    skew_s = abs(time.time() - parsedate_to_datetime(told).timestamp()) if told else 0.0
    if skew_s > SKEW_S:
        return Finding(False, f"this clock is {skew_s:.0f} s off the Master's", "Switch on time synchronisation (NTP).")
    return Finding(True, f"the Master at {identity.master_url} answers")


def _seed(identity: Identity, seed: Seed) -> Finding:
    found = asyncio.run(Resolver(SystemRng()).look(HostId(identity.subject_id), (seed,)))
    if found:
        return Finding(True, f"{seed} names {len(found)} addresses of Accesses")
    repair = f"Ask the operator for the record {SERVICE}.{seed.domain}; it is needed only when no known Access answers."
    return Finding(False, f"{seed} names no Access", repair)


def _copy(identity: Identity, copy: Copy) -> Finding:
    try:
        body = fetch_regions(copy.url, identity.tls.ca_pem, identity.master_public, DIAL_S)
        return Finding(True, f"{copy} has a map of {len(decode_region_map(body).points)} Accesses")
    except WindrowError as error:
        repair = (
            f"Put there what {identity.master_url}/api/v1/regions says; it is needed only when no known Access answers."
        )
        return Finding(False, f"{copy} has no map of this market: {error.detail}", repair)


def _tcp(address: str, name: str) -> Finding:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=DIAL_S):
            return Finding(True, f"{name} at {address} can be reached")
    except (OSError, ValueError) as error:
        repair = f"Let this host dial out to {address}; nothing has to be let in."
        return Finding(False, f"{name} at {address} cannot be reached: {error}", repair)


def _runtimes(data_dir: Path, docker_url: str) -> Iterator[Finding]:
    try:
        version = docker_socket.ask(docker_url, "/version", DIAL_S).get("Version", "?")
        yield Finding(True, f"containers by {version} at {docker_url}")
    except WindrowError as error:
        repair = "Start Docker, or add the agent's user to its group; without it only your own processes run here."
        yield Finding(False, error.detail, repair)
    if sandbox.find_sandbox(data_dir).bwrap:
        yield Finding(True, "process workloads are wrapped by bubblewrap")
    else:
        repair = "Install bubblewrap (apt-get install bubblewrap); until then they run with this user's rights."
        yield Finding(False, "bubblewrap does not start here", repair)


def _driver() -> Finding:
    version = Path("/proc/driver/nvidia/version")
    if version.is_file():
        return Finding(True, version.read_text(errors="replace").splitlines()[0][:100])
    return Finding(True, "no NVIDIA driver is loaded: this host offers processors")


def remove_state(data_dir: Path) -> list[str]:
    """Delete all that the agent keeps; returns what could not be deleted, with the reason."""
    failed: list[str] = []

    def note(function: Callable[..., object], path: str, error: object) -> None:
        del function
        failed.append(f"{path}: {error}")

    for name in STATE:
        path = data_dir / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, onerror=lambda function, where, why: note(function, where, why[1]))
        else:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                note(Path.unlink, str(path), error)
    try:
        data_dir.rmdir()
    except OSError:
        pass  # somebody else keeps something there, too
    return failed
