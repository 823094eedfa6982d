"""The commands `doctor`, which looks for what is wrong with this host, and `uninstall`, which deletes the agent's
state."""

import asyncio
import http.client
import os
import shutil
import ssl
import stat
import time
from collections.abc import Callable, Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from windrow_agent.app import doctor_facts
from windrow_agent.app.doctor_facts import DIAL_S
from windrow_agent.core.discovery import MapCopy, Seed
from windrow_agent.core.doctor import Finding, Level, judge, judge_clock, judge_path, judge_speed
from windrow_agent.link.membership import load_seeds
from windrow_agent.link.resolver import Resolver
from windrow_proto.clock import SystemRng
from windrow_proto.dns_names import SERVICE
from windrow_proto.enrol import Identity, IdentityFolder, MasterConnection, fetch_regions
from windrow_proto.errors import WindrowError
from windrow_proto.ids import HostId
from windrow_proto.units import DAY, SECOND
from windrow_proto.wire_link import decode_region_map

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


def examine(data_dir: Path, docker_url: str, is_speed_wanted: bool = False) -> Iterator[Finding]:
    """Look at everything an agent needs, cheapest first. Blocking; each step has a deadline.

    is_speed_wanted: measure the line as well, which moves up to 512 MiB.
    """
    yield _folder(data_dir)
    yield from judge(doctor_facts.machine(data_dir, docker_url))
    folder = IdentityFolder(data_dir / "identity")
    try:
        identity = folder.load()
    except WindrowError:
        repair = "Join: windrow-agent join https://MASTER:8443 --token-file FILE"
        yield Finding("identity", Level.FIX, f"no identity in {folder.path}", repair)
        return
    yield Finding("identity", Level.OK, f"member {identity.subject_id} of {identity.master_url}")
    yield from _identity(folder, identity)
    yield from _master(identity)
    yield from _accesses(identity, is_speed_wanted)
    for place in load_seeds(data_dir):
        yield _copy(identity, place) if isinstance(place, MapCopy) else _seed(identity, place)


def _folder(data_dir: Path) -> Finding:
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe = data_dir / ".doctor"
        probe.write_bytes(b"x")
        probe.unlink()
    except OSError as error:
        text = f"{data_dir} cannot be written: {error.strerror}"
        return Finding("folder", Level.FIX, text, "Give the agent's user this folder.")
    return Finding("folder", Level.OK, f"{data_dir} can be written")


def _identity(folder: IdentityFolder, identity: Identity) -> Iterator[Finding]:
    mode = stat.S_IMODE(os.stat(folder.path / "identity.json").st_mode)
    if mode & 0o077:
        yield Finding("identity", Level.FIX, f"others may read {folder.path}", f"chmod -R go= {folder.path}")
    left_ns = identity.not_after_ns - time.time_ns()
    if left_ns > 0:
        yield Finding("certificate", Level.OK, f"certificate valid for {left_ns // (3600 * SECOND)} h more")
    elif left_ns > -30 * DAY:
        text = "certificate expired; the agent renews it by itself when it starts"
        yield Finding("certificate", Level.OK, text)
    else:
        repair = "Join again: windrow-agent uninstall, then windrow-agent join."
        yield Finding("certificate", Level.FIX, "certificate expired more than 30 days ago", repair)


def _master(identity: Identity) -> Iterator[Finding]:
    parts = urlsplit(identity.master_url)
    context = ssl.create_default_context(cadata=identity.tls.ca_pem.decode())
    connection = MasterConnection(parts.hostname or "", parts.port or 443, timeout=DIAL_S, context=context)
    try:
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        answer.read(4096)
        told = answer.getheader("Date")
    except (OSError, http.client.HTTPException) as error:
        repair = "Check that the Master runs, its address, and that no firewall is in between."
        yield Finding("master", Level.FIX, f"the Master at {identity.master_url} cannot be reached: {error}", repair)
        return
    finally:
        connection.close()
    yield Finding("master", Level.OK, f"the Master at {identity.master_url} answers")
    if told:
        yield judge_clock(time.time_ns() - int(parsedate_to_datetime(told).timestamp()) * SECOND)


def _accesses(identity: Identity, is_speed_wanted: bool) -> Iterator[Finding]:
    points = decode_region_map(identity.region_map).points if identity.region_map else ()
    if not points:
        repair = "Join again, or ask the operator whether a relay is up."
        yield Finding("access", Level.FIX, "no relay is known", repair)
    found = doctor_facts.paths(identity, [(f"Relay in {point.region}", point.address) for point in points])
    for path in found:
        yield from judge_path(path)
    answering = sorted((path.rtt_ns, path.address) for path in found if path.rtt_ns is not None)
    if is_speed_wanted and answering:
        yield judge_speed(doctor_facts.speed(identity, answering[0][1]))


def _seed(identity: Identity, seed: Seed) -> Finding:
    found = asyncio.run(Resolver(SystemRng()).look(HostId(identity.subject_id), (seed,)))
    if found:
        return Finding("seed", Level.OK, f"{seed} names {len(found)} addresses of relays")
    repair = f"Ask the operator for the record {SERVICE}.{seed.domain}; it is needed only when no known relay answers."
    return Finding("seed", Level.FIX, f"{seed} names no relay", repair)


def _copy(identity: Identity, copy: MapCopy) -> Finding:
    try:
        body = fetch_regions(copy.url, identity.tls.ca_pem, identity.master_public, DIAL_S)
        return Finding("seed", Level.OK, f"{copy} has a map of {len(decode_region_map(body).points)} relays")
    except WindrowError as error:
        repair = (
            f"Put there what {identity.master_url}/api/v1/regions says; it is needed only when no known relay answers."
        )
        return Finding("seed", Level.FIX, f"{copy} has no map of this market: {error.detail}", repair)


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
