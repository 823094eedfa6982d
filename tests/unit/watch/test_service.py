"""Alerts on a real store while transactions are killed and Masters change: none is lost, none is doubled."""

import random
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sqlalchemy.exc import OperationalError

from tests.master_support import ManualClock, opened_store
from windrow_master.fleet.view import FleetView
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_master.watch.engine import Notifier, silenced_until
from windrow_master.watch.model import OPERATORS, AlertMessage
from windrow_master.watch.repository import AlertRepository
from windrow_master.watch.service import AlertService, Watched
from windrow_proto.conditions import ConditionCode, Stated
from windrow_proto.errors import WindrowError
from windrow_proto.units import HOUR, MINUTE, SECOND

RELAYS = 60


class MortalNotifier:
    """Every other transaction dies at one of its first messages."""

    def __init__(self, random_: random.Random | None = None) -> None:
        self._random, self.deaths = random_, 0
        self._uow: UnitOfWork | None = None
        self._left = -1

    def queue(self, uow: UnitOfWork, message: AlertMessage) -> None:
        if self._random is None:
            return
        if uow is not self._uow:
            self._uow, self._left = uow, self._random.choice((-1, 1))
        self._left -= 1
        if self._left == 0:
            self.deaths += 1
            raise OperationalError("killed", None, Exception("killed"))


def service(store: Store, clock: ManualClock, notifier: Notifier, stated: list[Stated] | None = None) -> AlertService:
    telemetry: Any = SimpleNamespace(live=None)
    watched = Watched(FleetView(), telemetry, lambda: stated or [], lambda *_: True)
    return AlertService(store, clock, watched, notifier, silenced_until)


def event(store: Store, kind: str, *subjects: str, **fields: str) -> None:
    store.write_now(lambda uow: uow.event(kind, subjects, f"{kind} happened", fields, "master"), name=kind)


def messages(store: Store) -> list[AlertMessage]:
    return list(store.read_now(lambda uow: uow[AlertRepository].inbox([OPERATORS], None, 1_000)))


async def test_transactions_that_are_killed_lose_and_double_nothing(tmp_path: Path) -> None:
    clock, notifier = ManualClock(), MortalNotifier(random.Random(40))
    with opened_store(tmp_path, clock) as store:
        await service(store, clock, MortalNotifier()).turn()
        for number in range(RELAYS):
            event(store, "access.lost", f"access_{number}", region="north")
            event(store, "host.suspect", "host_1")
            try:
                await service(store, clock, notifier).turn()
            except (WindrowError, OperationalError):
                continue  # another Master leads
        for number in range(RELAYS):
            event(store, "access.back", f"access_{number}")
        await _until_quiet(store, clock, notifier)
        clock.advance(MINUTE)
        await _until_quiet(store, clock, notifier)
        assert notifier.deaths >= 20
        counts = Counter((one.kind.value, one.object_key) for one in messages(store))
        wanted = {(kind, f"relay.down/access_{number}") for kind in ("firing", "resolved") for number in range(RELAYS)}
        assert (set(counts), set(counts.values())) == (wanted, {1})
        for number in range(RELAYS):
            kinds = [one.kind.value for one in messages(store) if one.object_key == f"relay.down/access_{number}"]
            assert kinds == ["resolved", "firing"], "the latest first"


async def _until_quiet(store: Store, clock: ManualClock, notifier: MortalNotifier) -> None:
    for _ in range(100):
        try:
            await service(store, clock, notifier).turn()
            return
        except (WindrowError, OperationalError):
            continue
    raise AssertionError("it never came to rest")


async def test_what_happened_before_there_were_alerts_is_not_told(tmp_path: Path) -> None:
    clock = ManualClock()
    with opened_store(tmp_path, clock) as store:
        event(store, "access.lost", "access_1")
        alerts = service(store, clock, MortalNotifier())
        await alerts.turn()
        event(store, "access.lost", "access_2")
        await alerts.turn()
        assert [one.rule for one in messages(store)] == ["relay.down"]


async def test_a_condition_of_the_master_is_told_once_and_is_over_once_by_whichever_master(tmp_path: Path) -> None:
    clock = ManualClock()
    stated: list[Stated] = [(ConditionCode.MASTER_DISK_FULL, "The disk is full.", 1)]
    with opened_store(tmp_path, clock) as store:
        for _ in range(3):
            await service(store, clock, MortalNotifier(), stated).look()
            clock.advance(SECOND)
        later = service(store, clock, MortalNotifier(), [])
        for _ in range(3):
            await later.look()
            clock.advance(MINUTE)
            await later.turn()
        assert [(one.kind.value, one.rule) for one in reversed(messages(store))] == [
            ("firing", "master.disk_full"),
            ("resolved", "master.disk_full"),
        ]


async def test_a_master_that_has_just_started_has_not_seen_the_end_of_what_was_told(tmp_path: Path) -> None:
    clock = ManualClock()
    stated: list[Stated] = [(ConditionCode.MASTER_BACKUP_OLD, "It is old.", 1)]
    with opened_store(tmp_path, clock) as store:
        await service(store, clock, MortalNotifier(), stated).look()
        found: list[Stated] = []
        later = service(store, clock, MortalNotifier(), found)
        await later.look()
        found += stated  # it has looked at its backups now
        clock.advance(MINUTE)
        await later.look()
        await later.turn()
        (alert,) = store.read_now(lambda uow: uow[AlertRepository].open_alerts())
        assert (alert.flaps, len(messages(store))) == (0, 1)


async def test_a_burst_of_ten_thousand_events_is_read_in_order(tmp_path: Path) -> None:
    clock = ManualClock()
    with opened_store(tmp_path, clock) as store:
        alerts = service(store, clock, MortalNotifier())
        await alerts.turn()

        def burst(uow: UnitOfWork) -> None:
            for number in range(5_000):
                uow.event("access.lost", ("access_1",), "gone", {"region": "north", "number": str(number)}, "master")
                uow.event("access.back", ("access_1",), "back", {}, "master")

        store.write_now(burst, name="burst")
        await alerts.turn()
        clock.advance(HOUR)
        await alerts.turn()
        assert [one.kind.value for one in reversed(messages(store))] == ["firing", "resolved"]
