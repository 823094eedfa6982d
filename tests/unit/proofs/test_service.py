"""Test rentals on a real store, ledger and clusters, with a host that reports what it is told to."""

import asyncio
import json
from dataclasses import replace

import pytest

from tests.unit.clusters.world import HOST, OWNER, STRANGER, principal
from tests.unit.proofs.world import SAID, commanded, ended, host, proved, proving, started
from windrow_master.acceptance import rental, schedule, service
from windrow_master.acceptance.model import StepState
from windrow_master.acceptance.service import LEFT, ProofService
from windrow_master.clusters.model import ClusterPhase, ClusterRequest
from windrow_master.fleet import bandwidth, gpus, tiers
from windrow_master.fleet.benchmark_repository import BenchmarkRepository
from windrow_master.fleet.model import ProofOutcome
from windrow_master.fleet.repository import SlotRepository
from windrow_master.market.model import MINT, PROOF_ACCOUNT
from windrow_master.market.repository import LedgerRepository
from windrow_master.market.service import PRICE_MAX
from windrow_proto.errors import Conflict, StorageFailed, TooMany, Unavailable
from windrow_proto.metrics import GPU_MATRIX, GPU_MEMORY
from windrow_proto.model import Benchmark, CommandKind, CommandPhase, Isolation
from windrow_proto.units import HOUR, SECOND


async def test_a_host_that_was_listed_is_rented_and_the_rental_is_paid_from_test_credits(m):
    await m.market.set_ask(OWNER, "cpu/C", PRICE_MAX, "test")
    async with proving(m) as proofs:
        spec = await started(m)
        await ended(m, spec)
        one = await proved(m, proofs)
    assert one.outcome is ProofOutcome.PASSED, one
    assert m.tunnels.asked == (PROOF_ACCOUNT, one.cluster_id, 22222)
    assert one.words.startswith("SSH reached in 0.0 s, bandwidth not measured yet, CPU · grade C because")
    assert [step.state for step in one.steps if step.name in ("start", "reach", "end", "receipt")] == [
        StepState.PASSED
    ] * 4
    (receipt,) = [step for step in one.steps if step.name == "receipt"]
    suggested = m.market.suggested("cpu/C")
    earned = m.balance() - 100 * 10**8
    assert 0 < earned == 6 * SECOND * suggested // HOUR, "at the suggested price, whatever its owner asks"
    assert receipt.fields["signed_ns"] == 6 * SECOND
    assert m.balance(PROOF_ACCOUNT) == 100 * 10**8 - earned
    assert m.read(lambda uow: uow[LedgerRepository].balance(MINT)) == -300 * 10**8
    now = host(m)
    assert now.proof.words == one.words and now.proof_tries is None
    assert schedule.AGAIN_MIN_NS <= now.proof_due_ns - now.proof.at_ns < schedule.AGAIN_MAX_NS
    assert {"host.listed", "host.proving", "host.proved"} <= set(m.events(HOST))


async def test_a_proof_asks_for_a_measurement_by_two_relays_and_says_who_measured(m):
    m.fleet.relays.ids = ("access_1", "access_2")
    async with proving(m) as proofs:
        spec = await started(m)
        await commanded(m, CommandKind.MEASURE_BANDWIDTH)
        line = bandwidth.after(None, "access_1", "north", 941_000_000, 900_000_000, m.clock.wall_ns())
        line = bandwidth.after(line, "access_2", "south", 943_000_000, 902_000_000, m.clock.wall_ns())
        m.write(lambda uow: m.fleet.hosts.measured(uow, HOST, line, m.clock.wall_ns() + HOUR))
        await ended(m, spec)
        one = await proved(m, proofs)
    assert "942 Mbit/s up and 901 Mbit/s down measured by two relays" in one.words
    (step,) = [step for step in one.steps if step.name == "bandwidth"]
    assert (step.state, step.fields["relays"]) == (StepState.PASSED, 2)


async def test_a_proof_says_how_many_measured_where_the_second_did_not_come_in_time(m, monkeypatch):
    monkeypatch.setattr(service, "MEASURED_NS", 0)
    m.fleet.relays.ids = ("access_1", "access_2")
    line = bandwidth.after(None, "access_1", "north", 941_000_000, 900_000_000, m.clock.wall_ns())
    m.write(lambda uow: m.fleet.hosts.measured(uow, HOST, line, m.clock.wall_ns() + HOUR))
    async with proving(m) as proofs:
        await ended(m, await started(m))
        one = await proved(m, proofs)
    assert one.outcome is ProofOutcome.PASSED
    assert "measured by one relay" in one.words


