"""A host's cards are challenged by the Master through Access, agent and provers' processes, and the verdict is kept."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.services import need
from tests.support.agent_world import HOST
from tests.support.challenge_world import CARDS, ChallengeWorld, challenged, prover
from tests.waiting import poll_async
from windrow_agent.challenge.prover_pool import COMMAND
from windrow_master.fleet.model import VerifyOutcome, VerifyState
from windrow_master.verification import memory, schedule, scheduler, times, together
from windrow_master.verification.times import Timing, Work
from windrow_proto.conditions import ConditionCode
from windrow_proto.units import DAY, MIB, MILLISECOND, MINUTE, SECOND

SMALL = Work(64, 2)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that a processor does at once, and a Master that looks often."""
    monkeypatch.setattr(schedule, "OBSERVED", SMALL)
    monkeypatch.setattr(scheduler, "LOOK_NS", 50 * MILLISECOND)
    monkeypatch.setattr(memory, "FILL_PERMILLE", 4)
    # A processor of tests may be busy for longer than a card's.
    monkeypatch.setattr(together, "SPREAD_NS", MINUTE)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[ChallengeWorld]:
    async with challenged(tmp_path) as made:
        yield made


@pytest.mark.proves("a host verified by OpenCL kernels through Master, Access and agent")
async def test_an_honest_host_is_verified(
    world: ChallengeWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("opencl")
    monkeypatch.setenv("POCL_CACHE_DIR", str(tmp_path / "pocl"))
    monkeypatch.setenv("POCL_DEVICES", "pthread pthread")
    async with world.agent_with(COMMAND):
        host = await world.until_it_is(VerifyState.VERIFIED)
    found = await world.found()
    assert {one.gpu_uuid: one.outcome for one in found} == dict.fromkeys(CARDS, VerifyOutcome.PASSED)
    one = found[0]
    assert (one.pace, one.driver, one.evidence["openings"], one.evidence["size"]) == ("observed", "3.1", 64, 64)
    assert "64 openings true" in one.detail
    assert (one.evidence["memory"], one.evidence["memory_wrong"], one.evidence["memory_probes"]) == ("proved", 0, 64)
    assert one.evidence["memory_filled_bytes"] == 4 * MIB
    assert host.verify_tries is None
    assert host.verify_due_ns == one.at_ns + 7 * DAY
    assert (await world.look()).slots["CPU-0"] == ("free", None)


async def test_a_prover_that_spoils_a_tenth_fails_its_host_and_its_cards_are_not_offered(
    world: ChallengeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world.agent_with(prover("wrong")):
        host = await world.until_it_is(VerifyState.FAILED)
    first = (await world.found())[0]
    assert (first.outcome, first.reasons) == (VerifyOutcome.FAILED, ("wrong_entry",))
    assert "not the product's" in first.detail
    assert host.verify_tries == 1
    assert host.verify_due_ns is not None
    assert host.verify_due_ns - first.at_ns == schedule.BACK_OFF_NS
    for uuid in CARDS:
        state, unavailable = (await world.look()).slots[uuid]
        assert state == "free"
        assert unavailable is not None
        assert unavailable.startswith("It failed its challenge")
    (text, fields), *_ = await world.events("host.verify_failed")
    assert "an opened entry is not the product's" in text.lower()
    assert fields["failed"] == "2"


async def test_an_answer_to_another_nonce_is_a_failure(world: ChallengeWorld) -> None:
    async with world.agent_with(prover("replay")):
        await world.until_it_is(VerifyState.FAILED)
    assert {one.reasons for one in await world.found()} == {("replayed",)}


async def test_a_prover_that_stalls_fails_at_the_masters_deadline(
    world: ChallengeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(times, "LIMIT_NS", SECOND // 2)
    async with world.agent_with(prover("stall")):
        await world.until_it_is(VerifyState.FAILED)
    assert {one.reasons for one in await world.found()} == {("late_commitment",)}


async def test_a_true_answer_past_the_time_of_a_calibrated_class_is_refused(tmp_path: Path) -> None:
    async with challenged(tmp_path) as world:
        known = Timing(p5_ns=1, p50_ns=1, p95_ns=1, calibrated=True, source="planted by a test")
        world.verification.times = {("unlisted", SMALL): known}
        async with world.agent_with(prover("honest")):
            await world.until_it_is(VerifyState.FAILED, VerifyState.VERIFIED)
        assert {one.reasons for one in await world.found()} == {("late_commitment",)}


async def test_cards_that_answer_one_after_another_are_not_verified_and_flagged(
    world: ChallengeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(together, "SPREAD_NS", SECOND // 2)
    async with world.agent_with(prover("turns")):
        found = await poll_async(world.found, what="a word on it")
        host = await world.until_it_is(VerifyState.UNVERIFIED)
    assert {(one.outcome, one.evidence["together"]) for one in found} == {(VerifyOutcome.PASSED, "apart")}
    assert [one.code for one in host.conditions if one.code.startswith("challenge.")] == ["challenge.apart"]
    assert (await world.look()).slots["CPU-0"] == ("free", None), "its class is not calibrated: flagged, not gated"
    assert host.verify_due_ns == found[0].at_ns + schedule.BACK_OFF_NS


@pytest.mark.parametrize(
    ("way", "reason", "says"),
    [
        ("small", "short_memory", "room for 0.00 of 1.00 GiB"),
        ("aliased", "wrong_memory", "places of its memory did not hold what was written"),
    ],
)
async def test_a_card_with_less_memory_than_its_host_says_fails(
    world: ChallengeWorld, way: str, reason: str, says: str
) -> None:
    async with world.agent_with(prover(way)):
        await world.until_it_is(VerifyState.FAILED)
    one = (await world.found())[0]
    assert (one.outcome, one.reasons) == (VerifyOutcome.FAILED, (reason,))
    assert says in one.detail
    unavailable = (await world.look()).slots["CPU-0"][1]
    assert unavailable is not None and says in unavailable


async def test_a_card_whose_prover_dies_while_it_fills_passes_without_a_word_on_its_memory(
    world: ChallengeWorld,
) -> None:
    async with world.agent_with(prover("filling")):
        await world.until_it_is(VerifyState.VERIFIED)
    one = (await world.found())[0]
    assert one.evidence["memory"] == "untold"
    assert "its memory was not proved" in one.detail


async def test_a_card_without_a_prover_is_not_provable_and_stays_on_offer(world: ChallengeWorld) -> None:
    async with world.agent_with(("/absent/prover",)):
        found = await poll_async(world.found, what="a word on it")
        host = await world.until_it_is(VerifyState.UNVERIFIED)
    assert {one.outcome for one in found} == {VerifyOutcome.UNPROVABLE}
    assert found[0].detail.startswith("Not provable here: ")
    assert (await world.look()).slots["CPU-0"] == ("free", None)
    assert host.verify_due_ns == found[0].at_ns + DAY


async def test_a_host_that_dies_in_the_middle_goes_back_and_is_verified_later(
    world: ChallengeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "BACK_OFF_NS", SECOND)
    async with world.agent_with(prover("stall")):
        await world.until_it_is(VerifyState.VERIFYING)
        assert (await world.look()).slots["CPU-0"][1] == ConditionCode.CHALLENGE_RUNNING.words
    found = await poll_async(world.found, what="a word on it")
    assert {one.outcome for one in found} == {VerifyOutcome.UNFINISHED}
    host = await world.host()
    assert host.verify_state is VerifyState.UNVERIFIED
    assert host.verify_tries == 1
    assert (await world.look()).slots["CPU-0"] == ("free", None)
    async with world.agent_with(prover("honest")):
        assert (await world.until_it_is(VerifyState.VERIFIED)).verify_tries is None


async def test_a_failed_card_is_offered_again_once_it_passed(
    world: ChallengeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "BACK_OFF_NS", SECOND)
    async with world.agent_with(prover("wrong")):
        await world.until_it_is(VerifyState.FAILED)
    async with world.agent_with(prover("honest")):
        await world.until_it_is(VerifyState.VERIFIED)
    assert (await world.look()).slots["CPU-0"] == ("free", None)
    assert not (await world.look()).conditions


@pytest.mark.long
async def test_a_rented_card_is_left_alone_and_its_neighbour_is_challenged(world: ChallengeWorld) -> None:
    async with world.agent_with(prover("crash")) as agent:
        await poll_async(world.found, what="a first word")
        await world.rent(0)
        found = len(await world.found())
        operation = await world.verification.ask(HOST, (await world.host()).owner_account, "account/account_1")
        await poll_async(lambda: _more(world, found), what="another word")
        assert {one.gpu_uuid for one in (await world.found())[: -found or None]} == {"CPU-1"}
        ended = await world.master.store.read(lambda uow: uow.operations.get(operation.id))
        assert ended is not None
        assert ended.done_at_ns is not None
        assert (await world.look()).slots["CPU-0"][0] == "running"
        await agent.workloads.end_all()


async def _more(world: ChallengeWorld, than: int) -> bool:
    return len(await world.found()) > than
