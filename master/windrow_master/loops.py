"""Runs work again and again, or beside other work: an error is logged, and ends nothing else.

A turn that meets a bug is followed by the next like any other. Where that one meets a bug, too, it is most likely the
same: the pause doubles with each in a row, so that the log keeps space for all else.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar
from weakref import WeakSet

import structlog

from windrow_master.work_queue import WorkQueue
from windrow_proto.conditions import ConditionCode, Stated
from windrow_proto.crashes import CRASHED
from windrow_proto.errors import StorageFailed, WindrowError
from windrow_proto.ports import Clock
from windrow_proto.units import MINUTE

T = TypeVar("T")
V = TypeVar("V")

log = structlog.get_logger(__name__)

DOUBLINGS_MAX: Final = 5
"""A loop of each second still has two turns a minute then: they may do a part of their work before they meet it."""
PAUSE_NS_MAX: Final = MINUTE
"""Of doubled ones: a bug that its data has brought about is over soon after them."""


CRASHES_MAX: Final = 5
"""Of one item in a row: enough for what passes, few enough that nobody waits long for a reason."""
GIVEN_UP: Final = f"this Master met a bug with it {CRASHES_MAX} times in a row; its log says more"


async def again(turn: Callable[[], Awaitable[object]], pause_ns: int, clock: Clock, name: str) -> None:
    """A turn, a pause, and so on until cancelled. name: of the work, for the log."""
    bugs = 0
    while True:
        try:
            await turn()
            bugs = 0
        except WindrowError as error:
            bugs = 0
            log.warning("turn_failed", work=name, code=error.code, error=error.detail)
        except Exception:  # the top level of this work: a bug in it does not end the rest of its daemon
            bugs += 1
            log.exception("turn_crashed", work=name)
        await clock.sleep_ns(pause_after(bugs, pause_ns))


async def when_due(turn: Callable[[], Awaitable[object]], queue: WorkQueue[Any], pause_ns: int, name: str) -> None:
    """A turn at once, and whenever something in the queue is due, pause_ns apart at least, until cancelled. One that
    was not finished is followed by the next whatever is in the queue."""
    is_finished = False

    async def next_turn() -> None:
        nonlocal is_finished
        if is_finished:
            await queue.wait()
        is_finished = False
        await turn()
        is_finished = True

    await again(next_turn, pause_ns, queue.clock, name)


def pause_after(bugs: int, pause_ns: int) -> int:
    """Return how long to wait after so many turns in a row that met a bug, where pause_ns is usual; never less than
    that."""
    doublings = min(max(0, bugs - 1), DOUBLINGS_MAX)
    return max(pause_ns, min(PAUSE_NS_MAX, pause_ns << doublings))


LOOKS_PER_TRY: Final = 64
"""Of an item that is spent and cannot be ended: what it crashes in costs little then, and may be over one day."""
SHOWN_MAX: Final = 10


class Boundary:
    """The fault boundary of each item of a loop: what it crashes in ends its own step, and the others go on.

    An item that crashes CRASHES_MAX times in a row in the same step is spent: its loop gives it up with a reason where
    it can, else passes over it (`skips`). Operators are told of it by a condition as long as it is.
    """

    def __init__(self, what: str, passes: tuple[type[Exception], ...]) -> None:
        """what: the items are, for the log. passes: what is nobody's fault here, and goes on to the loop."""
        self._what = what
        self._passes: tuple[type[Exception], ...] = (StorageFailed, *passes)
        self._crashes: dict[str, dict[str, int]] = {}
        self._looks: dict[str, int] = {}
        _BOUNDARIES.add(self)

    @property
    def spent(self) -> list[str]:
        """The items that are spent, for people."""
        return [f"{self._what} {key}" for key in list(self._crashes) if self.is_spent(key)]  # other threads add some

    @contextmanager
    def around(self, key: str, step: str = "step") -> Iterator[None]:
        """One step of one item."""
        try:
            yield
        except self._passes:
            raise
        except WindrowError as error:
            if not error.retryable:
                self.crashed(key, step)
                return
            log.warning(f"{self._what}_failed", item=key, step=step, code=error.code, error=error.detail)
        except Exception:  # the top level of this item
            self.crashed(key, step)
        else:
            self.went_well(key, step)

    def crashed(self, key: str, step: str) -> None:
        """Count a crash that is being handled, and log it."""
        steps = self._crashes.setdefault(key, {})
        steps[step] = steps.get(step, 0) + 1
        log.exception(f"{self._what}{CRASHED}", item=key, step=step, in_a_row=steps[step])

    def went_well(self, key: str, step: str) -> None:
        """A step went through: its crashes no longer count."""
        steps = self._crashes.get(key)
        if steps is not None and steps.pop(step, None) is not None and not steps:
            del self._crashes[key]

    def is_spent(self, key: str) -> bool:
        """Return whether the same step of it crashed too often in a row."""
        return any(count >= CRASHES_MAX for count in list(self._crashes.get(key, {}).values()))

    def skips(self, key: str) -> bool:
        """Return whether to pass over it in this look: it is spent, and this is not the one look of many that tries
        again."""
        if not self.is_spent(key):
            self._looks.pop(key, None)
            return False
        looks = self._looks[key] = self._looks.get(key, 0) + 1
        return looks % LOOKS_PER_TRY != 1

    def forget(self, key: str) -> None:
        """Forget one item: it is over."""
        self._crashes.pop(key, None)
        self._looks.pop(key, None)

    def keep_only(self, keys: Collection[str]) -> None:
        """Forget all items but these."""
        self._crashes = {key: steps for key, steps in self._crashes.items() if key in keys}
        self._looks = {key: looks for key, looks in self._looks.items() if key in keys}


