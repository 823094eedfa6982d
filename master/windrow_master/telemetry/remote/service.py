"""History as a view of the segment log in a Prometheus-compatible store: remote write out, PromQL back.

log ──cursor──▶ decode ──▶ requests ──POST──▶ store        2xx: go on; the cursor is kept when all of a cycle is there
                              │                            5xx, 429, 401, 403, 404, silence: the same again later
                              │                            other 4xx: halved until the samples that offend are alone,
                              │                            which are dropped, counted and told
Its own threads, its own cursor: whatever the store suffers, acks, the live view and commands do not notice.
"""

import asyncio
import hashlib
import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog

from windrow_master.telemetry.decode import Decoder
from windrow_master.telemetry.follow import BEGINNING, follow
from windrow_master.telemetry.model import (
    GPU_USE,
    GroupPoints,
    GroupQuery,
    LogPosition,
    Place,
    SeriesPoints,
    SeriesQuery,
    Tiers,
    ViewHealth,
)
from windrow_master.telemetry.ports import Executor
from windrow_master.telemetry.remote import promql, wire
from windrow_master.telemetry.remote.promql import Question
from windrow_master.telemetry.remote.store import Answered, MetricsStore
from windrow_proto.errors import Unavailable
from windrow_proto.ids import HostId
from windrow_proto.ports import Clock, Disk, Rng
from windrow_proto.units import MILLISECOND, MINUTE, SECOND, seconds

CYCLE_NS: Final = SECOND
CYCLE_BYTES_MAX: Final = 512 << 10
"""Of log at a time: some 400,000 samples, 8 MB as the protocol has them."""
REQUEST_SAMPLES_MAX: Final = 50_000
REQUEST_BYTES_MAX: Final = 4 << 20
"""Before compression; stores refuse more than some tens of megabytes."""
PAUSE_FIRST_NS: Final = SECOND
PAUSE_LAST_NS: Final = MINUTE
REJECTIONS_PER_CYCLE: Final = 256
"""Requests that may be halved further in one cycle; beyond it a rejected request is dropped whole."""
QUERY_DEADLINE_NS: Final = 5 * SECOND
QUIET_NS: Final = 5 * SECOND
"""After a question went unanswered the next ones are refused at once for so long."""
TELL_EVERY_NS: Final = MINUTE
INFO_EVERY_NS: Final = MINUTE
HELD: Final = frozenset({401, 403, 404, 405, 408, 429})
"""The store's address or pace is wrong, not the samples: they are kept and offered again."""
PLACES_MAX: Final = 1 << 20

log = structlog.get_logger(__name__)

Tell = Callable[[str, str, Mapping[str, str]], None]
"""Kind, text and fields of an event."""


class Later(Exception):
    """The store cannot take it now; `pause_s` is what it asked for, 0 if nothing."""

    def __init__(self, reason: str, pause_s: float) -> None:
        super().__init__(reason)
        self.pause_s = pause_s


@dataclass(slots=True)
class RemoteFigures:
    """The counters of the view."""

    samples: int = 0
    requests: int = 0
    retries: int = 0
    dropped_samples: int = 0


