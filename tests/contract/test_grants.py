"""Hold, confirm, release, expire: the holdings of a slot as rows, on SQLite and on PostgreSQL."""

from pathlib import Path

import pytest
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError

from tests.unit.fleet.world import GPU_1, GPU_2, HOST, World, world
from windrow_master.fleet.repository import SlotRepository
from windrow_master.fleet.states import SlotState
from windrow_master.fleet.tables import grants
from windrow_proto.errors import Conflict
from windrow_proto.ids import ClusterId, SlotId
from windrow_proto.units import SECOND

A, B = ClusterId("cluster_a"), ClusterId("cluster_b")
G1, G2 = SlotId(GPU_1), SlotId(GPU_2)
SERVED = pytest.mark.proves("stores on a real PostgreSQL")


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=SERVED)])
def w(request: pytest.FixtureRequest, tmp_path: Path):
    database = request.getfixturevalue("postgres_url") if request.param == "postgresql" else None
    with world(tmp_path, database) as made:
        made.equip(GPU_1, GPU_2)
        yield made


def grant(w: World, *slots: SlotId, cluster: ClusterId = A):
    return w.write(lambda uow: w.fleet.grant(uow, slots, cluster, "account/1", "test"))


def holdings(w: World, slot: SlotId = G1) -> list[tuple[int, str, bool]]:
    rows = w.read(lambda uow: uow[SlotRepository].grants(slot))
    return [(row.token, row.holder, row.ended_at_ns is None) for row in rows]


def test_each_holding_is_a_row_that_ends_with_its_release(w: World) -> None:
    for cluster in (A, B):
        given = grant(w, G1, cluster=cluster)
        w.write(lambda uow, given=given: w.fleet.slots_released(uow, given, "host/1", "ended"))
    grant(w, G1)
    assert holdings(w) == [(1, A, False), (2, B, False), (3, A, True)]


def test_a_hold_is_a_holding_confirmed_under_the_same_token_or_ended_when_it_expires(w: World) -> None:
    until = w.clock.wall_ns() + 60 * SECOND
    w.write(lambda uow: w.fleet.hold(uow, [G1, G2], A, until, "account/a"))
    with pytest.raises(Conflict):
        grant(w, G1, cluster=B)
    (confirmed,) = grant(w, G1)
    assert (confirmed.token, w.slots()[G1].state) == (1, SlotState.STARTING)
    w.clock.advance(61 * SECOND)
    for slot in w.read(lambda uow: uow[SlotRepository].expired(w.clock.wall_ns())):
        w.write(lambda uow, slot=slot: w.fleet.slots.expire_hold(uow, slot))
    assert holdings(w, G1) == [(1, A, True)]
    assert holdings(w, G2) == [(1, A, False)]
    assert w.slots()[G2].is_offered


def test_the_grant_that_fails_leaves_no_row_of_the_others(w: World) -> None:
    grant(w, G1)
    with pytest.raises(Conflict):
        grant(w, G2, G1, cluster=B)
    assert holdings(w, G2) == []


def test_a_faulted_slot_stays_its_holders_until_it_lets_go(w: World) -> None:
    given = grant(w, G1)
    w.equip(GPU_1, GPU_2, conditions=(f"gpu.lost:{GPU_1}",))
    assert holdings(w) == [(1, A, True)]
    w.write(lambda uow: w.fleet.slots_released(uow, given, "host/1", "ended"))
    assert holdings(w) == [(1, A, False)]
    assert w.slots()[G1].state is SlotState.FAULTED


@pytest.mark.parametrize(("token", "promise"), [(2, "one open holding"), (1, "a token once")])
def test_the_database_itself_refuses_a_second_holder_and_a_used_token(w: World, token: int, promise: str) -> None:
    given = grant(w, G1)
    if promise == "a token once":
        w.write(lambda uow: w.fleet.slots_released(uow, given, "host/1", "ended"))
    row = {"slot_id": G1, "token": token, "holder": B, "granted_at_ns": 0, "ended_at_ns": None}
    with pytest.raises(IntegrityError):
        w.write(lambda uow: uow.connection.execute(insert(grants), row))
    assert len(holdings(w)) == 1


def test_a_slot_row_that_lies_about_being_free_is_not_granted_again(w: World) -> None:
    grant(w, G1)
    lie = "UPDATE slots SET state = 'free', holder = NULL WHERE slot_id = '" + GPU_1 + "'"
    w.write(lambda uow: uow.connection.exec_driver_sql(lie))
    with pytest.raises(Conflict, match="Somebody else"):
        grant(w, G1, cluster=B)
    assert w.slots(HOST)[G1].holder is None
