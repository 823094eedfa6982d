"""`relay`: what an Access adds between an agent and the Master: time to a message, memory to each agent.

The shipped Access with its defaults stands between streams with own connections and certificates (bench/_streams.py)
and the far end of its trunk (bench/_far.py), which has a listener for direct streams as well.

First the cold storm: so many hosts want in at the same moment by the agent's own dialling (bench/_storm.py), each from
an address of its own in a network of the benchmark's own, while STREAMS that were there before go on sending. Goals:
10,000 absorbed in 45 s, a p99 of the others' round trips under a second, at most 1.2 GB. The network needs root.

Then, while all of them are connected, the same streams go directly, through the Access and through nginx' `grpc_pass`,
in turn, at the same pace. Goals: at 2,000 messages a second a p50 at most 0.5 ms above the direct stream's and a p99 at
most three times its.
"""

import base64
import json
import resource
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
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
AGENTS, AGENTS_MIN, AGENTS_MAX = 10_000, 200, 10_000
"""Hosts of the storm. What 10,000 need where there are fewer is told by the slope."""
AGENTS_GOAL = 10_000
BURST = 200
"""The handshakes of so many by the shipped dialler are timed: an Access takes the first 400 of an address at once."""
SETTLE_S = 3.0
"""From the storm's end to the look at the memory."""
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
    """The Access' resident memory by agents connected, and what opening BURST of them by the shipped dialler took.
    gone: of the storm's hosts, meanwhile or while messages were timed."""

    points: tuple[tuple[int, float], ...]
    opened: int
    open_s: float
    open_cpu_s: float
    gone: int = 0

    @property
    def kib_per_agent(self) -> float:
        """The slope of the last step, in KiB."""
        (first, low), (last, high) = self.points[-2:]
        return (high - low) * 1024 / max(1, last - first)

    @property
    def at_goal_mib(self) -> float:
        """The memory that AGENTS_GOAL agents need: as measured, or carried on along the slope."""
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
    """Write the certificates of both ends and of the Access, by name, and one for each host."""

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


@contextmanager
def own_network() -> Iterator[str]:
    """Be in a network in which whoever dials 10.x comes from that very address; or why there is none here."""
    with ExitStack() as stack:
        why_not = ""
        try:
            network = stack.enter_context(namespace())
            # Without an address to prefer, whoever dials 10.x comes from that very address.
            network.call("ip", "route", "add", "local", "10.0.0.0/8", "dev", "lo")
            stack.enter_context(network.entered())
        except (OSError, NetworkError) as error:
            why_not = f"no cold storm, and few agents: no network of its own ({error})"
        yield why_not


@dataclass(frozen=True, slots=True)
class Ends:
    """The processes at both ends, and the Access between."""

    far: Ordered
    streams: Ordered
    hosts: Ordered
    pid: int
    port: int

    def open(self, name: str, address: str, first: int, count: int) -> dict[str, Any]:
        """Streams by the shipped dialler, which all end in use."""
        return self.streams.ask(do="open", name=name, address=address, first=first, count=count)


@contextmanager
def ends(folder: Path) -> Iterator[Ends]:
    """A fresh Access and what is at both ends of it."""
    with ExitStack() as stack:
        far, streams, hosts = (Ordered(f"bench.{name}", [str(folder)]) for name in ("_far", "_streams", "_storm"))
        for one in (far, streams, hosts):
            stack.callback(one.close)
        address, pid = stack.enter_context(access(folder, far.ask(do="where")["trunk"], "0.0.0.0:0"))
        yield Ends(far, streams, hosts, pid, int(address.rpartition(":")[2]))


def open_ways(at: Ends, addresses: dict[str, str]) -> None:
    """Each way has its own streams, open throughout."""
    for number, (name, address) in enumerate(addresses.items()):
        at.open(name, address, number * STREAMS, STREAMS)
        at.streams.ask(do="pace", name=name, seconds=WARM_S, per_s=MESSAGES_PER_S)
        at.far.ask(do="take", wanted=int(WARM_S * MESSAGES_PER_S))


def measure_ways(at: Ends, names: Sequence[str], part: float) -> dict[str, list[Way]]:
    """All ways in turn, RUNS times."""
    at.far.ask(do="take", wanted=0)
    seconds = max(RUN_S_MIN, RUN_S * min(1.0, part))
    found: dict[str, list[Way]] = {name: [] for name in names}
    for _ in range(RUNS):
        for name in names:
            before = cpu_seconds([at.pid])
            answer = at.streams.ask(do="pace", name=name, seconds=seconds, per_s=MESSAGES_PER_S)
            cpu_s = cpu_seconds([at.pid]) - before
            ms = at.far.ask(do="take", wanted=answer["sent"])["ms"]
            found[name].append(Way(ms, answer["back_ms"], answer["sent"], answer["seconds"], cpu_s, answer["lost"]))
    return found


