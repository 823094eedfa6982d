"""Writes two weeks of the past into a market that stands still: rentals with their receipts and transfers, counts of
GPUs, events, and readings of GPUs. Its accounts and hosts have to be there; they become two weeks older.

All of it goes through the Master's own store and repositories, so that the Master finds what it could have written.
Receipts of the past have no signature, and the audit log has to be anchored anew (`windrow audit reanchor`).
"""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from sqlalchemy import delete, select, update

from windrow_master.clusters.model import Cluster, ClusterKind, ClusterPhase, ClusterRequest, Workload, WorkPhase
from windrow_master.clusters.repository import ClusterRepository, WorkloadRepository
from windrow_master.fleet.availability import Availability
from windrow_master.fleet.tables import hosts, slots
from windrow_master.fleet.use_history_repository import SHORT_NS, UseHistoryRepository
from windrow_master.identity.tables import accounts
from windrow_master.market import ledger
from windrow_master.market.model import ReceiptRow, Rental, RentalId, RentalLine, RentalState, account_of
from windrow_master.market.repository import LedgerRepository, ReceiptRepository, RentalRepository
from windrow_master.store.model import EventRow
from windrow_master.store.store import Store
from windrow_master.store.tables import audit, events
from windrow_master.store.unit import UnitOfWork
from windrow_master.telemetry import history_roll
from windrow_master.telemetry.decode import Rows
from windrow_master.telemetry.duckdb_view import open_file
from windrow_proto.clock import SystemClock, SystemRng
from windrow_proto.ids import AccountId, ClusterId, EventId, HostId, WorkloadId, mint
from windrow_proto.metrics import METRICS, Scope
from windrow_proto.model import SlotGrant
from windrow_proto.units import DAY, HOUR, MILLISECOND, MINUTE, Microcents, charge

DAYS: Final = 14
SEED: Final = 39
FEE_PERMILLE: Final = 50
HANDED: Final = 6
CREDIT: Final = Microcents(10**13)
"""For each renter at the beginning: more than two weeks cost."""
NAMES: Final = ("train-llama", "finetune", "eval-suite", "embed-corpus", "notebook", "render", "ablation", "whisper")
AGED: Final = (
    *(hosts.c.created_at_ns, hosts.c.listed_at_ns, hosts.c.online_since_ns),
    *(slots.c.changed_at_ns, accounts.c.created_at_ns, events.c.at_ns),
)
"""The times that lie two weeks back once the past is written. Those of the audit log are in its chain."""
READ_EVERY_MS: Final = 30 * MINUTE // MILLISECOND
SWINGS: Final = {
    "gpu_utilization_ratio": (0.62, 0.3),
    "gpu_memory_used_bytes": (30e9, 9e9),
    "gpu_temperature_celsius": (58, 12),
    "gpu_power_watts": (260, 90),
}
"""Of readings of a GPU: their middle, and how far a day takes them up and down."""


@dataclass(frozen=True, slots=True)
class Place:
    """A host with its GPUs in one tier. slots: their ids and UUIDs."""

    host_id: HostId
    name: str
    owner: AccountId
    tier: str
    slots: Sequence[tuple[str, str]]


