"""Runs the tasks and parts of an agent so that a failure of one is logged and ends no other."""

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final

import structlog

from windrow_proto.crashes import CRASHED
from windrow_proto.errors import WindrowError
from windrow_proto.ports import Clock
from windrow_proto.together import together
from windrow_proto.units import SECOND

log = structlog.get_logger()

RESTART_NS: Final = SECOND
"""Before a part that failed unexpectedly is started again."""

Note = Callable[[WindrowError], None]


@contextmanager
def ends_alone(what: str, name: str, note: Note) -> Iterator[None]:
    """Contains a failure within: the rest of the program goes on. The log names it `<what>_failed` where the world
    refused, which `note` hears of, too, and `<what>_crashed` where it is a bug."""
    try:
        yield
    except WindrowError as error:
        log.error(f"{what}_failed", **{what: name}, code=error.code, detail=error.detail)
        note(error)
    except Exception:  # the top level of a task or a part
        log.exception(f"{what}{CRASHED}", **{what: name})


async def again(part: Callable[[], Coroutine[Any, Any, None]], name: str, clock: Clock, note: Note) -> None:
    """A part, begun anew after whatever ended it, until it ends by itself or is cancelled."""
    while True:
        with ends_alone("part", name, note):
            await together(part())
            return
        await clock.sleep_ns(RESTART_NS)
