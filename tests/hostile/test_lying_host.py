"""A host that lies: about others, about what happened, and by the megabyte. Nobody else's row changes."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.hostile import IS_LONG
from tests.support.wired import answers
from tests.unit.fleet.world import GPU_1, GPU_2, HOST, OTHER, World, world
from tests.unit.security import test_permissions
from windrow_agent.core.gpu_port import GpuEventKind
from windrow_agent.report.bought_host import HOST_LEAVING
from windrow_agent.runtimes.port import RunState
from windrow_agent.storage.disk_space import STORAGE_DAMAGED
from windrow_master.api.gpu_shapes import gpu_page_json
from windrow_master.clusters.repository import ClusterRepository
from windrow_master.fleet import mishaps, reliability, sanitise
from windrow_master.fleet.evidence_repository import EvidenceRepository
from windrow_master.fleet.host_events import KEPT_AN_HOUR, SPOKEN, HostBudget, heard
from windrow_master.fleet.messages import HasHad, Holds
from windrow_master.fleet.model import SlotState
from windrow_master.fleet.reliability import SLOT_NS
from windrow_master.fleet.reliability_repository import ReliabilityRepository
from windrow_master.fleet.repository import HostRepository, SlotRepository
from windrow_proto.conditions import ConditionCode
from windrow_proto.ids import AccountId, CommandId, SlotId, WorkloadId
from windrow_proto.messages import Gap
from windrow_proto.model import (
    Benchmark,
    CommandPhase,
    CommandStatus,
    Event,
    Inventory,
    Kind,
    Lane,
    Observed,
    ObservedWorkload,
    WorkloadPhase,
)
from windrow_proto.units import HOUR, SECOND
from windrow_proto.wire_command import encode_status
from windrow_proto.wire_host import encode_event, encode_observed
from windrow_proto.wire_link import encode_gap

MINE, FOREIGN = "workload_mine", "workload_foreign"
STRANGERS = ("host_2", GPU_2, FOREIGN, "cluster_1", "account_2", "rental_1", "token_1", "job_1", "access_1")
"""Everything else that there is: another host, its card and its work, and everything that is the Master's."""


@pytest.fixture
def w(tmp_path: Path) -> Iterator[World]:
    """Two hosts with a card each; the first holds one workload."""
    with world(tmp_path) as made:
        made.join(OTHER)
        made.equip(GPU_1)
        made.equip(GPU_2, host_id=OTHER)
        for question in (Holds, HasHad):
            answers(made.store, question, lambda uow, it: (it.host_id, it.workload_id) == (HOST, MINE))
        yield made


def say(w: World, said: str, subject: str = "", detail: str = "", **fields: str) -> None:
    """One event, as the host sends it."""
    w.take(w.record(Kind.EVENT, encode_event(Event(said, w.clock.wall_ns(), subject, detail, fields))))


def rows(w: World, subject: str | None = None) -> list[Any]:
    return list(w.read(lambda uow: uow.events.newest(subject, limit=10_000)))


