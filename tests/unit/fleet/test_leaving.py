"""A host that says that it will be gone, one whose provider says that it has ended, and one that is another machine."""

import pytest

from tests.support.personas import host as persona
from tests.support.wired import answers
from tests.unit.fleet.world import GPU_1, HOST, OTHER, World, h100, world
from windrow_master.fleet import messages as says
from windrow_master.fleet.host_events import leaving_at
from windrow_master.fleet.liveness import BREAKER_AGENTS_MIN
from windrow_master.fleet.model import AdminState, DesiredWorkload, LinkState
from windrow_master.fleet.states import AdminEvent, LinkEvent
from windrow_proto.host_fields import CLOUD_INSTANCE
from windrow_proto.ids import HostId, WorkloadId
from windrow_proto.model import Event, Kind, WorkloadPhase
from windrow_proto.units import SECOND
from windrow_proto.wire_host import encode_event, encode_inventory


def heard_from(it: World, kind):
    """The facts of this kind that are published from now on."""
    found = []
    it.store.messages.on(kind, lambda uow, fact: found.append(fact))
    return found


def leave(it: World, host_id=HOST, **fields):
    event = Event("host.leaving", it.clock.wall_ns(), "", "", fields)
    it.take(it.record(Kind.EVENT, encode_event(event), host_id=host_id))


def test_a_host_that_will_be_gone_takes_no_new_work_and_says_why(tmp_path) -> None:
    with world(tmp_path) as it:
        it.equip(GPU_1)
        found = heard_from(it, says.HostLeaving)
        at_ns = it.clock.wall_ns() + 120 * SECOND
        leave(it, at_ns=str(at_ns), why="spot")

        assert it.host().admin_state is AdminState.DRAINING
        assert it.host().admin_reason.startswith("its provider takes the spot machine back, at ")
        assert found == [says.HostLeaving(HOST, at_ns, "spot")]
        assert "host.leaving" in it.events()


def test_what_a_host_says_of_its_end_is_a_time_or_nothing() -> None:
    assert leaving_at({"at_ns": "12"}) == 12
    for text in ("", "-1", "1.5", "١٢", "9" * 30):
        assert leaving_at({"at_ns": text}) is None


def test_a_wave_of_spot_machines_that_go_does_not_freeze_the_verdict_on_others(tmp_path) -> None:
    with world(tmp_path) as it:
        for kind in ("quiet", "told"):
            names = [HostId(f"{kind}_{n}") for n in range(BREAKER_AGENTS_MIN)]
            for name in names:
                it.join(name)
                it.connect(name)
                it.beat(name)
                if kind == "told":
                    leave(it, name, why="spot")
            it.clock.advance(16 * SECOND)
            it.fleet.presence.judge(5 * SECOND)
            is_frozen = it.fleet.presence.breaker.is_frozen(it.clock.monotonic_ns())
            assert is_frozen is (kind == "quiet")
            for name in names:
                it.fleet.presence.gone(name)
            it.clock.advance(3600 * SECOND)


def test_a_machine_that_has_ended_is_lost_at_once_with_its_work(tmp_path) -> None:
    with world(tmp_path) as it:
        it.equip(GPU_1)
        it.write(lambda uow: it.fleet.hosts.link(uow, HOST, LinkEvent.HEARD, 1))
        work = DesiredWorkload(WorkloadId("work_1"), (), True)
        answers(it.store, says.DesiredOn, lambda uow, question: (work,))
        lost, links = heard_from(it, says.WorkloadReported), heard_from(it, says.LinkChanged)
        for _ in range(2):
            it.write(lambda uow: it.fleet.gone(uow, HOST, "EC2 says that it is terminated"))

        assert (it.host().link_state, it.host().admin_state) == (LinkState.LOST, AdminState.RETIRED)
        assert [(one.workload.workload_id, one.workload.phase) for one in lost] == [("work_1", WorkloadPhase.GONE)]
        assert [one.state for one in links] == [LinkState.LOST]
        assert "host.gone" in it.events() and "host.lost" not in it.events()


@pytest.mark.parametrize("said", ["i-0bad", "", "i-0good"])
def test_a_host_that_is_not_the_machine_that_was_bought_is_quarantined(tmp_path, said) -> None:
    with world(tmp_path) as it:
        answers(it.store, says.InstanceOf, lambda uow, question: "i-0good" if question.host_id == HOST else "")
        it.join(OTHER)
        for host_id in (HOST, OTHER):
            inventory = persona(h100(GPU_1, 0), hostname=host_id, more={CLOUD_INSTANCE: said} if said else {})
            it.take(it.record(Kind.INVENTORY, encode_inventory(inventory), host_id=host_id))

        is_same = said == "i-0good"
        assert it.host().admin_state is (AdminState.ACTIVE if is_same else AdminState.QUARANTINED)
        assert it.host(OTHER).admin_state is AdminState.ACTIVE


def test_a_host_is_compared_again_once_its_machine_is_known(tmp_path) -> None:
    with world(tmp_path) as it:
        it.equip(GPU_1)
        answers(it.store, says.InstanceOf, lambda uow, question: "i-0good")
        it.write(lambda uow: it.fleet.check_instance(uow, HOST))
        assert it.host().admin_state is AdminState.QUARANTINED
        assert "i-0good was bought" in it.host().admin_reason
        it.write(lambda uow: it.fleet.hosts.decide(uow, HOST, AdminEvent.RETIRE, "test", ""))
        it.write(lambda uow: it.fleet.check_instance(uow, HOST))
        assert it.host().admin_state is AdminState.RETIRED
