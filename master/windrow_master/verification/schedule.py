"""Decides when a host's cards are challenged, which of them, and what their verdicts make of the host. Pure.

              due, and a card is free              all cards passed
 UNVERIFIED ───────────────────────▶ VERIFYING ───────────────────▶ VERIFIED ── 7 d, driver, cards, fault ─▶ VERIFYING
     ▲                                   │ └─ a card failed ─▶ FAILED ── back-off ─▶ VERIFYING
     └── nothing to prove, broken off ───┘

A card that failed is not offered until it passes, whatever the host becomes meanwhile. A card in use is left alone: its
turn comes when it is free. Cards that passed one after another, as one card that answers for several does, prove
nothing: their host is not verified and says so, and where their class is calibrated they are not offered.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from windrow_master.fleet.availability import part_name
from windrow_master.fleet.conditions import CHALLENGE, unavailable_reason
from windrow_master.fleet.model import AdminState, Host, Slot, SlotState, Verification, VerifyOutcome
from windrow_master.fleet.states import VerifyEvent
from windrow_master.fleet.verdicts import is_apart
from windrow_master.identity.model import BUYER_ACCOUNT
from windrow_master.verification.times import TIMES, Timing, Work, timing
from windrow_proto.conditions import ConditionCode
from windrow_proto.ids import GpuUuid
from windrow_proto.units import DAY, HOUR, MINUTE, time_text

AGAIN_NS: Final = 7 * DAY
"""After a pass."""
UNPROVABLE_AGAIN_NS: Final = DAY
"""After a host said that it cannot run a challenge: a driver may have come, and a new inventory asks sooner."""
IN_USE_AGAIN_NS: Final = 10 * MINUTE
"""For the cards that were in use."""
BACK_OFF_NS: Final = MINUTE
BACK_OFF_MAX_NS: Final = 6 * HOUR
AT_ONCE: Final = 4
"""Hosts challenged at one time: what 8 cards of each answer is judged in under a second."""
OBSERVED: Final = Work(8_192, 2)
"""For cards whose class is not calibrated: their time gates nothing, so the work need not be long. 1.1e12
multiplications and 0.4 GB of a card's memory."""


def back_off_ns(tries: int) -> int:
    """Until the next try after so many (from 1) without a good end: doubled each time, BACK_OFF_MAX_NS at most."""
    return min(BACK_OFF_MAX_NS, BACK_OFF_NS << min(max(tries, 1) - 1, 16))


def hindrance(host: Host) -> str | None:
    """Return why no card of this host can be challenged at all, in words; None where they can."""
    if host.simulated:
        return "its GPUs are simulated: there is nothing to prove"
    if host.owner_account == BUYER_ACCOUNT:
        return "it was bought: its provider vouches for it"
    if host.inventory is None:
        return "it has not said yet what it has"
    if not host.inventory.gpus:
        return "it has no GPU"
    if host.admin_state in (AdminState.ENROLLED, AdminState.QUARANTINED, AdminState.RETIRED):
        return f"it is {host.admin_state}"
    return None


def is_due(host: Host, now_ns: int) -> bool:
    """Return whether it is time, as far as the host goes; now_ns: wall time."""
    return hindrance(host) is None and (host.verify_due_ns is None or host.verify_due_ns <= now_ns)


def free_cards(host: Host, slots: Iterable[Slot]) -> tuple[GpuUuid, ...]:
    """The cards that a challenge may use now: nobody holds them, and nothing but an earlier challenge or a fault that
    is over stands against them."""
    found = [condition for condition in host.conditions if not condition.code.startswith(CHALLENGE)]
    return tuple(
        slot.gpu_uuid
        for slot in slots
        if slot.gpu_uuid is not None
        and slot.holder is None
        and slot.state in (SlotState.FREE, SlotState.FAULTED)
        and (gpu := host.gpu(slot.gpu_uuid)) is not None
        and not gpu.mig_enabled  # one that is cut has no device for the whole of it
        and unavailable_reason(slot.gpu_uuid, found) is None
    )