@pytest.mark.case("M-3")
async def test_a_cut_host_is_proved_by_one_of_its_slices(m):
    m.join(gpus=1, cut=("1g.10gb", "1g.10gb"))
    m.inside.said = SAID + b'windrow-proof {"gpus": 1}\nwindrow-proof {"memory": 1024}\n'
    async with proving(m) as proofs:
        spec = await started(m)
        await ended(m, spec)
        one = await proved(m, proofs)
    assert one.outcome is ProofOutcome.PASSED, one
    assert [slot.isolation for slot in spec.slots] == [Isolation.MIG]
    states = {step.name: step.state for step in one.steps}
    assert (states["count"], states["benchmark"]) == (StepState.PASSED, StepState.ABSENT)


MODEL = gpus.BY_PCI[0x233110DE]
assert MODEL.bandwidth_gb_s is not None
SHEET = MODEL.bandwidth_gb_s.value * 1_000_000_000
"""Bytes per second of the card of this market."""


def measured_as(m, share: float) -> None:
    """From now on its one card copies this much of its sheet."""
    (gpu,) = host(m).inventory.gpus
    lines = [
        {"server": "sshd", "port": 22222},
        {"gpus": 1},
        {"memory": 1 << 30},
        {"benchmark": gpu.uuid, "device": "a device", "memory": round(share * SHEET)},
        {"benchmark": gpu.uuid, "matrix": 20_000_000_000_000, "size": 8192},
        {"benchmark": "GPU-elsewhere", "memory": 1},
        {"measured": 1},
    ]
    m.inside.said = b"".join(b"windrow-proof " + json.dumps(line).encode() + b"\n" for line in lines)


async def proved_again(m, proofs):
    """One proof from asking to its end."""
    await proofs.ask(HOST, OWNER, "account/account_owner")
    await ended(m, await started(m))
    found = await proved(m, proofs)
    m.clock.advance(schedule.ASKED_EVERY_NS)
    return found


@pytest.mark.proves("a GPU with the right name and half the measured bandwidth lands in another tier")
@pytest.mark.parametrize(("share", "grade"), [(0.9, "A"), (0.6, "B"), (0.45, "C"), (2.0, "C")])
async def test_a_card_is_graded_by_what_its_test_rental_measured(m, share, grade):
    m.join(gpus=1)
    measured_as(m, share)
    async with proving(m, is_automatic=False) as proofs:
        assert host(m).tier == "h100-pcie/C", "not measured yet"
        one = await proved_again(m, proofs)
    now = host(m)
    assert (one.outcome, now.tier) == (ProofOutcome.PASSED, f"h100-pcie/{grade}")
    figure = tiers.quantity(share * SHEET, "B/s")
    assert f"GPU memory measured inside at {figure} and matrices at 20 Top/s" in one.words
    assert now.proof.words == one.words, "public in the listing"
    assert f"H100-PCIE · grade {grade}" in one.words
    (slot,) = m.read(lambda uow: [s for s in uow[SlotRepository].of_host(HOST) if s.gpu_uuid])
    assert slot.tier == f"h100-pcie/{grade}"
    (gpu,) = now.inventory.gpus
    kept = m.read(lambda uow: uow[BenchmarkRepository].of_card(HOST, gpu.uuid))
    assert {(row.figure.name, row.proof_id) for row in kept} == {
        (GPU_MEMORY, one.proof_id),
        (GPU_MATRIX, one.proof_id),
    }


async def test_one_slow_run_moves_no_tier_and_the_second_does_and_both_are_kept(m):
    m.join(gpus=1)
    seen = []
    async with proving(m, is_automatic=False) as proofs:
        for share in (0.9, 0.9, 0.45, 0.45):
            measured_as(m, share)
            await proved_again(m, proofs)
            seen.append(host(m).tier)
    assert seen == ["h100-pcie/A", "h100-pcie/A", "h100-pcie/A", "h100-pcie/C"]
    assert host(m).tier_reasons[0].startswith("C: GPU memory speed: 56% of the expected")
    (gpu,) = host(m).inventory.gpus
    kept = [
        r.figure.value / SHEET
        for r in m.read(lambda u: u[BenchmarkRepository].of_card(HOST, gpu.uuid))
        if r.figure.unit == "By/s"
    ]
    assert kept == pytest.approx([0.45, 0.45, 0.9, 0.9])
    assert "slot.tier" in m.events(HOST)