def write_two_weeks(
    data_dir: Path, renters: Sequence[AccountId], provider: AccountId, prices: Mapping[str, Microcents]
) -> int:
    """Write them; the market must have stopped. provider: gets HANDED of the simulated hosts. prices: of an hour of a
    GPU by tier. Returns the number of rentals."""
    clock, dice = SystemClock(), random.Random(SEED)
    store = Store.open(data_dir, clock, SystemRng())
    try:
        now_ns = clock.wall_ns()
        store.write_now(lambda uow: _age(uow, DAYS * DAY), name="two_weeks.age")
        store.write_now(lambda uow: _hand_over(uow, provider), name="two_weeks.owner")
        places = store.read_now(_places)
        made = store.write_now(lambda uow: _rentals(uow, places, renters, prices, now_ns, dice), name="two_weeks.rent")
        store.write_now(
            lambda uow: _counts(uow, sum(len(one.slots) for one in places), now_ns), name="two_weeks.counts"
        )
    finally:
        store.close()
    _readings(data_dir / "history", now_ns // MILLISECOND)
    return made


def _age(uow: UnitOfWork, by_ns: int) -> None:
    """Let what is there have happened so much earlier; the chain of the audit log is made again."""
    for column in AGED:
        uow.connection.execute(update(column.table).values({column: column - by_ns}))
    entries = list(uow.audit_log.walk())
    uow.connection.execute(delete(audit))
    uow.chain.value = None
    for entry in entries:
        is_ours = entry.epoch == uow.epoch
        uow.audit_log.append(entry if is_ours else replace(entry, at_ns=entry.at_ns - by_ns))


def _hand_over(uow: UnitOfWork, provider: AccountId) -> None:
    ids = select(hosts.c.host_id).where(hosts.c.simulated).order_by(hosts.c.host_id).limit(HANDED)
    found = list(uow.connection.scalars(ids))
    uow.connection.execute(update(hosts).where(hosts.c.host_id.in_(found)).values(owner_account=provider))


def _places(uow: UnitOfWork) -> list[Place]:
    """The hosts with GPUs in tiers."""
    query = select(
        hosts.c.host_id, hosts.c.name, hosts.c.owner_account, slots.c.tier, slots.c.slot_id, slots.c.gpu_uuid
    )
    rows = uow.connection.execute(
        query.join_from(hosts, slots).where(slots.c.gpu_uuid.is_not(None), slots.c.tier != "").order_by(slots.c.slot_id)
    )
    found: dict[tuple[str, str], Place] = {}
    for host_id, name, owner, tier, slot_id, gpu_uuid in rows:
        place = found.setdefault((host_id, tier), Place(HostId(host_id), name, AccountId(owner), tier, []))
        found[host_id, tier] = replace(place, slots=[*place.slots, (slot_id, gpu_uuid)])
    return list(found.values())


# --- rentals ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Rented:
    """One rental of the past: who rented how many GPUs of which host, from when to when, by which name."""

    renter: AccountId
    place: Place
    count: int
    from_ns: int
    to_ns: int
    name: str


def _rentals(
    uow: UnitOfWork,
    places: Sequence[Place],
    renters: Sequence[AccountId],
    prices: Mapping[str, Microcents],
    now_ns: int,
    dice: random.Random,
) -> int:
    """Write a rental for most days of each host, and now and then a fault, in the order of time."""
    begin_ns = now_ns - DAYS * DAY
    for renter in renters:
        uow[LedgerRepository].post(ledger.minting(renter, begin_ns, "two weeks", CREDIT))
    found: list[_Rented] = []
    for place in places:
        for day in range(DAYS):
            if dice.random() < 0.2:
                continue
            from_ns = begin_ns + day * DAY + int(dice.uniform(0, 10) * HOUR)
            to_ns = min(from_ns + int(dice.uniform(1, 13) * HOUR), now_ns - HOUR)
            if to_ns > from_ns:
                count = min(len(place.slots), dice.choice((1, 1, 2, 4, 8)))
                found.append(_Rented(dice.choice(renters), place, count, from_ns, to_ns, dice.choice(NAMES)))
    found.sort(key=lambda one: one.from_ns)
    for number, one in enumerate(found):
        _write(uow, one, prices[one.place.tier], f"{one.name}-{number}")
        if number % 25 == 0:
            _trouble(uow, one, dice)
    return len(found)


def _write(uow: UnitOfWork, one: _Rented, price: Microcents, name: str) -> None:
    """A rental as it is when all is over: its cluster, workload, receipt, transfers and events."""
    cluster_id, rental_id, workload_id = (
        mint(kind, one.from_ns, uow.random_bytes(10)) for kind in ("cluster", "rental", "workload")
    )
    whole = Microcents(price * one.count)
    grants = tuple(SlotGrant(slot_id, 0, gpu_uuid) for slot_id, gpu_uuid in one.place.slots[: one.count])  # type: ignore[arg-type] # as rows have them
    rental = Rental(
        *(RentalId(rental_id), ClusterId(cluster_id), name, one.renter, one.place.tier, whole, FEE_PERMILLE, True),
        *(RentalState.OPEN, one.from_ns),
    )
    running_ns = one.to_ns - one.from_ns
    line = RentalLine(
        WorkloadId(workload_id),
        rental.rental_id,
        one.place.host_id,
        one.place.owner,
        whole,
        grants,
        *(one.from_ns, one.to_ns, one.to_ns),
        signed_ns=running_ns,
        receipts=1,
        first_number=1,
        last_number=1,
        final_number=1,
        started_at_ns=one.from_ns,
        runs_from_ns=one.from_ns,
        end_reason="deleted",
    )
    _pay(uow, one, rental, line)
    ended = "deleted by its renter"
    request = ClusterRequest(kind=ClusterKind.BOX, name=name, gpus=one.count, simulated=True, argv=("sleep", "3600"))
    cluster = Cluster(
        *(rental.cluster_id, one.renter, request, ClusterPhase.DELETED, rental.rental_id, one.place.tier, whole),
        *(one.from_ns, ended),
        started_at_ns=one.from_ns,
        ended_at_ns=one.to_ns,
    )
    uow[ClusterRepository].add(cluster, None, b"")
    work = Workload(
        *(line.workload_id, cluster.cluster_id, one.place.host_id, one.place.name, "simulated", "", grants, 0, 0),  # type: ignore[arg-type] # no bytes
        one.from_ns,
        WorkPhase.GONE,
        running_ns=running_ns,
        ended_at_ns=one.to_ns,
        is_released=True,
    )
    uow[WorkloadRepository].add(work)
    about = (cluster_id, str(one.place.host_id))
    _tell(uow, one.from_ns, "cluster.running", about, f"{name} runs on {one.place.name}")
    _tell(uow, one.to_ns, "cluster.deleted", about, f"{name} was deleted")


def _pay(uow: UnitOfWork, one: _Rented, rental: Rental, line: RentalLine) -> None:
    """Hold, charge, give back the rest, and close; with the last receipt."""
    book, kept = uow[LedgerRepository], uow[RentalRepository]
    balance = book.balance(account_of(one.renter))
    hold = ledger.holding(rental, balance, one.from_ns, needed=charge(line.price_per_hour, line.signed_ns))
    assert hold is not None, "the credit does not last for two weeks"
    done = ledger.charging(replace(rental, held=hold.amount), line, one.to_ns)
    rest = ledger.voiding(done.rental, one.to_ns)
    for transfer in (hold, *done.transfers, *([] if rest is None else [rest])):
        book.post(transfer)
    closed = replace(done.rental, state=RentalState.CLOSED, ended_at_ns=one.to_ns, held=done.rental.charged)
    left = book.balance(account_of(one.renter))
    kept.add(replace(closed, end_reason="deleted by its renter", balance_after=left))
    kept.add_line(done.line)
    facts = (line.workload_id, 1, rental.rental_id, line.host_id, line.signed_ns, True, "deleted", None)
    uow[ReceiptRepository].add(ReceiptRow(*facts, one.from_ns, one.to_ns, one.to_ns, b""))


# --- what was seen ---------------------------------------------------------------------------------------------------


def _tell(uow: UnitOfWork, at_ns: int, kind: str, about: tuple[str, ...], text: str, **fields: str) -> None:
    event_id = EventId(mint("event", at_ns, uow.random_bytes(10)))
    uow.events.append(EventRow(0, event_id, at_ns, kind, about, text, "master", fields))


def _trouble(uow: UnitOfWork, one: _Rented, dice: random.Random) -> None:
    """A GPU of the host was too hot for a while, and its host was away once."""
    host_id, (_, uuid) = str(one.place.host_id), dice.choice(one.place.slots)
    code = f"gpu.hot:{uuid}"
    at_ns = one.from_ns
    _tell(uow, at_ns, "condition.raised", (host_id, uuid), "A GPU was hot: 91 °C", code=code)
    _tell(uow, at_ns + 20 * MINUTE, "condition.cleared", (host_id, uuid), "A GPU is no longer hot", code=code)
    _tell(uow, at_ns + HOUR, "host.suspect", (host_id,), f"{one.place.name} is not heard of")
    _tell(uow, at_ns + HOUR + 2 * MINUTE, "host.online", (host_id,), f"{one.place.name} is back")


def _counts(uow: UnitOfWork, gpus: int, now_ns: int) -> None:
    """The number of GPUs in each state: each hour, and each five minutes of the last two days."""
    history = uow[UseHistoryRepository]
    at_ns = now_ns - DAYS * DAY
    while at_ns < now_ns:
        wave = math.sin(2 * math.pi * (at_ns % DAY) / DAY)
        counts = {
            Availability.RENTED: round(gpus * (0.45 + 0.25 * wave)),
            Availability.PAUSED: gpus // 40,
            Availability.FAULTY: gpus // 100,
            Availability.OFFLINE: gpus // 50,
        }
        history.add({Availability.IDLE: gpus - sum(counts.values()), **counts}, at_ns)
        at_ns += HOUR if at_ns < now_ns - 2 * DAY else SHORT_NS


def _readings(folder: Path, now_ms: int) -> None:
    """Roll-ups of readings of every GPU that the history knows, each half hour."""
    path = max(folder.glob("history-*.duckdb"))
    metrics = {one.name: one for one in METRICS}
    with open_file(path) as connection:
        rolled = history_roll.prepare(connection)
        cards = connection.execute("SELECT number FROM device WHERE device LIKE 'GPU-%' ORDER BY number").fetchall()
        hour_ms = HOUR // MILLISECOND
        end_ms = min(rolled.hour_ms, now_ms // hour_ms * hour_ms)
        at_ms = np.arange(end_ms - DAYS * 24 * hour_ms, end_ms, READ_EVERY_MS, dtype=np.int64)
        phase = 2 * np.pi * (at_ms % (24 * hour_ms)) / (24 * hour_ms)
        noise = np.random.default_rng(SEED)
        device = np.repeat(np.array([number for (number,) in cards], dtype=np.int64), len(at_ms))
        times = np.tile(at_ms, len(cards))
        wave = np.tile(np.sin(phase), len(cards)) + noise.normal(0, 0.25, len(times))
        columns = {}
        for name, (middle, swing) in SWINGS.items():
            metric = metrics[name]
            columns[metric.number] = ((middle + swing * np.clip(wave, -1.2, 1.2)) / metric.scale).astype(np.int64)
        with history_roll.transaction(connection):
            history_roll.take_late(connection, Scope.GPU, Rows(device, times, columns, {}, is_in_order=True), rolled)
