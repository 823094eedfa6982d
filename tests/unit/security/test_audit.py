"""Promises of the audit log: whatever is done to it by hand in the database is noticed, also at its end."""

import gc
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import text

from tests.master_support import ManualClock, SeededRng
from windrow_master.api.app import build_app
from windrow_master.app import wiring
from windrow_master.app.wiring import Master
from windrow_master.store.executors import InlineExecutor
from windrow_master.store.model import CHAIN_START
from windrow_master.store.unit import UnitOfWork
from windrow_proto.disk import OsDisk
from windrow_proto.units import SECOND

ENTRIES = 12
FIRST = 4
"""Entries that the first start itself writes."""
LAST = FIRST + ENTRIES


@dataclass
class World:
    """One Master whose log has some entries, and a client of its first account."""

    opened: Master
    client: httpx2.AsyncClient
    clock: ManualClock
    data_dir: Path

    async def note(self, count: int, action: str = "host.drain") -> None:
        def write(uow: UnitOfWork) -> None:
            for number in range(count):
                uow.audit(f"account/a{number % 2}", action, f"host_{number}", "because", {"n": str(number)})

        self.clock.advance(SECOND)
        await self.opened.store.write(write, name="test.audit")

    async def by_hand(self, *statements: str) -> None:
        """Runs statements as somebody with the database's password may."""

        def write(uow: UnitOfWork) -> None:
            for statement in statements:
                uow.connection.execute(text(statement))

        await self.opened.store.write(write, name="test.tamper")

    async def verify(self, **kept: str) -> dict[str, object]:
        answer = await self.client.get("/api/v1/audit/verify", params=kept)
        assert answer.status_code == 200, answer.text
        found: dict[str, object] = answer.json()
        return found


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    clock, data_dir = ManualClock(), tmp_path / "data"
    opened = wiring.build(data_dir, clock, SeededRng(5), disk=OsDisk(), make_executor=InlineExecutor)
    with closing(opened):
        token = opened.identity.local_token(opened.identity.first_account(), None)
        transport = httpx2.ASGITransport(build_app(opened.services, tmp_path))
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(transport=transport, base_url="http://master", headers=headers) as client:
            found = World(opened, client, clock, data_dir)
            await found.note(ENTRIES)
            await opened.audit.checkpoint()
            yield found


SWAP = (
    "UPDATE audit SET number = -1 WHERE number = 5",
    "UPDATE audit SET number = 5 WHERE number = 6",
    "UPDATE audit SET number = 6 WHERE number = -1",
)
INSERTED = (
    "INSERT INTO audit (number, at_ns, epoch, actor, action, subject, reason, fields, chain) "
    "SELECT 1000, at_ns, epoch, actor, action, subject, reason, fields, chain FROM audit WHERE number = 3"
)


@pytest.mark.parametrize(
    ("done", "named"),
    [
        (("UPDATE audit SET actor = 'master' WHERE number = 5",), 5),
        (("UPDATE audit SET fields = '{}' WHERE number = 7",), 7),
        (("UPDATE audit SET chain = zeroblob(32) WHERE number = 4",), 4),
        (("DELETE FROM audit WHERE number = 5",), 6),
        (("DELETE FROM audit WHERE number = 1",), 2),
        ((INSERTED,), 1_000),
        (SWAP, 5),
        (("DELETE FROM audit WHERE number > 9",), LAST),
        (("DELETE FROM audit",), LAST),
    ],
    ids=["update", "fields", "chain", "delete", "delete-first", "insert", "swap", "cut-tail", "empty"],
)
async def test_every_way_to_tamper_by_hand_is_noticed_and_the_entry_named(
    world: World, done: tuple[str, ...], named: int
) -> None:
    assert (await world.verify())["intact"] is True

    await world.by_hand(*done)
    found = await world.verify()

    assert (found["intact"], found["first_broken"]) == (False, named)
    assert str(named) in str(found["problem"])


async def test_a_log_rewritten_with_a_chain_that_holds_does_not_fit_the_anchor(world: World) -> None:
    def rewrite(uow: UnitOfWork) -> None:
        previous = CHAIN_START
        for entry in uow.audit_log.list(limit=1_000):
            actor = "account/innocent" if entry.number == 5 else entry.actor
            previous = replace(entry, actor=actor).link(previous)
            changed = {"actor": actor, "chain": previous, "number": entry.number}
            uow.connection.execute(
                text("UPDATE audit SET actor = :actor, chain = :chain WHERE number = :number"), changed
            )

    await world.opened.store.write(rewrite, name="test.rewrite")

    assert await world.opened.store.read(lambda uow: uow.audit_log.first_broken()) is None
    found = await world.verify()
    assert (found["intact"], found["first_broken"]) == (False, LAST)
    assert "written anew" in str(found["problem"])


