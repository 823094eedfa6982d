"""Decides which waiting job is tried next: accounts in turn, within an account by priority and age. Pure.

Jobs of one account that ask for the same have the same shape. A refusal is of a shape: while it waits for its next
try, none of its jobs is tried, so that two thousand of them cost one plan.
"""

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Final

from windrow_master.jobs import decide
from windrow_master.jobs.model import Job
from windrow_master.jobs.request import in_order
from windrow_proto.ids import AccountId

TRIES_AT_ONCE: Final = 16
"""In one look, beside the first one of each account; what did not come to its turn is tried in the next look."""


def shape_of(job: Job) -> Hashable:
    """All that decides whether a job finds a place: what it asks for, and whose it is."""
    asked = job.request
    return (
        *(job.account_id, asked.gpus, asked.gpu_model, asked.gpu_memory_bytes, asked.cpus, asked.memory_bytes),
        *(asked.image, asked.tier, asked.runtime, asked.simulated, asked.slice, asked.max_price_per_hour),
        tuple(asked.volumes),
    )


@dataclass(slots=True)
class Turns:
    """Which shapes wait for their next try, and whose turn it is; kept from look to look."""

    _tries: dict[Hashable, decide.Tries] = field(default_factory=dict)
    _last: str = ""
    _free: int = 0

    def look(self, waiting: Sequence[Job], free: int, now_ns: int) -> "Look":
        """The tries of one look. free: slots that could be rented now; with more than before all shapes are tried."""
        shapes = set() if free > self._free else {shape_of(job) for job in waiting}
        self._free = free
        self._tries = {shape: tries for shape, tries in self._tries.items() if shape in shapes}
        queues: dict[AccountId, deque[Job]] = {}
        for job in in_order(waiting):
            queues.setdefault(job.account_id, deque()).append(job)
        accounts = sorted(queues, key=lambda account: (account <= self._last, account))
        return Look(self, deque((account, queues[account]) for account in accounts), len(accounts), now_ns)

    def is_due(self, job: Job, now_ns: int) -> bool:
        """Whether jobs of this shape may be tried now."""
        tries = self._tries.get(shape_of(job))
        return tries is None or tries.due_ns <= now_ns

    def begin(self, job: Job) -> None:
        """It is tried: the turn is the next account's."""
        self._last = job.account_id

    def refuse(self, job: Job, now_ns: int) -> None:
        """There is no place for its shape now."""
        shape = shape_of(job)
        self._tries[shape] = decide.refused(self._tries.get(shape), now_ns)

    def placed(self, job: Job) -> None:
        """There was a place for its shape."""
        self._tries.pop(shape_of(job), None)


@dataclass(slots=True)
class Look:
    """One look at the jobs that wait. `next` is asked again after each try."""

    _turns: Turns
    _queues: deque[tuple[AccountId, deque[Job]]]
    _first: int
    _now_ns: int
    _further: int = TRIES_AT_ONCE

    def next(self) -> Job | None:
        """The next job to try; None: this look is over."""
        while self._queues and (self._first > 0 or self._further > 0):
            account, queue = self._queues.popleft()
            is_first, self._first = self._first > 0, max(0, self._first - 1)
            while queue and not self._turns.is_due(queue[0], self._now_ns):
                queue.popleft()
            if not queue:
                continue
            job = queue.popleft()
            self._queues.append((account, queue))
            if not is_first:
                self._further -= 1
            self._turns.begin(job)
            return job
        return None
