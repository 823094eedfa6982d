"""Alerts from their events to real sinks while leaders die, clocks jump, and much happens at once."""

import random
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from tests.hostile.two_renters import two_renters
from tests.master_support import ManualClock
from tests.unit.watch.notify.world import World, made_world
from windrow_master.app.clock import SteadyClock
from windrow_master.fleet.model import AdminState, Host, LinkState
from windrow_master.fleet.repository import HostRepository
from windrow_master.fleet.view import FleetView
from windrow_master.store.unit import UnitOfWork
from windrow_master.watch import levels
from windrow_master.watch.maintenance import quiet_until
from windrow_master.watch.model import OPERATORS, AlertMessage, Raise
from windrow_master.watch.own_rules import OwnRule
from windrow_master.watch.repository import AlertRepository
from windrow_master.watch.service import AlertService, Watched
from windrow_proto.conditions import Severity
from windrow_proto.errors import StorageFailed, Unavailable
from windrow_proto.ids import AccountId, HostId
from windrow_proto.model import Inventory
from windrow_proto.units import DAY, HOUR, MINUTE, SECOND

KILLS = 20


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with made_world(tmp_path) as made:
        yield made


def alerts_of(world: World) -> AlertService:
    """The alerts of whichever Master leads."""
    telemetry: Any = SimpleNamespace(live=None, health=lambda: SimpleNamespace(lag_ns=0))
    watched = Watched(FleetView(), telemetry, list, lambda *_: True)
    return AlertService(world.store, world.clock, watched, world.deliveries, quiet_until)


def happen(world: World, kind: str, *subjects: str, **fields: str) -> None:
    world.store.write_now(lambda uow: uow.event(kind, subjects, f"{kind} happened", fields, "master"), name=kind)


def messages(world: World) -> list[AlertMessage]:
    return list(reversed(world.store.read_now(lambda uow: uow[AlertRepository].inbox([OPERATORS], None, 10_000))))