async def test_the_anchor_does_not_follow_a_log_whose_end_was_cut_and_health_says_so(world: World) -> None:
    gc.collect()  # loops of earlier tests in this process, which had given something up
    before = (world.data_dir / "audit.anchor").read_bytes()
    await world.by_hand("DELETE FROM audit WHERE number > 9")
    await world.note(20)

    await world.opened.audit.checkpoint()

    assert (world.data_dir / "audit.anchor").read_bytes() == before
    health = await world.client.get("/healthz")
    assert (health.status_code, health.json()["conditions"]) == (200, ["audit.broken"])
    ((_, words, _),) = world.opened.audit.conditions()
    assert "Entry 10 does not follow" in words, "what came after the cut goes on from what is gone"


async def test_the_anchor_moves_with_a_sound_log_and_reads_only_what_is_new(world: World) -> None:
    await world.note(3)
    await world.opened.audit.checkpoint()

    found = await world.verify()

    assert (found["intact"], found["entries"]) == (True, LAST + 3)
    assert found["anchor"] is not None and found["anchor"]["number"] == LAST + 3  # type: ignore[index]
    assert world.opened.audit.problem() is None


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"garbage", b'{"number": 3}'])
async def test_an_anchor_that_this_master_did_not_sign_is_a_problem(world: World, content: bytes) -> None:
    (world.data_dir / "audit.anchor").write_bytes(content)
    await world.opened.audit.checkpoint()

    found = await world.verify()

    assert found["intact"] is False and "not one that this Master signed" in str(found["problem"])
    assert world.opened.audit.problem() is not None


async def test_an_anchor_moved_back_by_hand_is_not_believed(world: World) -> None:
    path = world.data_dir / "audit.anchor"
    path.write_bytes(path.read_bytes().replace(f'"number": {LAST}'.encode(), b'"number": 9'))

    assert (await world.verify())["intact"] is False


async def test_a_head_that_the_caller_kept_is_held_against_the_log(world: World) -> None:
    head = (await world.verify())["head"]
    assert isinstance(head, dict)
    kept = {"number": str(head["number"]), "chain": head["chain"]}
    assert (await world.verify(**kept))["intact"] is True
    (world.data_dir / "audit.anchor").unlink()
    await world.by_hand("DELETE FROM audit WHERE number > 9")

    unvouched = await world.verify()
    assert unvouched["intact"] is False, "without an anchor a cut end cannot be seen"
    assert "is gone" in str(unvouched["problem"])
    found = await world.verify(**kept)
    assert (found["intact"], found["first_broken"]) == (False, LAST)


async def test_the_log_is_listed_latest_first_by_page_and_filter(world: World) -> None:
    async def numbers(**params: str) -> list[int]:
        found: list[int] = []
        cursor = None
        while True:
            asked = {**params, "limit": "5", **({"cursor": cursor} if cursor else {})}
            answer = (await world.client.get("/api/v1/audit", params=asked)).json()
            found += [item["number"] for item in answer["items"]]
            cursor = answer["next_cursor"]
            if cursor is None:
                return found

    assert await numbers() == list(range(LAST, 0, -1))
    assert await numbers(subject="host_3") == [FIRST + 4]
    assert await numbers(actor="account/a1", action="host.") == list(range(LAST, FIRST, -2))
    assert await numbers(action="account.make") == [2]
    assert await numbers(action="host.*", until="2000-01-01T00:00:00Z") == []
    first = (await world.client.get("/api/v1/audit", params={"limit": 1})).json()["items"][0]
    assert first["fields"] == {"n": "11"} and len(first["chain"]) == 64
    assert await numbers(since=first["at"]) == list(range(LAST, FIRST, -1))


@pytest.mark.parametrize(
    "params",
    [{"since": "yesterday"}, {"until": "2026-01-01"}, {"cursor": "LTE"}, {"since": "9999-99-99T00:00:00Z"}],
    ids=["word", "naive", "cursor", "no-date"],
)
async def test_a_bad_filter_is_refused(world: World, params: dict[str, str]) -> None:
    assert (await world.client.get("/api/v1/audit", params=params)).status_code == 422


async def test_half_a_head_is_refused(world: World) -> None:
    assert (await world.client.get("/api/v1/audit/verify", params={"number": "1"})).status_code == 422


async def test_only_operators_and_auditors_read_it(world: World) -> None:
    made = await world.client.post("/api/v1/tokens", json={"name": "r", "roles": ["renter", "provider"]})
    bearer = {"Authorization": f"Bearer {made.json()['token']}"}

    assert (await world.client.get("/api/v1/audit", headers=bearer)).status_code == 403
    assert (await world.client.get("/api/v1/audit/verify", headers=bearer)).status_code == 403