_BOUNDARIES: Final[WeakSet[Boundary]] = WeakSet()
"""Of all loops of this process."""


class GivenUp:
    """Tells operators of the items that loops have given up or pass over."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since_ns: int | None = None

    def conditions(self) -> Iterator[Stated]:
        """For health: the items, by their names."""
        found = sorted(item for boundary in _BOUNDARIES for item in boundary.spent)
        if not found:
            self._since_ns = None
            return
        self._since_ns = self._since_ns or self._clock.wall_ns()
        more = f" and {len(found) - SHOWN_MAX} more" if len(found) > SHOWN_MAX else ""
        said = f"This Master met a bug {CRASHES_MAX} times in a row with {', '.join(found[:SHOWN_MAX])}{more}. It has "
        said += "ended them or passes over them; everything else goes on."
        yield ConditionCode.MASTER_ITEM_GIVEN_UP, said, self._since_ns


def each_alone(what: str, items: Iterable[T], make: Callable[[T], V]) -> list[V]:
    """Make a value of each item; one that cannot be made is left out and logged, and ends no list."""
    found = []
    for item in items:
        with ends_alone(what):
            found.append(make(item))
    return found


def page_alone(what: str, read: Callable[[T | None, int], Sequence[T]], make: Callable[[T], V], limit: int) -> list[V]:
    """Make one page of `limit` values, as `each_alone` does; further rows are read in place of those left out, so that
    no page is short for them. read(last, size): the next `size` rows after `last`; None: from the beginning."""
    found: list[V] = []
    last: T | None = None
    while len(found) < limit:
        rows = read(last, limit)
        found += each_alone(what, rows, make)
        if len(rows) < limit:
            break
        last = rows[-1]
    return found[:limit]


@contextmanager
def ends_alone(what: str, **fields: object) -> Iterator[None]:
    """Whatever is met within ends that, and what comes after it goes on. In the log it is `<what>_failed` where the
    world refused, and `<what>_crashed` where it is a bug."""
    try:
        yield
    except WindrowError as error:
        log.warning(f"{what}_failed", code=error.code, error=error.detail, **fields)
    except Exception:  # the top level of what is done within
        log.exception(f"{what}{CRASHED}", **fields)
