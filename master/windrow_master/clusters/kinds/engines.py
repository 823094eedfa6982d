"""Writes the addresses, ports, environment and command lines by which the members of one cluster find each other. Pure.

A cluster over several hosts has ranks 0, 1, ...; rank 0 is where the others come. All addresses and ports are fixed
before any member starts: the addresses by the hosts and by the Accesses that saw them, the ports as one block of
each cluster's own that no other living cluster on the same hosts has.

    gang   the same command everywhere, with what torchrun and the like need to join
    ray    rank 0 the head, the others workers; ports pinned, the token in the environment
    dask   rank 0 the scheduler and a worker, the others workers
"""

import shlex
from collections.abc import Collection, Mapping, Sequence
from ipaddress import IPv4Address, ip_address
from typing import Final
from urllib.parse import unquote

from windrow_master.clusters.model import ClusterKind, ClusterRequest, NetworkMode
from windrow_proto.overlay_packets import private_address

FIRST_PORT: Final = 20_000
"""Below 32768, where Linux takes ports from for outgoing connections (net.ipv4.ip_local_port_range)."""
BLOCK_PORTS: Final = 64
BLOCKS: Final = 190
"""Blocks of 64 from 20000 to 32159."""
MAIN, DASHBOARD, NODE, OBJECTS, CLIENTS, METRICS, AGENT, RUNTIME_ENV, AGENT_GRPC = range(9)
"""Places in a block: where members come; the dashboard; then Ray's own services."""
FIRST_WORKER: Final = 9
"""Ray gives each of its worker processes one port of the rest of the block."""
HEAD_STARTS: Final = 3
HEAD_SOON_S: Final = 90
"""A head of Ray that ends within so many seconds of its start never was up."""
HEAD_TRIES: Final = 30
"""How often a worker looks for its head or scheduler, two seconds apart: the members are started together, and a head
took 8.6 to 12.7 s when it was measured."""


def network_of(seen: str, own: Sequence[str]) -> tuple[str, str] | None:
    """Return the address at which others reach a host, and the name of the network in which that is so; None: nowhere.

    seen: its address as its Access saw it. own: the addresses of its interfaces, as it says. Hosts whose address is
    the one they are seen by are met there by anybody (""). Those behind one translator of addresses, where the seen one
    is not their own, are taken to share a network; so are hosts beside their Access that have nothing but loopback.
    """
    seen_at, private = _address(seen), [text for text in own if _address(text) is not None]
    if seen_at is None:
        return None
    if seen_at.is_loopback:
        outer = [text for text in private if not IPv4Address(text).is_loopback]
        return (outer[0], "") if outer else (str(seen_at), "loopback")
    if not private or str(seen_at) in private:
        return str(seen_at), ""
    return private[0], f"behind {seen_at}"


def member_address(mode: NetworkMode, first_port: int, rank: int) -> str | None:
    """Of a member in its cluster's private network, which is as much its own on these hosts as the block of ports;
    None: its members meet at their hosts' addresses."""
    if mode is not NetworkMode.TUNNELS:
        return None
    return private_address((first_port - FIRST_PORT) // BLOCK_PORTS, rank)


def _address(peer: str) -> IPv4Address | None:
    """The IPv4 address in what gRPC calls a peer (ipv4:10.0.0.5:40000), or in an address as such."""
    text = unquote(peer).removeprefix("ipv4:").removeprefix("ipv6:")
    host, _, port = text.rpartition(":")
    is_endpoint = port.isdigit() and bool(host) and (host.startswith("[") or ":" not in host)
    try:
        found = ip_address((host if is_endpoint else text).strip("[]").removeprefix("::ffff:"))
    except ValueError:
        return None
    return found if isinstance(found, IPv4Address) else None


def free_block(seed: int, taken: Collection[int]) -> int | None:
    """The first port of a block that is not taken, from where `seed` leads on; None: all are."""
    for step in range(BLOCKS):
        first = FIRST_PORT + (seed + step) % BLOCKS * BLOCK_PORTS
        if first not in taken:
            return first
    return None


def listens(kind: ClusterKind, rank: int, first_port: int) -> tuple[int, ...]:
    """The ports that a member opens for the others by itself, so that its host can say at once if one is taken."""
    if kind is ClusterKind.GANG:
        return (first_port + MAIN,) if rank == 0 else ()
    ours = (MAIN, DASHBOARD) if rank == 0 else ()
    return tuple(first_port + place for place in (*ours, *((NODE, OBJECTS) if kind is ClusterKind.RAY else (NODE,))))


def environment(
    request: ClusterRequest, rank: int, addresses: Sequence[str], first_port: int, secret: str
) -> dict[str, str]:
    """All that a member's command finds set; what the renter set wins but for the names that begin with WINDROW_.

    The names without that prefix are those that PyTorch reads: MASTER_ADDR and MASTER_PORT by init_process_group, and
    PET_* as defaults of torchrun's flags. is_host and the local address are said because torchrun else compares names
    of hosts, and waits in vain where those do not lead to the address of the rendezvous.
    """
    head, port = addresses[0], str(first_port + MAIN)
    ours = {
        "MASTER_ADDR": head,
        "MASTER_PORT": port,
        "PET_NNODES": str(len(addresses)),
        "PET_NODE_RANK": str(rank),
        "PET_RDZV_BACKEND": "c10d",
        "PET_RDZV_ENDPOINT": f"{head}:{port}",
        "PET_RDZV_CONF": f"is_host={'true' if rank == 0 else 'false'}",
        "PET_LOCAL_ADDR": addresses[rank],
        "NODE_RANK": str(rank),
    }
    engine: Mapping[str, str] = {}
    if request.kind is ClusterKind.RAY:
        engine = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secret, "RAY_ADDRESS": f"{head}:{port}"}
    if request.kind is ClusterKind.DASK:
        engine = {"DASK_SCHEDULER_ADDRESS": f"tcp://{head}:{port}"}
    known = {
        "WINDROW_RANK": str(rank),
        "WINDROW_WORLD_SIZE": str(len(addresses)),
        "WINDROW_MEMBERS": ",".join(addresses),
        "WINDROW_ADDRESS": addresses[rank],
        "WINDROW_PORT": port,
    }
    return {**(ours if request.kind is ClusterKind.GANG else {}), **engine, **request.env, **known}