def measure_storm(at: Ends, first: int, hosts: int, *, is_shipped: bool = False) -> Weather:
    """All dial at once an Access that serves the streams called `access` already. first: of the unused certificates."""
    before = cpu_seconds([at.pid])
    at.hosts.tell(do="storm", port=at.port, first=first, count=hosts, seconds=STORM_S, shipped=is_shipped)
    back_ms, lost = list[float](), 0
    assert at.hosts.process.stdout is not None
    while not select.select([at.hosts.process.stdout], [], [], 0)[0]:
        told = at.streams.ask(do="pace", name="access", seconds=1.0, per_s=CALM_PER_S)
        back_ms, lost = [*back_ms, *told["back_ms"]], told["lost"]
    told = at.hosts.answer()
    return Weather(
        hosts,
        told["absorbed_s"],
        back_ms,
        told["opened"],
        told["dials"],
        told["pings"],
        lost,
        cpu_seconds([at.pid]) - before,
        told["cpu_s"],
        is_shipped,
    )


def measure_shipped(folder: Path, first: int, hosts: int) -> Weather:
    """A storm by the shipped dialler, at an Access of its own."""
    with ends(folder) as at:
        open_ways(at, {"access": f"127.0.0.1:{at.port}"})
        return measure_storm(at, first, hosts, is_shipped=True)


def measure(
    folder: Path, authority: TestAuthority, hosts: int, part: float
) -> tuple[dict[str, list[Way]], Memory, list[Weather]]:
    """The streams of all ways, the storm beside them, and what the ways take while its hosts are connected."""
    with ends(folder) as at, nginx(authority, direct := at.far.ask(do="where")["direct"]) as peer:
        points = [(0, rss_mib(at.pid))]
        addresses = {"direct": direct, "access": f"127.0.0.1:{at.port}", **({"nginx": peer} if peer else {})}
        before = cpu_seconds([at.pid])
        answer = at.open("burst", addresses["access"], 3 * STREAMS, BURST)
        burst = BURST, answer["seconds"], cpu_seconds([at.pid]) - before
        open_ways(at, addresses)
        points.append((BURST + STREAMS, rss_mib(at.pid)))
        storms = [measure_storm(at, 3 * STREAMS + BURST, hosts)] if hosts else []
        time.sleep(SETTLE_S)
        held = at.hosts.ask(do="held")["held"]
        if held:
            points.append((BURST + STREAMS + held, rss_mib(at.pid)))
        ways = measure_ways(at, tuple(addresses), part)
        gone = max(0, hosts - at.hosts.ask(do="held")["held"])
    return ways, Memory(tuple(points), *burst, gone), storms


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
        "generator_cpu_s": round(weather.generator_cpu_s, 1),
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
    """Returns the goals and checks that failed, in words."""
    said = [] if "nginx" in ways else ["nginx is not installed: no peer (Debian: nginx-light)"]
    for name, runs in ways.items():
        unheard = sum(way.sent - len(way.ms) for way in runs)
        slowest = min(way.sent / way.seconds for way in runs)
        if unheard:
            said.append(f"{name}: {unheard} frames had not arrived when a run was over")
        if slowest < 0.95 * MESSAGES_PER_S:
            said.append(f"{name}: only {slowest:,.0f} messages a second were sent in the slowest run")
    if memory.points[-1][0] < wanted:
        said.append(f"{wanted} agents were wanted; there were {memory.points[-1][0]}, with {descriptors} open files")
    if memory.gone:
        said.append(f"{memory.gone} of the storm's hosts were not there any more when messages had been timed")
    if memory.points[-1][0] < AGENTS_GOAL:
        said.append(f"rss_mib is carried on to {AGENTS_GOAL:,} agents from {memory.points[-1][0]:,}")
    if lost := sum(runs[-1].lost for runs in ways.values()):
        said.append(f"{lost} streams ended on the way")
    return said


def main() -> None:
    """Measure, print, end."""
    part = scale()
    wanted = min(AGENTS_MAX, max(AGENTS_MIN, round(AGENTS * part)))
    beside = 3 * STREAMS + BURST
    descriptors = allow_descriptors(wanted + beside + DESCRIPTORS_BESIDE)
    authority = make_ca()
    with tempfile.TemporaryDirectory(prefix="windrow-relay-") as name, own_network() as why_not:
        folder = Path(name)
        hosts = 0 if why_not else min(wanted, descriptors - beside - DESCRIPTORS_BESIDE)
        write_identities(folder, authority, beside + hosts)
        ways, memory, storms = measure(folder, authority, hosts, part)
        if hosts:
            storms.append(measure_shipped(folder, beside, min(hosts, SHIPPED_STORM)))
    detail = detail_of(ways, memory, descriptors)
    said = missing(ways, memory, wanted, descriptors) + ([why_not] if why_not else [])
    for weather in storms:
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
