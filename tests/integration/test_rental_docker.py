"""Renting containers through the shipped daemons: a local image, an unknown one, a service with a port, an orphan."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import truth
from tests.support.containers import image as image
from tests.support.containers import left
from tests.support.rental import Renter, body_at, renting
from tests.support.stack import wait_for
from tests.waiting import poll
from windrow_agent.runtimes import docker_pause

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(240)]

ENDS_S = 10.0
"""For what has ended by itself to be gone from its host."""
OBEDIENT = "trap 'exit 0' TERM; sleep 300 & wait"
"""The first process of a container has no default for SIGTERM: one that sets none is only ended ten seconds later."""


@pytest.fixture(scope="module")
def renter(image: str) -> Iterator[Renter]:
    """A market that leaves no container when it ends, although one runs then."""
    with renting() as found:
        host_id = wait_for(lambda: (host := found.host()) and "docker" in host["runtimes"] and host["id"])
        yield found
        found.create("sh", "-c", OBEDIENT, image=image)
        assert len(truth.containers(host_id)) == 1
        wait_for(lambda: truth.containers(host_id, docker_pause.LABEL))
    assert left(host_id) == []


@pytest.mark.proves("a container is rented from a local image, billed by its signed life, and gone afterwards")
def test_a_container_is_rented_shown_billed_and_gone(renter: Renter, image: str) -> None:
    host_id = renter.host()["id"]
    script = f"echo kept > note; echo from $(hostname); {OBEDIENT}"
    cluster = renter.create("sh", "-c", script, image=image)

    (container,) = truth.containers(host_id)
    inspected = _inspect(container)
    log = wait_for(lambda: renter.log(cluster["id"]))
    inside = renter.windrow("cluster", "exec", cluster["id"], "--", "cat", "note")
    receipt = renter.delete(cluster["id"])

    assert log.startswith(b"from ")
    assert (inside.returncode, inside.stdout) == (0, "kept\n")
    assert inspected["Config"]["Labels"]["windrow.token"]
    assert inspected["HostConfig"]["CapDrop"] == ["ALL"] and not inspected["HostConfig"]["Privileged"]
    assert truth.containers(host_id) == []
    assert float(receipt["running_seconds"]) > 0
    assert renter.flaws(cluster["id"]) == []


def test_files_go_into_a_container_and_changed_ones_come_back(renter: Renter, image: str, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("carried")

    done = renter.windrow(
        "run", "--image", image, "--", "sh", "-c", "cat in.txt > out.txt; cat in.txt; exit 3", cwd=tmp_path
    )

    assert (done.returncode, (tmp_path / "out.txt").read_text()) == (3, "carried"), done.stderr
    assert done.stdout.startswith("carried")
    # It returns with the files; its log and files go to the Master, and the container away, by themselves.
    wait_for(lambda: truth.containers(renter.host()["id"]) == [], ENDS_S)


@pytest.mark.proves("an unknown image is a stated failure that costs nothing and frees the slot")
def test_an_unknown_image_fails_with_its_name_and_costs_nothing(renter: Renter) -> None:
    before = renter.balance()

    failed = renter.create("true", image="windrow-test-nowhere.invalid/none:missing", until="Failed")
    receipt = renter.receipt(failed["id"])

    assert failed["phase"] == "Failed"
    assert "windrow-test-nowhere.invalid/none:missing" in failed["reason"]
    assert (receipt["running_seconds"], float(receipt["amount"])) == ("0.000000000", 0.0)
    assert renter.balance() == before
    assert renter.flaws(failed["id"]) == []
    assert truth.containers(renter.host()["id"]) == []
    wait_for(lambda: all(slot["state"] == "free" for slot in renter.host()["slots"]))


def test_a_container_that_ran_out_of_memory_or_was_removed_says_so_and_is_billed_as_signed(
    renter: Renter, image: str
) -> None:
    hog = renter.create("busybox", "tail", "/dev/zero", image=image, memory_bytes=64 << 20, until="")
    renter.exited(hog["id"])
    assert "ran out of memory at its limit of 64 MiB" in renter.phase(hog["id"], "Failed")["reason"]
    renter.delete(hog["id"])

    taken = renter.create("sh", "-c", OBEDIENT, image=image)
    (container,) = truth.containers(renter.host()["id"])
    subprocess.run(["docker", "rm", "-f", container], capture_output=True, timeout=120, check=True)
    assert "the workload was taken away on its host" in renter.phase(taken["id"], "Failed")["reason"]
    renter.delete(taken["id"])

    assert renter.flaws(hog["id"], taken["id"]) == []
    assert truth.containers(renter.host()["id"]) == []


def test_a_service_in_a_container_is_reached_at_its_port_until_it_is_deleted(renter: Renter, image: str) -> None:
    cluster = renter.create(
        "sh",
        "-c",
        f"echo served > index.html; httpd -p 8080; {OBEDIENT}",
        image=image,
        kind="service",
        ports=[8080],
    )

    (workload,) = wait_for(lambda: [w for w in _workloads(renter, cluster) if w["ports"]])
    port = int(workload["ports"]["8080"])
    answer = wait_for(lambda: body_at(port))
    renter.delete(cluster["id"])

    assert answer == b"served\n"
    poll(lambda: body_at(port) is None, what="the port is closed")
    assert renter.flaws(cluster["id"]) == []


def test_a_container_that_was_never_asked_for_is_left_alone_when_it_is_not_ours(renter: Renter, image: str) -> None:
    words = ["docker", "run", "-d", "--network", "none", "--label", "windrow.host=somebody-else", image, "sleep", "300"]
    foreign = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True).stdout.strip()
    try:
        cluster = renter.create("sleep", "300", image=image)
        renter.delete(cluster["id"])
        assert _inspect(foreign)["State"]["Running"]
    finally:
        subprocess.run(["docker", "rm", "-f", foreign], capture_output=True, timeout=120, check=True)


def _inspect(container: str) -> Any:
    done = subprocess.run(["docker", "inspect", container], capture_output=True, text=True, timeout=120, check=True)
    return json.loads(done.stdout)[0]


def _workloads(renter: Renter, cluster: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = renter.ask("GET", f"/clusters/{cluster['id']}")["workloads"]
    return found
