"""Decides what is next for a purchase, from what is known of it, what was just seen, and the time. Pure.

    a list of the provider, the host's work, the time ─▶ decide ─▶ the purchase as it is now, and what has to be done

A list is old, and leaves out what is new: that a machine is missing proves nothing before the list lag has passed, and
that it is gone is believed when two lists say so that are a list lag apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from windrow_master.fleet.states import Answer
from windrow_master.hybrid.backends.port import Billing, Machine, MachineState
from windrow_master.hybrid.purchases.model import Purchase, Rules
from windrow_master.hybrid.purchases.states import FINAL, Event, State, step
from windrow_proto.units import MINUTE, SECOND

SEEN_EVERY_NS: Final = 5 * MINUTE
"""So often it is written down that a machine was seen alive: each look would be a transaction."""
TIME_IS_OVER: Final = "its time is over"
NO_WORK: Final = "it had no work"
NEVER_JOINED: Final = "its agent did not join in time"
LEFT: Final = "its job has left it"
FOUND_LATE: Final = "it was found after its purchase was over"
_LIVING: Final = (State.BOOTING, State.JOINED, State.SERVING, State.IDLE, State.DRAINING)


class Effect(StrEnum):
    """Something to do for a purchase. DRAIN_HOST, LOSE_HOST and BOOK belong into the same transaction; KEEP_CONSOLE and
    then TERMINATE are calls after it, which may be made twice."""

    DRAIN_HOST = "drain_host"
    LOSE_HOST = "lose_host"
    BOOK = "book"
    KEEP_CONSOLE = "keep_console"
    TERMINATE = "terminate"


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen of one purchase. is_answered: the provider's list came; at_ns: when it was asked for; machine: as
    it shows it, None: it does not. is_busy: its host has work."""

    is_answered: bool
    at_ns: int
    machine: Machine | None = None
    is_busy: bool = False

    @property
    def is_alive(self) -> bool:
        """True where the list shows a machine that is paid for."""
        return self.machine is not None and self.machine.state is not MachineState.TERMINATED


@dataclass(frozen=True, slots=True)
class Decision:
    """The purchase as it is now, and what has to be done for it."""

    purchase: Purchase
    effects: Sequence[Effect] = ()


def moved(purchase: Purchase, event: Event, now_ns: int, reason: str = "") -> Purchase:
    """The purchase after an event; as it is where that changes nothing. Time without work is summed up."""
    answer = step(purchase.state, event)
    assert answer.answer is not Answer.REFUSED, f"{event} of a purchase that is {purchase.state}"
    if not answer.moved:
        return purchase
    idle_since = purchase.idle_since_ns
    rests = answer.state in (State.JOINED, State.IDLE)
    return replace(
        purchase,
        state=answer.state,
        state_since_ns=now_ns,
        reason=reason or purchase.reason,
        idle_since_ns=now_ns if rests else None,
        idle_ns=purchase.idle_ns + (0 if idle_since is None else now_ns - idle_since),
    )


def decide(purchase: Purchase, look: Look, rules: Rules, now_ns: int) -> Decision:
    """What is next. Never to ask: that is the shell's, once, for a purchase that is wanted."""
    if purchase.state is State.WANTED:
        if not look.is_alive and now_ns < purchase.ends_at_ns:
            return Decision(purchase)
        purchase = begun(purchase, now_ns, 0 if look.machine is None else look.machine.epoch)
        if purchase.state in FINAL:
            return Decision(purchase)
        # It was asked for after the backup that this database was restored from.
    seen = _noted(purchase, look, rules)
    if seen.state is State.ASKING:  # of a Master that died: its call may be under way yet
        seen = replace(moved(seen, Event.DOUBT, now_ns), asked_at_ns=now_ns)
    if seen.state is State.DOUBTFUL:
        return _in_doubt(seen, look, rules, now_ns)
    if seen.state in _LIVING:
        return _living(seen, look, rules, now_ns)
    if seen.state is State.ENDING:
        return _ending(seen, look, rules, now_ns)
    if seen.state in FINAL and look.is_alive:
        return _end(seen, Event.FOUND, now_ns, FOUND_LATE)
    return Decision(purchase)


