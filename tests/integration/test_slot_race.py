"""Four processes that each believe they lead race for 300 slots of one database: each slot has one holder.

The control takes the guards out of the shipped code, in the racing processes only: without them the same race must
grant twice, or this test could not see anything.
"""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.master_support import SeededRng
from windrow_master.fleet.model import Host, Slot
from windrow_master.fleet.repository import HostRepository, SlotRepository
from windrow_master.store.engine import engines_of
from windrow_master.store.messages import Messages
from windrow_master.store.migrate import upgrade
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import AccountId, HostId, SlotId
from windrow_proto.model import Inventory

pytestmark = pytest.mark.timeout(300)

RACERS = 4
SLOTS = 300
ROUNDS = 2
HOST = HostId("host_1")
CPUS = 16


@dataclass
class Race:
    """A database with free slots, and what the processes said they were granted, round by round."""

    engine: Engine
    rounds: list[list[tuple[str, int]]]

    def read(self, look):
        with self.engine.begin() as connection:
            return look(unit(connection))


def unit(connection) -> UnitOfWork:
    return UnitOfWork(connection, 0, 1, SeededRng().random_bytes, Messages())


def equip(engine: Engine, cpus: int = 0) -> None:
    """A host with 300 free slots, and so many processors; 0: it has not said what it has."""
    upgrade(engine)
    with engine.begin() as connection:
        uow = unit(connection)
        inventory = Inventory(cpu_count=cpus) if cpus else None
        uow[HostRepository].add(Host(HOST, "racing", AccountId("account_1"), False, 0, inventory=inventory))
        for number in range(SLOTS):
            uow[SlotRepository].add(Slot(SlotId(f"GPU-{number:03d}"), HOST, "cpu", None))


@contextmanager
def racers(url: str, guards: str) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "tests.support.slot_race", url, str(RACERS), guards]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as started:
        try:
            yield started
            started.communicate(timeout=240)
        finally:
            if started.poll() is None:
                os.killpg(started.pid, signal.SIGKILL)


def together(started: "subprocess.Popen[str]", word: str) -> list[Any]:
    """Say one word to all, then hear them all."""
    assert started.stdin is not None
    started.stdin.write(word + "\n")
    started.stdin.flush()
    return heard(started)


def heard(started: "subprocess.Popen[str]") -> list[Any]:
    """The answer of each."""
    assert started.stdout is not None
    found: list[Any] = json.loads(started.stdout.readline())
    return found


def run(url: str, engine: Engine, guards: str = "shipped", rounds: int = ROUNDS, cpus: int = 0) -> Race:
    equip(engine, cpus)
    race = Race(engine, [])
    with racers(url, guards) as started:
        assert heard(started) == ["ready"] * RACERS
        for number in range(rounds):
            race.rounds.append([tuple(won) for granted in together(started, "go") for won in granted])
            if number < rounds - 1:
                together(started, "free")
                together(started, "look")
    return race


def judge(race: Race) -> None:
    for number, won in enumerate(race.rounds, 1):
        assert Counter(slot for slot, _ in won) == {f"GPU-{n:03d}": 1 for n in range(SLOTS)}
        assert {token for _, token in won} == {number}, "each round's tokens are above those of the round before"


POSTGRESQL = (pytest.mark.long, pytest.mark.proves("one holder of a slot, on a real PostgreSQL", by="make long"))


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=POSTGRESQL)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:///{tmp_path / 'race.sqlite3'}"


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engines = engines_of(url)
    yield engines.writer
    engines.dispose()


@pytest.mark.slow
@pytest.mark.proves("four processes that each believe they lead, 300 slots: no double grant, tokens only grow")
def test_each_slot_has_one_holder_whoever_believes_to_lead(url: str, engine: Engine) -> None:
    race = run(url, engine)

    judge(race)
    slots = {slot.slot_id: slot for slot in race.read(lambda uow: uow[SlotRepository].list_all())}
    for slot_id, slot in slots.items():
        held = race.read(lambda uow, slot_id=slot_id: uow[SlotRepository].grants(slot_id))
        assert [grant.token for grant in held] == list(range(1, ROUNDS + 1))
        assert [grant.ended_at_ns is None for grant in held] == [False] * (ROUNDS - 1) + [True]
        assert held[-1].holder == slot.holder


@pytest.mark.slow
@pytest.mark.proves("four processes that each believe they lead: no more processors of a host are given than it has")
def test_a_host_gives_no_more_processors_than_it_has_whoever_believes_to_lead(url: str, engine: Engine) -> None:
    race = run(url, engine, "room", rounds=1, cpus=CPUS)

    assert len(race.rounds[0]) == CPUS
    slots = race.read(lambda uow: uow[SlotRepository].list_all())
    assert sum(slot.cpus for slot in slots) == CPUS == sum(slot.holder is not None for slot in slots)


@pytest.mark.slow
@pytest.mark.parametrize("guard", ["swap", "index"])
@pytest.mark.long
def test_either_guard_alone_suffices(url: str, engine: Engine, guard: str) -> None:
    judge(run(url, engine, guard, rounds=1))


def test_control_without_its_guards_the_same_race_grants_twice(url: str, engine: Engine) -> None:
    race = run(url, engine, "none", rounds=1)

    twice = [won for won, times in Counter(race.rounds[0]).items() if times > 1]
    assert len(twice) == SLOTS, "every slot went to all four, under the same token"
