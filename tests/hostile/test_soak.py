"""The state of a market does not grow without end: old records go, what proves a bill stays, memory stays as it is."""

import gc
import gzip
import http.client
import json
import os
import re
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from tests.hostile import IS_LONG
from tests.hostile.test_restore import done
from tests.hostile.two_renters import two_renters
from tests.master_support import ManualClock, SeededRng
from tests.support.rental import ENDED, Renter, renting
from tests.support.stack import wait_for
from tests.support.truth import ledger_flaws
from tests.unit.clusters.world import HOST, Market, market_world, principal
from windrow_master.app import wiring
from windrow_master.app.wiring import Master
from windrow_master.audit import sealing
from windrow_master.audit.sealing import files
from windrow_master.audit.service import AuditService
from windrow_master.fleet.repository import CommandRepository
from windrow_master.market import metering
from windrow_master.market.repository import ReceiptRepository
from windrow_master.records import service as records
from windrow_master.records.repository import RecordRepository
from windrow_master.records.rules import EVERY_NS, ROWS_MAX, STEPS_MAX, Record, RecordRetention
from windrow_master.records.service import RecordService
from windrow_master.store.executors import InlineExecutor
from windrow_master.store.repository import AuditRepository
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.disk import OsDisk
from windrow_proto.errors import NotFound, StorageFailed
from windrow_proto.ids import ClusterId, WorkloadId
from windrow_proto.keys import SigningKey
from windrow_proto.units import DAY, MINUTE, SECOND

pytestmark = pytest.mark.row("F23")


def keeper(market: Market, folder: Path) -> RecordService:
    """The loop of a Master on this market's store."""
    audit = AuditService(market.store, folder, OsDisk(), SigningKey.generate(), market.clock, InlineExecutor())
    return RecordService(market.store, audit, market.clock, RecordRetention())


def count(store: Store, table: str, where: str = "1 = 1") -> int:
    """How many rows a table has."""
    query = text(f"SELECT count(*) FROM {table} WHERE {where}")
    return int(store.read_now(lambda uow: uow.connection.scalar(query)) or 0)


# --- records ---------------------------------------------------------------------------------------------------------


async def rented(market: Market, receipts: int) -> tuple[ClusterId, WorkloadId]:
    """A rental that ran so many minutes and has ended: its cluster and its workload."""
    cluster_id, spec = await market.running()
    for number in range(2, receipts):
        market.receipt(spec, number, 60 * number)
    await market.ended(cluster_id, spec, receipts, 60 * receipts)
    return cluster_id, spec.workload_id


async def test_of_an_old_rental_the_bill_stays_provable_and_the_rest_goes(tmp_path: Path) -> None:
    with market_world(tmp_path) as market:
        keep = keeper(market, tmp_path)
        ended, workload_id = await rented(market, 12)
        rental = market.rental(ended)
        bill = await market.market.statement(None, rental.rental_id)
        assert bill.rental.ended_at_ns is not None and len(bill.transfers) > 2
        await keep.look()
        assert count(market.store, "receipts") == 12, "a bill that is new keeps all of them"
        market.clock.advance(80 * DAY)
        open_one, spec = await market.running()
        for number in range(2, 5):
            market.receipt(spec, number, 60 * number)
        market.clock.advance(15 * DAY)
        await keep.look()

        rows = market.read(lambda uow: uow[ReceiptRepository].of_workload(workload_id))
        assert [row.number for row in rows] == [12], "running times are sums: the last one proves them all"
        assert rows[0].running_ns == bill.lines[0].signed_ns >= metering.billable_ns(bill.lines[0]) > 0
        after = await market.market.statement(None, rental.rental_id)
        assert (after.rental, after.lines, after.transfers) == (bill.rental, bill.lines, bill.transfers)
        with pytest.raises(NotFound, match="no longer kept"):
            await market.clusters.explain(principal(), ended)
        assert (await market.cluster(ended)).name

        assert len(market.read(lambda uow: uow[ReceiptRepository].of_workload(spec.workload_id))) == 4
        assert (await market.clusters.explain(principal(), open_one))[1].chosen is not None
        held = {row.subject for row in market.read(lambda uow: uow[CommandRepository].list(HOST, None, 100))}
        assert held and not any(workload_id in subject for subject in held)
        assert count(market.store, "balances", "account LIKE 'hold:%'") == 1, "of the one that is open"
        assert count(market.store, "operations", f"subject = '{ended}'") == 0
        await market.ended(open_one, spec, 5, 300)
        market.check()
    assert ledger_flaws(tmp_path) == []