async def turns(world: World, span_ns: int, step_ns: int) -> None:
    """Let time pass, with turns of alerts and deliveries in it."""
    alerts = alerts_of(world)
    for _ in range(max(1, span_ns // step_ns)):
        world.clock.advance(step_ns)
        await alerts.turn()
        await world.deliveries.turn()


@pytest.mark.parametrize("where", ["before it is sent", "before that is recorded"])
async def test_a_leader_killed_twenty_times_loses_no_message_and_doubles_none_by_its_id(
    world: World, where: str
) -> None:
    await world.webhook()
    await alerts_of(world).turn()
    chance, real, deaths = random.Random(40), world.store.write, 0

    async def dies(fn: Any, *, name: str, **more: Any) -> Any:
        if name == "delivery.tried":
            raise StorageFailed("killed")
        return await real(fn, name=name, **more)

    for number in range(2 * KILLS):
        happen(world, ("access.lost", "access.back")[number % 2], f"access_{number // 2 % 4}", region="north")
        await alerts_of(world).turn()  # committed
        world.clock.advance(31 * SECOND)
        if deaths < KILLS and chance.random() < 0.7:
            deaths += 1
            if where == "before that is recorded":
                with mock.patch.object(world.store, "write", dies):
                    await world.deliveries.turn()
            world.restart()
        else:
            await world.deliveries.turn()
    await turns(world, 20 * MINUTE, MINUTE)

    sent, kept = messages(world), list(dict.fromkeys(world.sink.kept()))
    assert (deaths, len(sent) > KILLS) == (KILLS, True)
    assert sorted(kept) == sorted(one.message_id for one in sent), "none is lost, and none is made up"
    for cause in {one.object_key for one in sent}:
        own = [one.message_id for one in sent if one.object_key == cause]
        assert [one for one in kept if one in own] == own, "in order for each object"
    copies = len(world.sink.kept()) - len(kept)
    assert copies == 0 if where == "before it is sent" else copies > 0, "of what was sent and not recorded"


class Machine(ManualClock):
    """A Master's clock over that of a machine whose wall clock jumps."""

    def __init__(self, wall_ns: int) -> None:
        self.machine = ManualClock(wall_ns)
        self._steady = SteadyClock(self.machine)

    def wall_ns(self) -> int:
        return self._steady.wall_ns()

    def monotonic_ns(self) -> int:
        return self.machine.monotonic_ns()

    def advance(self, duration_ns: int) -> None:
        self.machine.advance(duration_ns)

    def jump(self, span_ns: int) -> None:
        self.machine._wall_ns += span_ns


@pytest.mark.parametrize("jump_ns", [HOUR, -HOUR])
async def test_a_clock_that_jumps_for_an_hour_sends_nothing_early_twice_or_late(tmp_path: Path, jump_ns: int) -> None:
    clock = Machine(1_800_000_000 * SECOND)
    async with made_world(tmp_path, clock=clock) as world:
        await world.webhook()
        alerts = alerts_of(world)
        await alerts.turn()
        world.sink.answer = lambda message_id: 500
        happen(world, "access.lost", "access_1", region="north")
        await turns(world, 10 * SECOND, 10 * SECOND)
        clock.jump(jump_ns)
        await turns(world, 5 * MINUTE, 30 * SECOND)
        assert [one.kind for one in messages(world)] == ["firing"], (
            "no page is told again before its quarter of an hour"
        )
        assert set(await world.states()) == {"waiting"}
        happen(world, "access.back", "access_1")
        world.sink.answer = lambda message_id: 200
        clock.jump(-jump_ns)
        await turns(world, 10 * MINUTE, 30 * SECOND)
        assert world.sink.kept() == [one.message_id for one in messages(world)]
        assert [one.kind for one in messages(world)] == ["firing", "resolved"]


async def test_ten_flaps_are_two_messages_at_the_sink(world: World) -> None:
    await world.webhook()
    await alerts_of(world).turn()
    for _ in range(10):
        happen(world, "access.lost", "access_1", region="north")
        await turns(world, 10 * SECOND, 10 * SECOND)
        happen(world, "access.back", "access_1")
        await turns(world, 10 * SECOND, 10 * SECOND)
    await turns(world, 30 * MINUTE, 5 * MINUTE)
    assert [one.rpartition(".")[2] for one in world.sink.kept()] == ["firing", "resolved"]


def join(world: World, count: int, relay: str) -> None:
    """Simulated hosts of one account, connected through one relay."""

    def add(uow: UnitOfWork) -> None:
        for number in range(count):
            host = Host(
                HostId(f"host_{number}"), f"sim-{number:04}", AccountId("account_1"), True, 0, access_id=relay,
                admin_state=AdminState.ACTIVE, link_state=LinkState.ONLINE,
            )  # fmt: skip
            uow[HostRepository].add(host)

    world.store.write_now(add, name="test")


async def test_a_relay_with_a_thousand_hosts_that_dies_is_one_message_at_the_sink(world: World) -> None:
    await world.webhook()
    join(world, 1_000, "access_1")
    await alerts_of(world).turn()
    happen(world, "access.lost", "access_1", region="north")

    def lost(uow: UnitOfWork) -> None:
        for number in range(1_000):
            uow.event("host.lost", (f"host_{number}",), "gone", {"held": "1"}, "master")

    world.store.write_now(lost, name="test")
    await turns(world, 30 * SECOND, 10 * SECOND)
    assert [one.rule for one in messages(world)] == ["relay.down"]
    assert world.sink.kept() == [messages(world)[0].message_id]


@pytest.mark.parametrize("count", [1_000, pytest.param(10_000, marks=pytest.mark.long)])
async def test_thousands_of_conditions_in_a_second_are_a_few_messages(world: World, count: int) -> None:
    await world.webhook()
    join(world, count // 10, "access_1")
    await alerts_of(world).turn()

    def hot(uow: UnitOfWork) -> None:
        for number in range(count):
            about = f"host_{number // 10}", f"GPU-{number}"
            uow.event("condition.raised", about, "95 degrees", {"code": f"gpu.hot:GPU-{number}"}, "master")

    world.store.write_now(hot, name="test")
    await turns(world, MINUTE, 10 * SECOND)
    kinds = Counter(one.kind.value for one in messages(world))
    assert kinds == {"firing": 10, "resolved": 9}, "of nine hosts, and then of all together"
    assert sorted(world.sink.kept()) == sorted(one.message_id for one in messages(world))
    (open_,) = world.store.read_now(lambda uow: uow[AlertRepository].open_alerts())
    assert open_.subject_count == count


def rule_of(**changes: Any) -> OwnRule:
    usual: dict[str, Any] = {"rule_id": "alertrule_1", "owner": OPERATORS, "name": "hot", "scope": {}}
    usual |= {"duration_ns": SECOND, "severity": Severity.PAGE, "created_at_ns": 0, "created_by": ""}
    return OwnRule(**usual | changes)


async def test_markup_in_the_name_of_a_rule_is_text_in_its_mail(world: World) -> None:
    await world.mail()
    markup = "<img src=x onerror=alert(1)>\r\nBcc: x@example.org"
    world.store.write_now(
        lambda uow: uow[AlertRepository].put_rule(rule_of(name=markup, event_kind="job.failed")), name="test"
    )
    alerts = alerts_of(world)
    await alerts.turn()
    await alerts._read_rules()
    happen(world, "job.failed", "job_1", markup)
    await alerts.turn()
    await world.deliveries.turn()
    (mail,) = world.box.mails
    assert mail["Bcc"] is None and "Bcc: x@example.org" in str(mail["Subject"])
    html = mail.get_body(("html",))
    assert html is not None and "<img" not in html.get_content() and "&lt;img" in html.get_content()


def test_a_rule_that_matches_everything_looks_at_a_part_and_is_one_alert_in_the_end() -> None:
    class Live:
        def peek(self, host_id: str, metrics: frozenset[int]) -> Any:
            return SimpleNamespace(at_ns=0, get=lambda device, number: 1.0)

    view, waits, found = FleetView(), levels.Waits(), levels.Level()
    for number in range(levels.HOSTS_MAX + 500):
        host = Host(HostId(f"host_{number}"), f"sim-{number}", AccountId("account_1"), True, 0, inventory=Inventory())
        view.put(host, ())
    rule, live = rule_of(metric="host_cpu_ratio", threshold=0.0), Live()
    levels.of_rules(levels.Level(), waits, [rule], view, live, 0)  # type: ignore[arg-type]  # read by hand
    levels.of_rules(found, waits, [rule], view, live, SECOND)  # type: ignore[arg-type]  # read by hand
    assert len(found.raises) == levels.HOSTS_MAX
    assert {one.wider for one in found.raises.values()} == {"alertrule_1"}


async def test_a_rule_that_fires_for_all_hosts_is_a_few_messages(world: World) -> None:
    await alerts_of(world).turn()
    rule = rule_of(metric="host_cpu_ratio")
    raised: list[Raise] = [rule.raised(f"host_{one}", f"host_{one}", f"sim-{one}", "high") for one in range(300)]
    alerts = alerts_of(world)
    world.store.write_now(lambda uow: alerts._take(raised, uow), name="test")
    kinds = Counter(one.kind.value for one in messages(world))
    assert kinds == {"firing": 10, "resolved": 9}


async def test_without_history_a_preview_says_so_and_alerts_go_on(tmp_path: Path) -> None:
    async with two_renters(tmp_path) as two:
        alerts = two.services.alerts
        await alerts.turn()
        gone = mock.AsyncMock(side_effect=Unavailable("The history cannot be read."))
        asked = {"name": "hot", "metric": "host_cpu_ratio", "comparison": ">", "threshold": 0.5, "duration_s": 60}
        fleet = two.services.fleet
        await two.services.store.write(
            lambda uow: fleet.enrol(uow, HostId("host_1"), "box", two.quiet.account_id, True, "test"), name="test"
        )
        await fleet.refresh()
        with mock.patch.object(two.services.telemetry.charts, "series", gone):
            preview = await two.operator.post("/alert-rules/preview", json=asked)
            assert (preview.status_code, preview.json()["retryable"]) == (503, True)
            assert (await two.operator.post("/alert-rules", json=asked)).status_code == 201
            await alerts.look()
            store = two.services.store
            store.write_now(lambda uow: uow.event("access.lost", ("access_1",), "gone", {"region": "n"}), name="test")
            two.clock.advance(DAY)
            await alerts.turn()
        found = (await two.operator.get("/inbox")).json()["items"]
        assert "relay.down" in {one["rule"] for one in found}