def begun(purchase: Purchase, now_ns: int, epoch: int) -> Purchase:
    """A wanted purchase just before its provider is asked, by the leader of this term; one whose time is over is not
    asked for."""
    assert purchase.state is State.WANTED
    if now_ns >= purchase.ends_at_ns:
        return moved(purchase, Event.END, now_ns, TIME_IS_OVER)
    return replace(moved(purchase, Event.ASK, now_ns), asked_at_ns=now_ns, epoch=epoch)


def asked_to_end(purchase: Purchase, now_ns: int, reason: str) -> Decision:
    """The purchase after somebody has asked for its end. One that is in doubt is ended as soon as it is found."""
    if purchase.state in (State.ASKING, State.DOUBTFUL):
        return Decision(replace(purchase, ends_at_ns=min(purchase.ends_at_ns, now_ns), reason=reason))
    if purchase.state is State.BOOTING:
        return _end(purchase, Event.DRAIN, now_ns, reason)
    after = moved(purchase, Event.DRAIN, now_ns, reason)
    return Decision(after, (Effect.DRAIN_HOST,) if after is not purchase and after.state is State.DRAINING else ())


def _noted(purchase: Purchase, look: Look, rules: Rules) -> Purchase:
    """The purchase with what the list says of its machine."""
    machine = look.machine
    if not look.is_answered:
        return purchase
    if machine is not None:
        purchase = replace(
            purchase,
            machine_id=machine.machine_id,
            zone=machine.zone or purchase.zone,
            launched_at_ns=machine.launched_at_ns or purchase.launched_at_ns,
        )
    if look.is_alive:
        is_news = purchase.seen_at_ns is None or look.at_ns - purchase.seen_at_ns >= SEEN_EVERY_NS
        seen_at_ns = look.at_ns if is_news else purchase.seen_at_ns
        return replace(purchase, seen_at_ns=seen_at_ns, gone_since_ns=None, ended_at_ns=None)
    is_over = machine is not None or purchase.seen_at_ns is not None or _doubt_is_over(purchase, look, rules)
    if not is_over or not purchase.machine_id:
        return purchase
    since_ns = look.at_ns if purchase.gone_since_ns is None else purchase.gone_since_ns
    ended_at_ns = purchase.ended_at_ns if machine is None else machine.ended_at_ns
    return replace(purchase, gone_since_ns=since_ns, ended_at_ns=ended_at_ns)


def _doubt_is_over(purchase: Purchase, look: Look, rules: Rules) -> bool:
    """True where a machine that this list does not show was never made, or is gone."""
    return purchase.asked_at_ns is not None and look.at_ns >= purchase.asked_at_ns + rules.doubt_ns


def _is_gone(purchase: Purchase, look: Look, rules: Rules) -> bool:
    """True where two lists have said so, a list lag apart; a margin more where they only do not show it."""
    if not look.is_answered or purchase.gone_since_ns is None or look.at_ns <= purchase.gone_since_ns:
        return False
    wait_ns = rules.list_lag_ns + (0 if look.machine is not None else rules.margin_ns)
    return look.at_ns - purchase.gone_since_ns >= wait_ns


def _in_doubt(purchase: Purchase, look: Look, rules: Rules, now_ns: int) -> Decision:
    if look.machine is not None:
        return _living(moved(purchase, Event.FOUND, now_ns), look, rules, now_ns)
    if look.is_answered and _doubt_is_over(purchase, look, rules):
        return Decision(moved(purchase, Event.NEVER_SEEN, now_ns, purchase.reason or "its provider never made it"))
    return Decision(purchase)


