"""Decisions when to prove a host, which logs to believe, and what to say of it: pure."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow_master.acceptance import program, progress, schedule, words
from windrow_master.acceptance.model import Proof, ProofStep, StepName, StepState
from windrow_master.fleet.model import (
    AdminState,
    Host,
    LinkState,
    Measurement,
    ProofMark,
    ProofOutcome,
    Slot,
    SlotState,
    VerifyState,
)
from windrow_master.fleet.slices import CUT
from windrow_master.spec import TEXT_MAX
from windrow_proto.ids import AccountId, ClusterId, GpuUuid, HostId, SlotId
from windrow_proto.model import Inventory, Isolation
from windrow_proto.units import GIB, HOUR, MINUTE, SECOND, Microcents

NOW = 1_000 * HOUR
LINE = Measurement(941_000_000, 880_000_000, "access_1", "local-a", NOW)
HOST = Host(
    HostId("host_1"),
    "box",
    AccountId("account_1"),
    False,
    NOW - MINUTE,
    admin_state=AdminState.ACTIVE,
    link_state=LinkState.ONLINE,
    settled_at_ns=NOW - MINUTE,
    inventory=Inventory(hostname="box", cpu_count=4, memory_bytes=GIB, runtimes=("process",), agent_version="0.1"),
    bandwidth=LINE,
    tier="l4/B",
    tier_reasons=("B: PCIe x8 of x16", "memory: 24.0 GiB of 24 nominal"),
    listed_at_ns=NOW - SECOND,
)
SLOT = Slot(SlotId("host_1/cpu/0"), HOST.host_id, "cpu", None, tier="cpu/B")
CARD = Slot(SlotId("GPU-1"), HOST.host_id, "gpu", GpuUuid("GPU-1"), tier="l4/B")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"admin_state": AdminState.DRAINING}, "draining"),
        ({"link_state": LinkState.SUSPECT}, "not connected"),
        ({"settled_at_ns": NOW + 1}, "nothing of it is on offer"),
        ({"verify_state": VerifyState.FAILED}, "nothing of it is on offer"),
        ({"inventory": Inventory(runtimes=("docker",))}, "default image"),
    ],
)
def test_a_host_that_cannot_be_proved_says_why(change: dict[str, object], why: str) -> None:
    host = replace(HOST, **change)  # type: ignore[arg-type]
    assert schedule.hindrance(HOST, (SLOT,), NOW) is None
    assert why in (schedule.hindrance(host, (SLOT,), NOW) or "")
    assert not schedule.is_due(host, (SLOT,), NOW)


def test_a_host_of_which_anything_is_rented_is_left_alone() -> None:
    rented = replace(SLOT, state=SlotState.RUNNING, holder=ClusterId("cluster_1"))
    assert schedule.is_due(HOST, (SLOT, CARD), NOW)
    assert not schedule.is_due(HOST, (rented, CARD), NOW)


def test_the_first_waits_for_the_bandwidth_and_not_for_ever() -> None:
    bare = replace(HOST, bandwidth=None)
    assert schedule.is_due(HOST, (SLOT,), NOW)
    assert not schedule.is_due(bare, (SLOT,), NOW)
    assert schedule.is_due(bare, (SLOT,), NOW + schedule.FIRST_WAIT_NS)
    assert not schedule.is_due(replace(HOST, listed_at_ns=None), (SLOT,), NOW)


def test_the_next_one_comes_when_it_is_due() -> None:
    later = replace(HOST, proof_due_ns=NOW + 1)
    assert not schedule.is_due(later, (SLOT,), NOW)
    assert schedule.is_due(later, (SLOT,), NOW + 1)


@given(st.integers(min_value=0, max_value=2**64 - 1))
def test_a_pass_is_repeated_at_a_random_time_within_its_bounds(chance: int) -> None:
    due_ns = schedule.next_due_ns(ProofOutcome.PASSED, 1, False, chance, NOW)
    assert NOW + schedule.AGAIN_MIN_NS <= due_ns < NOW + schedule.AGAIN_MAX_NS
    assert due_ns == NOW + schedule.AGAIN_MIN_NS + chance % (schedule.AGAIN_MAX_NS - schedule.AGAIN_MIN_NS)


def test_a_failure_is_tried_again_after_a_growing_pause() -> None:
    waits = [schedule.next_due_ns(ProofOutcome.FAILED, tries, False, 5, NOW) - NOW for tries in (1, 2, 3, 99)]
    assert waits == [MINUTE, 2 * MINUTE, 4 * MINUTE, 6 * HOUR]
    assert schedule.next_due_ns(ProofOutcome.UNFINISHED, 1, True, 5, NOW) - NOW == schedule.IN_USE_AGAIN_NS


def test_a_container_of_the_default_image_is_tried_where_strangers_get_one() -> None:
    both = replace(HOST, inventory=Inventory(runtimes=("process", "docker")))
    assert schedule.runtime(both) == "process"
    assert schedule.runtime(replace(both, default_image="debian")) == "docker"


@pytest.mark.case("M-3")
def test_whole_gpus_are_rented_and_of_a_cut_host_one_slice_that_strangers_may_have() -> None:
    closed = replace(CARD, unavailable=CUT)
    mig = [replace(CARD, slot_id=SlotId(f"MIG-{n}"), profile="1g.10gb", isolation=Isolation.MIG) for n in range(3)]
    mps = [replace(CARD, slot_id=SlotId(f"MPS-{n}"), profile="mps.50", isolation=Isolation.MPS) for n in range(2)]
    assert schedule.gpus_wanted((SLOT, CARD, replace(CARD, unavailable="MIG is on"))) == (1, None)
    assert schedule.gpus_wanted((SLOT, CARD, closed, *mig, *mps)) == (1, None)
    assert schedule.gpus_wanted((SLOT, closed, *mps, *mig)) == (1, "1g.10gb")
    assert schedule.gpus_wanted((SLOT, closed, *mps)) == (0, None)
    assert schedule.gpus_wanted((SLOT,)) == (0, None)


# --- the log ----------------------------------------------------------------------------------------------------------


def test_what_the_program_says_is_read_among_other_lines() -> None:
    log = (
        b'noise\nwindrow-proof {"server": "sshd", "port": 22}\nwindrow-proof {"gpus": 2}\nwindrow-proof {"memory": 7}\n'
    )
    told = program.read(log)
    assert (told.server, told.port, told.gpus, told.memory_bytes) == ("sshd", 22, 2, 7)
    nothing = program.read(b"noise")
    assert (nothing.server, nothing.has_counted, nothing.has_touched, nothing.gpus) == (None, False, False, None)


@pytest.mark.parametrize(
    "line",
    [
        b'{"server": 5, "port": "x"}',
        b'{"server": "telnet", "port": -1}',
        b'{"server": "", "port": 1e300}',
        b"[]",
        b"{",
        b'{"gpus": true}',
        b'{"server": "' + b"x" * 5_000 + b'"}',
    ],
)
def test_what_it_did_not_say_is_not_believed(line: bytes) -> None:
    told = program.read(program.MARK.encode() + line)
    assert told.server in (None, "") and told.port == 0 and told.gpus is None


@given(st.binary(max_size=300))
def test_no_log_breaks_its_reader(log: bytes) -> None:
    program.read(log)
    program.read(program.MARK.encode() + log)


def test_the_program_is_fit_to_be_sent() -> None:
    argv, environment = program.command(program.port_of(2**64 - 1), "docker")
    compile(program.PROGRAM, "proof", "exec")
    assert max(map(len, (*argv, *environment.values()))) <= TEXT_MAX
    assert "PROOF_CARDS" not in environment, "no card, nothing to measure it with"
    assert environment["PROOF_BIND"] == "0.0.0.0"
    assert program.command(1, "process")[1]["PROOF_BIND"] == "127.0.0.1"
    assert program.PORT_MIN <= int(environment["PROOF_PORT"]) < program.PORT_MAX


# --- the words --------------------------------------------------------------------------------------------------------


def step(
    name: StepName, state: StepState = StepState.PASSED, took_ns: int | None = None, **fields: int | str
) -> ProofStep:
    return ProofStep(name, state, took_ns, f"words of {name}.", fields)


REACHED = step(StepName.REACH, took_ns=1_900_000_000, server="sshd")


def test_all_that_was_seen_is_one_sentence() -> None:
    steps = (REACHED, step(StepName.COUNT, gpus=2), step(StepName.MEMORY, bytes=2 * GIB))
    said = words.sentence(HOST, steps, "", Microcents(31_000_000))
    assert said == (
        "SSH reached in 1.9 s, 2 GPUs counted inside, 2.0 GiB of GPU memory written and read back, 941 Mbit/s up and "
        "880 Mbit/s down measured by one relay, L4 · grade B because PCIe x8 of x16, suggested 0.31/h"
    )
    assert words.verdict(steps, "") is ProofOutcome.PASSED


def test_the_sentence_counts_the_relays_that_really_measured() -> None:
    def said(*relays: str) -> str:
        line = replace(LINE, relays=dict.fromkeys(relays, (941000000, 880000000, NOW)))
        return words.bandwidth(replace(HOST, bandwidth=line))

    assert said("a") == "941 Mbit/s up and 880 Mbit/s down measured by one relay"
    assert said("a", "b") == "941 Mbit/s up and 880 Mbit/s down measured by two relays"
    assert said("a", "b", "c").endswith("measured by three relays")


@pytest.mark.parametrize(
    ("relays", "age_ns", "serving", "expected"),
    [((), 0, 2, True), (("a",), 0, 2, True), (("a", "b"), 0, 2, False), (("a", "b"), HOUR, 2, True), ((), 0, 1, False)],
)
def test_a_proof_has_the_line_measured_by_two_where_two_serve(
    relays: tuple[str, ...], age_ns: int, serving: int, expected: bool
) -> None:
    line = replace(LINE, relays=dict.fromkeys(relays, (1, 1, NOW)))
    assert schedule.wants_measurement(replace(HOST, bandwidth=line), serving, NOW + age_ns) is expected
    assert schedule.wants_measurement(replace(HOST, bandwidth=None), serving, NOW) is (serving > 1)


def test_what_was_not_seen_is_not_said() -> None:
    greeter = step(StepName.REACH, took_ns=300_000_000, server="greeter")
    bare = replace(HOST, bandwidth=None, tier="cpu/A", tier_reasons=("4 x a processor",))
    said = words.sentence(bare, (greeter, step(StepName.COUNT, StepState.ABSENT)), "", None)
    assert said == "A port of it reached in 0.3 s (no SSH server there), bandwidth not measured yet, CPU · grade A"


def test_a_failure_names_its_step_and_the_way_out() -> None:
    steps = (replace(REACHED, state=StepState.FAILED), step(StepName.END))
    assert words.verdict(steps, "") is ProofOutcome.FAILED
    assert words.sentence(HOST, steps, "", None) == "Failed: it was not reached. words of reach."


def test_what_says_nothing_of_the_host_is_unfinished_whatever_failed() -> None:
    steps = (replace(REACHED, state=StepState.FAILED),)
    assert words.verdict(steps, "it gave way to a renter") is ProofOutcome.UNFINISHED
    assert words.sentence(HOST, steps, "it gave way to a renter", None) == "Not finished: it gave way to a renter."


# --- how far it has come ----------------------------------------------------------------------------------------------


def states(host: Host, slots: tuple[Slot, ...] = (SLOT,), proofs: tuple[Proof, ...] = ()) -> dict[str, str]:
    return {one.name: str(one.state) for one in progress.stages(host, slots, proofs, {}, NOW)}


def test_a_host_is_followed_from_download_to_listing() -> None:
    begun = Proof("proof_1", HOST.host_id, NOW, "master", steps=(step(StepName.START),))
    mark = ProofMark(NOW, ProofOutcome.PASSED, "SSH reached in 1.9 s")
    fresh = replace(HOST, admin_state=AdminState.ENROLLED, inventory=None, listed_at_ns=None)
    early = {"downloaded": "done", "certified": "done", "tested": "waiting", "verified": "waiting", "listed": "waiting"}
    assert states(fresh, ()) == early
    assert states(HOST) == early | {"verified": "skipped", "listed": "done"}, "it has no GPU"
    assert states(HOST, proofs=(begun,))["tested"] == "running"
    assert states(replace(HOST, proof=mark))["tested"] == "done"
    assert states(replace(HOST, proof=replace(mark, outcome=ProofOutcome.FAILED)))["tested"] == "failed"
    assert states(replace(HOST, verify_state=VerifyState.VERIFYING))["verified"] == "running"
    assert states(replace(HOST, admin_state=AdminState.QUARANTINED))["certified"] == "failed"


def test_a_failed_proof_does_not_take_a_host_off_the_list() -> None:
    failed = replace(HOST, proof=ProofMark(NOW, ProofOutcome.FAILED, "Failed: it was not reached."))
    assert schedule.is_listed(failed, (SLOT,), NOW)
    assert states(failed)["listed"] == "done"
