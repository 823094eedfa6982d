"""Rentals end by themselves: a command that ended, a client that went, a service whose program is gone."""

import os
import subprocess
from collections.abc import Iterator
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
    ("kind", "code", "phase"), [("box", 0, "Finished"), ("box", 3, "Failed"), ("service", 0, "Finished")]
)
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


@pytest.mark.row("K4")
@pytest.mark.skipif(not IS_LONG, reason="a minute; test_limits.py has it by a clock")
def test_a_client_that_is_silent_for_its_lease_ends_its_rental_and_one_that_renews_keeps_it(renter: Renter) -> None:
    host = _simulated(renter)
    wait_for(lambda: _free(renter, host), FREE_S)
    asked = {"gpus": 1, "simulated": True, "host_id": host["id"], "client_lease_s": 60}
    silent, alive = (renter.create("sleep", "600", **asked) for _ in range(2))

    def over() -> Any:
        renter.ask("POST", f"/clusters/{alive['id']}/renew")
        found = renter.ask("GET", f"/clusters/{silent['id']}")
        return found["phase"] == "Deleted" and found

    ended = wait_for(over, 100, 2.0)
    assert ended["reason"] == "Its client has not been heard from for 1 minute"
    assert renter.ask("GET", f"/clusters/{alive['id']}")["phase"] == "Running"
    assert float(renter.delete(silent["id"])["running_seconds"]) < 90
    renter.delete(alive["id"])
