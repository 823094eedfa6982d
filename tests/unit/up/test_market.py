"""Promises of `windrow up --once` and of what it says, against a Master played by a script."""

import asyncio
import errno
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.waiting import PATIENCE_S
from windrow_proto.data_directory import CliFile
from windrow_proto.errors import (
    Conflict,
    DeadlineExceeded,
    LinkClosed,
    NotFound,
    TooMany,
    Unavailable,
    WorkloadFailed,
)
from windrow_up import market as up_market
from windrow_up import once
from windrow_up.client import MasterHttp
from windrow_up.market import Market, UpConfig
from windrow_up.once import Job
from windrow_up.supervisor import Daemon
from windrow_up.words import progress

HOST = {
    "id": "host_1", "name": "rack-7", "link_state": "online", "tier": "cpu/B", "tier_reasons": ["2 cores"],
    "price_per_hour": "0.03", "gpus": [], "cpu_model": "x", "cpu_count": 2, "conditions": [],
    "bandwidth": {"up_bps": 2_000_000, "down_bps": 3_000_000},
}  # fmt: skip
RECEIPT = {
    "id": "receipt_1", "cluster_id": "cluster_1", "currency": "TEST", "started_at": "a", "ended_at": "b",
    "running_seconds": "3.000000001", "price_per_hour": "0.03", "tier": "cpu/B", "amount": "0.00002500",
    "balance_after": "99.99997500",
}  # fmt: skip


class PlayedMaster(MasterHttp):
    """Answers as a Master would: the cluster takes a few looks to start and to go."""

    def __init__(self, exit_code: int = 0, starts_as: str = "Running") -> None:
        super().__init__("http://nowhere", "wt_x")
        self.asked: list[tuple[str, str]] = []
        self.exit_code, self.starts_as = exit_code, starts_as
        self.is_deleted = False
        self.looks = 0

    def call(self, method: str, path: str, body: Any = None) -> Any:
        self.asked.append((method, path))
        if path == "/hosts/host_1":
            self.looks += 1
            return HOST | ({"link_state": "unseen"} if self.looks == 1 else {})
        if (method, path) == ("POST", "/clusters"):
            return {"cluster": {"id": "cluster_1"}}
        if (method, path) == ("DELETE", "/clusters/cluster_1"):
            self.is_deleted = True
            return {}
        if path == "/clusters/cluster_1":
            phase = "Deleted" if self.is_deleted else self.starts_as
            return {"id": "cluster_1", "phase": phase, "reason": "no", "workloads": [{"exit_code": self.exit_code}]}
        if path.startswith("/receipts"):
            return {"items": [RECEIPT], "next_cursor": None}
        raise NotFound(path)

    def stream(self, path: str) -> Iterator[bytes]:
        yield from ([b"hello\n"] if path.endswith("offset=0") else [])


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(once, "LOOK_S", 0.001)


def _run(master: MasterHttp, is_stopped: bool = False) -> tuple[list[str], list[bytes]]:
    said: list[str] = []
    shown: list[bytes] = []
    Job(master, "host_1", said.append, shown.append, lambda: is_stopped).run()
    return said, shown


def test_the_main_job_goes_from_the_host_to_the_receipt() -> None:
    master = PlayedMaster()

    said, shown = _run(master)

    text = "\n".join(said)
    order = ["Host: rack-7", "Tier: cpu/B", "- 2 cores", "Price: 0.03", "Rented: cluster_1".replace(": ", ": machine "),
             "Output:", "Ended: machine cluster_1", "Receipt receipt_1", "3.000000001 s", "99.99997500"]  # fmt: skip
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert b"".join(shown) == b"hello\n"


def test_a_workload_that_fails_is_still_deleted() -> None:
    master = PlayedMaster(exit_code=3)

    with pytest.raises(WorkloadFailed, match="3"):
        _run(master)

    assert ("DELETE", "/clusters/cluster_1") in master.asked


def test_a_cluster_that_fails_says_why() -> None:
    with pytest.raises(WorkloadFailed, match="no"):
        _run(PlayedMaster(starts_as="Failed"))


def test_waiting_ends_with_what_was_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Absent(PlayedMaster):
        def call(self, method: str, path: str, body: Any = None) -> Any:
            raise Unavailable("nobody there")

    monkeypatch.setattr(once, "ONLINE_S", 0.01)

    with pytest.raises(DeadlineExceeded, match=r"Online.*nobody there"):
        _run(Absent())


def test_a_stop_ends_the_job_at_its_next_look() -> None:
    with pytest.raises(LinkClosed):
        _run(PlayedMaster(), is_stopped=True)


