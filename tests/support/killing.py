"""Killing daemons of a running market at any moment, watching meanwhile that nothing runs twice, judging the end."""

import json
import os
import signal
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support import truth
from tests.support.named_points import Armoury
from tests.support.rental import Renter
from tests.support.stack import PAUSE_MIN_S, wait_for
from windrow_proto.units import time_text

BACK_S = 120.0
"""For a daemon that was killed, with the supervisor's pause, and for its host to be online again."""
SCRIPT = "echo begin $$; i=0; while :; do i=$((i+1)); echo tick $i; sleep 0.2; done"
HEARD_S = PAUSE_MIN_S if os.environ.get("CHAOS") else None
"""Between two questions whether it serves again: as exact as the figure that is printed, where it is one."""
LOOK_S = 0.25
"""Between two looks at all processes: whoever runs a second time runs until somebody ends it."""


@dataclass(slots=True)
class Seen:
    """Every process that ever ran under each marker."""

    markers: set[str] = field(default_factory=set)
    processes: dict[str, set[tuple[int, int]]] = field(default_factory=dict)

    def look(self) -> None:
        for marker in tuple(self.markers):
            found = self.processes.setdefault(marker, set())
            found |= {(one.pid, one.start_ticks) for one in truth.workload_processes(marker)}


@contextmanager
def watching() -> Iterator[Seen]:
    """Look at the process table all the time, from a thread."""
    seen, ended = Seen(), threading.Event()

    def run() -> None:
        while not ended.wait(LOOK_S):
            seen.look()

    thread = threading.Thread(target=run, name="watching")
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


class Outages:
    """How long nothing was served after kills, by the kind of what was killed."""

    def __init__(self) -> None:
        self._seconds: dict[str, list[float]] = {}

    def add(self, kind: str, seconds: float) -> None:
        """One more."""
        self._seconds.setdefault(kind, []).append(seconds)

    def __str__(self) -> str:
        """Count, median, 99th percentile and longest, in seconds."""
        every = {"any": [one for found in self._seconds.values() for one in found], **self._seconds}
        return "; ".join(f"{kind} {_said(sorted(found))}" for kind, found in sorted(every.items()) if found)


def _said(found: list[float]) -> str:
    p99 = found[min(len(found) - 1, int(0.99 * len(found)))]
    return f"n {len(found)}, p50 {found[len(found) // 2]:.2f}, p99 {p99:.2f}, longest {found[-1]:.2f} s"


class Killer:
    """Sends SIGKILL and SIGSTOP to the daemons of one stack and waits until what was struck is back."""

    def __init__(self, renter: Renter, points: Armoury | None = None) -> None:
        """points: named ones, of a market that was started with them."""
        self.renter = renter
        self._points = points
        self.stack = renter.stack
        self.killed: list[str] = []
        self._killed_at = 0.0, 0

    @property
    def points(self) -> Armoury:
        """The points at which daemons may be told to die."""
        assert self._points is not None, "this market was started without named points"
        return self._points

    def access_in_use(self) -> int:
        """The pid of the Access through which this host is connected."""
        return self.access_pids()[self.renter.host()["access_id"]]

    def access_pids(self) -> dict[str, int]:
        """Pid by id of each Access, as each says of itself."""
        found = [json.loads(path.read_text()) for path in self.stack.data_dir.glob("access-*/access.json")]
        return {one["access_id"]: int(one["pid"]) for one in found}

    def pid(self, kind: str) -> int:
        """One process of a kind: master, agent or access (the one in use, if the Master can say)."""
        if kind == "access":
            try:
                pid = self.access_in_use()
                os.kill(pid, 0)
                return pid
            except Exception:  # no Master to ask, or that one has gone: any of them
                pass
        if kind == "master":  # the one that leads: others may wait
            return int(wait_for(lambda: {self.stack.cli["pids"]["master"]} & set(self.stack.daemons()[kind])).pop())
        return int(wait_for(lambda: self.stack.daemons().get(kind))[0])

    def kill(self, kind: str) -> int:
        """SIGKILL at once; returns the pid that was."""
        pid = self.pid(kind)
        self._killed_at = time.monotonic(), time.time_ns()
        os.kill(pid, signal.SIGKILL)
        self.killed.append(kind)
        return pid

    def stop(self, kind: str, seconds: float) -> None:
        """SIGSTOP at once, and SIGCONT after so long; what it serves again is counted from there."""
        pid = self.pid(kind)
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(seconds)  # so long it stands still
        finally:
            self._killed_at = time.monotonic(), time.time_ns()
            os.kill(pid, signal.SIGCONT)
        self.killed.append(f"{kind} stopped")

    def has_died_at(self, name: str, within_s: float) -> bool:
        """True if a daemon came to this named point, which is armed, within so long; it is armed no longer."""
        with suppress(TimeoutError):
            wait_for(lambda: self.points.is_passed(name), within_s, PAUSE_MIN_S)
        self._killed_at = time.monotonic(), time.time_ns()
        if has_died := self.points.disarm(name):
            self.killed.append(name)
        return has_died

    def serving_again_s(self, host_id: str) -> float:
        """Wait until the Master answers and has a word or a sample of this host from after the last kill; seconds from
        that kill. The host is watched meanwhile, so that it sends each second also where the kill was none of its
        business."""
        since_s, wall_ns = self._killed_at
        killed_at = time_text(wall_ns)
        with ExitStack() as cleanup:
            watched: list[object] = []

            def heard() -> bool:
                with self._open(f"/hosts/{host_id}") as answer:
                    found = json.load(answer)
                if not watched:
                    watched.append(cleanup.enter_context(self._open(f"/hosts/{host_id}/stream")))
                sampled_at = (found["live"] or {}).get("at", "")
                return bool(found["link_state"] == "online" and max(found["last_seen_at"], sampled_at) > killed_at)

            wait_for(heard, BACK_S, HEARD_S)
        return time.monotonic() - since_s

    def _open(self, path: str) -> Any:
        """The answer of a Master that is up, whichever it is; raises at once where none is."""
        record = self.stack.cli
        headers = {"Authorization": f"Bearer {record['token']}"}
        return urllib.request.urlopen(
            urllib.request.Request(f"{record['url']}/api/v1{path}", headers=headers), timeout=1
        )

    @contextmanager
    def held_down(self) -> Iterator[None]:
        """Meanwhile what is killed stays dead: the supervisor is stopped, and starts it anew only afterwards."""
        os.kill(self.stack.process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.stack.process.pid, signal.SIGCONT)

    def kill_and_wait(self, kind: str) -> None:
        """SIGKILL, then wait until the supervisor's next one is there and this host was heard of again.

        What was on its way at the kill is heard as well: the host may be out of reach for a moment longer.
        """
        before = self.renter.host()["last_seen_at"]
        pid = self.kill(kind)
        wait_for(lambda: set(self.stack.daemons().get(kind, [])) - {pid}, BACK_S)
        self.well(before)

    def well(self, since: str = "") -> dict[str, Any]:
        """Wait until all daemons are there and this host was heard of after `since`."""
        wait_for(lambda: {"master", "access", "agent"} <= set(self.stack.daemons()), BACK_S)
        found: dict[str, Any] = wait_for(
            lambda: (h := self.renter.host()) and h["link_state"] == "online" and h["last_seen_at"] > since and h,
            BACK_S,
        )
        return found


