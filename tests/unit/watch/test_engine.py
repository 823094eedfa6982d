"""Which alerts signals make: one cause is one alert, what is held back is told when it still holds, silences."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.master_support import ManualClock, opened_store
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_master.watch.engine import AlertEngine, silenced_until
from windrow_master.watch.model import OPERATORS, AlertMessage, Clear, Raise, Signal, Silence
from windrow_master.watch.repository import AlertRepository
from windrow_master.watch.rules import FAULTS, RULES
from windrow_master.watch.states import AlertEvent
from windrow_proto.conditions import Severity
from windrow_proto.units import HOUR, MINUTE, SECOND


class NoChannels:
    """Nobody has a channel: the inbox has every message already."""

    def queue(self, uow: UnitOfWork, message: AlertMessage) -> None:
        """Nothing is left to do."""


class World:
    """An engine on a real store."""

    def __init__(self, store: Store, clock: ManualClock) -> None:
        self.store, self.clock = store, clock
        self.engine = AlertEngine(NoChannels(), silenced_until)

    def take(self, *signals: Signal) -> None:
        for one in signals:
            self.store.write_now(partial(self._take, one), name="take")

    def _take(self, signal: Signal, uow: UnitOfWork) -> None:
        self.engine.take(uow, signal)

    def after(self, duration_ns: int) -> None:
        self.clock.advance(duration_ns)
        self.store.write_now(self.engine.look, name="look")

    def messages(self, audience: str = OPERATORS) -> list[AlertMessage]:
        found = self.store.read_now(lambda uow: uow[AlertRepository].inbox([audience], None, 1_000))
        return list(reversed(found))

    def said(self, audience: str = OPERATORS) -> list[str]:
        return [f"{one.kind} {one.title}" for one in self.messages(audience)]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    clock = ManualClock()
    with opened_store(tmp_path, clock) as store:
        yield World(store, clock)


def hot(host: str, gpu: str = "GPU-1", *, wider: str = "", least: int = 3) -> Raise:
    return RULES["gpu.hot"].raised(
        cause=host,
        subject=gpu,
        name=f"{host}, {gpu}",
        text="95 degrees",
        audiences=(OPERATORS, "account_1"),
        held_by=(("host.lost", host),),
        wider=wider,
        wider_name="job train",
        wider_least=least,
    )


def lost(host: str, relay: str = "") -> Raise:
    return RULES["host.lost"].raised(
        cause=host, subject=host, name=host, text="silent", audiences=(OPERATORS,), held_by=(("relay.down", relay),)
    )


def relay_down(relay: str = "access_1") -> Raise:
    return RULES["relay.down"].raised(cause=relay, subject=relay, name="north", text="", audiences=(OPERATORS,))


def test_two_gpus_of_a_host_are_one_alert_that_is_over_with_the_second(world: World) -> None:
    world.take(hot("h1"), hot("h1", "GPU-2"), hot("h1"))
    world.take(Clear("h1", "gpu.hot", "GPU-1"))
    world.after(MINUTE)
    assert [one.split()[0] for one in world.said()] == ["firing"]
    world.take(Clear("h1", "gpu.hot", "GPU-2"))
    world.after(MINUTE)
    first, last = world.messages("account_1")
    assert (first.kind, last.kind, first.object_key, last.number > first.number) == (
        "firing",
        "resolved",
        "gpu.hot/h1",
        True,
    )


def test_a_relay_with_a_thousand_hosts_is_one_alert_and_what_stays_lost_is_told_after_it(world: World) -> None:
    world.take(relay_down(), *(lost(f"host_{number}", "access_1") for number in range(1_000)))
    world.after(20 * SECOND)
    assert world.said() == ["firing Relay down: north"]
    world.take(*(Clear(f"host_{number}", "host.lost") for number in range(999)), Clear("access_1"))
    world.after(31 * SECOND)
    assert world.said() == ["firing Relay down: north", "resolved Relay down: north"]
    world.after(2 * MINUTE)
    assert world.said()[2:] == ["firing Host lost: host_999"]


def test_a_lost_host_holds_back_its_conditions_until_it_is_back(world: World) -> None:
    world.take(lost("h1"), hot("h1"))
    assert world.said() == ["firing Host lost: h1"]
    world.take(Clear("h1", "host.lost"))
    world.after(31 * SECOND)
    world.after(2 * MINUTE)
    assert [one.split(":")[0] for one in world.said()][-1].startswith("firing Too hot")


def fault(rule: str, gpu: str = "GPU-1", severity: Severity = Severity.TICKET) -> Raise:
    return RULES[rule].raised(
        cause="h1", subject=gpu, name=gpu, text=f"{rule}.", audiences=(OPERATORS,), same=FAULTS, severity=severity
    )


def test_a_card_that_falls_off_its_bus_is_one_alert_of_its_gravest_fault(world: World) -> None:
    world.take(fault("gpu.host_fault", severity=Severity.PAGE), fault("gpu.lost"), fault("gpu.host_fault"))
    world.after(MINUTE)
    (one,) = world.messages()
    assert (one.title, one.severity, one.subject_count) == ("GPU lost: GPU-1", Severity.PAGE, 1)
    assert one.text == "gpu.lost. Before: gpu.host_fault."
    world.take(Clear("h1", "gpu.host_fault", "GPU-1"), Clear("h1", "gpu.lost", "GPU-1"))
    world.after(MINUTE)
    world.after(2 * MINUTE)
    assert [one.kind for one in world.messages()] == ["firing", "resolved"]


def test_a_graver_fault_of_a_card_that_was_told_of_is_not_told_again_and_another_card_is(world: World) -> None:
    world.take(fault("gpu.host_fault"))
    world.after(2 * SECOND)
    world.take(fault("gpu.lost"), fault("gpu.lost", "GPU-2"))
    assert world.said() == ["firing Hardware fault: GPU-1", "firing GPU lost: GPU-2"]
    world.take(Clear("h1", "gpu.host_fault", "GPU-1"))
    world.after(MINUTE)
    world.after(2 * MINUTE)
    assert world.said()[2:] == ["resolved Hardware fault: GPU-1"], "the other joins the alert of the second card"


def test_a_ticket_that_becomes_a_page_is_told_again(world: World) -> None:
    world.take(fault("gpu.lost"), fault("gpu.lost", "GPU-2"), fault("gpu.lost", "GPU-3", Severity.PAGE))
    assert [(one.kind, one.severity) for one in world.messages()] == [
        ("firing", Severity.TICKET),
        ("firing", Severity.PAGE),
    ]


def test_the_same_trouble_on_three_hosts_of_a_job_is_the_jobs(world: World) -> None:
    world.take(hot("h1", wider="job_1"), hot("h2", wider="job_1"))
    world.take(hot("h3", wider="job_1"), hot("h4", wider="job_1"))
    kinds = [one.kind for one in world.messages()]
    assert kinds == ["firing", "firing", "resolved", "resolved", "firing"]
    whole = world.messages()[-1]
    assert (whole.object_key, "job train" in whole.title) == ("gpu.hot/job_1", True)
    world.take(*(Clear(f"h{number}", "gpu.hot", "GPU-1") for number in (1, 2, 3)))
    world.after(MINUTE)
    assert len(world.messages()) == 5, "one of its hosts is still hot"
    world.take(Clear("h4", "gpu.hot", "GPU-1"))
    world.after(MINUTE)
    assert world.messages()[-1].kind == "resolved"


def test_what_waits_for_its_duration_is_told_then_and_forgotten_when_it_is_over_before(world: World) -> None:
    def queued(job: str) -> Raise:
        return RULES["job.queued"].raised(cause=job, subject=job, name=job, text="", audiences=(OPERATORS,))

    world.take(queued("job_1"), queued("job_2"))
    world.take(Clear("job_2", "job.queued", "job_2"))
    world.after(10 * MINUTE)
    assert world.said() == ["firing Job waits in the queue: job_1"]
    assert len(world.store.read_now(lambda uow: uow[AlertRepository].open_alerts())) == 1


def test_a_moment_is_over_by_itself(world: World) -> None:
    failed = RULES["job.failed"].raised(
        cause="g", subject="job_1", name="train", text="exit 1", audiences=("account_1",)
    )
    world.take(failed)
    world.after(HOUR)
    assert world.said("account_1") == ["firing Job failed: train", "resolved Job failed: train"]


def test_ten_flaps_are_two_messages(world: World) -> None:
    for _ in range(10):
        world.take(lost("h1"))
        world.after(20 * SECOND)
        world.take(Clear("h1", "host.lost"))
        world.after(20 * SECOND)
    world.after(20 * MINUTE)
    assert world.said() == ["firing Host lost: h1", "resolved Host lost: h1"]


def silence(world: World, cause: str | None = None, owner: str = OPERATORS) -> None:
    now_ns = world.clock.wall_ns()
    one = Silence(
        silence_id="silence_1",
        owner=owner,
        rule=None,
        cause=cause,
        from_ns=now_ns,
        until_ns=now_ns + HOUR,
        reason="",
        created_by="",
        created_at_ns=now_ns,
    )
    world.store.write_now(lambda uow: uow[AlertRepository].add_silence(one), name="silence")


@pytest.mark.parametrize("is_over", [True, False])
def test_inside_a_silence_nothing_is_told_and_what_still_holds_is_told_after_it(world: World, is_over: bool) -> None:
    silence(world, cause="h1")
    world.take(lost("h1"), lost("h2"))
    assert world.said() == ["firing Host lost: h2"]
    if is_over:
        world.take(Clear("h1", "host.lost"))
    world.after(30 * MINUTE)
    world.after(HOUR)
    assert world.said()[1:] == ([] if is_over else ["firing Host lost: h1"])


def test_what_others_acknowledge_is_told_again_to_operators_alone_until_one_of_them_does(world: World) -> None:
    world.take(RULES["host.quarantined"].raised(
        cause="h1", subject="h1", name="h1", text="it lies", audiences=(OPERATORS, "account_1")
    ))  # fmt: skip

    def acknowledge(event: AlertEvent, uow: UnitOfWork) -> None:
        (alert,) = uow[AlertRepository].open_alerts()
        world.engine.apply(uow, alert, event, actor=event.value)

    world.store.write_now(partial(acknowledge, AlertEvent.ACCEPT), name="ack")
    world.after(15 * MINUTE)
    assert (len(world.messages("account_1")), len(world.messages())) == (1, 2)
    assert world.messages()[-1].text == "No operator has acknowledged it. it lies"
    world.store.write_now(partial(acknowledge, AlertEvent.ACKNOWLEDGE), name="ack")
    world.after(2 * HOUR)
    assert len(world.messages()) == 2


def test_silences_of_others_are_not_read(world: World) -> None:
    silence(world, owner="account_1")
    read = world.store.read_now(lambda uow: uow[AlertRepository].silences(uow.now_wall_ns, (OPERATORS, "account_2")))
    assert read == []


def test_an_account_silences_nothing_that_operators_are_told(world: World) -> None:
    silence(world, owner="account_1")
    world.take(hot("h1"))
    assert len(world.messages()) == 1