def test_progress_says_each_fact_of_this_host_in_words() -> None:
    lines = list(
        progress(
            HOST | {"conditions": [{"code": "gpu.no_driver", "detail": "no driver.", "remedy": "Install it."}]},
            3.21,
            "/opt/windrow",
        )
    )

    assert lines == [
        "Online  rack-7 after 3.2 s: 2 CPUs, 0 GPUs",
        "Condition gpu.no_driver  no driver. Install it.",
        "Tier cpu/B  2 cores",
        "Bandwidth  2 Mbit/s up, 3 Mbit/s down, measured by the relay",
        "Listed  at 0.03 per hour (test money). Rent it: /opt/windrow run -- echo hello",
    ]


def test_a_host_whose_inventory_is_on_its_way_is_not_described_yet() -> None:
    lines = list(progress(HOST | {"cpu_count": None, "bandwidth": None}, 3.21, "windrow"))

    assert lines == ["Listed  at 0.03 per hour (test money). Rent it: windrow run -- echo hello"]
    assert next(progress(HOST | {"gpus": [{}]}, 3.21, "windrow")) == "Online  rack-7 after 3.2 s: 2 CPUs, 1 GPU"


def test_nobody_at_the_address_is_a_sentence() -> None:
    with pytest.raises(Unavailable, match="does not answer"):
        MasterHttp("http://127.0.0.1:1", "wt_x").call("GET", "/me")