def database_bytes(w: World, directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


# --- events about others ---------------------------------------------------------------------------


@pytest.mark.row("F9")
def test_an_honest_agent_says_nothing_else_than_the_list_has() -> None:
    ends = {f"workload.{state.value}" for state in (RunState.EXITED, RunState.LOST)}
    of_gpus = {ConditionCode.GPU_STRIPPED, *(kind.value for kind in GpuEventKind)}
    assert set(SPOKEN) == {STORAGE_DAMAGED, HOST_LEAVING, *ends, *of_gpus}


@pytest.mark.row("F9")
@pytest.mark.parametrize(
    "code",
    ["condition.raised", "command.done", "host.lost", "host.retired", "token.revoked", "rental.closed", "x", "",
     "evidence.put_aside", "access.kept_back", "host.reports_too_much"],
)  # fmt: skip
def test_what_only_the_master_says_is_not_taken_from_a_host(w: World, code: str) -> None:
    before = len(rows(w, OTHER))
    for subject in ("", HOST, GPU_1, MINE, *STRANGERS):
        say(w, code, subject, "cost 99999.00", code="gpu.lost", held="1", kind="create", error="disk_full")
    assert [row.kind for row in rows(w) if row.kind == code and row.actor == f"host/{HOST}"] == []
    assert len(rows(w, OTHER)) == before
    told = [row for row in rows(w, HOST) if row.kind == "host.reports_too_much"]
    assert [row.subjects for row in told] == [(HOST,)], "it is told once, and of the liar alone"


@pytest.mark.row("F9")
@pytest.mark.parametrize("subject", STRANGERS)
def test_an_event_about_somebody_else_lands_on_nobodys_page(w: World, subject: str) -> None:
    before = len(rows(w, subject))
    for code in SPOKEN:
        say(w, code, subject)
        say(w, code, "", slice=subject, workload=subject)
        say(w, code, GPU_1, slice=subject, workload=subject)
    assert len(rows(w, subject)) == before
    assert subject not in {value for row in rows(w, HOST) for value in row.fields.values()}


@pytest.mark.row("F9")
@pytest.mark.parametrize("subject", STRANGERS)
def test_a_condition_about_somebody_else_lands_on_nobodys_page(w: World, subject: str) -> None:
    before = len(rows(w, subject))
    w.equip(GPU_1, conditions=(f"gpu.lost:{subject}",))
    w.write(lambda uow: w.fleet.hosts.conditions(uow, HOST, (f"gpu.host_fault:{subject}", f"x:{subject}")))
    assert len(rows(w, subject)) == before


@pytest.mark.row("F9")
async def test_no_lie_of_one_host_is_held_against_another(w: World) -> None:
    w.fleet.start()
    for host_id in (HOST, OTHER):
        w.connect(host_id)
    for turn in range(3):
        for _ in range(SLOT_NS // (10 * SECOND)):
            w.clock.advance(10 * SECOND)
            for host_id in (HOST, OTHER):
                w.beat(host_id)
            await w.fleet.tick()
        for code in ("workload.lost", "host.lost", "condition.raised", "command.done"):
            say(w, code, OTHER, held="8", code="gpu.lost", kind="create", error="disk_full")
        w.equip(GPU_1, conditions=(f"gpu.lost:{OTHER}", f"gpu.lost:{GPU_2}") if turn % 2 else ())
    found = w.read(lambda uow: uow[ReliabilityRepository].get(OTHER))
    assert found is not None
    assert (found.record.faults, found.record.aborts) == (0, 0)
    assert not mishaps.counts("workload.lost", f"host/{HOST}", OTHER)
    assert reliability.reliability(found.record, w.clock.wall_ns()) >= 0.05


@pytest.mark.row("F9")
def test_what_a_host_may_say_of_itself_is_kept(w: World) -> None:
    say(w, "gpu.xid", GPU_1, "XID 79", xid="79", blame="host", workload=MINE, secret="x" * 500)
    say(w, "workload.exited", MINE, exit_code="0")
    (xid,) = [row for row in rows(w, GPU_1) if row.kind == "gpu.xid"]
    assert dict(xid.fields) == {"xid": "79", "blame": "host", "workload": MINE}
    assert [row.kind for row in rows(w, MINE)] == ["workload.exited"]


@pytest.mark.row("F9")
def test_work_that_a_host_makes_up_is_on_nobodys_page_and_is_ended_bit_by_bit(w: World, tmp_path: Path) -> None:
    made_up = [FOREIGN, *(f"workload_{number}" for number in range(1_000))]
    workloads = tuple(ObservedWorkload(WorkloadId(one), WorkloadPhase.RUNNING) for one in made_up)
    report = Observed(workloads, b"", w.clock.wall_ns())
    w.take(w.record(Kind.OBSERVED, encode_observed(report)))
    assert rows(w, FOREIGN) == []


# --- by the megabyte -------------------------------------------------------------------------------


@pytest.mark.row("F16")
def test_events_are_small_and_so_many_an_hour(w: World, tmp_path: Path) -> None:
    count = 5_000 if IS_LONG else 600
    large = {f"field_{number}": "x" * 3_000 for number in range(60)}
    items = [
        w.record(Kind.EVENT, encode_event(Event("gpu.xid", 0, GPU_1, "y" * 4_000, large | {"process": "z" * 4_000})))
        for _ in range(count)
    ]
    before = database_bytes(w, tmp_path)
    for start in range(0, count, 100):
        w.take(*items[start : start + 100])
    kept = [row for row in rows(w, HOST) if row.kind == "gpu.xid"]
    assert len(kept) == KEPT_AN_HOUR["events"]
    assert max(len(str(row.fields)) + len(row.text) for row in kept) < 4_096
    assert database_bytes(w, tmp_path) - before < 8 << 20
    told = [row for row in rows(w, HOST) if row.kind == "host.reports_too_much"]
    assert [dict(row.fields)["what"] for row in told] == ["events"]
    w.clock.advance(HOUR)
    say(w, "gpu.xid", GPU_1)
    assert len([row for row in rows(w, HOST) if row.kind == "gpu.xid"]) == KEPT_AN_HOUR["events"] + 1


@pytest.mark.row("F16")
def test_conditions_inventories_gaps_and_what_cannot_be_read_are_so_many_an_hour(w: World, tmp_path: Path) -> None:
    turns = 1_500 if IS_LONG else 300
    before, boot = database_bytes(w, tmp_path), w.record(Kind.GAP, b"").record.origin_boot
    for turn in range(turns):
        codes = (f"made.up_{turn}",)
        w.write(lambda uow, codes=codes: w.fleet.hosts.conditions(uow, HOST, codes))
        w.equip(GPU_1, conditions=(f"other.made_up_{turn}",))
        ranges = tuple((10**9 + turn * 10_000 + 2 * n, 10**9 + turn * 10_000 + 2 * n) for n in range(20))
        w.take(
            w.record(Kind.RECEIPT, os.urandom(20_000)),
            w.record(Kind.GAP, encode_gap(Gap(Lane.TELEMETRY, boot, ranges, "x"))),
        )
    counts: dict[str, int] = {}
    for row in rows(w, HOST):
        counts[row.kind] = counts.get(row.kind, 0) + 1
    assert counts["condition.raised"] + counts["condition.cleared"] <= KEPT_AN_HOUR["conditions"]
    assert counts["evidence.put_aside"] == KEPT_AN_HOUR["letters"]
    assert w.read(lambda uow: uow[EvidenceRepository].buried(HOST)) == KEPT_AN_HOUR["letters"]
    assert counts.get("spool.gap", 0) <= KEPT_AN_HOUR["gaps"]
    assert database_bytes(w, tmp_path) - before < 2 * KEPT_AN_HOUR["bytes"]


@pytest.mark.row("F16")
def test_proofs_of_a_host_are_so_many_bytes_an_hour(w: World) -> None:
    status = encode_status(CommandStatus(CommandId("command_none"), CommandPhase.RUNNING))
    padded = bytes(KEPT_AN_HOUR["bytes"] // 40)  # as fields that nobody knows, which no reader looks at
    for _ in range(50):
        w.take(replace(w.record(Kind.COMMAND_STATUS, status), sealed=padded))
    kept = w.read(lambda uow: uow[EvidenceRepository].list(HOST, [Kind.COMMAND_STATUS], 100))
    assert 30 <= len(kept) <= 40


@pytest.mark.row("F16")
def test_the_budget_of_one_host_is_not_anothers_and_grows_back() -> None:
    budget = HostBudget({"events": 2})
    assert [budget.admit(HOST, "events", 0) for _ in range(4)] == [True, True, False, False]
    assert budget.admit(OTHER, "events", 0)
    first, again = budget.excess(HOST, "events", 1), budget.excess(HOST, "events", 2)
    assert (first is not None, again) == (True, None)
    assert budget.admit(HOST, "events", HOUR)
    assert not budget.admit(HOST, "events", HOUR + 1, amount=2)
    told = budget.excess(HOST, "events", HOUR + 2)
    assert told is not None
    assert told.before == {"events": 2}
    assert budget.admit(HOST, "events", -HOUR), "a clock that went back begins anew"


@pytest.mark.row("F16")
def test_the_fields_of_an_event_are_cut_and_named() -> None:
    said = Event("gpu.xid", 0, "GPU", "d" * 9_999, {"xid": "1" * 9_999, "else": "x", "slice": "other", "workload": "w"})
    event = heard(said, {"GPU"}, lambda _: False)
    assert event is not None
    assert (len(event.detail), len(event.fields["xid"]), set(event.fields)) == (1_000, 200, {"xid"})


@pytest.mark.row("F16")
def test_the_lists_of_an_inventory_are_kept_as_long_as_any_host_needs(w: World) -> None:
    many = tuple(f"{number}" + "x" * 120 for number in range(4_000))
    claimed = Inventory(
        runtimes=many,
        addresses=many,
        conditions=many,
        runtime_versions=dict.fromkeys(many[:200], "y" * 4000),
        benchmarks=tuple(Benchmark(name, 1.0, "", 0) for name in many),
    )
    kept, _ = sanitise.inventory(claimed)
    assert len(str(replace(kept, benchmarks=()))) < 32_000
    assert len(kept.benchmarks) == sanitise.BENCHMARKS_MAX


# --- who rents what --------------------------------------------------------------------------------

shop = test_permissions.world
"""A market in which one account has a host with a cluster on it, and others have accounts."""


async def ask(made: Any, name: str, path: str) -> Any:
    transport = httpx2.ASGITransport(made.app)
    bearer = {"Authorization": f"Bearer {made.tokens[name]}"}
    async with httpx2.AsyncClient(transport=transport, base_url="http://master", headers=bearer) as client:
        answer = await client.get(f"/api/v1{path}")
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.mark.row("F27")
@pytest.mark.parametrize("path", ["/hosts", "/hosts/host_1", "/gpus", "/gpus/GPU-1"])
async def test_strangers_do_not_learn_who_rents_what(shop: Any, path: str) -> None:
    cluster = shop.ids["{cluster_id}"]
    opened = shop.opened

    await _rent(opened, cluster)
    seen = {name: str(await ask(shop, name, path)) for name in ("owner", "operator", "auditor", "renter", "rival")}
    assert {name for name, text in seen.items() if cluster in text} == {"owner", "operator", "auditor"}
    assert {name for name, text in seen.items() if test_permissions.OWNER in text} <= {"owner", "operator", "auditor"}


@pytest.mark.row("F27")
async def test_a_renter_learns_which_slots_are_his_own_and_no_others(shop: Any) -> None:
    from windrow_master.api.fleet_feed import feed_of

    cluster, opened = shop.ids["{cluster_id}"], shop.opened
    await _rent(opened, cluster)
    moved = AccountId("account_rival")
    await opened.store.write(lambda uow: _give_away(uow, cluster, moved), name="test")
    slots = {one["id"]: one for one in (await ask(shop, "rival", f"/hosts/{HOST}"))["slots"]}
    assert (slots["GPU-1"]["cluster_id"], slots["GPU-1"]["token"] is None) == (cluster, False)
    feed = feed_of(opened.services)
    await feed.refresh()
    texts = {viewer: b"".join(one.text or b"" for one in feed.news(0, viewer)) for viewer in (None, AccountId("x"))}
    assert cluster.encode() in texts[None]
    assert cluster.encode() not in texts[AccountId("x")]
    assert test_permissions.OWNER.encode() not in texts[AccountId("x")]


@pytest.mark.row("F27")
async def test_nor_who_has_which_part_of_a_card(shop: Any) -> None:
    cluster, opened = shop.ids["{cluster_id}"], shop.opened
    await _rent(opened, cluster)
    entry = opened.fleet.entry(HOST)
    parts = tuple(replace(slot, card=slot.gpu_uuid, profile="1g.10gb") for slot in entry.slots if slot.gpu_uuid)
    cut = replace(entry, slots=(*entry.slots, *parts))
    gpu = entry.host.inventory.gpus[0]
    pages = {sees: str(gpu_page_json(cut, gpu, None, [], [], None, sees)) for sees in (None, lambda slot: False)}
    assert [cluster in text for text in pages.values()] == [True, False]


async def _rent(opened: Any, cluster_id: Any) -> None:
    """The cluster holds the card."""

    def give(uow: Any) -> None:
        slot = uow[SlotRepository].get(SlotId("GPU-1"))
        assert uow[SlotRepository].swap(
            slot, replace(slot, holder=cluster_id, state=SlotState.RUNNING, token=slot.token + 1)
        )
        opened.fleet.hosts.save(uow, uow[HostRepository].get(HOST))

    await opened.store.write(give, name="test")
    await opened.fleet.refresh()


def _give_away(uow: Any, cluster_id: Any, account: AccountId) -> None:
    row = uow[ClusterRepository].get(cluster_id)
    uow[ClusterRepository].save(replace(row, account_id=account, version=row.version + 1))