async def test_a_rental_that_is_not_closed_keeps_all_its_receipts_however_old(tmp_path: Path) -> None:
    with market_world(tmp_path) as market:
        cluster_id, spec = await market.running()
        for number in range(2, 6):
            market.receipt(spec, number, 60 * number)
        await market.clusters.delete(principal(), cluster_id)
        market.clock.advance(400 * DAY)
        assert market.rental(cluster_id).state.value == "ending"
        await keeper(market, tmp_path).look()
        assert count(market.store, "receipts") == 5
        assert count(market.store, "commands", "done_at_ns IS NULL") > 0, "the order to end it is still to be done"
        market.receipt(spec, 6, 400, final=True, end_reason="deleted", exit_code=0)
        assert market.rental(cluster_id).state.value == "closed"
        market.clock.advance(89 * DAY)
        await keeper(market, tmp_path).look()
        assert count(market.store, "receipts") == 6, "its bill is not 90 days old"


async def test_what_opens_nothing_any_more_goes_and_what_revoking_has_to_reach_stays(tmp_path: Path) -> None:
    async with two_renters(tmp_path) as world:
        store, services = world.opened.store, world.services

        async def made(secret: str, **body: Any) -> tuple[str, str]:
            asked = {"name": "t", "roles": ["renter"], "expires_in_s": DAY // SECOND, **body}
            headers = {"Authorization": f"Bearer {secret}"}
            answer = await world.noisy.client.post("/tokens", json=asked, headers=headers)
            assert answer.status_code == 201, answer.text
            return answer.json()["id"], answer.json()["token"]

        def kept() -> set[str]:
            query = text("SELECT id FROM api_tokens")
            return {row[0] for row in store.read_now(lambda uow: uow.connection.execute(query).all())}

        short, _ = await made(world.noisy.token)
        revoked, _ = await made(world.noisy.token, expires_in_s=90 * DAY // SECOND)
        assert (await world.noisy.client.delete(f"/tokens/{revoked}")).status_code == 204
        long, secret = await made(world.noisy.token, expires_in_s=90 * DAY // SECOND)
        between, its = await made(secret, expires_in_s=2 * DAY // SECOND)
        session = await world.noisy.client.post("/session", json={"token": its})
        assert session.status_code < 300, session.text
        assert (await world.operator.post("/accounts", json={"name": "c", "roles": ["renter"]})).status_code == 201
        assert (await world.operator.post("/join-tokens", json={})).status_code == 201
        before = kept()
        await services.records.look()
        assert kept() == before and count(store, "sessions") == 1 and count(store, "join_tokens") == 1

        world.clock.advance(29 * DAY)
        await services.records.look()
        assert kept() == before, "who tries one that ended a while ago is told so"
        child = f"token_{'c' * 32}"
        add = text(
            "INSERT INTO api_tokens (id, account_id, name, sha256, roles, created_at_ns, expires_at_ns, made_by) "
            "SELECT :child, account_id, name, :hash, roles, created_at_ns, :until, id FROM api_tokens WHERE id = :by"
        )
        values = {"child": child, "hash": bytes(32), "until": world.clock.wall_ns() + 90 * DAY, "by": between}
        store.write_now(lambda uow: uow.connection.execute(add, values), name="test.child")
        world.clock.advance(6 * DAY)
        await services.records.look()
        assert not {short, revoked} & kept(), "they opened nothing for a month"
        assert {long, between, child} <= kept(), "revoking the first has to reach the last"
        assert [count(store, table) for table in ("sessions", "join_tokens", "sign_in_links")] == [0, 0, 0]
        world.clock.advance(200 * DAY)
        for _ in range(3):
            world.clock.advance(EVERY_NS)
            await services.records.look()
        assert not {long, between, child} & kept()


async def test_events_go_by_age_and_by_number_with_their_subjects_a_few_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tell(uow: UnitOfWork, many: int) -> None:
        for number in range(many):
            uow.event("test.told", (f"host_{number}", "account_1"), "something", {})

    sizes: list[int] = []
    let_go = RecordRepository.let_go

    def counted(self: RecordRepository, what: Record, keys: Any) -> None:
        sizes.append(len(keys))
        let_go(self, what, keys)

    monkeypatch.setattr(RecordRepository, "let_go", counted)
    with market_world(tmp_path) as market:
        keep, store = keeper(market, tmp_path), market.store
        store.write_now(lambda uow: tell(uow, 3 * ROWS_MAX), name="test")
        market.clock.advance(91 * DAY)
        store.write_now(lambda uow: tell(uow, 2 * ROWS_MAX), name="test")
        began = time.monotonic()
        await keep.look()
        assert time.monotonic() - began < 10
        assert count(store, "events") == 2 * ROWS_MAX and count(store, "event_subjects") == 4 * ROWS_MAX
        assert max(sizes) == ROWS_MAX

        monkeypatch.setattr(records, "EVENTS_MAX", 50)
        market.clock.advance(EVERY_NS)
        await keep.look()
        assert count(store, "events") == 50, "however young they are"

        monkeypatch.setattr(records, "STEPS_MAX", 1)
        store.write_now(lambda uow: tell(uow, 3 * ROWS_MAX), name="test")
        market.clock.advance(EVERY_NS)
        left = []
        for _ in range(4):
            await keep.look()
            left.append(count(store, "events"))
        assert left == [1050, 550, 50, 50], "what is left has its turn in the next look"
    assert STEPS_MAX > 1


async def test_a_rule_that_fails_ends_no_other_and_has_its_turn_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with market_world(tmp_path) as market:
        keep = keeper(market, tmp_path)
        await rented(market, 4)
        market.clock.advance(95 * DAY)
        past = RecordRepository.past
        for error in (StorageFailed("no"), ZeroDivisionError()):

            def failing(self: RecordRepository, what: Record, *more: Any, error: Any = error) -> Any:
                if what is Record.EVENTS:
                    raise error
                return past(self, what, *more)

            monkeypatch.setattr(RecordRepository, "past", failing)
            await keep.look()
            assert count(market.store, "receipts") == 1 and count(market.store, "events") > 0
            market.clock.advance(EVERY_NS)
        monkeypatch.setattr(RecordRepository, "past", past)
        await keep.look()
        assert count(market.store, "events") == 1, "the newest one: the next has its number and 1"


async def test_the_loop_is_one_of_those_that_a_master_runs(audited: "Audited") -> None:
    loops = list(audited.opened.watching())
    assert any("RecordService.run" in repr(one) for one in loops)
    for one in loops:
        one.close()


# --- the audit log ---------------------------------------------------------------------------------------------------


PART = 200


class Audited:
    """One Master whose audit log has got old."""

    def __init__(self, folder: Path) -> None:
        self.clock, self.data_dir = ManualClock(), folder / "data"
        self.opened: Master = wiring.build(
            self.data_dir, self.clock, SeededRng(5), disk=OsDisk(), make_executor=InlineExecutor
        )
        self.opened.identity.first_account()

    def note(self, many: int) -> None:
        def write(uow: UnitOfWork) -> None:
            for number in range(many):
                uow.audit("account/a", "host.drain", f"host_{number}", "because", {"n": str(number)})

        self.opened.store.write_now(write, name="test")

    async def look(self) -> None:
        await self.opened.audit.checkpoint()
        self.clock.advance(EVERY_NS)
        await self.opened.services.records.look()

    @property
    def parts(self) -> list[tuple[int, int]]:
        return [(first, last) for first, last, _ in files(self.data_dir / "audit")]

    def in_database(self) -> list[int]:
        query = text("SELECT min(number), max(number), count(*) FROM audit")
        return list(self.opened.store.read_now(lambda uow: uow.connection.execute(query).one()))


@pytest.fixture
def audited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Audited]:
    monkeypatch.setattr(sealing, "PART_ENTRIES", PART)
    made = Audited(tmp_path)
    with closing(made.opened):
        yield made


async def test_an_old_audit_log_is_sealed_in_parts_and_proven_as_a_whole(audited: Audited, tmp_path: Path) -> None:
    audited.note(2 * PART + 100)
    await audited.look()
    assert audited.parts == [], "it is new"
    audited.clock.advance(181 * DAY)
    audited.note(10)
    total = audited.in_database()[1]
    await audited.look()
    assert audited.parts == [(1, PART), (PART + 1, 2 * PART)]
    assert audited.in_database() == [2 * PART + 1, total, total - 2 * PART]
    verdict = await audited.opened.audit.verify()
    assert (verdict.intact, verdict.entries) == (True, total)
    await audited.opened.audit.checkpoint()
    assert audited.opened.audit.problem() is None
    audited.note(1)
    await audited.opened.audit.checkpoint()
    assert (await audited.opened.audit.verify()).entries == total + 1
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in (audited.data_dir / "audit").iterdir())

    whole = f"{total + 1:,} entries, intact"
    assert whole in done(0, "check", "--data-dir", audited.data_dir)
    backup = tmp_path / "market.tar"
    done(0, "backup", backup, "--data-dir", audited.data_dir)
    audited.opened.close()
    for path in (audited.data_dir / "audit").iterdir():
        path.unlink()
    assert "does not follow" in done(1, "check", "--data-dir", audited.data_dir)
    done(0, "restore", backup, "--data-dir", audited.data_dir)
    assert re.search(r"[\d,]+ entries, intact", done(0, "check", "--data-dir", audited.data_dir))
    assert len(audited.parts) == 2


async def test_what_is_done_to_a_sealed_part_is_noticed(audited: Audited) -> None:
    audited.note(2 * PART + 10)
    audited.clock.advance(181 * DAY)
    audited.note(1)
    await audited.look()
    one, two = (path for _, _, path in files(audited.data_dir / "audit"))
    kept = {path: path.read_bytes() for path in (one, two)}
    other = tampered(kept[one], lambda lines: [*lines[:99], lines[99].replace(b"because", b"by chance"), *lines[100:]])
    cut = tampered(kept[one], lambda lines: [*lines[:-2], lines[-1]])
    ways: list[tuple[str, dict[Path, bytes | None]]] = [
        ("Entry", {one: other}),
        ("cannot be read", {one: cut}),
        ("cannot be read", {one: b"not gzip"}),
        ("cannot be read", {two: tampered(kept[two], lambda lines: [])}),
        ("not one that this Master signed", {two: tampered(kept[two], lambda lines: [*lines[:-1], forged(lines[-1])])}),
        ("does not follow", {one: None}),
        ("does not follow", {two: None}),
        ("does not follow", {one: None, two: None}),
        ("does not follow", {one: kept[two], two: kept[one]}),
    ]
    for words, change in ways:
        for path, data in change.items():
            path.write_bytes(data) if data is not None else path.unlink()
        verdict = await audited.opened.audit.verify()
        assert not verdict.intact and words in str(verdict.problem), (words, verdict)
        for path, data in kept.items():
            path.write_bytes(data)
        assert (await audited.opened.audit.verify()).intact
    anchor = audited.data_dir / "audit.anchor"
    anchor.write_bytes(gzip.decompress(kept[one]).splitlines(keepends=True)[-1])
    assert not (await audited.opened.audit.verify()).intact, "a part's end is no anchor"


def tampered(data: bytes, change: Any) -> bytes:
    """A part with other lines."""
    return gzip.compress(b"".join(change(gzip.decompress(data).splitlines(keepends=True))))


def forged(end: bytes) -> bytes:
    """The end of a part with another signature."""
    record = json.loads(end)
    return json.dumps(record | {"signature": "00" * 64}).encode() + b"\n"


async def test_sealing_that_was_cut_short_goes_on_and_what_is_not_intact_stays(
    audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    audited.note(2 * PART + 10)
    audited.clock.advance(181 * DAY)
    audited.note(1)
    total, drop = audited.in_database()[2], AuditRepository.drop

    def failing(self: AuditRepository, upto: int, most: int) -> int:
        raise StorageFailed("the machine stops here")

    monkeypatch.setattr(AuditRepository, "drop", failing)
    await audited.look()
    assert audited.parts == [(1, PART)] and audited.in_database()[2] == total
    assert (await audited.opened.audit.verify()).entries == total, "what is in both counts once"
    monkeypatch.setattr(AuditRepository, "drop", drop)
    change = "UPDATE audit SET reason = 'by chance' WHERE number = :number"

    def by_hand(number: int, change: str = change) -> None:
        write = lambda uow: uow.connection.execute(text(change), {"number": number})  # noqa: E731
        audited.opened.store.write_now(write, name="test.tamper")

    by_hand(PART + 7)
    await audited.look()
    assert audited.parts == [(1, PART)], "a part that does not follow is not sealed"
    assert audited.in_database()[0] == PART + 1
    by_hand(PART + 7, change.replace("by chance", "because"))
    await audited.look()
    assert len(audited.parts) == 2 and (await audited.opened.audit.verify()).entries == total


# --- memory ----------------------------------------------------------------------------------------------------------

RENTALS = 60 if IS_LONG else 20
FEW = 8
"""Of them may be known a little longer."""
ID = re.compile(r"(cluster|workload|rental|operation)_[0-9a-f]{32}")


@pytest.mark.long
async def test_nothing_in_memory_is_kept_of_rentals_that_have_ended(tmp_path: Path) -> None:
    with market_world(tmp_path) as market:
        ended: set[Any] = set()

        async def rentals(many: int) -> None:
            for _ in range(many):
                cluster_id, workload_id = await rented(market, 2)
                ended.update((cluster_id, workload_id, market.rental(cluster_id).rental_id))
                market.clock.advance(MINUTE)

        await rentals(RENTALS)
        await market.fleet.tick()
        await market.clusters.tick()
        gc.collect()
        held = [
            (type(one).__name__, len(one))
            for one in gc.get_objects()
            if type(one) in (dict, set, list) and len(one) > FEW and one is not ended
            if sum(key in ended for key in keys_of(one)) > FEW
        ]
        assert held == []


def keys_of(container: Any) -> Iterator[Any]:
    """Returns the keys by which a container is asked for: parts of keys that are tuples, too."""
    for key in list(container):
        if isinstance(key, str):
            yield key
        elif type(key) is tuple and len(key) <= 4:
            yield from (part for part in key if isinstance(part, str))


# --- the whole market ------------------------------------------------------------------------------------------------

WHOLE = 2_000
GROWTH_MAX = 1.05
RENTERS = 8


def memory_mb(pid: int) -> float:
    """Returns the memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def rental(market: Renter) -> None:
    """One, as short as can be, from the wish to its end."""
    wish = {"kind": "box", "gpus": 1, "simulated": True, "argv": ["sleep", "600"]}
    cluster = wait_for(lambda: call(market, "POST", "/clusters", wish), 120, 0.2)["cluster"]["id"]
    wait_for(lambda: call(market, "GET", f"/clusters/{cluster}")["phase"] in ("Running", *ENDED), 120, 0.1)
    wait_for(lambda: call(market, "DELETE", f"/clusters/{cluster}"), 120, 0.2)
    wait_for(lambda: call(market, "GET", f"/clusters/{cluster}")["phase"] in ENDED, 300, 0.1)


def call(market: Renter, method: str, path: str, body: Any = None) -> Any:
    """One request; None where it was refused."""
    found = market.stack.cli
    headers = {"Authorization": f"Bearer {found['token']}", "Content-Type": "application/json"}
    with closing(http.client.HTTPConnection("127.0.0.1", found["ports"]["http"], timeout=60)) as connection:
        connection.request(method, f"/api/v1{path}", body and json.dumps(body), headers)
        answer = connection.getresponse()
        said = answer.read()
    return json.loads(said) if answer.status < 300 else None


if IS_LONG:  # minutes

    @pytest.mark.slow
    @pytest.mark.timeout(1_800)
    def test_a_thousand_more_rentals_take_no_more_memory() -> None:
        """Of one host, since what charts keep grows with hosts and minutes, up to limits of their own."""
        with renting("--simulate", "1") as market, ThreadPoolExecutor(RENTERS) as renters:
            wait_for(lambda: sum(len(one["slots"]) for one in market.all("/hosts") if one["simulated"]) >= RENTERS)
            (pid,), database = market.stack.daemons()["master"], market.stack.data_dir / "master.sqlite3"
            held = [at_rest_mb(pid)]
            for _ in range(2):
                began = time.monotonic()
                list(renters.map(lambda _: rental(market), range(WHOLE // 2)))
                a_second = WHOLE / 2 / (time.monotonic() - began)
                held.append(at_rest_mb(pid))
                said = f"{held[-1]:.0f} MB, {database.stat().st_size / 1e6:.1f} MB of database"
                print(f"{said}, {a_second:.1f} rentals a second", flush=True)
            assert market.stack.daemons()["master"] == [pid], "it is the same process"
            assert held[2] <= GROWTH_MAX * held[1]


def at_rest_mb(pid: int) -> float:
    """The median of half a minute without rentals: it goes up and down by some MB with what is written meanwhile."""

    def looked() -> float:
        time.sleep(1)
        return memory_mb(pid)

    return statistics.median(looked() for _ in range(30))
