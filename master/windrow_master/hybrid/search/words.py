"""Says in sentences what a search does: for what its work waits, since when, what would change that, and where it
runs. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from windrow_master.hybrid.places import START_S
from windrow_master.hybrid.purchases.model import Rules
from windrow_master.hybrid.search.model import READY_NS, Search, Try, TryState
from windrow_master.jobs.model import AttemptPlace
from windrow_master.queue.estimate import clock_text
from windrow_master.spec import ANY_BACKEND, Elsewhere
from windrow_proto.units import SECOND

BOOT_NS: Final = Rules().boot_ns


@dataclass(frozen=True, slots=True)
class Told:
    """What happens elsewhere for work that waits. short: after its place in the queue; why: in a sentence. has_place: a
    place is being bought, and it waits for that."""

    short: str
    why: str
    has_place: bool


def told(search: Search, now_ns: int) -> Told | None:
    """What happens elsewhere for work that waits; None: nothing does."""
    if (one := search.open_try) is not None:
        return Told(f"{thing(one)} at {one.place.where}", one.words(now_ns), has_place=True)
    if search.next_at_ns <= now_ns:
        return None
    again = f"tried again at {clock_text(search.next_at_ns, now_ns)}"
    at = " or ".join(sorted({f"at {one.place.backend}" for one in search.tries})) or "elsewhere"
    why = f": {search.said.removesuffix('.')}" if search.said else ""
    short = f"no place {at} either, {again}"
    return Told(short, f"There is no room here, and no place {at}{why}. All places are {again}.", has_place=False)


def thing(one: Try) -> str:
    """What is bought there."""
    return "a run is being started" if one.place.is_service else "a machine is being bought"


def start(search: Search, now_ns: int) -> list[str]:
    """When it is expected to start there, where something is bought for it."""
    one = search.open_try
    if one is None:
        return []
    key = ("modal" if one.place.is_service else "", "spot" if one.place.is_spot or one.place.is_service else "")
    at_ns = one.at_ns + int(START_S[key][0] * SECOND)
    return [f"It is expected to start there at about {clock_text(at_ns, now_ns)}."] if at_ns > now_ns else []


def changes(search: Search, asked: Elsewhere, now_ns: int) -> list[str]:
    """What would have to change, so that it starts sooner, or elsewhere."""
    one = search.open_try
    if one is None:
        if search.next_at_ns <= now_ns:
            return []
        ways = [f"All places are tried again at {clock_text(search.next_at_ns, now_ns)}."]
        ways += [] if asked.spot else ["With --spot, spot machines are tried, too."]
        is_any = asked.backend == ANY_BACKEND
        return ways + ([] if is_any else ["With --backend any, each backend that its project may use is tried."])
    what = "run" if one.place.is_service else "machine"
    here = f"A host of this market that has room for it first starts it, and the {what} is ended."
    return [_next(one, now_ns), here]


def _next(one: Try, now_ns: int) -> str:
    """What ends the wait at this place."""
    if one.place.is_service:
        return f"If the run does not begin at {one.place.where}, the next place is tried."
    if one.state is TryState.BOOTING:
        until = clock_text(one.since_ns + BOOT_NS, now_ns)
        return f"Its machine has until {until} to join; then it is ended, and the next place is tried."
    if one.state is TryState.READY:
        until = clock_text(one.since_ns + READY_NS, now_ns)
        return f"Its machine has joined, and it starts there next; from {until} on, the next place is tried."
    return f"If {one.place.where} gives no machine, the next place is tried."


def here(place: AttemptPlace, tries: Sequence[Try], asked: Elsewhere, *, is_over: bool) -> list[str]:
    """Why it runs, or ran, at a place that was bought, and which were tried before."""
    bought_id, verb = place.purchase_id or place.run_id, "ran" if is_over else "runs"
    own = next((one for one in tries if one.purchase_id == bought_id), None)
    if own is None:
        return [f"It {verb} on a machine that was bought for other work of its project: {place.text}."]
    why = "the lowest cost was asked for" if asked.optimize == "cost" else "this market had no room for it"
    what = "as a run" if place.is_service else "on a machine that was bought for it"
    before = [one for one in tries if one.number < own.number and one.state is TryState.FAILED]
    failed = [f"Tried before: {one.place.text}: {one.said.removesuffix('.') or 'it was not had'}." for one in before]
    return [f"It {verb} {what} at {place.text}, since {why}.", *failed]