def command(request: ClusterRequest, rank: int, addresses: Sequence[str], first_port: int) -> tuple[str, ...]:
    """Return the command of a member. Of Ray and Dask the renter's command runs beside the head, and its end is the
    head's."""
    match request.kind:
        case ClusterKind.RAY:
            return ("sh", "-c", _ray(rank, addresses, first_port, request), "windrow", *_driver(request, rank))
        case ClusterKind.DASK:
            return ("sh", "-c", _dask(rank, addresses, first_port, request), "windrow", *_driver(request, rank))
        case _:
            return request.argv


def _driver(request: ClusterRequest, rank: int) -> tuple[str, ...]:
    return request.argv if rank == 0 else ()


def _needs(program: str) -> str:
    said = f"windrow: there is no {program} on the PATH of this host"
    return f'command -v {program} >/dev/null || {{ echo "{said}" >&2; exit 127; }}'


def _again(line: str) -> str:
    """Run it until it succeeds once, or was tried often enough."""
    return f"n=0; until {line}; do n=$((n+1)); [ $n -ge {HEAD_TRIES} ] && exit 1; sleep 2; done"


def _soon_again(line: str) -> str:
    """Run it to its end, and again if that came soon: Ray gives a start up that takes 15 s in one of its parts, or 30 s
    in all, and knows no setting for either. A head that was up does not come back as itself."""
    late = f"$(($(date +%s) - at)) -ge {HEAD_SOON_S}"
    tried = f"n=$((n+1)); if [ $n -ge {HEAD_STARTS} ] || [ {late} ]; then exit $code; fi"
    return f"n=0; while :; do at=$(date +%s); {line}; code=$?; [ $code -eq 0 ] && exit 0; {tried}; done"


def _ray(rank: int, addresses: Sequence[str], first: int, request: ClusterRequest) -> str:
    last = first + BLOCK_PORTS - 1
    pinned = {
        "--node-ip-address": addresses[rank],
        "--node-manager-port": first + NODE,
        "--object-manager-port": first + OBJECTS,
        "--metrics-export-port": first + METRICS,
        "--dashboard-agent-listen-port": first + AGENT,
        "--dashboard-agent-grpc-port": first + AGENT_GRPC,
        "--runtime-env-agent-port": first + RUNTIME_ENV,
        "--min-worker-port": first + FIRST_WORKER,
        "--max-worker-port": last,
        "--num-cpus": request.cpus,
        "--num-gpus": request.gpus,
    }
    if rank == 0:
        own = {
            "--port": first + MAIN,
            "--dashboard-host": addresses[0],
            "--dashboard-port": first + DASHBOARD,
        }
        start = f"ray start --head --disable-usage-stats {_flags(own | pinned)} $clients"
        before = f"{_needs('ray')}; {_clients(first + CLIENTS)}"
        return f'{before}; if [ $# -eq 0 ]; then {_soon_again(start + " --block")}; fi; {start} && "$@"'
    join = f"ray start --address={addresses[0]}:{first + MAIN} --disable-usage-stats {_flags(pinned)} --block"
    return f"{_needs('ray')}; {_again(join)}"


def _clients(port: int) -> str:
    """Pin the port of Ray Client where Ray would open it: it refuses the flag where it has no gRPC for Python."""
    finds = """"$(dirname "$(command -v ray)")/python3" -c 'import grpc' 2>/dev/null"""
    return f"clients=; if {finds}; then clients='--ray-client-server-port {port}'; fi"


def _dask(rank: int, addresses: Sequence[str], first: int, request: ClusterRequest) -> str:
    head = f"tcp://{addresses[0]}:{first + MAIN}"
    # One thread for each processor that was rented; the nanny is left out, so that a worker's end is the member's end.
    flags = {"--host": addresses[rank], "--worker-port": first + NODE, "--nthreads": request.cpus}
    worker = f"dask worker {head} {_flags(flags)} --no-nanny --no-dashboard --name rank-{rank} --death-timeout 60"
    if rank > 0:
        return f"{_needs('dask')}; exec {worker}"
    own = {"--host": addresses[0], "--port": first + MAIN, "--dashboard-address": f"{addresses[0]}:{first + DASHBOARD}"}
    scheduler = f"dask scheduler {_flags(own)} --no-show"
    return f'{_needs("dask")}; {scheduler} & {worker} & if [ $# -eq 0 ]; then wait; else "$@"; fi'


def _flags(values: Mapping[str, object]) -> str:
    return " ".join(f"{name} {shlex.quote(str(value))}" for name, value in values.items())