def telemetry_flaws(data_dir: Path, *agent_dirs: Path) -> list[str]:
    """Returns the telemetry that these agents had spooled by now and that is not in the Master's log exactly once.

    The agents send from the spool and keep what was acknowledged for ten minutes: the spool holds all that was ever
    acknowledged in a short test, and more. Waits for what is still on its way.
    """
    spooled = wait_for(lambda: {key for folder in agent_dirs for key in truth.produced(folder).keys})
    try:
        wait_for(lambda: spooled <= set(truth.stored(data_dir)), pause_s=0.2)
    except TimeoutError:
        missing = spooled - set(truth.stored(data_dir))
        return [f"{len(missing)} of {len(spooled)} spooled batches are not in the log"]
    return [f"{key} is {times} times in the log" for key, times in truth.stored(data_dir).items() if times != 1]


def online(renter: Renter) -> list[dict[str, Any]]:
    """The hosts that are heard through some Access."""
    return [host for host in renter.all("/hosts") if host["link_state"] == "online" and host["access_id"]]


def have_left(renter: Renter, moving: dict[str, str], access_id: str) -> bool:
    """True if every one of these hosts, by id with when it was heard last, is heard through another Access since."""
    hosts = {host["id"]: host for host in renter.all("/hosts")}
    return all(hosts[one]["access_id"] != access_id and hosts[one]["last_seen_at"] > at for one, at in moving.items())


def remains(renter: Renter, host_id: str, *cluster_ids: str) -> list[str]:
    """Returns the remains of deleted clusters: processes, shims, folders, containers."""
    process_dir = renter.stack.data_dir / "agent" / "process"
    found = [f"process {one.pid}: {' '.join(one.argv)[:120]}" for one in truth.naming(f"{process_dir}/workload_")]
    found += [f"folder {path.name}" for path in process_dir.glob("workload_*")]
    for cluster_id in cluster_ids:
        phase = renter.ask("GET", f"/clusters/{cluster_id}")["phase"]
        found += [] if phase in ("Deleted", "Finished", "Failed") else [f"{cluster_id} is {phase}"]
    return found


def command_flaws(data_dir: Path, *cluster_ids: str) -> list[str]:
    """Returns the workloads that were created other than once, and the commands without a final answer."""
    flaws = []
    for cluster_id in cluster_ids:
        for workload in truth.rows(data_dir, "SELECT workload_id FROM workloads WHERE cluster_id = ?", cluster_id):
            name = workload["workload_id"]
            commands = truth.rows(data_dir, "SELECT kind, state FROM commands WHERE subject = ?", name)
            kinds = [row["kind"] for row in commands]
            if kinds.count(1) != 1:
                flaws.append(f"{name} was asked for by {kinds.count(1)} commands")
    return flaws
