"""Keeps the jobs that wait for a place, and decides which is tried next: accounts in turn, within an account by
priority and age. Pure.

Jobs of one account that ask for the same have the same shape. A refusal is of a shape: while it waits for its next
try, none of its jobs is tried, so that two thousand of them cost one plan.
"""

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final

from windrow_master.jobs import decide
from windrow_master.jobs.model import Job, JobId
from windrow_master.jobs.request import Order, order
from windrow_master.spec import Resources, fields_of
from windrow_proto.ids import AccountId

TRIES_AT_ONCE: Final = 16
"""In one look, beside the first one of each account; what did not come to its turn is tried in the next look."""


def shape_of(job: Job) -> Hashable:
    """All that decides whether a job finds a place: what it asks for, and whose it is."""
    asked = job.request
    resources = (getattr(asked, one.attribute) for one in fields_of(Resources))
    named = tuple(asked.secrets), asked.registry_secret
    return (job.account_id, job.spenders, *resources, asked.simulated, tuple(asked.volumes), named)


@dataclass(slots=True)
class _Shape:
    """The jobs of one shape that wait, and its tries. order: a heap; jobs that wait no more are in it until they are
    the first."""

    reasons: dict[JobId, str] = field(default_factory=dict)
    order: list[tuple[Order, JobId]] = field(default_factory=list)
    tries: decide.Tries | None = None


@dataclass(slots=True)
class Turns:
    """The jobs that wait by account and shape, which shapes wait for their next try, and whose turn it is."""

    _accounts: dict[AccountId, dict[Hashable, _Shape]] = field(default_factory=dict)
    _places: dict[JobId, tuple[AccountId, Hashable]] = field(default_factory=dict)
    _last: str = ""
    _free: int = 0

    def __len__(self) -> int:
        return len(self._places)

    def put(self, job: Job, shape: Hashable) -> None:
        """It waits for a place, and says this reason by now."""
        if self._places.get(job.job_id) != (job.account_id, shape):
            self.drop(job.job_id)
            self._places[job.job_id] = job.account_id, shape
            known = self._accounts.setdefault(job.account_id, {}).setdefault(shape, _Shape())
            heappush(known.order, (order(job), job.job_id))
        self._shape(job.job_id).reasons[job.job_id] = job.reason

    def drop(self, job_id: JobId) -> None:
        """It waits no more."""
        if job_id not in self._places:
            return
        account_id, shape = self._places.pop(job_id)
        shapes = self._accounts[account_id]
        del shapes[shape].reasons[job_id]
        if not shapes[shape].reasons:
            del shapes[shape]
        if not shapes:
            del self._accounts[account_id]

    def look(self, free: int, now_ns: int) -> "Look":
        """The tries of one look. free: slots that could be rented now; with more than before all shapes are tried."""
        if free > self._free:
            for shapes in self._accounts.values():
                for one in shapes.values():
                    one.tries = None
        self._free = free
        accounts = sorted(self._accounts, key=lambda account: (account <= self._last, account))
        return Look(self, deque(accounts), len(accounts), now_ns)

    def due_ns(self) -> int | None:
        """Return when the first shape is to be tried again, monotonic; 0: one was not tried yet; None: nothing
        waits."""
        shapes = (one for shapes in self._accounts.values() for one in shapes.values())
        return min((0 if one.tries is None else one.tries.due_ns for one in shapes), default=None)

    def first(self, account_id: AccountId, now_ns: int) -> JobId | None:
        """The first of an account's jobs whose shape may be tried now."""
        shapes = self._accounts.get(account_id, {}).values()
        due = [_first(one) for one in shapes if one.tries is None or one.tries.due_ns <= now_ns]
        return min(due)[1] if due else None

    def begin(self, account_id: AccountId) -> None:
        """One of its jobs is tried: the turn is the next account's."""
        self._last = account_id

    def refuse(self, job_id: JobId, now_ns: int) -> None:
        """There is no place for its shape now."""
        if job_id in self._places:
            one = self._shape(job_id)
            one.tries = decide.refused(one.tries, now_ns)

    def placed(self, job_id: JobId) -> None:
        """There was a place for its shape: the next one is tried, too."""
        if job_id in self._places:
            self._shape(job_id).tries = None
            self.drop(job_id)

    def untold(self, job_id: JobId, said: str) -> list[JobId]:
        """The jobs of its shape, itself among them, that say another reason than this."""
        if job_id not in self._places:
            return []
        return [one for one, reason in self._shape(job_id).reasons.items() if reason != said]

    def _shape(self, job_id: JobId) -> _Shape:
        account_id, shape = self._places[job_id]
        return self._accounts[account_id][shape]


def _first(shape: _Shape) -> tuple[Order, JobId]:
    while shape.order[0][1] not in shape.reasons:
        heappop(shape.order)
    return shape.order[0]


@dataclass(slots=True)
class Look:
    """One look at the jobs that wait. `next` is asked again after each try, once its outcome is told to the turns."""

    _turns: Turns
    _accounts: deque[AccountId]
    _first: int
    _now_ns: int
    _further: int = TRIES_AT_ONCE

    def next(self) -> JobId | None:
        """The next job to try; None: this look is over."""
        while self._accounts and (self._first > 0 or self._further > 0):
            account_id = self._accounts.popleft()
            is_first, self._first = self._first > 0, max(0, self._first - 1)
            job_id = self._turns.first(account_id, self._now_ns)
            if job_id is None:
                continue
            self._accounts.append(account_id)
            if not is_first:
                self._further -= 1
            self._turns.begin(account_id)
            return job_id
        return None
