"""Planted bugs that only several Masters on one database show. How they are used: planted.py."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from sqlalchemy import Connection

from windrow_master.store import leadership
from windrow_master.store.leadership import Leadership
from windrow_master.store.store import Store
from windrow_proto.units import SECOND


@contextmanager
def term_unchecked() -> Iterator[None]:
    """A write transaction does not ask whose term it is."""

    def trusting(self: Store, connection: Connection) -> None:
        return None

    with mock.patch.object(Store, "_check_epoch", trusting):
        yield


@contextmanager
def log_unfenced() -> Iterator[None]:
    """The telemetry log is written for as long as this Master has not given up. (So the product did, until two Masters
    in virtual time showed it.)"""

    def hopeful(last_beat_ns: int, now_ns: int) -> bool:
        return now_ns - last_beat_ns < 5 * SECOND

    with mock.patch.object(leadership, "is_sure", hopeful):
        yield


@contextmanager
def beat_of_anybody() -> Iterator[None]:
    """A leader takes every beat that the database answers for its own, and writes its log after it was overtaken."""
    beat = Leadership._beat

    def proud(self: Leadership, epoch: int) -> bool | None:
        return None if beat(self, epoch) is None else True

    with mock.patch.object(Leadership, "_beat", proud), term_unchecked():
        yield
