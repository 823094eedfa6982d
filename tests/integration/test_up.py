"""`windrow up` with the shipped daemons: the main job, an orderly end, and a second start that remembers."""

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.services import found as services
from tests.support import truth
from tests.support.rental import ENDED, Renter
from tests.support.stack import STOP_S, WINDROW, Stack, stack, wait_for
from tests.waiting import poll

ONCE_S = 300


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def _own_host(running: Stack) -> dict[str, Any]:
    with running.client() as api:
        hosts = [host for host in api.items("/hosts") if not host["simulated"]]
    return hosts[0] if hosts else {}


def _online(running: Stack) -> dict[str, Any]:
    found: dict[str, Any] = wait_for(lambda: (h := _own_host(running)) and h["link_state"] == "online" and h)
    return found


def _simulated(running: Stack, state: str) -> set[str]:
    with running.client() as api:
        return {host["id"] for host in api.items("/hosts", state=state, simulated="true")}


def _stop(running: Stack, number: signal.Signals = signal.SIGINT) -> int:
    running.process.send_signal(number)
    return running.process.wait(STOP_S)


@pytest.mark.slow
@pytest.mark.timeout(ONCE_S + 30)
@pytest.mark.proves("`make up ONCE=1`: this host listed, rented, output shown, deleted, receipt printed")
@pytest.mark.long
def test_once_does_the_main_job_and_exits_zero(tmp_path: Path) -> None:
    done = subprocess.run(
        [WINDROW, "up", "--once", "--data-dir", str(tmp_path / "data")],
        capture_output=True,
        text=True,
        timeout=ONCE_S,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    for said in (
        "Host: ",
        "Tier: ",
        "Price: ",
        "step 3 of 3",
        "is Finished",
        "Receipt receipt_",
        "running ",
        "Stopped",
    ):
        assert said in done.stdout, done.stdout
    assert not list((tmp_path / "data").glob("*.lock"))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.proves("Ctrl-C leaves no process and no lock; a second start has its accounts, hosts and events")
@pytest.mark.proves("after Ctrl-C no process, container or lock is left, and a second start has all records")
def test_the_end_leaves_nothing_and_a_second_start_remembers_and_retires_who_is_not_asked_for_again(
    tmp_path: Path,
) -> None:
    with stack("--simulate", "3", folder=tmp_path) as running:
        first, renter = _online(running), Renter(running)
        renter.online()
        three = wait_for(lambda: (found := _simulated(running, "online")) and len(found) == 3 and found)
        token = running.cli["token"]
        done = renter.create("sh", "-c", "echo done", until="")
        renter.exited(done["id"])
        receipt = renter.delete(done["id"])
        left = renter.create("sh", "-c", "echo begun; while :; do sleep 1; done", f"left-{first['id']}")
        wait_for(lambda: renter.log(left["id"]) == b"begun\n")
        transfers = {one["id"] for one in renter.all("/ledger/transfers")}
        events = {one["id"] for one in renter.all("/events")}
        pids = running.pids()
        assert {"master", "access", "agent"} <= set(running.daemons())
        assert _stop(running, signal.SIGTERM) == 0
        poll(lambda: not [pid for pid in pids if _is_alive(pid)], what="every daemon has ended")
        assert "pids" not in running.cli
    lost = set(truth.produced(running.data_dir / "agent").keys) - set(truth.stored(running.data_dir))
    assert [one for one in truth.naming(str(tmp_path)) if one.argv[0] != "pytest"] == []
    assert truth.workload_processes(f"left-{first['id']}") == []
    assert not list(running.data_dir.rglob("*.lock"))
    assert truth.ledger_flaws(running.data_dir) == []
    assert not services()["docker"].version or truth.containers(first["id"]) == []

    with stack("--simulate", "1", folder=tmp_path) as running:
        second, renter = _online(running), Renter(running)
        retired = wait_for(lambda: (found := _simulated(running, "retired")) and len(found) == 2 and found)
        kept = wait_for(lambda: _simulated(running, "online") - retired)
        me = renter.ask("GET", "/me")
        assert (second["id"], running.cli["token"], me["master"]["epoch"]) == (first["id"], token, 2)
        assert "host.joined" in renter.events(first["id"])
        assert (kept < three, retired) == (True, three - kept), "those that were not asked for again"
        assert renter.ask("GET", f"/receipts/{receipt['id']}")["amount"] == receipt["amount"]
        assert transfers <= {one["id"] for one in renter.all("/ledger/transfers")}
        assert events <= {one["id"] for one in renter.all("/events")}
        # What ran at the end was ended by the host; the Master hears of it now and closes the bill.
        renter.phase(left["id"], *ENDED, "Running", "Degraded")
        assert renter.log(left["id"]) == b"begun\n", "what ran is ended as by its operator: its log is kept"
        renter.delete(left["id"])
        assert renter.flaws(done["id"], left["id"]) == []
        assert wait_for(lambda: lost <= set(truth.stored(running.data_dir)))
        # As the console's button does it: more of them, without another start.
        set_to = renter.ask("PUT", "/simulated-hosts", {"count": 2})
        assert (set_to["can_set"], set_to["wanted"]) == (True, 2)
        assert wait_for(lambda: (found := _simulated(running, "online")) and len(found) == 2 and kept < found)
        assert _stop(running, signal.SIGHUP) == 0


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.long
def test_a_master_that_dies_while_its_market_starts_keeps_none_of_it_away(tmp_path: Path) -> None:
    with stack("--simulate", "20", folder=tmp_path) as running:
        first = wait_for(lambda: running.cli["pids"]["master"])
        for moment in ("logs/access-local-a.log", "simulated/0003/identity/identity.json"):
            poll((running.data_dir / moment).exists, what=moment)
            killed = running.cli["pids"]["master"]
            os.kill(killed, signal.SIGKILL)
            wait_for(lambda killed=killed: running.cli["pids"]["master"] != killed)
        _online(running)
        assert wait_for(lambda: len(_simulated(running, "online")) == 20)
        assert running.cli["pids"]["master"] != first
        assert _stop(running) == 0


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.chaos
@pytest.mark.skipif(not os.environ.get("CHAOS"), reason="test_kills.py does, under a rental; `make chaos` runs it")
def test_each_daemon_that_is_killed_comes_back_and_the_host_with_it(tmp_path: Path) -> None:
    with stack(folder=tmp_path) as running:
        _online(running)
        for kind in ("access", "master", "agent"):
            pid = running.daemons()[kind][0]
            os.kill(pid, signal.SIGKILL)
            wait_for(lambda kind=kind, pid=pid: set(running.daemons().get(kind, [])) - {pid})
            wait_for(lambda: len(running.daemons().get("access", [])) == 2)
            _online(running)
        assert _stop(running) == 0
