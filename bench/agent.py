"""`agent`: what the agent costs a host with eight busy cards at 1 Hz: memory, processor, line, first heartbeat.

The shipped agent under `windrow up`, all cards rented, through the real nvidia-ml-py onto the tests' fake driver,
whose readings move (_cards.py). Goals: 60 MiB resident without the Docker SDK, 75 with it, 50 MB installed, 1 % of a
core, 64 bytes per card and second up the line, first heartbeat within 1 s, less than 1 MiB more per 10,000 samples.
Peer: prometheus-node-exporter, scraped once a second meanwhile; it reads no GPU. NVIDIA's own exporter needs an
NVIDIA driver: 467 to 484 MiB resident were reported of it in the field (github.com/pytorch/ci-infra/issues/1011);
that is told here and not measured.
"""

import gzip
import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from bench._cards import COUNT, Moving, cards, why_none
from bench._report import TICKS_PER_S, cpu_seconds, last_line, median, rss_mib, scale, table
from bench._wire import Traffic, Wire
from tests.provision import daemon_answers
from tests.support.rental import Renter, local_image
from tests.support.stack import Stack, stack, wait_for
from windrow_agent.link.spool import SpoolCaps
from windrow_proto.units import SECOND

SECONDS, SECONDS_MIN = 600.0, 40.0
SETTLE_S = 100.0
"""After the rental: the host has been measured, and the agent has given back what that and its start needed."""
FILLED_S = SpoolCaps().ring_age_ns / SECOND
"""Longer, where growth is told: for so long telemetry is kept beyond its acknowledgement, and more of it from minute to
minute until then."""
GROWTH_LOOKS_MIN = 300
"""A fifth of them is two of the half minutes after which the agent gives memory back."""
RESTARTS = 5
EXPORTER = "prometheus-node-exporter"
ROOT = Path(__file__).parents[1]
MIB = 1 << 20
DETAIL = ("rss_mib", "cpu_percent", "wire_bytes_per_gpu_s", "first_heartbeat_s")


@dataclass(slots=True)
class Exporter:
    """The peer: another process that is asked for all it knows once a second."""

    pid: int
    port: int
    bodies: list[int] = field(default_factory=list)

    def scrape(self) -> int:
        """One scrape as Prometheus makes it, compressed; returns its bytes, headers included."""
        with socket.create_connection(("127.0.0.1", self.port), 5) as line:
            connection = http.client.HTTPConnection("127.0.0.1", self.port)
            connection.sock = line
            connection.request("GET", "/metrics", headers={"Accept-Encoding": "gzip"})
            answer = connection.getresponse()
            body = answer.read()
            assert gzip.decompress(body).startswith(b"#")
            self.bodies.append(len(body) + sum(len(k) + len(v) + 4 for k, v in answer.getheaders()))
        return self.bodies[-1]


