"""Planted bugs that a line shows whose ends disagree on whether it is there, or that leaves out a part. How they are
used: planted.py."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from windrow_access import relay
from windrow_access.core import queues
from windrow_master.link.hub import LinkHub
from windrow_proto import session
from windrow_proto.units import KIB


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


@contextmanager
def missing_pieces_unseen() -> Iterator[None]:
    """A frame of a channel is taken whatever came before it."""
    with mock.patch.object(session, "is_kept_back", lambda envelope, before: False):
        yield


@contextmanager
def channels_shed_unseen() -> Iterator[None]:
    """An Access with space for some frames sheds channels before live samples, and their ends take the rest. (So the
    product did.)"""
    order = (queues.BACKLOG, queues.CHANNEL, queues.LIVE)
    is_small = mock.patch.object(relay, "QUEUE_BYTES_MAX", 4 * KIB)
    with missing_pieces_unseen(), is_small, mock.patch.object(queues, "SHED_ORDER", order):
        yield