def _living(purchase: Purchase, look: Look, rules: Rules, now_ns: int) -> Decision:
    """A machine that is paid for and not asked to end yet. Its provider's word comes first, then its time."""
    machine = look.machine
    if machine is not None and machine.state not in (MachineState.PENDING, MachineState.RUNNING):
        return _end(purchase, Event.END, now_ns, f"its provider says: {machine.said[:200]}")
    if _is_gone(purchase, look, rules):
        return _end(purchase, Event.END, now_ns, "its provider shows it no more")
    if now_ns >= purchase.ends_at_ns:
        return _end(purchase, Event.END, now_ns, purchase.reason or TIME_IS_OVER)
    if purchase.state is State.BOOTING:
        return _booting(purchase, look, rules, now_ns)
    if purchase.state is State.DRAINING:
        is_over = not look.is_busy or now_ns >= purchase.state_since_ns + rules.drain_ns
        return _end(purchase, Event.END, now_ns) if is_over else Decision(purchase)
    if now_ns >= purchase.ends_at_ns - rules.drain_ns:
        return _drain(purchase, now_ns, TIME_IS_OVER)
    if look.is_busy:
        return Decision(moved(purchase, Event.WORK, now_ns))
    if purchase.offer.is_run:
        return _end(purchase, Event.END, now_ns, LEFT)
    rested = moved(purchase, Event.REST, now_ns)
    return _drain(rested, now_ns, NO_WORK) if now_ns >= idle_until_ns(rested, rules) else Decision(rested)


def _booting(purchase: Purchase, look: Look, rules: Rules, now_ns: int) -> Decision:
    if purchase.host_id is not None or (purchase.offer.is_run and look.is_busy):
        return Decision(moved(purchase, Event.JOIN, now_ns))
    if purchase.asked_at_ns is None or now_ns < purchase.asked_at_ns + rules.boot_ns:
        return Decision(purchase)
    ended = moved(purchase, Event.END, now_ns, NEVER_JOINED)
    return Decision(ended, (Effect.KEEP_CONSOLE, Effect.TERMINATE))


def _ending(purchase: Purchase, look: Look, rules: Rules, now_ns: int) -> Decision:
    if _is_gone(purchase, look, rules):
        return Decision(moved(purchase, Event.GONE, now_ns), (Effect.BOOK,))
    is_told = look.machine is not None and not look.is_alive
    return Decision(purchase, () if is_told else (Effect.TERMINATE,))


def _drain(purchase: Purchase, now_ns: int, reason: str) -> Decision:
    return Decision(moved(purchase, Event.DRAIN, now_ns, reason), (Effect.DRAIN_HOST,))


def _end(purchase: Purchase, event: Event, now_ns: int, reason: str = "") -> Decision:
    """Its end is asked for from now on; its host is lost at once, and what it ran goes elsewhere."""
    host = () if purchase.host_id is None else (Effect.LOSE_HOST,)
    return Decision(moved(purchase, event, now_ns, reason), (*host, Effect.TERMINATE))


def idle_until_ns(purchase: Purchase, rules: Rules) -> int:
    """When a machine without work is ended. Time that is paid for anyway is left to the account's work, and nothing
    idles past the limit; one that had no work yet has all of that."""
    since_ns = purchase.idle_since_ns or purchase.state_since_ns
    limit_ns = since_ns + rules.idle_ns
    if purchase.state is State.JOINED:
        return limit_ns
    launched_ns = purchase.launched_at_ns or purchase.created_at_ns
    paid_ns = paid_until_ns(launched_ns, since_ns, purchase.offer.billing) - rules.margin_ns
    return min(limit_ns, max(paid_ns, since_ns + rules.rest_ns))


def paid_until_ns(launched_at_ns: int, at_ns: int, billing: Billing) -> int:
    """Until when a machine that runs at this time is paid for, whether it runs or not."""
    used_s = max(-(-(at_ns - launched_at_ns) // SECOND), billing.minimum_s, 1)
    steps = -(-used_s // billing.granularity_s)
    return launched_at_ns + steps * billing.granularity_s * SECOND
