"""`relay`: what an Access adds between an agent and the Master: time to a message, memory to each agent.

The shipped Access with its defaults stands between streams with own connections and certificates (bench/_streams.py)
and the far end of its trunk (bench/_far.py), which has a door for direct streams as well. The same streams go directly,
through the Access and through nginx' `grpc_pass`, in turn, at the same pace. Goals: at 2,000 messages a second a p50 at
most 0.5 ms above the direct stream's and a p99 at most three times its; 10,000 agents in at most 1.2 GB.

Then the cold storm: so many hosts want in at the same moment by the agent's own dialling (bench/_storm.py), each from
an address of its own in a network of the benchmark's own, while STREAMS that were there before go on sending. Goals:
10,000 absorbed in 45 s, a p99 of the others' round trips under a second. It needs root, for the network.
"""

import base64
import json
import resource
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench._load import Ordered
from bench._nginx import nginx
from bench._report import cpu_seconds, last_line, median, percentile, rss_mib, scale, table
from tests.support.namespaces import NetworkError, namespace
from tests.support.pki import TestAuthority, issue, make_ca
from tests.support.stack import wait_for
from windrow_proto import enrol, keys

RUNS = 5
RUN_S, RUN_S_MIN = 6.0, 2.0
WARM_S = 1.0
MESSAGES_PER_S = 2_000
STREAMS = 100
AGENTS, AGENTS_MIN, AGENTS_MAX = 2_000, 200, 10_000
"""Opened for the memory. What 10,000 need is told by the slope; BENCH_SCALE=5 opens them all."""
AGENTS_GOAL = 10_000
BURST = 200
"""Of these the handshakes are timed: an Access takes the first 400 of an address at once."""
STEPS = 4
DESCRIPTORS_BESIDE = 500
STORM_S = 60.0
"""As long as the storm is waited for."""
SHIPPED_STORM = 200
"""Hosts of a storm before it by the shipped dialler, which costs this machine as much as the Access does."""
CALM_PER_S = 200
"""Messages of those that were there before: ten times what as many agents send."""
STOP_S = 30.0
DETAIL = ("added_p50_ms", "p99_ratio", "agents", "rss_mib", "handshakes_per_s")
ACCESS_ID = "access_" + "b" * 32


@dataclass(frozen=True, slots=True)
class Way:
    """One run over one way. ms: each frame, from the write until the far end has it; back_ms: there and back."""

    ms: list[float]
    back_ms: list[float]
    sent: int
    seconds: float
    cpu_s: float
    lost: int


@dataclass(frozen=True, slots=True)
class Memory:
    """The Access' resident memory by agents connected, and what opening the first BURST of them took."""

    points: tuple[tuple[int, float], ...]
    opened: int
    open_s: float
    open_cpu_s: float
    lost: int

    @property
    def kib_per_agent(self) -> float:
        """The slope between the first and the last step, in KiB."""
        (first, low), (last, high) = self.points[1], self.points[-1]
        return (high - low) * 1024 / max(1, last - first)

    @property
    def at_goal_mib(self) -> float:
        """What AGENTS_GOAL agents need: as measured, or carried on along the slope."""
        agents, used = self.points[-1]
        return used + (AGENTS_GOAL - agents) * self.kib_per_agent / 1024


@dataclass(frozen=True, slots=True)
class Weather:
    """A cold storm. absorbed_s: of each host until its first frame was back, sorted; calm_ms: the round trips of the
    others meanwhile; opened: streams that were let in; dials, pings: connections tried; lost: of the others' streams;
    cpu_s: of the Access; is_shipped: dialled by the agent's own dialler, not by the one that costs little."""

    hosts: int
    absorbed_s: list[float]
    calm_ms: list[float]
    opened: int
    dials: int
    pings: int
    lost: int
    cpu_s: float
    generator_cpu_s: float
    is_shipped: bool


