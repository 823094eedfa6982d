"""A container daemon is asked for volumes only so often, and the last answer is told in between."""

import pytest

from tests.master_support import ManualClock
from windrow_agent.runtimes import docker_facts
from windrow_agent.runtimes.docker_inventory import LOOK_EVERY_NS, BareVolumes
from windrow_proto.ids import HostId


class Daemon:
    """Counts the questions; `left` are the workloads whose volumes it has."""

    def __init__(self, *left: str) -> None:
        self.left, self.asked, self.is_down = left, 0, False

    def volumes(self, filters: dict[str, str]) -> dict[str, list[dict[str, object]]]:
        assert filters == {"label": f"{docker_facts.HOST}=host_1"}
        self.asked += 1
        if self.is_down:
            raise ConnectionError("it is restarted")
        marks = [{docker_facts.WORKLOAD: name, docker_facts.CLUSTER: f"of {name}"} for name in self.left]
        return {"Volumes": [{"Labels": one} for one in (*marks, {}, None)]}


def looked(bare: BareVolumes, daemon: Daemon, clock: ManualClock, *known: str) -> list[str]:
    """The result of one look of the runtime."""
    if bare.is_due(clock):
        bare.look(daemon, clock)
    return [run.workload_id for run in bare.runs(list(known))]


def test_the_daemon_is_asked_at_the_first_look_and_again_after_a_while() -> None:
    bare, daemon, clock = BareVolumes(HostId("host_1")), Daemon("b", "a"), ManualClock()
    assert looked(bare, daemon, clock) == ["a", "b"]
    for _ in range(5):
        clock.advance(LOOK_EVERY_NS // 5 - 1)
        assert looked(bare, daemon, clock) == ["a", "b"]
    assert daemon.asked == 1
    daemon.left = ("b",)
    clock.advance(5)
    assert looked(bare, daemon, clock) == ["b"]
    assert daemon.asked == 2


def test_what_was_removed_or_got_its_container_meanwhile_is_told_no_more() -> None:
    bare, daemon, clock = BareVolumes(HostId("host_1")), Daemon("a", "b", "c"), ManualClock()
    assert looked(bare, daemon, clock, "b") == ["a", "c"]
    bare.forget(bare.runs(["b"])[0].workload_id)
    assert looked(bare, daemon, clock, "b", "c") == []
    assert daemon.asked == 1


def test_a_daemon_that_does_not_answer_is_asked_at_the_next_look() -> None:
    bare, daemon, clock = BareVolumes(HostId("host_1")), Daemon("a"), ManualClock()
    daemon.is_down = True
    with pytest.raises(ConnectionError):
        looked(bare, daemon, clock)
    daemon.is_down = False
    assert looked(bare, daemon, clock) == ["a"]
    assert daemon.asked == 2