async def test_what_is_only_for_saying_never_ends_the_market(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    looks: list[Exception] = [ZeroDivisionError("a bug"), ZeroDivisionError("a bug"), Unavailable("it starts")]
    enough = asyncio.Event()

    def look(market: Market) -> MasterHttp:
        if not looks:
            enough.set()
            raise Unavailable("it starts")
        raise looks.pop(0)

    monkeypatch.setattr(up_market, "WATCH_S", 0.001)
    monkeypatch.setattr(Market, "_current", look)
    market = _market(tmp_path)
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        watching = group.create_task(market._watch())
        await enough.wait()
        watching.cancel()
    assert capsys.readouterr().out.count("Failed unexpectedly, and goes on") == 1


class FleetOfMaster(MasterHttp):
    """Knows hosts by their state, and whether anything waits."""

    def __init__(self, waits: bool, **states: str) -> None:
        super().__init__("http://nowhere", "wt_x")
        self.waits, self.states = waits, states
        self.faulty: set[str] = set()
        self.refuses: list[Exception] = []

    def call(self, method: str, path: str, body: Any = None) -> Any:
        if path.startswith("/queue"):
            return {"items": [{"id": "job_1"}] if self.waits else [], "next_cursor": None}
        if path.startswith("/hosts?") or path == "/hosts":
            return {"items": [self._host(host_id) for host_id in self.states], "next_cursor": None}
        if path.startswith("/clusters"):
            return {"items": [], "next_cursor": None}
        if self.refuses:
            raise self.refuses.pop(0)
        _, _, host_id, decided = path.split("/")
        self.states[host_id] = {"drain": "draining", "activate": "active"}[decided]
        return {}

    def _host(self, host_id: str) -> dict[str, Any]:
        slots = [{"state": "free"}, {"state": "faulted" if host_id in self.faulty else "running"}]
        return {"id": host_id, "name": host_id, "admin_state": self.states[host_id], "slots": slots}


def _market(folder: Path) -> Market:
    return Market(UpConfig(folder, "127.0.0.1", "", 0, once=False))


def _on_this_machine(folder: Path, name: str, host_id: str) -> None:
    (folder / name / "identity").mkdir(parents=True)
    (folder / name / "identity" / "identity.json").write_text(json.dumps({"id": host_id}))


def test_what_waits_does_not_begin_on_a_machine_that_stops_and_may_after_the_next_start(tmp_path: Path) -> None:
    _on_this_machine(tmp_path, "agent", "ours")
    _on_this_machine(tmp_path, "simulated/0000", "resting")
    _on_this_machine(tmp_path, "simulated/0001", "later")
    states = {"ours": "active", "resting": "draining", "later": "active", "afar": "active"}
    master = FleetOfMaster(True, **states)

    _market(tmp_path)._drain(master)
    assert master.states == states | {"ours": "draining", "later": "draining"}

    master.states["later"] = "quarantined"  # somebody has decided otherwise
    _market(tmp_path)._offer_again(master)
    assert master.states == states | {"later": "quarantined"}

    master.states["ours"] = "draining"  # by hand: the start after that leaves it so
    _market(tmp_path)._offer_again(master)
    assert master.states["ours"] == "draining"


def test_a_machine_that_stops_is_not_drained_where_nothing_waits(tmp_path: Path) -> None:
    _on_this_machine(tmp_path, "agent", "ours")
    master = FleetOfMaster(False, ours="active")

    _market(tmp_path)._drain(master)

    assert master.states == {"ours": "active"}


def test_a_stop_before_the_start_has_offered_what_the_last_stop_drained_leaves_it_to_the_next_start(
    tmp_path: Path,
) -> None:
    _on_this_machine(tmp_path, "agent", "ours")
    _on_this_machine(tmp_path, "simulated/0000", "later")
    master = FleetOfMaster(True, ours="active", later="active")
    _market(tmp_path)._drain(master)
    master.states["later"] = "active"  # it came as far as this one

    _market(tmp_path)._drain(master)
    stopped = _market(tmp_path)
    stopped._stop.set()
    assert stopped._offer_again(master)
    assert master.states == {"ours": "draining", "later": "draining"}

    assert _market(tmp_path)._offer_again(master)
    assert master.states == {"ours": "active", "later": "active"}


def test_a_faulty_gpu_is_not_said_to_be_sound_by_a_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _on_this_machine(tmp_path, "agent", "ours")
    _on_this_machine(tmp_path, "simulated/0000", "later")
    master = FleetOfMaster(True, ours="active", later="active")
    master.faulty = {"ours"}
    _market(tmp_path)._drain(master)
    assert master.states == {"ours": "active", "later": "draining"}

    master.faulty = {"later"}  # found while it ended
    assert _market(tmp_path)._offer_again(master)
    assert master.states["later"] == "draining"
    assert "windrow host activate later" in capsys.readouterr().out


def test_a_host_that_cannot_be_offered_again_does_not_keep_the_market_from_starting(tmp_path: Path) -> None:
    for number, host_id in enumerate(("one", "other")):
        _on_this_machine(tmp_path, f"simulated/{number:04d}", host_id)
    master = FleetOfMaster(True, one="active", other="active")
    _market(tmp_path)._drain(master)

    master.refuses = [TooMany("in a moment")]
    with pytest.raises(Unavailable, match="in a moment"):  # as long as it starts it tries again
        _market(tmp_path)._offer_again(master)
    master.refuses = [Conflict("somebody was faster")]
    assert _market(tmp_path)._offer_again(master)
    assert sorted(master.states.values()) == ["active", "draining"]


def test_a_machine_is_not_drained_where_nobody_would_know_of_it_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    _on_this_machine(tmp_path, "agent", "ours")
    master = FleetOfMaster(True, ours="active")
    monkeypatch.setattr(CliFile, "write", full)

    _market(tmp_path)._drain(master)

    assert master.states == {"ours": "active"}


def test_this_host_is_drained_first_and_the_others_as_far_as_there_is_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _on_this_machine(tmp_path, "agent", "ours")
    _on_this_machine(tmp_path, "simulated/0000", "a")
    master, market = FleetOfMaster(True, a="active", ours="active"), _market(tmp_path)
    now = iter((0.0, 1.0, up_market.DRAIN_S + 1))
    monkeypatch.setattr(up_market, "time", SimpleNamespace(monotonic=now.__next__))

    market._drain(master)

    assert master.states == {"a": "active", "ours": "draining"}


def test_a_host_that_cannot_be_drained_does_not_keep_the_rest_of_the_stop_from_being_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, host_id in (("agent", "ours"), ("simulated/0000", "a"), ("simulated/0001", "b")):
        _on_this_machine(tmp_path, name, host_id)
    master = FleetOfMaster(True, ours="active", a="active", b="active")

    master.refuses = [Conflict("it was retired meanwhile")]
    _market(tmp_path)._drain(master)
    assert master.states == {"ours": "active", "a": "draining", "b": "draining"}
    assert "ours is not drained: it was retired meanwhile" in capsys.readouterr().out

    master.states = dict.fromkeys(master.states, "active")
    master.refuses = [TooMany("in a moment")]
    _market(tmp_path)._drain(master)
    assert set(master.states.values()) == {"active"}  # clusters are ended in the time that is left


class Living(Daemon):
    """A daemon that runs."""

    pid = 1


async def test_a_master_that_is_too_slow_to_drain_does_not_keep_the_rest_of_the_stop_from_being_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = threading.Event()
    monkeypatch.setattr(up_market, "CLUSTERS_END_S", 0.01)
    monkeypatch.setattr(Market, "_drain", lambda *_: answers.wait(PATIENCE_S))
    monkeypatch.setattr(Market, "_current", lambda _: None)
    monkeypatch.setattr(Market, "_masters", lambda _: {"master": Living("master", (), tmp_path / "log")})
    market = _market(tmp_path)
    market._http = FleetOfMaster(True)

    await market._end_clusters()

    answers.set()
    assert "The Master is slow, after 0.01 s" in capsys.readouterr().out
