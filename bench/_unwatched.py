"""`python -m bench._unwatched windrow_master FILE ...`: the shipped Master; alerts rest while this file is there.

What happens meanwhile is passed over, and not read later: each part of the benchmark pays for its own events.
"""

import sys
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import Any

from windrow_master.__main__ import main
from windrow_master.watch.repository import AlertRepository
from windrow_master.watch.service import AlertService

Method = Callable[[AlertService], Awaitable[None]]
passed: dict[AlertService, int] = {}
"""The number of the last event while it rested, of a service that has not worked since."""


def resting(inner: Method, off: Path) -> Method:
    """Nothing while the file is there."""

    @wraps(inner)
    async def called(self: AlertService) -> None:
        if off.exists():
            self._queue.take()
            passed[self] = await self._store.read(lambda uow: uow[AlertRepository].newest_event())
            return
        if (number := passed.pop(self, None)) is not None:
            await self._store.write(lambda uow: uow[AlertRepository].set_cursor(number), name="alerts.turn")
        await inner(self)

    return called


if __name__ == "__main__":
    off = Path(sys.argv[2])
    sys.argv[1:3] = []
    service: Any = AlertService
    service.turn, service.look = resting(AlertService.turn, off), resting(AlertService.look, off)
    main()
