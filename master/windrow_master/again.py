"""Work that is done again and again, or beside other work: what it meets is logged, and ends nothing else.

A turn that meets a bug is followed by the next like any other. Where that one meets a bug, too, it is most likely the
same: the pause doubles with each in a row, so that the log keeps room for all else.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final

import structlog

from windrow_proto.crashes import CRASHED
from windrow_proto.errors import WindrowError
from windrow_proto.ports import Clock
from windrow_proto.units import MINUTE

log = structlog.get_logger(__name__)

DOUBLINGS_MAX: Final = 5
"""A loop of each second still has two turns a minute then: they may do a part of their work before they meet it."""
PAUSE_NS_MAX: Final = MINUTE
"""Of doubled ones: a bug that its data has brought about is over soon after them."""


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


def pause_after(bugs: int, pause_ns: int) -> int:
    """How long to wait after so many turns in a row that met a bug, where pause_ns is usual; never less than that."""
    doublings = min(max(0, bugs - 1), DOUBLINGS_MAX)
    return max(pause_ns, min(PAUSE_NS_MAX, pause_ns << doublings))


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