async def test_a_host_whose_cards_or_driver_changed_is_proved_again_at_once(m):
    m.join(gpus=1)
    measured_as(m, 0.9)
    async with proving(m, is_automatic=False) as proofs:
        await proved_again(m, proofs)
    inventory, now_ns = host(m).inventory, m.clock.wall_ns()
    slots = m.read(lambda uow: uow[SlotRepository].of_host(HOST))
    m.write(lambda uow: m.fleet.hosts.inventory(uow, HOST, inventory))
    assert not schedule.is_due(host(m), slots, now_ns), "nothing changed"
    m.write(lambda uow: m.fleet.hosts.inventory(uow, HOST, replace(inventory, driver_version="999.1")))
    assert schedule.is_due(host(m), slots, now_ns)


async def test_what_a_host_says_of_its_cards_itself_grades_none(m):
    m.join(gpus=1)
    inventory = host(m).inventory
    (gpu,) = inventory.gpus
    claimed = Benchmark(GPU_MEMORY, float(SHEET), "By/s", 1, gpu.uuid)
    m.write(lambda uow: m.fleet.hosts.inventory(uow, HOST, replace(inventory, benchmarks=(claimed,))))
    assert host(m).tier == "h100-pcie/C"
    assert "C: GPU memory speed: not measured yet" in host(m).tier_reasons


async def test_a_card_that_computes_falsely_fails_the_proof_and_its_figures_are_not_kept(m):
    m.join(gpus=1)
    measured_as(m, 0.9)
    (gpu,) = host(m).inventory.gpus
    wrong = {"benchmark": gpu.uuid, "wrong": "an entry of its product of 512 rows is not true"}
    m.inside.said += b"windrow-proof " + json.dumps(wrong).encode() + b"\n"
    async with proving(m, is_automatic=False) as proofs:
        one = await proved_again(m, proofs)
    assert one.words.startswith("Failed: a GPU of it computes falsely. ")
    assert m.read(lambda uow: uow[BenchmarkRepository].newest(HOST, 3)) == []


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            ({"benchmark": "its own", "why": "there is no libOpenCL.so.1"}, {"measured": 1}),
            "there is no libOpenCL.so.1",
        ),
        (({"measured": 0, "why": "there is no python3 in its image"},), "there is no python3 in its image"),
        (({"measured": 1},), "nothing was said of it in time"),
    ],
)
async def test_a_card_that_could_not_be_measured_says_why_and_is_not_held_against_its_host(m, lines, said):
    m.join(gpus=1)
    (gpu,) = host(m).inventory.gpus
    told = [json.dumps(line).replace("its own", gpu.uuid).encode() for line in lines]
    m.inside.said = SAID + b"".join(b"windrow-proof " + line + b"\n" for line in told)
    async with proving(m, is_automatic=False) as proofs:
        one = await proved_again(m, proofs)
    (step,) = [step for step in one.steps if step.name == "benchmark"]
    assert (one.outcome, step.state) == (ProofOutcome.PASSED, StepState.ABSENT)
    assert step.words == f"GPU 0 was not measured: {said}."


async def test_a_port_that_never_answers_is_a_finding_and_the_host_stays_listed(m):
    m.tunnels.refusal = Conflict("No process of this workload listens there.")
    async with proving(m) as proofs:
        await ended(m, await started(m))
        one = await proved(m, proofs)
    assert one.outcome is ProofOutcome.FAILED
    assert one.words == (
        "Failed: it was not reached. Port 22222 of it never answered: No process of this workload listens there."
    )
    now = host(m)
    assert (now.proof.outcome, now.proof_tries) == (ProofOutcome.FAILED, 1)
    assert schedule.is_listed(now, m.read(lambda uow: uow[SlotRepository].of_host(HOST)), m.clock.wall_ns())
    assert "host.proof_failed" in m.events(HOST)


async def test_an_access_that_the_master_does_not_reach_says_nothing_about_the_host(m):
    m.tunnels.refusal = Unavailable("The Access does not answer.")
    async with proving(m) as proofs:
        await ended(m, await started(m))
        one = await proved(m, proofs)
    assert (one.outcome, one.words) == (ProofOutcome.UNFINISHED, "Not finished: The Access does not answer.")
    assert host(m).proof is None


async def test_a_start_that_fails_is_a_finding_with_the_hosts_words(m):
    async with proving(m) as proofs:
        await commanded(m, CommandKind.CREATE)
        m.status(CommandKind.CREATE, CommandPhase.FAILED, error_code="workload_failed", error_detail="no image")
        await commanded(m, CommandKind.DELETE)
        m.status(CommandKind.DELETE, CommandPhase.SUCCEEDED)
        one = await proved(m, proofs)
    assert one.words == "Failed: it was not started. workload_failed: no image"


