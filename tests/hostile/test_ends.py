"""Rentals end by themselves: a command that ended, a client that went, a service whose program is gone."""

import os
import pty
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.hostile import IS_LONG
from tests.support.rental import Renter
from tests.support.stack import WINDROW, stack, wait_for

FREE_S = 10.0


@pytest.fixture(scope="module")
def renter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Renter]:
    with stack("--simulate", "1", folder=tmp_path_factory.mktemp("ends")) as running:
        made = Renter(running)
        made.online()
        wait_for(lambda: _simulated(made)["link_state"] == "online")
        yield made


def _simulated(renter: Renter) -> dict[str, Any]:
    return next(host for host in renter.all("/hosts") if host["simulated"])


def _free(renter: Renter, host: dict[str, Any]) -> bool:
    found = renter.ask("GET", f"/hosts/{host['id']}")["slots"]
    return all(slot["state"] == "free" for slot in found)


def _is_cleared(renter: Renter, cluster: dict[str, Any]) -> bool:
    return {one["phase"] for one in renter.ask("GET", f"/clusters/{cluster['id']}")["workloads"]} == {"gone"}


@pytest.mark.row("K4")
@pytest.mark.parametrize(
    ("kind", "code", "phase"),
    [("box", 0, "Finished"), ("service", 0, "Finished"), *([("box", 3, "Failed")] if IS_LONG else [])],
)
@pytest.mark.case("M-1")
def test_a_command_that_ended_holds_and_costs_nothing_and_its_log_and_file_can_be_read(
    renter: Renter, tmp_path: Path, kind: str, code: int, phase: str
) -> None:
    host = renter.host()
    more = {"ports": [8080]} if kind == "service" else {}
    script = f"echo printed; echo result > out.txt; exit {code}"
    cluster = renter.create("sh", "-c", script, kind=kind, until=phase, host_id=host["id"], **more)
    wait_for(lambda: _is_cleared(renter, cluster), FREE_S)
    wait_for(lambda: _free(renter, host), FREE_S)

    ended = renter.ask("GET", f"/clusters/{cluster['id']}")
    assert (ended["phase"], ended["reason"]) == (phase, f"exit {code}")
    assert renter.windrow("cluster", "logs", cluster["id"]).stdout == "printed\n"
    done = renter.windrow("cluster", "files", cluster["id"], str(tmp_path / "back"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "back" / "out.txt").read_text() == "result\n"
    receipt = renter.receipt(cluster["id"])
    assert receipt["held"] == "0.00" and float(receipt["running_seconds"]) < FREE_S
    assert renter.ask("GET", f"/clusters/{cluster['id']}")["cost_so_far"] == receipt["amount"]
    assert "workload.lost" not in renter.events(host["id"])
    assert renter.flaws(cluster["id"]) == []


@pytest.mark.row("K4")
def test_all_gpus_of_a_host_are_free_seconds_after_the_command_that_had_them(renter: Renter) -> None:
    host = _simulated(renter)
    cards = len(host["gpus"])
    cluster = renter.create("true", gpus=cards, simulated=True, host_id=host["id"], until="Finished")
    wait_for(lambda: _is_cleared(renter, cluster), FREE_S)
    again = renter.create("true", gpus=cards, simulated=True, host_id=host["id"], until="Finished")
    for one in (cluster, again):
        assert renter.receipt(one["id"])["held"] == "0.00"


@pytest.mark.row("K4")
def test_a_run_brings_its_exit_code_and_files_although_its_cluster_is_over(renter: Renter, tmp_path: Path) -> None:
    wait_for(lambda: _free(renter, renter.host()), FREE_S)
    done = renter.windrow("run", "--", "sh", "-c", "echo printed; echo result > out.txt; exit 37", cwd=tmp_path)
    assert (done.returncode, (tmp_path / "out.txt").read_text()) == (37, "result\n"), done.stderr
    assert "printed" in done.stdout


@pytest.mark.row("K4")
def test_a_command_inside_ends_with_the_client_that_ran_it(renter: Renter) -> None:
    wait_for(lambda: _free(renter, renter.host()), FREE_S)
    cluster = renter.create("sleep", "600")
    environment = os.environ | {"WINDROW_URL": renter.stack.cli["url"], "WINDROW_TOKEN": renter.stack.cli["token"]}
    words = ("cluster", "exec", cluster["id"], "--", "sh", "-c", "echo begun; sleep 7654321")
    with subprocess.Popen([WINDROW, *words], env=environment, stdout=subprocess.PIPE) as client:
        assert client.stdout is not None and client.stdout.readline() == b"begun\n"
        client.kill()
    wait_for(lambda: not _processes("7654321"), 30)
    assert renter.ask("GET", f"/clusters/{cluster['id']}")["phase"] == "Running"
    renter.delete(cluster["id"])


def _processes(word: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"sleep", word.encode()]:
            found.append(path.parent.name)
    return found


# --- clients that go --------------------------------------------------------------------------------------------------

LEASE_S = 10
"""Of a client, the shortest that there is: 15 minutes as shipped."""
ENDED_S = LEASE_S + 30.0
"""For its rental to be over: the Master looks every five seconds, the program has ten, and this machine is busy."""
WORK = "echo result > out.txt; echo up; sleep 600"


@contextmanager
def _attached(renter: Renter, here: Path, *flags: str, **more: Any) -> Iterator["subprocess.Popen[bytes]"]:
    """`windrow run` with a short lease, once its program has printed its line."""
    wait_for(lambda: _free(renter, renter.host()), FREE_S)
    own = os.environ | {"WINDROW_URL": renter.stack.cli["url"], "WINDROW_TOKEN": renter.stack.cli["token"]}
    words = [WINDROW, "run", "--lease", str(LEASE_S), *flags, "--", "sh", "-c", WORK]
    with (here.parent / f"{here.name}.log").open("wb") as file:
        options: Any = {"cwd": here, "env": own, "stdout": file, "stderr": file} | more
        client: subprocess.Popen[bytes] = subprocess.Popen(words, **options)
        with client:
            try:
                yield client
            finally:
                client.kill()


def _said(here: Path) -> str:
    """Returns its output, however its lines were broken."""
    return " ".join((here.parent / f"{here.name}.log").read_text(errors="replace").split())


def _newest(renter: Renter) -> dict[str, Any]:
    """The latest cluster, once its program runs."""
    found: dict[str, Any] = wait_for(lambda: (c := renter.all("/clusters")[0]) and c["phase"] == "Running" and c)
    return found


def _is_over(renter: Renter, cluster: dict[str, Any], tmp_path: Path) -> dict[str, Any]:
    """Returns the rest of it: no slot, no debt, and its log and file for whoever asks."""
    renter.phase(cluster["id"], "Deleted", within_s=ENDED_S)
    wait_for(lambda: _free(renter, renter.host()), FREE_S)
    receipt = renter.receipt(cluster["id"])
    assert receipt["held"] == "0.00"
    assert renter.windrow("cluster", "logs", cluster["id"]).stdout == "up\n"
    done = renter.windrow("run", "fetch", cluster["id"], "--into", str(tmp_path / "fetched"))
    assert (done.returncode, (tmp_path / "fetched" / "out.txt").read_text()) == (0, "result\n"), done.stderr
    assert renter.flaws(cluster["id"]) == []
    return receipt


@pytest.fixture
def here(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.mark.row("K4")
@pytest.mark.case("B-C3")
def test_a_killed_client_ends_its_rental_with_its_lease_and_what_it_left_is_kept(
    renter: Renter, here: Path, tmp_path: Path
) -> None:
    with _attached(renter, here) as client:
        wait_for(lambda: " up" in _said(here))
        cluster = _newest(renter)
        client.kill()
        receipt = _is_over(renter, cluster, tmp_path)
    ended = renter.ask("GET", f"/clusters/{cluster['id']}")
    assert ended["reason"] == f"Its client has not been heard from for {LEASE_S} s"
    assert float(receipt["running_seconds"]) < ENDED_S


@pytest.mark.row("K4")
def test_a_closed_terminal_ends_its_rental_at_once(renter: Renter, here: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    with _attached(
        renter, here, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, preexec_fn=_own
    ) as it:
        os.close(theirs)
        seen = b""
        while b"up\r\n" not in seen:
            seen += os.read(ours, 4096)
        cluster = _newest(renter)
        os.close(ours)
        assert it.wait(30) == 128 + signal.SIGHUP
        _is_over(renter, cluster, tmp_path)
    assert renter.ask("GET", f"/clusters/{cluster['id']}")["reason"] is None


def _own() -> None:
    """Have this terminal be the one whose end is told by SIGHUP."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.mark.row("K4")
@pytest.mark.skipif(not IS_LONG, reason="half a minute")
def test_a_laptop_that_slept_beyond_its_lease_finds_its_results_and_is_told_why(
    renter: Renter, here: Path, tmp_path: Path
) -> None:
    with _attached(renter, here) as client:
        wait_for(lambda: " up" in _said(here))
        cluster = _newest(renter)
        os.kill(client.pid, signal.SIGSTOP)
        renter.phase(cluster["id"], "Deleted", within_s=ENDED_S)
        os.kill(client.pid, signal.SIGCONT)
        assert client.wait(60) != 0
    assert f"Its client has not been heard from for {LEASE_S} s" in _said(here), _said(here)
    assert (here / "out.txt").read_text() == "result\n"
    _is_over(renter, cluster, tmp_path)


@pytest.mark.row("K4")
@pytest.mark.skipif(not IS_LONG, reason="half a minute")
def test_a_client_away_for_less_than_its_lease_goes_on(renter: Renter, here: Path, tmp_path: Path) -> None:
    with _attached(renter, here) as client:
        wait_for(lambda: " up" in _said(here))
        cluster = _newest(renter)
        began = time.monotonic()
        os.kill(client.pid, signal.SIGSTOP)
        wait_for(lambda: time.monotonic() - began > LEASE_S / 2)
        os.kill(client.pid, signal.SIGCONT)
        wait_for(lambda: time.monotonic() - began > LEASE_S + 6)
        assert renter.ask("GET", f"/clusters/{cluster['id']}")["phase"] == "Running"
        client.send_signal(signal.SIGTERM)
        assert client.wait(30) == 128 + signal.SIGTERM
        assert f"windrow run fetch {cluster['id']}" in _said(here)
        _is_over(renter, cluster, tmp_path)


@pytest.mark.row("K4")
@pytest.mark.case("B-C4")
def test_a_second_signal_ends_the_client_at_once_and_names_what_may_go_on(
    renter: Renter, here: Path, tmp_path: Path
) -> None:
    with _attached(renter, here) as client:
        wait_for(lambda: " up" in _said(here))
        cluster = _newest(renter)
        with _stopped(renter.stack.daemons()["master"]):  # it cannot be asked to end anything
            client.send_signal(signal.SIGINT)
            wait_for(lambda: client.poll() is not None or not _sleeps(client.pid))
            client.send_signal(signal.SIGINT)
            began = time.monotonic()
            assert client.wait(5) == 128 + signal.SIGINT and time.monotonic() - began < 3
        assert f"Ended at once. {cluster['id']} may go on: windrow cluster delete {cluster['id']}" in _said(here)
        if IS_LONG:
            _is_over(renter, cluster, tmp_path)
        else:
            renter.delete(cluster["id"])


@contextmanager
def _stopped(pids: list[int]) -> Iterator[None]:
    """These processes stand still."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def _sleeps(pid: int) -> bool:
    """True if a signal waits there to be heard."""
    text = Path(f"/proc/{pid}/status").read_text()
    words = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    return int(words["ShdPnd"], 16) | int(words["SigPnd"], 16) != 0


# --- ends by the Master -----------------------------------------------------------------------------------------------


@pytest.mark.row("K4")
@pytest.mark.parametrize("trap", ["", *(["trap '' TERM; "] if IS_LONG else [])], ids=["ends", "stays"][: 1 + IS_LONG])
def test_work_whose_time_is_over_leaves_its_log_and_files(renter: Renter, tmp_path: Path, trap: str) -> None:
    wait_for(lambda: _free(renter, renter.host()), FREE_S)
    script = f"{trap}echo result > out.txt; echo up; while :; do sleep 1; done"
    cluster = renter.create("sh", "-c", script, max_duration_seconds=2)
    _is_over(renter, cluster, tmp_path)
    assert renter.ask("GET", f"/clusters/{cluster['id']}")["reason"] == "it ran for the 2 s that it may"


@pytest.mark.row("K4")
def test_a_delete_of_the_renters_own_keeps_nothing_and_is_as_quick(renter: Renter, tmp_path: Path) -> None:
    wait_for(lambda: _free(renter, renter.host()), FREE_S)
    cluster = renter.create("sh", "-c", WORK)
    renter.delete(cluster["id"])
    wait_for(lambda: _free(renter, renter.host()), FREE_S)
    assert renter.windrow("cluster", "logs", cluster["id"]).returncode != 0


@pytest.mark.row("K4")
def test_a_run_right_after_the_masters_start_waits_for_its_hosts(renter: Renter) -> None:
    wait_for(lambda: _free(renter, renter.host()), FREE_S)
    own = os.environ | {"WINDROW_URL": renter.stack.cli["url"], "WINDROW_TOKEN": renter.stack.cli["token"]}
    words = [WINDROW, "run", "--no-files", "--", "echo", "here"]
    daemons = renter.stack.daemons()
    with _stopped(daemons["agent"]):  # so that none is heard before it is asked for
        for pid in daemons["master"]:
            os.kill(pid, signal.SIGKILL)
        wait_for(renter.stack._answers)
        with renter.stack.client() as api:
            plan = api.request("POST", "/clusters/plan", body={"argv": ["true"]})
        assert (plan["fits"], plan["fits_soon"]) == (False, True), plan
        client = subprocess.Popen(words, env=own, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said, errors = client.communicate(timeout=200)
    assert (client.returncode, said.splitlines()[0]) == (0, "here"), errors
    (started, *_) = renter.all("/audit", action="fleet.start")
    assert started["fields"]["hosts"] == "2"
    assert any(one["kind"] == "fleet.not_heard" for one in renter.all("/events"))