@contextmanager
def exporter() -> Iterator[Exporter | None]:
    """The peer, started here; None where it is not installed."""
    path = shutil.which(EXPORTER)
    if path is None:
        yield None
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    process = subprocess.Popen(
        [path, f"--web.listen-address=127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        found = Exporter(process.pid, port)
        wait_for(found.scrape, 20)
        yield found
    finally:
        process.terminate()
        process.wait()


@dataclass(frozen=True, slots=True)
class Steady:
    """One agent, looked at once a second."""

    seconds: float
    rss: list[float]
    anonymous_mib: float
    cpu_s: float
    traffic: Traffic
    exporter_rss_mib: float | None
    exporter_cpu_s: float
    exporter_bytes: list[int]


def agent_pid(running: Stack) -> int:
    """The agent's own process, without what it started; raises LookupError between two lives."""
    for pid in running.daemons().get("agent", []):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if b"windrow_agent" in words and b"run" in words:
            return pid
    raise LookupError("no agent runs")


def anonymous_mib(pid: int) -> float:
    """Memory that no file backs, in MiB: nobody shares it, and nothing but swapping frees it."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    raise LookupError("RssAnon")


def born_at(pid: int) -> float:
    """Wall time at which a process began, to the hundredth of a second (proc(5), field 22, since the kernel's boot)."""
    ticks = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19])
    return time.time() - (time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / TICKS_PER_S)


def first_heartbeat(running: Stack, renter: Renter) -> tuple[float, float]:
    """Restart the agent; seconds from its process' start to its first heartbeat at the Master, and its processor time
    by then."""
    old, host_id = agent_pid(running), renter.host()["id"]
    os.kill(old, signal.SIGTERM)
    pid = wait_for(lambda: (now := agent_pid(running)) != old and now)
    born = born_at(pid)
    with running.client() as api:

        def heard() -> float | None:
            at = datetime.fromisoformat(api.get(f"/hosts/{host_id}")["last_seen_at"]).timestamp()
            return at if at > born else None

        at = wait_for(heard, pause_s=0.01)
        return at - born, cpu_seconds([pid])


def watch(running: Stack, seconds: float, peer: Exporter | None) -> Steady:
    """Look at the agent once a second, and scrape the peer as often."""
    pid = agent_pid(running)
    wire = Wire(pid, frozenset(running.cli["ports"]["access"]))
    before, cpu_s = wire.look(), cpu_seconds([pid])
    peer_cpu_s = cpu_seconds([peer.pid]) if peer else 0.0
    began, sizes = time.monotonic(), []
    while time.monotonic() < began + seconds:
        time.sleep(1.0)
        sizes.append(rss_mib(pid))
        wire.look()
        if peer:
            peer.scrape()
    took = time.monotonic() - began
    return Steady(
        seconds=took,
        rss=sizes,
        anonymous_mib=anonymous_mib(pid),
        cpu_s=cpu_seconds([pid]) - cpu_s,
        traffic=wire.look() - before,
        exporter_rss_mib=rss_mib(peer.pid) if peer else None,
        exporter_cpu_s=cpu_seconds([peer.pid]) - peer_cpu_s if peer else 0.0,
        exporter_bytes=peer.bodies[-len(sizes) :] if peer else [],
    )


def rss_with_docker(running: Stack, renter: Renter) -> float | None:
    """Resident memory while a container of ours runs; None where there is no Docker."""
    if not daemon_answers() or shutil.which("docker") is None or shutil.which("busybox") is None:
        return None
    with tempfile.TemporaryDirectory(prefix="windrow-bench-") as folder, local_image(Path(folder) / "image") as image:
        box = renter.create("sleep", "300", image=image)
        time.sleep(5.0)
        size = rss_mib(agent_pid(running)) if box["phase"] == "Running" else None
        renter.delete(box["id"])
    return size


def installed_mb() -> float:
    """Returns the size of `windrow-agent` on a disk: its own files, and every distribution that it needs, in 10**6
    bytes."""
    seen: set[str] = set()
    total, todo = 0, []
    for member in ("agent", "proto", "tunnel"):
        project = tomllib.loads((ROOT / member / "pyproject.toml").read_text())["project"]
        todo += project["dependencies"]
        total += sum(path.stat().st_size for path in (ROOT / member / f"windrow_{member}").rglob("*.py*"))
    while todo:
        name = metadata_name(todo.pop())
        if name in seen or name.startswith("windrow-"):
            continue
        seen.add(name)
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:  # of another system
            continue
        paths = [Path(str(found.locate_file(one))) for one in found.files or ()]
        total += sum(path.stat().st_size for path in paths if path.exists())
        todo += [one for one in found.requires or () if "extra ==" not in one]
    return total / 1e6


def metadata_name(requirement: str) -> str:
    """The distribution that a requirement names, as the index writes it."""
    name = "".join(c if c.isalnum() or c in "-_." else " " for c in requirement).split()[0]
    return name.lower().replace("_", "-").rstrip(".-")


def growth_mib(rss: list[float], seconds: float) -> float | None:
    """By how much resident memory grew per 10,000 samples, each one card's readings of one second: between the medians
    of the first and of the last fifth of the looks, which lie four fifths of the time apart. None where a fifth is
    shorter than two rounds of giving back: it would show where in a round it was.
    """
    if len(rss) < GROWTH_LOOKS_MIN:
        return None
    fifth = len(rss) // 5
    samples = COUNT * seconds * (len(rss) - fifth) / len(rss)
    return (median(rss[-fifth:]) - median(rss[:fifth])) / samples * 10_000


def detail_of(
    steady: Steady, starts: list[tuple[float, float]], with_docker: float | None, installed: float
) -> dict[str, Any]:
    """All figures under their agreed names."""
    growth = growth_mib(steady.rss, steady.seconds)
    per_gpu = COUNT * steady.seconds
    return {
        "rss_mib": round(max(steady.rss), 1),
        "rss_mib_end": round(steady.rss[-1], 1),
        "rss_growth_mib_per_10k_samples": growth if growth is None else round(growth, 2),
        "anonymous_mib": round(steady.anonymous_mib, 1),
        "rss_mib_with_docker": with_docker and round(with_docker, 1),
        "installed_mb": round(installed, 1),
        "cpu_percent": round(100 * steady.cpu_s / steady.seconds, 3),
        "wire_bytes_per_gpu_s": round(steady.traffic.up / per_gpu, 1),
        "wire_bytes_per_gpu_s_with_headers": round(steady.traffic.up_with_headers / per_gpu, 1),
        "wire_bytes_per_gpu_s_down": round(steady.traffic.down / per_gpu, 1),
        "first_heartbeat_s": round(median([seconds for seconds, _ in starts]), 3),
        "first_heartbeat_cpu_s": round(median([cpu for _, cpu in starts]), 3),
        "starts": len(starts),
        "seconds": round(steady.seconds, 1),
        "gpus": COUNT,
        "node_exporter_rss_mib": steady.exporter_rss_mib and round(steady.exporter_rss_mib, 1),
        "node_exporter_cpu_percent": round(100 * steady.exporter_cpu_s / steady.seconds, 3),
        "node_exporter_bytes_per_scrape": round(median(steady.exporter_bytes)) if steady.exporter_bytes else None,
    }


def measure(seconds: float) -> dict[str, Any]:
    """Start everything, measure, stop everything."""
    with ExitStack() as all_of_it:
        fake = all_of_it.enter_context(cards())
        bytecode = all_of_it.enter_context(tempfile.TemporaryDirectory(prefix="windrow-bytecode-"))
        # As an installation has it: an agent that is compiled at each start is neither the shipped one nor as small.
        environment = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": bytecode}
        environment |= {name: fake.environment[name] for name in ("LD_LIBRARY_PATH", "FAKE_NVML_STATE")}
        peer = all_of_it.enter_context(exporter())
        running = all_of_it.enter_context(stack(environment=environment))
        renter = Renter(running)
        renter.online()
        starts = [first_heartbeat(running, renter) for _ in range(max(1, round(RESTARTS * min(1.0, scale()))))]
        renter.online()
        wait_for(lambda: sum(slot["slot_state"] == "free" for slot in renter.ask("GET", "/gpus")["items"]) >= COUNT)
        rented = renter.create("sleep", "100000", gpus=COUNT)
        settle_s = SETTLE_S + (FILLED_S if seconds >= GROWTH_LOOKS_MIN else 0.0)
        moving = Moving(fake.state, settle_s + seconds + 200)
        all_of_it.enter_context(moving.running())  # before, it would be somebody else's work
        time.sleep(settle_s)
        steady = watch(running, seconds, peer)
        with_docker = rss_with_docker(running, renter)
        renter.delete(rented["id"])
    return detail_of(steady, starts, with_docker, installed_mb())


def missing(detail: dict[str, Any]) -> list[str]:
    """Returns the parts that were not there to be measured."""
    found = []
    if detail["node_exporter_rss_mib"] is None:
        found.append(f"no {EXPORTER} here: no peer")
    if detail["rss_mib_with_docker"] is None:
        found.append("no docker or busybox here: nothing with a container")
    return found


def main() -> None:
    """Measure, print, end."""
    if reason := why_none():
        sys.exit(reason)
    detail = measure(max(SECONDS_MIN, SECONDS * scale()))
    table([*detail.items(), *(("missing", text) for text in missing(detail))])
    peer = detail["node_exporter_rss_mib"]
    ratio = detail["rss_mib"] / peer if peer else None
    last_line("agent", detail["rss_mib"], "MiB resident", f"{EXPORTER}, without GPUs" if peer else None, ratio, detail)


if __name__ == "__main__":
    main()