class RemoteView:
    """Follows the log into one store. Used on one loop."""

    def __init__(
        self,
        disk: Disk,
        log_directory: str,
        epoch: int,
        directory: str,
        clock: Clock,
        rng: Rng,
        executor: Executor,
        store: MetricsStore,
        *,
        tiers: Tiers = dict,
        is_simulated: Callable[[HostId], bool] = lambda host_id: False,
    ) -> None:
        """directory: where its cursor is kept. tiers: of each GPU now. is_simulated: whether a host is. Opens
        nothing."""
        self._disk, self._log_directory, self._epoch, self._directory = disk, log_directory, epoch, directory
        self._clock, self._rng, self._executor, self._store = clock, rng, executor, store
        self._tiers, self._is_simulated = tiers, is_simulated
        self._tell: Tell = lambda kind, text, fields: None
        name = hashlib.sha256(store.write_url.shown.encode()).hexdigest()[:12]
        self._cursor_path = f"{directory}/remote-{name}.json"
        self._cursor: LogPosition | None = None
        self._pending: deque[list[wire.Piece]] = deque()
        self._pending_cursor: LogPosition | None = None
        self._places: list[Place] = []
        self._numbers: dict[Place, int] = {}
        self._decoder = Decoder(self._number)
        self._encoder = wire.Encoder(lambda number: self._places[number], self._is_simulated)
        self.figures = RemoteFigures()
        self._problem = ""
        self._taken_ns = 0
        self._bad_batches = 0
        self._is_behind = self._is_far = False
        self._pause_ns = PAUSE_FIRST_NS
        self._told_ns: int | None = None
        self._untold = 0
        self._info_due_ns = 0
        self._info: list[wire.Piece] = []
        self._mute_until_ns = 0
        self._is_closed = False

    def on_tell(self, listener: Tell) -> None:
        """Call `listener` on the loop with what people should know."""
        self._tell = listener

    # --- on the loop -----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Follow the log until cancelled; what fails is said, counted and tried again."""
        while True:
            await self._clock.sleep_ns(await self.step())

    async def step(self) -> int:
        """One cycle; returns how long to wait for the next, in nanoseconds."""
        before = self.figures.dropped_samples
        self._info += self._info_due()
        try:
            await self._on_writer(self._cycle)
        except Later as later:
            self.figures.retries += 1
            self._problem = str(later)
            asked_ns = int(later.pause_s * SECOND)
            wait_ns = max(asked_ns, int(self._pause_ns * (0.5 + 0.5 * self._rng.uniform())))
            self._pause_ns = min(PAUSE_LAST_NS, self._pause_ns * 2)
            log.warning("remote_write_waits", reason=self._problem, wait_s=seconds(wait_ns))
            return wait_ns
        except Exception as error:
            # The top of this task: whatever the view suffers, the Master goes on without charts.
            self._problem = str(error)[:300]
            log.exception("remote_view_failed", error=self._problem)
            return PAUSE_LAST_NS
        finally:
            self._tell_dropped(self.figures.dropped_samples - before)
        self._problem, self._pause_ns = "", PAUSE_FIRST_NS
        return 0 if self._is_far else CYCLE_NS

    async def catch_up(self) -> None:
        """Send all there is; for tests."""
        await self.step()
        while self._is_behind or self._pending:
            await self.step()

    async def series(self, query: SeriesQuery) -> tuple[SeriesPoints, ...]:
        """Points of each series in the order asked. Raises Unavailable with the reason."""
        asked = promql.questions(query)
        answers = [promql.read_answer(data) for data in await self._ask(asked)]
        return promql.points(query, answers)

    async def grouped(self, query: GroupQuery) -> GroupPoints:
        """Means over the GPUs of each tier, by the tiers this view told the store."""
        (data,) = await self._ask((promql.grouped_question(query),))
        return promql.groups(query, promql.read_answer(data))

    async def workload_use(self, from_ms: int, to_ms: int) -> dict[str, float]:
        """How busy the GPUs of each workload were."""
        (data,) = await self._ask((promql.workload_question(GPU_USE, from_ms, to_ms),))
        return promql.workloads(promql.read_answer(data))

    async def _ask(self, questions: Sequence[Question]) -> list[bytes]:
        if self._clock.monotonic_ns() < self._mute_until_ns:
            raise Unavailable("The history is unavailable: the metrics store did not answer a moment ago.")
        try:
            async with asyncio.timeout(seconds(QUERY_DEADLINE_NS)):
                return await asyncio.gather(*(self._executor.read(partial(self._store.ask, q)) for q in questions))
        except (TimeoutError, Unavailable) as error:
            self._mute_until_ns = self._clock.monotonic_ns() + QUIET_NS
            reason = error.detail if isinstance(error, Unavailable) else "the metrics store did not answer in time."
            raise Unavailable(f"The history is unavailable: {reason}") from error

    def health(self) -> ViewHealth:
        """Return how it is doing."""
        return ViewHealth(
            is_open=self._cursor is not None and not self._problem,
            path=self._store.write_url.shown,
            problem=self._problem,
            lag_ns=max(0, self._clock.wall_ns() - self._taken_ns) if self._is_far or self._pending else 0,
            rows=self.figures.samples,
            bad_batches=self._bad_batches,
            misdated=self.figures.dropped_samples,
        )

    @property
    def cursor(self) -> LogPosition | None:
        """Up to where the store has all of the log; None before the first cycle."""
        return self._cursor

    def close(self) -> None:
        """End what is under way; the cursor on disk is where the next start goes on."""
        self._is_closed = True
        self._store.abort()
        self._executor.close()
        self._store.close()

    def _tell_dropped(self, count: int) -> None:
        self._untold += count
        now_ns = self._clock.monotonic_ns()
        if not self._untold or (self._told_ns is not None and now_ns - self._told_ns < TELL_EVERY_NS):
            return
        text = f"The metrics store refused {self._untold} samples; they are not in its history."
        self._tell(
            "history_samples_refused", text, {"samples": str(self._untold), "store": self._store.write_url.shown}
        )
        self._untold, self._told_ns = 0, now_ns

    async def _on_writer(self, work: Callable[[], None]) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        failure: list[BaseException] = []

        def run() -> None:
            try:
                work()
            except Exception as error:
                failure.append(error)

        def done() -> None:
            if not future.done():
                if failure:
                    future.set_exception(failure[0])
                else:
                    future.set_result(None)

        self._executor.write(run, done)
        await future

    # --- on the writer ---------------------------------------------------------------------------------------------

    def _cycle(self) -> None:
        if self._cursor is None:
            self._cursor = self._load_cursor()
        if self._pending_cursor is None:
            self._read_on(self._cursor)
        rejections = REJECTIONS_PER_CYCLE
        while self._pending:
            if self._is_closed:
                raise Later("The view is closing.", 0.0)
            answer = self._post(self._pending[0])
            pieces = self._pending.popleft()
            if answer is None:
                self.figures.samples += sum(piece.samples for piece in pieces)
            elif len(pieces) > 1 and rejections > 0:
                rejections -= 1
                half = len(pieces) // 2
                self._pending.extendleft((pieces[half:], pieces[:half]))
            else:
                self.figures.dropped_samples += sum(piece.samples for piece in pieces)
                log.error("remote_write_refused", status=answer.status, said=answer.said, series=len(pieces))
        if self._pending_cursor is not None and self._pending_cursor != self._cursor:
            self._save_cursor(self._pending_cursor)
            self._cursor = self._pending_cursor
        self._pending_cursor = None

    def _post(self, pieces: Sequence[wire.Piece]) -> Answered | None:
        """None when the store has them, its answer when it refuses these very samples; raises Later otherwise."""
        try:
            answer = self._store.write(wire.request(pieces))
        except Unavailable as error:
            raise Later(error.detail, 0.0) from error
        self.figures.requests += 1
        if answer.status < 300:
            return None
        if answer.status >= 500 or answer.status in HELD or answer.status < 400:
            words = f"The metrics store answered {answer.status}: {answer.said}"
            raise Later(words, answer.retry_after_s)
        return answer

    def _read_on(self, cursor: LogPosition) -> None:
        """Make requests of what the log holds behind the cursor."""
        found = follow(self._disk, self._log_directory, self._epoch, cursor, CYCLE_BYTES_MAX)
        if len(self._places) > PLACES_MAX:
            self._forget()
        decoded = self._decoder.decode(found.batches)
        self._bad_batches += found.bad + decoded.bad_batches
        self._is_behind, self._is_far = found.taken_ns is not None, found.is_far
        self._taken_ns = found.taken_ns or self._taken_ns
        self._pending.extend(_packed([*self._info, *self._encoder.pieces(decoded)]))
        self._pending_cursor = found.cursor
        self._info = []

    def _info_due(self) -> list[wire.Piece]:
        """Return which tier each GPU is of, now and then: what charts by tier are joined with."""
        if self._clock.monotonic_ns() < self._info_due_ns:
            return []
        self._info_due_ns = self._clock.monotonic_ns() + INFO_EVERY_NS
        at_ms = self._clock.wall_ns() // MILLISECOND
        return [
            wire.one_sample(
                (("__name__", promql.INFO_NAME), ("gpu", device), ("host", host_id), ("tier", tier)), 1.0, at_ms
            )
            for (host_id, device), tier in self._tiers().items()
        ]

    def _number(self, host_id: HostId, device: str) -> int:
        place = host_id, device
        number = self._numbers.get(place)
        if number is None:
            number = self._numbers[place] = len(self._places)
            self._places.append(place)
        return number

    def _forget(self) -> None:
        self._places.clear()
        self._numbers.clear()
        self._decoder.forget()
        self._encoder = wire.Encoder(lambda number: self._places[number], self._is_simulated)

    def _load_cursor(self) -> LogPosition:
        """Return the kept position; the log's beginning where nothing is known, since what is sent twice is the same
        sample."""
        try:
            data = self._disk.read(self._cursor_path, 0, self._disk.size(self._cursor_path))
            return LogPosition(*map(int, json.loads(data)["cursor"]))
        except FileNotFoundError:
            return BEGINNING
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.error("remote_cursor_damaged", path=self._cursor_path, error=str(error)[:200])
            return BEGINNING

    def _save_cursor(self, cursor: LogPosition) -> None:
        draft = f"{self._cursor_path}.new"
        self._disk.make_directory(self._directory)
        self._disk.delete(draft)
        record = {"store": self._store.write_url.shown, "cursor": [cursor.epoch, cursor.segment, cursor.offset]}
        self._disk.append(draft, json.dumps(record).encode())
        self._disk.sync(draft)
        self._disk.release(draft)
        self._disk.rename(draft, self._cursor_path)


def _packed(pieces: Sequence[wire.Piece]) -> list[list[wire.Piece]]:
    """Pieces in requests of bounded size."""
    packed: list[list[wire.Piece]] = []
    room_samples = room_bytes = 0
    for piece in pieces:
        if not packed or piece.samples > room_samples or len(piece.data) > room_bytes:
            packed.append([])
            room_samples, room_bytes = REQUEST_SAMPLES_MAX, REQUEST_BYTES_MAX
        packed[-1].append(piece)
        room_samples -= piece.samples
        room_bytes -= len(piece.data)
    return packed