def write_identities(folder: Path, authority: TestAuthority, hosts: int) -> None:
    """What both ends and the Access show, by name, and a certificate for each host."""

    def record(identity: keys.TlsIdentity) -> dict[str, str]:
        parts = {"key": identity.key_pem, "certificate": identity.certificate_pem, "ca": identity.ca_pem}
        return {name: pem.decode() for name, pem in parts.items()}

    for role, subject in (("master", "master"), ("access", "access_" + "f" * 32)):
        (folder / f"{role}.json").write_text(json.dumps(record(issue(authority, role, subject))))
    made = [record(issue(authority, "host", f"host_{number:032x}")) for number in range(hosts)]
    (folder / "hosts.json").write_text(json.dumps(made))
    tls = issue(authority, "access", ACCESS_ID)
    answer = {
        "id": ACCESS_ID,
        "generation": 1,
        "not_after": "",
        "master_public": base64.b64encode(bytes(32)).decode(),
        "certificate_pem": tls.certificate_pem.decode(),
    }
    joined = enrol.IdentityFolder(folder / "relay" / "identity")
    joined.store("https://127.0.0.1:1", answer, tls.ca_pem, keys.TlsKey.from_pem(tls.key_pem))


@contextmanager
def access(folder: Path, trunk: str, listen: str = "127.0.0.1:0") -> Iterator[tuple[str, int]]:
    """The shipped Access with its defaults at that trunk: its address and pid."""
    data = folder / "relay"
    (data / "access.json").unlink(missing_ok=True)
    command = [sys.executable, "-m", "windrow_access", "run", "--data-dir", str(data)]
    command += ["--listen", listen, "--region", "bench", "--trunk", trunk]
    with (folder / "access.log").open("wb") as log:
        process = subprocess.Popen(command, stderr=log)
        try:
            record = wait_for(lambda: json.loads((data / "access.json").read_text()))
            yield str(record["address"]), process.pid
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def allow_descriptors(wanted: int) -> int:
    """Raise this process' limit of open files, which its children inherit; returns what it is then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft


def measure_ways(
    streams: Ordered, far: Ordered, addresses: dict[str, str], pid: int, part: float
) -> dict[str, list[Way]]:
    """All ways in turn, RUNS times; each has its own streams, open throughout."""
    for number, (name, address) in enumerate(addresses.items()):
        streams.ask(do="open", name=name, address=address, first=number * STREAMS, count=STREAMS)
        streams.ask(do="pace", name=name, seconds=WARM_S, per_s=MESSAGES_PER_S)
        far.ask(do="take", wanted=int(WARM_S * MESSAGES_PER_S))
    seconds = max(RUN_S_MIN, RUN_S * min(1.0, part))
    found: dict[str, list[Way]] = {name: [] for name in addresses}
    for _ in range(RUNS):
        for name in addresses:
            before = cpu_seconds([pid])
            answer = streams.ask(do="pace", name=name, seconds=seconds, per_s=MESSAGES_PER_S)
            cpu_s = cpu_seconds([pid]) - before
            ms = far.ask(do="take", wanted=answer["sent"])["ms"]
            found[name].append(Way(ms, answer["back_ms"], answer["sent"], answer["seconds"], cpu_s, answer["lost"]))
    return found


def measure_memory(streams: Ordered, address: str, pid: int, first: int, agents: int) -> Memory:
    """Open agents in steps, each used once, and read the Access' memory. first: of the unused certificates."""
    points = [(0, rss_mib(pid))]
    before = cpu_seconds([pid])
    opened = min(BURST, agents // STEPS)
    answer = streams.ask(do="open", name="many", address=address, first=first, count=opened)
    cpu_s = cpu_seconds([pid]) - before
    done = opened
    for step in range(1, STEPS + 1):
        wanted = agents * step // STEPS
        order = {"name": "many", "address": address, "first": first + done, "count": wanted - done}
        lost = streams.ask(do="open", **order)["lost"]
        done = wanted
        points.append((wanted, rss_mib(pid)))
    return Memory(tuple(points), opened, answer["seconds"], cpu_s, lost)


def measure_storm(folder: Path, agents: int, *, is_shipped: bool = False) -> Weather | str:
    """All dial at once a fresh Access that serves STREAMS already; or why there is none here."""
    try:
        with namespace() as network:
            # Without an address to prefer, whoever dials 10.x comes from that very address.
            network.call("ip", "route", "add", "local", "10.0.0.0/8", "dev", "lo")
            with network.entered():
                return _storm(folder, agents, is_shipped)
    except (OSError, NetworkError) as error:
        return f"no cold storm: no network of its own ({error})"


def _storm(folder: Path, agents: int, is_shipped: bool) -> Weather:
    ordered = [Ordered(f"bench.{name}", [str(folder)]) for name in ("_far", "_streams", "_storm")]
    far, streams, hosts = ordered
    try:
        with access(folder, far.ask(do="where")["trunk"], "0.0.0.0:0") as (address, pid):
            port = int(address.rpartition(":")[2])
            streams.ask(do="open", name="calm", address=f"127.0.0.1:{port}", first=0, count=STREAMS)
            streams.ask(do="pace", name="calm", seconds=WARM_S, per_s=CALM_PER_S)
            before = cpu_seconds([pid])
            order = {"port": port, "first": STREAMS, "count": agents, "seconds": STORM_S, "shipped": is_shipped}
            hosts.tell(do="storm", **order)
            calm: dict[str, Any] = {"back_ms": []}
            assert hosts.process.stdout is not None
            while not select.select([hosts.process.stdout], [], [], 0)[0]:
                part = streams.ask(do="pace", name="calm", seconds=1.0, per_s=CALM_PER_S)
                calm = {"back_ms": [*calm["back_ms"], *part["back_ms"]], "lost": part["lost"]}
            told = hosts.answer()
            cpu_s = cpu_seconds([pid]) - before
    finally:
        for one in ordered:
            one.close()
    counts = {name: told[name] for name in ("opened", "dials", "pings")}
    return Weather(
        agents,
        told["absorbed_s"],
        calm["back_ms"],
        lost=calm.get("lost", 0),
        cpu_s=cpu_s,
        generator_cpu_s=told["cpu_s"],
        is_shipped=is_shipped,
        **counts,
    )


# --- what is said ------------------------------------------------------------------------------------------------


def of_runs(ways: Sequence[Way], part: float, *, back: bool = False) -> float:
    """The median of the runs' percentiles, in milliseconds; 0 where nothing arrived."""
    return median([percentile((way.back_ms if back else way.ms) or [0.0], part) for way in ways])


def detail_of_storm(weather: Weather) -> dict[str, Any]:
    """The storm's part of the detail."""
    absorbed = weather.absorbed_s or [0.0]
    found = {
        "hosts": weather.hosts,
        "absorbed": len(weather.absorbed_s),
        "absorbed_p50_s": round(percentile(absorbed, 0.5), 2),
        "absorbed_last_s": round(absorbed[-1], 2),
        "calm_p99_ms": round(percentile(weather.calm_ms or [0.0], 0.99), 1),
        "streams_opened": weather.opened,
        "dials_per_host": round(weather.dials / max(1, weather.hosts), 2),
        "pings_per_host": round(weather.pings / max(1, weather.hosts), 2),
        "cpu_s": round(weather.cpu_s, 1),
        "generator_ms_per_connection": round(weather.generator_cpu_s * 1000 / max(1, weather.dials + weather.pings), 2),
    }
    return {f"{'storm_shipped' if weather.is_shipped else 'storm'}_{name}": value for name, value in found.items()}


def detail_of(ways: dict[str, list[Way]], memory: Memory, descriptors: int) -> dict[str, Any]:
    """The last line's detail."""
    direct, through, peer = ways["direct"], ways["access"], ways.get("nginx")
    p50, p99 = of_runs(direct, 0.5), of_runs(direct, 0.99)
    messages = sum(way.sent for way in through)
    found: dict[str, Any] = {
        "added_p50_ms": round(of_runs(through, 0.5) - p50, 3),
        "p99_ratio": round(of_runs(through, 0.99) / max(1e-9, p99), 2),
        "agents": memory.points[-1][0],
        "rss_mib": round(memory.at_goal_mib, 1),
        "handshakes_per_s": round(memory.opened / max(1e-9, memory.open_s), 1),
        "handshakes_per_cpu_s": round(memory.opened / max(1e-9, memory.open_cpu_s), 1),
        "kib_per_agent": round(memory.kib_per_agent, 1),
        "measured_rss_mib": round(memory.points[-1][1], 1),
        "idle_rss_mib": round(memory.points[0][1], 1),
        "direct_p50_ms": round(p50, 3),
        "direct_p99_ms": round(p99, 3),
        "access_p50_ms": round(of_runs(through, 0.5), 3),
        "access_p99_ms": round(of_runs(through, 0.99), 3),
        "added_round_trip_p50_ms": round(of_runs(through, 0.5, back=True) - of_runs(direct, 0.5, back=True), 3),
        "access_cpu_us_per_message": round(sum(way.cpu_s for way in through) / max(1, messages) * 1e6, 1),
        "messages_per_s": round(median([way.sent / way.seconds for way in through])),
        "streams": STREAMS,
        "descriptors": descriptors,
    }
    if peer is not None:
        found["nginx_added_p50_ms"] = round(of_runs(peer, 0.5) - p50, 3)
        found["nginx_p99_ratio"] = round(of_runs(peer, 0.99) / max(1e-9, p99), 2)
        found["nginx_added_round_trip_p50_ms"] = round(
            of_runs(peer, 0.5, back=True) - of_runs(direct, 0.5, back=True), 3
        )
    return found


def missing(ways: dict[str, list[Way]], memory: Memory, wanted: int, descriptors: int) -> list[str]:
    """What did not come together, in words."""
    said = [] if "nginx" in ways else ["nginx is not installed: no peer (Debian: nginx-light)"]
    for name, runs in ways.items():
        unheard = sum(way.sent - len(way.ms) for way in runs)
        slowest = min(way.sent / way.seconds for way in runs)
        if unheard:
            said.append(f"{name}: {unheard} frames had not arrived when a run was over")
        if slowest < 0.95 * MESSAGES_PER_S:
            said.append(f"{name}: only {slowest:,.0f} messages a second were sent in the slowest run")
    if memory.points[-1][0] < wanted:
        said.append(f"{wanted} agents were wanted; {descriptors} open files allow {memory.points[-1][0]}")
    if memory.points[-1][0] < AGENTS_GOAL:
        said.append(f"rss_mib is carried on to {AGENTS_GOAL:,} agents from {memory.points[-1][0]:,}")
    if lost := memory.lost + sum(runs[-1].lost for runs in ways.values()):
        said.append(f"{lost} streams ended on the way")
    return said


def main() -> None:
    """Measure, print, end."""
    part = scale()
    wanted = min(AGENTS_MAX, max(AGENTS_MIN, round(AGENTS * part)))
    descriptors = allow_descriptors(wanted + 3 * STREAMS + DESCRIPTORS_BESIDE)
    agents = min(wanted, descriptors - 3 * STREAMS - DESCRIPTORS_BESIDE)
    authority = make_ca()
    with tempfile.TemporaryDirectory(prefix="windrow-relay-") as name:
        folder = Path(name)
        write_identities(folder, authority, 3 * STREAMS + agents)
        far, streams = Ordered("bench._far", [name]), Ordered("bench._streams", [name])
        try:
            where = far.ask(do="where")
            with access(folder, where["trunk"]) as (address, pid), nginx(authority, where["direct"]) as peer:
                addresses = {"direct": where["direct"], "access": address, **({"nginx": peer} if peer else {})}
                # First, while nothing that was let go of can be used again.
                memory = measure_memory(streams, address, pid, 3 * STREAMS, agents)
                streams.ask(do="shut", name="many")
                ways = measure_ways(streams, far, addresses, pid, part)
        finally:
            streams.close()
            far.close()
        storms = [
            measure_storm(folder, min(agents, SHIPPED_STORM), is_shipped=True),
            measure_storm(folder, agents),
        ]
    detail = detail_of(ways, memory, descriptors)
    said = missing(ways, memory, wanted, descriptors)
    for weather in storms:
        if isinstance(weather, str):
            said.append(weather)
            continue
        detail |= detail_of_storm(weather)
        if weather.lost or len(weather.absorbed_s) < weather.hosts:
            late = weather.hosts - len(weather.absorbed_s)
            said.append(f"{late} of a storm's hosts were not absorbed, {weather.lost} others were lost")
    rows: list[tuple[str, Any]] = [
        ("started as", "windrow-access run with its defaults (one worker, mTLS on both sides)"),
        (
            "timed from, to",
            "the agent's write; the frame in the hands of the trunk's far end (direct: of the stream's)",
        ),
        *detail.items(),
        *((f"MiB with {count:,} agents", used) for count, used in memory.points),
        *(("missing", what) for what in said),
    ]
    table(rows)
    added, peer_ms = detail["added_p50_ms"], detail.get("nginx_added_p50_ms")
    ratio = added / peer_ms if peer_ms and peer_ms > 0 else None
    last_line("relay", added, "ms", "nginx grpc_pass, same streams and TLS" if peer_ms else None, ratio, detail)


if __name__ == "__main__":
    main()
