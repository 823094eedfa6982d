"""Decides when the Master tests a host by renting it, how, and what the result means for the next test. Pure.

    joined ─▶ listed: active, online, something on offer ─▶ bandwidth measured, or FIRST_WAIT_NS ─▶ first proof
    passed ─▶ again after AGAIN_MIN_NS to AGAIN_MAX_NS, at random, so that nobody knows when to behave
    its GPUs or its driver changed ─▶ at once: what was measured of it no longer holds
    failed, or nothing was learnt ─▶ back-off, doubled each time

A proof observes and does not gate: by the design the challenge gates. A host whose proof failed stays listed, and the
listing says that it failed, when and why. A host of which anything is rented is left alone, and a proof that runs gives
way to a renter.
"""

from collections.abc import Sequence
from typing import Final

from windrow_master.fleet.model import AdminState, Host, LinkState, ProofOutcome, Slot, VerifyState, link_words
from windrow_master.identity.model import BUYER_ACCOUNT
from windrow_master.placement.isolation import FOR_STRANGERS
from windrow_master.placement.model import Runtime
from windrow_master.verification.schedule import back_off_ns
from windrow_proto.model import GpuFacts
from windrow_proto.units import HOUR, MINUTE, SECOND

FIRST_WAIT_NS: Final = 20 * SECOND
"""For the first bandwidth, which is measured at joining: beside it a rental would measure the measurement."""
AGAIN_MIN_NS: Final = 12 * HOUR
AGAIN_MAX_NS: Final = 36 * HOUR
"""A day apart on average."""
MEASURED_FOR_NS: Final = 10 * MINUTE
"""For so long a measurement by two relays is as good as a new one: the first is made at joining."""
IN_USE_AGAIN_NS: Final = 10 * MINUTE
"""After a proof that gave way to a renter."""
ASKED_EVERY_NS: Final = MINUTE
"""Between two that people ask for: each earns its provider test money."""
AT_ONCE: Final = 2
"""Proofs under way at one time."""


def is_listed(host: Host, slots: Sequence[Slot], now_ns: int) -> bool:
    """Return whether somebody could rent from this host now."""
    return (
        host.admin_state is AdminState.ACTIVE
        and host.is_settled(now_ns)
        and host.verify_state in (VerifyState.UNVERIFIED, VerifyState.VERIFIED)
        and any(slot.is_offered and slot.tier for slot in slots)
    )


def hindrance(host: Host, slots: Sequence[Slot], now_ns: int) -> str | None:
    """Return why this host cannot be proved now, in words; None where it can."""
    if host.owner_account == BUYER_ACCOUNT:
        return "it was bought: its provider vouches for it"
    if host.admin_state is not AdminState.ACTIVE:
        return f"it is {host.admin_state}"
    if host.link_state is not LinkState.ONLINE:
        return f"it is not connected: {link_words(host.link_state)}"
    if any(slot.holder is not None for slot in slots):
        return "a part of it is rented; ask again when it is free"
    if not is_listed(host, slots, now_ns):
        return "nothing of it is on offer now"
    if runtime(host) is None:
        return (
            "it runs neither processes nor containers with a default image: windrow-agent doctor says what to install"
        )
    return None


def is_due(host: Host, slots: Sequence[Slot], now_ns: int) -> bool:
    """Return whether a proof is due; now_ns: wall time."""
    if host.listed_at_ns is None or hindrance(host, slots, now_ns) is not None:
        return False
    if host.proof_due_ns is None:
        return host.bandwidth is not None or host.listed_at_ns + FIRST_WAIT_NS <= now_ns
    return host.proof_due_ns <= now_ns


def next_look_ns(host: Host, now_ns: int) -> int | None:
    """Return when time may make a host listed or due that is not yet, in wall time; None: something has to happen
    first."""
    first_ns = None if host.listed_at_ns is None else host.listed_at_ns + FIRST_WAIT_NS
    times = (host.settled_at_ns, first_ns, host.proof_due_ns)
    return min((at_ns for at_ns in times if at_ns is not None and at_ns > now_ns), default=None)


def wants_measurement(host: Host, serving: int, now_ns: int) -> bool:
    """Return whether a proof has its line measured first: where two relays serve and no two measured it a moment
    ago. Never of a simulated host, whose line is the loopback."""
    found = host.bandwidth
    return (
        not host.simulated
        and serving > 1
        and (found is None or found.count < 2 or now_ns - found.measured_at_ns > MEASURED_FOR_NS)
    )


def runtime(host: Host) -> Runtime | None:
    """Return the runtime of the test rental: a container of the default image as for strangers, else as for the
    owner; of a simulated host its own."""
    if host.simulated:
        return Runtime.SIMULATED
    known = host.inventory.runtimes if host.inventory else ()
    if host.default_image and Runtime.DOCKER in known:
        return Runtime.DOCKER
    return Runtime.PROCESS if Runtime.PROCESS in known else None


def gpus_wanted(slots: Sequence[Slot]) -> tuple[int, str | None]:
    """Return how many GPUs are rented, or slices of which profile: all whole GPUs that are on offer; where there are
    none, one slice by MIG; else 0, which asks for the processors. Parts by MPS are for the host's owner alone."""
    offered = [slot for slot in slots if slot.gpu_uuid is not None and slot.is_offered]
    whole = sum(not slot.profile for slot in offered)
    if whole:
        return whole, None
    profile = next((slot.profile for slot in offered if slot.isolation in FOR_STRANGERS), None)
    return (0, None) if profile is None else (1, profile)


def cards_wanted(host: Host, slots: Sequence[Slot]) -> tuple[GpuFacts, ...]:
    """Return which of them are measured: whole cards. A slice is graded as its card is."""
    wanted = {slot.gpu_uuid for slot in slots if slot.gpu_uuid is not None and slot.is_offered and not slot.profile}
    return tuple(gpu for gpu in host.inventory.gpus if gpu.uuid in wanted) if host.inventory else ()


def next_due_ns(outcome: ProofOutcome, tries: int, gave_way: bool, chance: int, now_ns: int) -> int:
    """Return when the next one is due, wall time. tries: since the last good end, this one counted; chance: any
    number from a source that nobody can foresee."""
    if outcome is ProofOutcome.PASSED:
        return now_ns + AGAIN_MIN_NS + chance % (AGAIN_MAX_NS - AGAIN_MIN_NS)
    return now_ns + (IN_USE_AGAIN_NS if gave_way else back_off_ns(tries))
