"""Sums up the steps of an acceptance test in one sentence, and derives the verdict on the host. Pure."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from windrow_master.acceptance.benchmark import Figures
from windrow_master.acceptance.model import ProofStep, StepName, StepState
from windrow_master.fleet.model import Host, ProofOutcome
from windrow_master.fleet.tiers import quantity, tier_words
from windrow_proto.units import GIB, SECOND, Microcents, money_text

_WHAT = {
    StepName.START: "it was not started",
    StepName.REACH: "it was not reached",
    StepName.COUNT: "its GPUs are not those that were rented",
    StepName.MEMORY: "the memory of its GPUs did not keep what was written",
    StepName.BENCHMARK: "a GPU of it computes falsely",
    StepName.BANDWIDTH: "its bandwidth is not known",
    StepName.END: "it was not taken down",
    StepName.RECEIPT: "no receipt came",
}
Card = TypeVar("Card", bound=str)
_NUMBERS = {2: "two", 3: "three"}


def verdict(steps: Sequence[ProofStep], unfinished: str) -> ProofOutcome:
    """unfinished: why it ended early for no fault of the host's; empty: it did not."""
    if unfinished:
        return ProofOutcome.UNFINISHED
    return ProofOutcome.FAILED if any(step.state is StepState.FAILED for step in steps) else ProofOutcome.PASSED


def sentence(host: Host, steps: Sequence[ProofStep], unfinished: str, suggested: Microcents | None) -> str:
    """One sentence for people; suggested: for an hour of the host's tier."""
    if unfinished:
        return f"Not finished: {unfinished}."
    by_name = {step.name: step for step in steps}
    failed = next((step for step in steps if step.state is StepState.FAILED), None)
    if failed is not None:
        return f"Failed: {_WHAT[failed.name]}. {failed.words}"
    said = ["Simulated: nothing ran"] if host.simulated else []
    said += [_reached(by_name.get(StepName.REACH)), *_gpus(by_name), bandwidth(host)]
    if host.tier:
        said.append(f"{tier_words(host.tier)}{_because(host)}")
    if suggested is not None:
        said.append(f"suggested {money_text(suggested)}/h")
    return ", ".join(filter(None, said))


def bandwidth(host: Host) -> str:
    """Its line as so many relays measured it."""
    found = host.bandwidth
    if found is None:
        return "bandwidth not measured yet"
    who = "one relay" if found.count == 1 else f"{_NUMBERS.get(found.count, found.count)} relays"
    return f"{_mbit(found.up_bps)} up and {_mbit(found.down_bps)} down measured by {who}"


def measured(found: Mapping[Card, Figures], *, is_drawn: bool = False) -> tuple[StepState, str]:
    """Return the figures of these cards. A card that computes falsely fails; one that could not be measured says
    why, and is not held against its host. found: by the name of each card; is_drawn: by a host's simulator, and not
    measured."""
    wrong = [f"{uuid}: {said.wrong}" for uuid, said in found.items() if said.wrong]
    if wrong:
        return StepState.FAILED, f"{'; '.join(wrong)}. Look for XIDs in the host's kernel log."
    silent = {uuid: said.why or "nothing was said of it in time" for uuid, said in found.items() if not said.memory}
    if silent:
        return StepState.ABSENT, "; ".join(f"{uuid} was not measured: {why}" for uuid, why in silent.items()) + "."
    memory = min(said.memory or 0 for said in found.values())
    matrix = [said.matrix for said in found.values() if said.matrix]
    how = "drawn by the simulator, not measured," if is_drawn else "measured inside"
    text = f"GPU memory {how} at {quantity(memory, 'B/s')}"
    if len(matrix) == len(found):
        text += f" and matrices at {quantity(min(matrix), 'op/s')}"
    text += f" (the slowest of {len(found)})" if len(found) > 1 else ""
    left = [f"{uuid}: matrices were not measured: {said.why}" for uuid, said in found.items() if said.why]
    return StepState.PASSED, "; ".join([text, *left]) + "."


def took(duration_ns: int | None) -> str:
    """A time as people say it, in tenths of a second."""
    return "some time" if duration_ns is None else f"{duration_ns / SECOND:.1f} s"


def _reached(step: ProofStep | None) -> str:
    if step is None or step.state is not StepState.PASSED:
        return ""
    if step.fields.get("server") == "sshd":
        return f"SSH reached in {took(step.took_ns)}"
    return f"A port of it reached in {took(step.took_ns)} (no SSH server there)"


def _gpus(steps: dict[StepName, ProofStep]) -> list[str]:
    count, memory, measured = (steps.get(name) for name in (StepName.COUNT, StepName.MEMORY, StepName.BENCHMARK))
    said = []
    if count is not None and count.state is StepState.PASSED:
        number = int(count.fields["gpus"])
        said.append(f"{number} GPU{'' if number == 1 else 's'} counted inside")
    if memory is not None and memory.state is StepState.PASSED:
        said.append(f"{int(memory.fields['bytes']) / GIB:.1f} GiB of GPU memory written and read back")
    if measured is not None and measured.state is StepState.PASSED:
        said.append(measured.words.partition(";")[0].rstrip("."))
    return said


def _because(host: Host) -> str:
    """The first reason that keeps its grade down; nothing for an A."""
    reason = host.tier_reasons[0] if host.tier_reasons else ""
    grade, separator, why = reason.partition(": ")
    return f" because {why}" if separator and host.tier.endswith(f"/{grade}") else ""


def _mbit(rate_bps: int) -> str:
    return f"{rate_bps / 1e6:.0f} Mbit/s"