def wanting(
    host: Host, slots: Iterable[Slot], latest: Mapping[GpuUuid, Verification], now_ns: int
) -> tuple[GpuUuid, ...]:
    """Of the free cards those that need a challenge: without a pass by this driver in a week, or out of order."""
    faulted = {slot.gpu_uuid for slot in slots if slot.state is SlotState.FAULTED}
    return tuple(
        uuid
        for uuid in free_cards(host, slots)
        if uuid in faulted or not _is_proved(host, latest.get(uuid)) or latest[uuid].at_ns + AGAIN_NS <= now_ns
    )


def work_for(classes: Collection[str], table: Mapping[tuple[str, Work], Timing] = TIMES) -> Work:
    """Return the work that cards of these classes are asked together: the longest work whose time is known for all
    of them, else OBSERVED."""
    known = {work for _, work in table if classes and all(timing(one, work, table).calibrated for one in classes)}
    return max(known, key=lambda work: (work.size**3 * work.rounds, work.size), default=OBSERVED)


def conclude(host: Host, latest: Mapping[GpuUuid, Verification], failed: Collection[GpuUuid]) -> VerifyEvent:
    """Return the state of the host by its cards. latest: of each card; failed: those whose last verdict is a
    failure, by which the host has failed whatever became of its last try."""
    cards = [gpu.uuid for gpu in host.inventory.gpus] if host.inventory else []
    if any(uuid in failed for uuid in cards):
        return VerifyEvent.FAIL
    is_proved = bool(cards) and all(_is_proved(host, latest.get(uuid)) for uuid in cards)
    return VerifyEvent.PASS if is_proved else VerifyEvent.GIVE_UP


def next_due_ns(
    event: VerifyEvent, outcomes: Collection[VerifyOutcome], tries: int, now_ns: int, *, apart: bool = False
) -> int:
    """Return when cards are challenged again, wall time. outcomes: of this time; tries: this one counted; apart:
    whether cards worked one after another."""
    if event is VerifyEvent.PASS:
        return now_ns + AGAIN_NS
    if event is VerifyEvent.FAIL or VerifyOutcome.UNFINISHED in outcomes or apart:
        return now_ns + back_off_ns(tries)
    if VerifyOutcome.UNPROVABLE in outcomes:
        return now_ns + UNPROVABLE_AGAIN_NS
    return now_ns + IN_USE_AGAIN_NS


def summary(host: Host, latest: Mapping[GpuUuid, Verification]) -> str:
    """Return how its verification stands, in one sentence for people."""
    hindrance_words = hindrance(host)
    if hindrance_words is not None:
        return f"Not verified: {hindrance_words}."
    cards = [gpu.uuid for gpu in host.inventory.gpus] if host.inventory else []
    rows = [latest[uuid] for uuid in cards if uuid in latest]
    if not rows:
        return f"None of its {len(cards)} GPUs was challenged yet."
    passed = sum(row.outcome is VerifyOutcome.PASSED for row in rows)
    said = f"{passed} of {len(cards)} GPUs passed their last challenge, at {time_text(max(row.at_ns for row in rows))}"
    others = [
        f"{part_name(host, row.gpu_uuid)}: {row.detail}" for row in rows if row.outcome is not VerifyOutcome.PASSED
    ]
    apart = [row for row in rows if is_apart(row)]
    company = [f"{len(apart)} worked one after another, as one card that answers for several"] if apart else []
    return "; ".join([said, *company, *others[:2]]) + ("." if not others else "")


def running(gpu_uuids: Iterable[GpuUuid]) -> dict[str, str]:
    """The conditions of cards that are being challenged."""
    return dict.fromkeys(
        (f"{ConditionCode.CHALLENGE_RUNNING}:{uuid}" for uuid in gpu_uuids), ConditionCode.CHALLENGE_RUNNING.words
    )


def _is_proved(host: Host, one: Verification | None) -> bool:
    driver = host.inventory.driver_version if host.inventory else ""
    return one is not None and one.outcome is VerifyOutcome.PASSED and one.driver == driver and not is_apart(one)
