"""Decides what is next in a search: from its tries, the work, the purchases, and the time. Pure.

A try goes on until the work runs there, its purchase fails, or the work is elsewhere; then the next one is due, where
the work waits and there is no room here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from windrow_master.hybrid.purchases.model import Purchase
from windrow_master.hybrid.purchases.states import FINAL, PAID, USABLE, State
from windrow_master.hybrid.search.model import (
    OPEN,
    PAUSE_NS,
    READY_NS,
    TRIES_MAX,
    Doing,
    Search,
    Seen,
    Subject,
    Try,
    TryState,
)
from windrow_master.jobs.model import AttemptPlace

SAID_MAX = 300
UNFIT = "its machine joined, and the work could not start there"
ELSEWHERE = "its work started elsewhere"
OVER = "its work is over"


@dataclass(frozen=True, slots=True)
class Decision:
    """The search as it is now. ends: purchases that are to end, each with its reason; frees: those that take other work
    from now on; failed: tries that came to nothing; is_next_due: another place is to be tried."""

    search: Search
    ends: Sequence[tuple[str, str]] = ()
    frees: Sequence[str] = ()
    failed: Sequence[Try] = ()
    is_next_due: bool = False


def seen_of(purchase: Purchase | None) -> Seen:
    """A purchase as a try sees it."""
    if purchase is None:
        return Seen(TryState.FAILED, "its purchase is not known")
    state = purchase.state
    if state in FINAL or state in (State.ENDING, State.DRAINING):
        return Seen(TryState.FAILED, purchase.reason or str(state), purchase.host_id)
    if state in USABLE or purchase.host_id is not None:
        return Seen(TryState.READY, "", purchase.host_id)
    return Seen(TryState.BOOTING if state in PAID else TryState.ASKING)


def decide(search: Search, subject: Subject, seen: Mapping[str, Seen], has_room: bool, now_ns: int) -> Decision:
    """What is next. seen: the purchases of open tries; has_room: nothing was said of there being no room here."""
    ends, frees, failed, tries = list[tuple[str, str]](), list[str](), list[Try](), list[Try]()
    for one in search.tries:
        if one.state not in OPEN:
            tries.append(one)
            continue
        after, end = _noted(one, subject, seen.get(one.purchase_id, Seen(TryState.FAILED)), now_ns)
        if after.state is TryState.USED:
            frees.append(one.purchase_id)
        if after.state is TryState.FAILED:
            failed.append(after)
        if end:
            ends.append((one.purchase_id, end))
        tries.append(after)
    search = replace(search, tries=tuple(tries), has_ended=subject.doing is Doing.OVER)
    if subject.doing is Doing.RUNNING:  # the next time that it waits is a new round
        search = replace(search, round_from=search.tried + 1, next_at_ns=0)
    is_waiting = subject.doing is Doing.WAITING and not has_room
    is_next_due = is_waiting and search.open_try is None and now_ns >= search.next_at_ns
    return Decision(search, ends, frees, failed, is_next_due)


def _noted(one: Try, subject: Subject, seen: Seen, now_ns: int) -> tuple[Try, str]:
    """A try as it is now, and why its purchase is to end; empty: it is not."""
    is_there = seen.host_id in subject.host_ids or (one.place.is_service and subject.run_id == one.purchase_id)
    if subject.doing is Doing.RUNNING and is_there:
        return _moved(one, TryState.USED, "", now_ns), ""
    if seen.state is TryState.FAILED:
        return _moved(one, TryState.FAILED, seen.said, now_ns), ""
    if subject.doing in (Doing.RUNNING, Doing.OVER):
        said = ELSEWHERE if subject.doing is Doing.RUNNING else OVER
        return _moved(one, TryState.DROPPED, said, now_ns), said
    after = _moved(one, seen.state, seen.said, now_ns)
    is_awaited = subject.doing is Doing.WAITING and not one.place.is_service
    if after.state is TryState.READY and is_awaited and now_ns >= after.since_ns + READY_NS:
        said = f"{UNFIT}: {subject.reason}" if subject.reason else UNFIT
        return replace(_moved(after, TryState.FAILED, said, now_ns), is_unfit=True), UNFIT
    return after, ""


def _moved(one: Try, state: TryState, said: str, now_ns: int) -> Try:
    if state is one.state:
        return one
    return replace(one, state=state, said=said[:300], since_ns=now_ns)


def tried(
    search: Search, place: AttemptPlace, offer_id: str, now_ns: int, state: TryState = TryState.ASKING, said: str = ""
) -> Search:
    """The search with one more try."""
    new = Try(
        number=search.tried + 1, place=place, offer_id=offer_id, state=state, said=said, at_ns=now_ns, since_ns=now_ns
    )
    return replace(search, tries=(*search.tries, new)[-TRIES_MAX:], tried=new.number)


def paused(search: Search, now_ns: int, said: str = "") -> Search:
    """The search after a round in which no place was had: all are tried anew after a pause, and a place here will do,
    whatever it costs."""
    why = "; ".join(f"at {one.place.where}, {one.said}" for one in search.tries if one.number >= search.round_from)
    said = (said or why)[:SAID_MAX]
    return replace(search, round_from=search.tried + 1, next_at_ns=now_ns + PAUSE_NS, said=said, best_per_hour=None)


def tried_now(search: Search) -> set[tuple[str, str]]:
    """The places that were tried in this round, by backend and offer."""
    return {(one.place.backend, one.offer_id) for one in search.tries if one.number >= search.round_from}


def unfit(search: Search) -> set[tuple[str, str]]:
    """The places on which the work could not start."""
    return {(one.place.backend, one.offer_id) for one in search.tries if one.is_unfit}
