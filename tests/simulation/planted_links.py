"""Planted bugs that only a line shows whose ends disagree on whether it is there. How they are used: planted.py."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from windrow_master.api.trunk import LinkHub


@contextmanager
def late_hello_takes_over() -> Iterator[None]:
    """A hello of the process that is connected already takes the connection's place at once, though it may be one that
    a dying line kept back. (So the product did, until a cut in one direction showed it.)"""
    greet = LinkHub._greet

    async def hasty(self: LinkHub, trunk: Any, number: int, route: Any, frame: Any) -> None:
        await greet(self, trunk, number, route, frame)
        present = self._routes.get(route.host_id)
        if route.is_open and present is not None and present.boot_id == route.boot_id:
            self._adopt(route)

    with mock.patch.object(LinkHub, "_greet", hasty):
        yield