async def test_nobody_asks_more_often_than_may_be(m):
    async with proving(m, is_automatic=False) as proofs:
        operation = await proofs.ask(HOST, OWNER, "account/account_owner")
        with pytest.raises(Conflict, match="already"):
            await proofs.ask(HOST, OWNER, "account/account_owner")
        await ended(m, await started(m))
        await proved(m, proofs)
        with pytest.raises(TooMany, match="Ask again in"):
            await proofs.ask(HOST, OWNER, "account/account_owner")
        (row,) = m.read(lambda uow: [uow.operations.get(operation.id)])
        assert row.done_at_ns is not None and row.error_code is None
    assert len(await proofs.of_host(HOST)) == 1, "what nobody asks for is not done"


async def test_a_proof_that_has_ended_is_no_proof_under_way_however_late_its_walk_goes_home(m):
    """Its row says so first; the walk is let go a moment later."""
    async with proving(m, is_automatic=False) as proofs:
        await proofs.ask(HOST, OWNER, "account/account_owner")
        refreshed, m.fleet.refresh = m.fleet.refresh, held(m, proofs)
        await ended(m, await started(m))
        await proved(m, proofs)
        assert HOST in proofs._running, "it is still on its way"
        with pytest.raises(TooMany, match="Ask again in"):
            await proofs.ask(HOST, OWNER, "account/account_owner")
        m.fleet.refresh = refreshed


def held(m, proofs):
    """A refresh that lets the end of a walk wait for as long as nobody has put the true one back."""
    true = m.fleet.refresh

    async def refresh():
        await true()
        latest = (await proofs.of_host(HOST))[0]
        while latest.ended_at_ns is not None and m.fleet.refresh is refresh:
            await asyncio.sleep(0.01)

    return refresh


async def test_a_master_that_died_in_between_ends_what_it_had_rented(m):
    async with proving(m):
        spec = await started(m)
    async with proving(m, is_automatic=False) as proofs:
        one = await proved(m, proofs)
        await ended(m, spec)
    assert one.words == "Not finished: the Master was restarted meanwhile."
    assert (await m.cluster(spec.cluster_id)).phase is ClusterPhase.DELETED
    assert set(m.slots().values()) == {"free"}


@pytest.mark.parametrize("error", [StorageFailed("for a moment"), ZeroDivisionError("of one row")])
async def test_a_test_rental_that_its_walk_could_not_end_is_ended_by_the_next_look(m, monkeypatch, error):
    async def refused(who, cluster_id):
        raise error

    monkeypatch.setattr(m.clusters, "delete", refused)
    async with proving(m, is_automatic=False) as proofs:
        await proofs.ask(HOST, OWNER, "account/account_owner")
        spec = await started(m)
        one = await proved(m, proofs)
        await ended(m, spec)
    assert one.outcome is ProofOutcome.UNFINISHED
    assert (await m.cluster(spec.cluster_id)).reason == LEFT
    assert set(m.slots().values()) == {"free"}


async def test_a_test_rental_that_an_earlier_master_left_behind_a_proof_that_is_over_is_ended(m):
    async with proving(m, is_automatic=False):
        await m.store.write(lambda uow: m.market.keep_funded(uow, PROOF_ACCOUNT), name="test")
        asked = ClusterRequest(argv=("true",), host_id=HOST, runtime="process")
        await m.clusters.create(rental.principal(m.clock.wall_ns()), asked, "proof_of_before", is_proof=True)
        spec = await started(m)
        await ended(m, spec)
    assert set(m.slots().values()) == {"free"}


async def test_a_strangers_process_is_still_refused_where_the_masters_own_runs(m):
    with pytest.raises(Exception, match="ask for a container"):
        await m.create(principal(STRANGER), runtime="process")


@pytest.mark.parametrize("error", [StorageFailed("for a moment"), ZeroDivisionError("of one row")])
async def test_what_stands_in_the_way_of_the_first_turn_is_met_again_by_the_next_and_ends_no_master(
    m, monkeypatch, error
):
    meets, pick_up = [error, error], ProofService._pick_up

    def met(proofs, uow):
        if meets:
            raise meets.pop()
        pick_up(proofs, uow)

    monkeypatch.setattr(ProofService, "_pick_up", met)
    async with proving(m, is_automatic=False) as proofs:
        await proofs.ask(HOST, OWNER, "account/account_owner")
        await ended(m, await started(m))
        assert (await proved(m, proofs)).outcome is ProofOutcome.PASSED
