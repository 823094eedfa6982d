"""Support for tests of the Master's packages: a clock moved by hand, seeded randomness, a store without threads."""

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import event

from windrow_master.store.engine import Engines, engines_of
from windrow_master.store.executors import Executor, InlineExecutor
from windrow_master.store.store import Store
from windrow_proto.units import SECOND

START_NS = 1_800_000_000 * SECOND
"""A wall time in 2027; any would do."""


class ManualClock:
    """A Clock that only moves when told to."""

    def __init__(self, wall_ns: int = START_NS) -> None:
        self._wall_ns = wall_ns
        self._monotonic_ns = 0

    def wall_ns(self) -> int:
        return self._wall_ns

    def monotonic_ns(self) -> int:
        return self._monotonic_ns

    async def sleep_ns(self, duration_ns: int) -> None:
        await asyncio.sleep(0)

    def advance(self, duration_ns: int) -> None:
        self._wall_ns += duration_ns
        self._monotonic_ns += duration_ns


class SeededRng:
    """An Rng that says the same with the same seed."""

    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)

    def random_bytes(self, count: int) -> bytes:
        return self._random.randbytes(count)

    def uniform(self) -> float:
        return self._random.random()


def patient_engines(url: str) -> Engines:
    """The engines of a database, which ends no transaction in which a busy machine says nothing for seconds."""

    def connected(connection: Any, _record: object) -> None:
        connection.execute("SET idle_in_transaction_session_timeout = 0")
        connection.commit()

    engines = engines_of(url)
    for engine in (engines.writer, engines.reader, engines.seat) if engines.is_shared else ():
        event.listen(engine, "connect", connected)  # after what the product sets
    return engines


@contextmanager
def opened_store(
    directory: Path,
    clock: ManualClock | None = None,
    executor: Executor | None = None,
    database: str | None = None,
) -> Iterator[Store]:
    """A real store on SQLite in this directory or on `database`, inline unless given an executor; closed in the end."""
    store = Store.open(
        directory,
        clock or ManualClock(),
        SeededRng(),
        executor=executor or InlineExecutor(),
        database=database,
        open_engines=patient_engines,
    )
    try:
        yield store
    finally:
        store.close()
