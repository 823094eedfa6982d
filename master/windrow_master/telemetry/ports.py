"""The interfaces of telemetry: the executor of its blocking work, and a view of history. Pure."""

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from windrow_master.telemetry.model import (
    GroupPoints,
    GroupQuery,
    LogPosition,
    SeriesPoints,
    SeriesQuery,
    ViewHealth,
)

T = TypeVar("T")


class Executor(Protocol):
    """Runs blocking work for the loop. Writes run one at a time in the order given; reads may run beside them."""

    def write(self, work: Callable[[], None], done: Callable[[], None]) -> None:
        """Run `work` on the writer, then call `done` on the loop. Neither raises."""

    async def read(self, work: Callable[[], T]) -> T:
        """Run `work` beside the writer and return or raise what it does."""

    def close(self) -> None:
        """Finish what runs and let go of the threads."""


class HistoryPort(Protocol):
    """One view of history: it follows the segment log with a cursor of its own and answers charts.

    A step holds the samples in [start, start + step): the mean of a gauge, the highest of a counter, None where
    nothing was read. tests/contract/test_history.py is what every view promises.
    """

    async def run(self) -> None:
        """Follow the log until cancelled, whatever fails."""

    async def catch_up(self) -> None:
        """Take in all that the log holds now."""

    async def series(self, query: SeriesQuery) -> tuple[SeriesPoints, ...]:
        """Points of each series in the order asked. Raises Unavailable, soon, with the reason."""

    async def grouped(self, query: GroupQuery) -> GroupPoints:
        """The mean of the means of a tier's GPUs, for each tier; a GPU counts where it was when the step began, and in
        a step of whole five minutes once for each of them in which it was read. Raises Unavailable."""

    async def workload_use(self, from_ms: int, to_ms: int) -> Mapping[str, float]:
        """The mean of each workload's GPUs between two wall times (ms), from 0 to 1, for those that were measured then.
        Raises Unavailable."""

    def health(self) -> ViewHealth:
        """Return how it is doing."""

    @property
    def cursor(self) -> LogPosition | None:
        """The view's place in the log: the records before it may go. None before it knows."""

    def close(self) -> None:
        """Let go of threads, files and connections; soon, and safe to call twice."""
