"""The network namespace of one process workload: made before the workload starts, entered to reach it, removed with it.

    ensure ──▶ network.json ──▶ the shim joins its pid ──▶ dial, device ──▶ end

What holds it, and pasta, which leads out of it, are processes of the workload's user outside of its sandbox
(netns_helper.py). Where pasta or nft is missing or does not work here, it has loopback alone, and the host says so.
"""

import asyncio
import contextlib
import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from windrow_agent.core import egress, listeners
from windrow_agent.host.psutil_reader import addresses
from windrow_agent.runtimes import netns_helper, shim
from windrow_proto.errors import RuntimeUnavailable

NOTE: Final = "network.json"
"""In a workload's folder: the processes that hold its network, and why it leads nowhere."""
RESOLV_CONF: Final = Path("/etc/resolv.conf")
SEARCH_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MAKE_S: Final = 30.0
"""For a network to be made; it takes a tenth of a second."""
ENTER_S: Final = 10.0
"""For a connection or a device inside; a loaded machine needs a second."""
DIAL_S: Final = 4.0
"""For a workload to accept."""
PASTA: Final = (
    *("--quiet", "--ipv4-only", "--config-net", "--no-map-gw"),
    *("--address", egress.INSIDE, "--netmask", str(egress.INSIDE_BITS), "--gateway", egress.GATEWAY),
    *("--udp-ports", "none", "--tcp-ns", "none", "--udp-ns", "none"),
)
"""The host's loopback is not its gateway, and no port of the host's loopback appears inside."""
_SCRIPT: Final = str(Path(netns_helper.__file__))
_TABLES: Final = ("tcp", "tcp6")


@dataclass(frozen=True, slots=True)
class Tools:
    """The programs that lead out of a network on this host. pasta, nft: paths; why: the reason if one is missing, else
    empty."""

    pasta: str = ""
    nft: str = ""
    name_server: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class ProcessNetwork:
    """One that is there. pid: of a process in it; why: it leads nowhere, for this reason; ports: that of this host's
    loopback lead into it."""

    pid: int
    why: str = ""
    ports: tuple[int, ...] = ()


def tools() -> Tools:
    """Look for them. Blocking."""
    pasta, nft = shutil.which("pasta", path=SEARCH_PATH), shutil.which("nft", path=SEARCH_PATH)
    if pasta is None:
        return Tools(nft=nft or "", why="pasta is missing (on Debian: apt-get install passt)")
    if nft is None:
        return Tools(why="nft is missing (on Debian: apt-get install nftables)")
    try:
        text = RESOLV_CONF.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    return Tools(pasta, nft, egress.name_server(text))


def ensure(folder: Path, mark: bytes, user: int | None, found: Tools, ports: tuple[int, ...] = ()) -> ProcessNetwork:
    """The network of the workload with this folder, made if it is not there. Blocking. Raises RuntimeUnavailable.

    mark: what the environment of every process of a workload has. user: who the workload is; None: this user. ports: to
    be published on this host's loopback, all of them or, where one is in use, none.
    """
    if (there := of(folder)) is not None:
        return there
    end(folder)
    told = _made(mark, user, found, ports)
    shim.write_whole(str(folder), NOTE, {**told, "boot_id": shim.boot_id()})
    if (there := of(folder)) is None:
        raise RuntimeUnavailable(f"The network of {folder.name} could not be made: {told['why']}.", subject=folder.name)
    return there


def of(folder: Path) -> ProcessNetwork | None:
    """The network of the workload with this folder; None: there is none now."""
    try:
        note = json.loads((folder / NOTE).read_bytes())
    except (OSError, ValueError):
        return None
    if note["boot_id"] != shim.boot_id() or not note["pids"] or not shim.is_alive(*note["pids"][0]):
        return None
    return ProcessNetwork(int(note["pids"][0][0]), str(note["why"]), tuple(note["ports"]))


def pids(folder: Path) -> list[list[int]]:
    """Those that hold it, each with its start, for whoever ends them with the workload."""
    with contextlib.suppress(OSError, ValueError):
        note = json.loads((folder / NOTE).read_bytes())
        return list(note["pids"]) if note["boot_id"] == shim.boot_id() else []
    return []


def end(folder: Path) -> None:
    """Take away what holds it; the network goes with the last process in it."""
    _kill({"pids": pids(folder)})


def _made(mark: bytes, user: int | None, found: Tools, ports: tuple[int, ...]) -> dict[str, Any]:
    name, value = mark.decode().split("=", 1)
    dns = ("--dns", found.name_server, "--dns-forward", egress.GATEWAY) if found.name_server else ()
    published = f"127.0.0.1/{','.join(map(str, ports))}" if ports else "none"
    asked = {
        "user": user,
        "nft": found.nft,
        "rules": egress.rules_within(addresses()),
        "pasta": [found.pasta, *PASTA, *dns] if found.pasta and found.nft else [],
        "published": list(dict.fromkeys((published, "none"))),
        "env": {name: value},
        "why": found.why,
    }
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", _SCRIPT, "hold"],
            input=json.dumps(asked).encode(),
            capture_output=True,
            start_new_session=True,
            cwd="/",
            env={"PATH": SEARCH_PATH, name: value},
            timeout=MAKE_S,
            check=False,
        )
        told: dict[str, Any] = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return {"pids": [], "why": str(error)[:200], "ports": []}
    return {**told, "ports": list(ports) if told["published"] == published else []}


def _kill(told: dict[str, Any]) -> None:
    for pid, ticks in told["pids"]:
        if shim.is_alive(pid, ticks):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


# --- inside -----------------------------------------------------------------------------------------------------------


def listening(network: ProcessNetwork, port: int) -> tuple[str, ...]:
    """The addresses inside at which something listens on this port: all that is there is the workload's. Blocking."""
    found: list[listeners.Listener] = []
    for table in _TABLES:
        with contextlib.suppress(OSError):
            found += listeners.parse(Path(f"/proc/{network.pid}/net/{table}").read_text())
    return listeners.dialled(found, port, {one.inode for one in found})


async def dial(network: ProcessNetwork, address: str, port: int) -> socket.socket:
    """A connection to this address inside, which does not block. Raises OSError."""
    made = socket.socket(fileno=await asyncio.to_thread(_handed, network.pid, "dial", address, str(port), str(DIAL_S)))
    made.setblocking(False)
    return made


def device(pid: int, name: str, address: str, bits: int, mtu: int) -> int:
    """The descriptor of a TUN device in the network of this process. Blocking. Raises OSError."""
    return _handed(pid, "tun", name, address, str(bits), str(mtu))


def _handed(pid: int, what: str, *words: str) -> int:
    """Takes over the descriptor that a process of its own has made inside. Raises OSError."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = [sys.executable, "-I", "-S", _SCRIPT, what, str(pid), *words]
        env = {"PATH": SEARCH_PATH}
        made = subprocess.Popen(command, stdin=theirs.fileno(), stdout=subprocess.DEVNULL, cwd="/", env=env)
        try:
            theirs.close()
            ours.settimeout(ENTER_S)
            said, descriptors, _, _ = socket.recv_fds(ours, 16, 1)
        finally:
            made.kill()
            made.wait()
    if not descriptors:
        number = int(said) if said.isdigit() else errno.ECONNREFUSED
        raise OSError(number, os.strerror(number))
    return descriptors[0]
