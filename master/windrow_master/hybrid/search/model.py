"""The values of a search: the places that were tried for a job, or a machine that waits, and what is known of them.
Pure.

Money is in microcents of the backend's currency, wall times end in `_at_ns`.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from windrow_master.hybrid.backends.port import MachineOffer
from windrow_master.jobs.model import AttemptPlace
from windrow_proto.ids import AccountId, HostId
from windrow_proto.units import MINUTE, SECOND, Microcents, money_text

TRIES_MAX: Final = 20
"""Tries that are kept, the latest."""
PAUSE_NS: Final = 5 * MINUTE
"""After all places were tried in vain, until they are tried once more."""
READY_NS: Final = 5 * MINUTE
"""For work to start on its own machine once that has joined: one that does not suit is ended."""


class TryState(StrEnum):
    """The state of a try. ASKING: its provider is asked. BOOTING: there is a machine. READY: it has joined, and the
    work starts there next. USED: the work has run there. FAILED: it was not had, or did not suit. DROPPED: the work
    started elsewhere, or has ended."""

    ASKING = "asking"
    BOOTING = "booting"
    READY = "ready"
    USED = "used"
    FAILED = "failed"
    DROPPED = "dropped"


OPEN: Final = (TryState.ASKING, TryState.BOOTING, TryState.READY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """One place that was tried. number: from 1. offer_id: as its backend knows it. said: why it is in this state.
    is_unfit: the machine joined, and the work could not start there."""

    number: int
    place: AttemptPlace
    offer_id: str
    state: TryState
    said: str = ""
    at_ns: int
    since_ns: int
    is_unfit: bool = False

    @property
    def purchase_id(self) -> str:
        """The purchase that it is, of a machine or of a run."""
        return self.place.purchase_id or self.place.run_id

    def words(self, now_ns: int) -> str:
        """What happens there, for whoever waits."""
        place = self.place
        kind = "spot, " if place.is_spot else ""
        what = f"{place.machine}, {kind}{money_text(place.price_per_hour)} {place.currency} an hour"
        thing = "A run is being started" if place.is_service else "A machine is being bought"
        age = f"asked {max(0, now_ns - self.at_ns) // SECOND} s ago"
        more = {TryState.BOOTING: ", it boots", TryState.READY: ", it has joined"}.get(self.state, "")
        return f"{thing} at {place.where} ({what}): {age}{more}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The search of one entry of the queue. tried: how many places were tried in all. round_from: the number of the
    first try of this round, in which no offer is tried twice. next_at_ns: nothing is tried before. best_per_hour: of
    the cheapest place that could be bought, with the operator's margin; None: none could. priced_at_ns: when that was
    read; None: not yet. said: why the last round had no
    place. has_ended: the work is over."""

    entry_id: str
    account_id: AccountId
    tries: tuple[Try, ...] = ()
    tried: int = 0
    round_from: int = 1
    next_at_ns: int = 0
    said: str = ""
    best_per_hour: Microcents | None = None
    priced_at_ns: int | None = None
    has_ended: bool = False

    @property
    def open_try(self) -> Try | None:
        """The try that goes on."""
        return next((one for one in self.tries if one.state in OPEN), None)


class Doing(StrEnum):
    """What the work of a search does: it waits for its folder, a time or a person; waits for a place; has one; is
    over."""

    LATER = "later"
    WAITING = "waiting"
    RUNNING = "running"
    OVER = "over"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The work of a search, as its row says now. host_ids, run_id: where it runs. reason: why it waits, as its renter
    reads it."""

    doing: Doing
    name: str
    reason: str = ""
    host_ids: frozenset[HostId] = frozenset()
    run_id: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """A purchase as it is now. host_id: once it has joined."""

    state: TryState
    said: str = ""
    host_id: HostId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A place that could be bought. price_per_hour: with the operator's margin. duration_ns: for which it would be
    bought. expected_ns: for which it is thought to be paid; None: nothing says it. is_service: it runs code by
    itself."""

    backend: str
    offer: MachineOffer
    price_per_hour: Microcents
    duration_ns: int
    expected_ns: int | None = None
    is_service: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """By which a place is the same one as another."""
        return self.backend, self.offer.offer_id
