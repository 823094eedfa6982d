"""Work that is done again and again: a turn that fails is logged, and the next one comes in its time."""

from collections.abc import Awaitable, Callable

import structlog

from windrow_proto.errors import WindrowError
from windrow_proto.ports import Clock

log = structlog.get_logger(__name__)


async def again(turn: Callable[[], Awaitable[object]], pause_ns: int, clock: Clock, name: str) -> None:
    """A turn, a pause, and so on until cancelled. name: of the work, for the log."""
    while True:
        try:
            await turn()
        except WindrowError as error:
            log.warning("turn_failed", work=name, code=error.code, error=error.detail)
        except Exception:  # the top level of this work: a bug in it does not end the rest of its daemon
            log.exception("turn_crashed", work=name)
        await clock.sleep_ns(pause_ns)
