"""Looks after runs: hears what their helpers say, and gives them what they need.

purchases buy the run ─▶ "hello": the job begins there ─▶ orders: command, folder, newest checkpoint ─▶ "runs"
    ─▶ "found", calls, "saved": a checkpoint ─▶ "ended", a call, "left": exit code, files, log ─▶ the run is dropped

A helper's words are read from their beginning by each Master that attends a run, and hearing one twice has one effect.
The command can write there too, so no word is believed beyond what its own job may do, and their number has a limit.
Money, caps, doubt and the end of what nobody needs are its purchase's.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, cast

import structlog

from windrow_master.clusters.request import LOG_KEPT_BYTES
from windrow_master.hybrid.backends.port import Doubtful, MachineOffer, Refused, RefusedFor, Wanted
from windrow_master.hybrid.purchases.backends import find_backend
from windrow_master.hybrid.purchases.model import BackendRow, Purchase
from windrow_master.hybrid.purchases.repository import BackendRepository, PurchaseRepository
from windrow_master.hybrid.purchases.service import PurchaseService, place_at
from windrow_master.hybrid.purchases.states import FINAL, State
from windrow_master.hybrid.runs import port
from windrow_master.hybrid.runs.charges import RunCharges
from windrow_master.hybrid.runs.orders import PUT_S, ROOT, Orders, out_key
from windrow_master.hybrid.runs.port import Runs, Stream
from windrow_master.jobs import answers, logins
from windrow_master.jobs.files import FILES_KEPT_MAX, LOG_KEPT_MAX, JobFiles, files_key, folder_key
from windrow_master.jobs.messages import RunLetGo
from windrow_master.jobs.model import Job, JobId, JobRequest, JobState
from windrow_master.jobs.request import cluster_request
from windrow_master.jobs.runs import JobRuns, is_there
from windrow_master.loops import ends_alone, when_due
from windrow_master.storage import checkpoints
from windrow_master.storage.artefacts import taken
from windrow_master.storage.plain_checkpoints import PlainCheckpoints
from windrow_master.storage.uploads import QUOTA_BYTES
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_master.work_queue import WorkQueue
from windrow_proto.checkpoints import CHECKPOINT_BYTES_MAX, STEP_MAX, Piece, check_pieces, file_name
from windrow_proto.errors import InsufficientFunds, SpendingLimitReached, WindrowError
from windrow_proto.ids import AccountId
from windrow_proto.ports import Clock
from windrow_proto.sealed import SealKey
from windrow_proto.units import HOUR, MINUTE, SECOND, seconds

log = structlog.get_logger(__name__)

TURNS_APART_NS: Final = SECOND // 2
BEAT_NS: Final = 5 * MINUTE
LOG_EVERY_NS: Final = 2 * SECOND
AGAIN_NS: Final = 2 * SECOND
LOG_HELD_MAX: Final = 1 << 20
"""Bytes of a log that are held before they are kept."""
LINE_MAX: Final = 4 << 20
"""Bytes of one word of a helper: a checkpoint of 10,000 files has some 1 MiB."""
WORDS_MAX: Final = 100_000
"""Words of one run: a helper that saves each 10 s for a day says a fifth of that."""
NOTED_MAX: Final = 10
"""Words of one run that make no sense and are noted."""
PIECE_APART_NS: Final = SECOND // 10_000
"""After a checkpoint was found, for each of its pieces: to sign their calls takes as long."""
GIVEN_MAX: Final = 2 * CHECKPOINT_BYTES_MAX
"""Bytes of checkpoints of one run for which there are calls, and which have not come in."""
LOG_ENDS_NS: Final = 20 * SECOND
"""For the last of a log to come, once the helper has left."""
CHARGE_EVERY_NS: Final = 10 * SECOND
"""As often as a host signs the time of its work."""
GRACE_S: Final = 20
"""Between SIGTERM and SIGKILL for a command that is asked to end."""
PLANNED: Final = "its time at the service is nearly over"
LOST: Final = "its service ended it"
_ATTENDED: Final = (State.BOOTING, State.JOINED, State.SERVING, State.IDLE, State.DRAINING)


@dataclass(slots=True)
class _Run:
    """A run that is attended. heard: words that were taken; changed: its orders are to be written; begun: its job is
    there; given: bytes for which it has calls, by the step of the checkpoint; keeping: held while its log is."""

    purchase: Purchase
    job_id: JobId
    orders: dict[str, Any] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    heard: int = 0
    beat: int = 0
    attempt: int = 0
    exit_code: int | None = None
    has_ended: bool = False
    has_run: bool = False
    said: str = ""
    given: dict[int, int] = field(default_factory=dict)
    noted: int = 0
    keeping: asyncio.Lock = field(default_factory=asyncio.Lock)
    files_bytes: int = 0
    has_files: bool = False
    log_bytes: int = 0
    held: bytearray = field(default_factory=bytearray)
    is_planned: bool = False

    def order(self, **more: object) -> None:
        """Have these written."""
        self.orders |= more
        self.changed.set()

    def note(self, what: str, **more: object) -> None:
        """Log something odd that its helper, or its command, said: the first of it."""
        self.noted += 1
        if self.noted <= NOTED_MAX:
            log.warning(what, run=self.purchase.purchase_id, **more)


class RunService:
    """Used on the loop only. kinds: of backends that run code themselves."""

    kinds: frozenset[str] = frozenset({"modal"})

    def __init__(
        self,
        store: Store,
        clock: Clock,
        purchases: PurchaseService,
        jobs: JobRuns,
        files: JobFiles,
        plain: PlainCheckpoints,
        orders: Orders,
        seal_key: SealKey,
        charges: RunCharges,
    ) -> None:
        self._store, self._clock, self._purchases, self._jobs = store, clock, purchases, jobs
        self._files, self._plain, self._orders, self._seal_key = files, plain, orders, seal_key
        self._charges = charges
        self._queue = WorkQueue[str](clock)
        self._runs: dict[str, _Run] = {}
        """Those that are attended, at most as many as purchases live."""
        self._group: asyncio.TaskGroup | None = None
        purchases.on_change(self._purchase_changed)

    def why_not(self, request: JobRequest) -> str:
        """Why a job cannot go to such a service, in words; empty: it can."""
        if not self._orders.are_possible:
            return "runs need a store of artefacts that they can reach: docs/artefacts.md says how to set one"
        return port.why_not(request)

    async def offers(self, row: BackendRow, wanted: Wanted) -> Sequence[MachineOffer]:
        """The runs that could be had. Raises Refused, Doubtful."""
        return await self._purchases.backends.opened(row).offers(wanted)

    def begin(
        self,
        uow: UnitOfWork,
        *,
        job_id: str,
        account_id: AccountId,
        backend: BackendRow,
        offer: MachineOffer,
        duration_ns: int,
        expected_ns: int | None,
    ) -> str:
        """Have a run bought; returns its id. Raises Forbidden, QuotaExceeded."""
        what = self._purchases.buy_for(
            uow,
            for_id=job_id,
            account_id=account_id,
            backend=backend,
            offer=offer,
            duration_ns=min(duration_ns, port.HOURS_MAX * HOUR),
            expected_ns=expected_ns,
        )
        return what.purchase_id

    def drop(self, uow: UnitOfWork, run_id: str, reason: str) -> None:
        """End a run that nobody needs any more."""
        self._purchases.drop(uow, run_id, reason)

    def let_go(self, uow: UnitOfWork, fact: RunLetGo) -> None:
        """Its job needs it no more: its command is asked to end, and what it has is brought in."""
        uow.after_commit(lambda: self._end(fact.run_id))

    def _end(self, run_id: str) -> None:
        run = self._runs.get(run_id)
        if run is not None:
            run.order(end={"grace_s": GRACE_S})
            self._purchases.backends.queue.add(run.purchase.backend)

    def _purchase_changed(self, purchase: Purchase) -> None:
        if purchase.offer.is_run:
            self._queue.add(purchase.purchase_id)

    # --- the loop ----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Attend all runs until cancelled; without any it sleeps."""
        living = await self._store.read(_living)
        for purchase in living:
            self._queue.add(purchase.purchase_id)
        with ends_alone("runs"):
            async for owner in checkpoints.owners(self._orders.objects, "purchase", ROOT):
                self._queue.add(owner)
        for run_id in await self._store.read(self._charges.unclosed):
            self._queue.add(run_id)
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                await when_due(self.turn, self._queue, TURNS_APART_NS, "runs")
            finally:
                self._group = None

    async def turn(self) -> None:
        """Look at the purchases of runs that have changed."""
        assert self._group is not None, "it runs"
        for run_id in self._queue.take():
            purchase = await self._store.read(partial(_purchase, run_id=run_id))
            if purchase is None:  # of a database that was put back
                await self._drop(run_id)
            if purchase is None or not purchase.offer.is_run:
                continue
            run = self._runs.get(run_id)
            if run is not None:
                run.purchase = purchase
                if purchase.state is State.DRAINING and not run.is_planned and not run.has_ended:
                    run.is_planned = True
                    self._end(run_id)
            elif purchase.machine_id and (purchase.state in _ATTENDED or await self._has_job(purchase)):
                run = self._runs[run_id] = _Run(purchase, JobId(purchase.for_id))
                self._group.create_task(self._attend(run), name=f"run {run_id}")
            elif purchase.state in FINAL:
                await self._close(purchase, LOST)
                await self._drop(run_id)
                left_ns = purchase.state_since_ns + PUT_S * SECOND - self._clock.wall_ns()
                if left_ns > 0:  # until then whoever has its calls can write there
                    self._queue.add(run_id, self._clock.monotonic_ns() + left_ns)

    async def _has_job(self, purchase: Purchase) -> bool:
        """True where its job does not know yet how it ended."""
        return await self._store.read(lambda uow: is_there(uow, purchase.for_id, purchase.purchase_id))

    async def _drop(self, run_id: str) -> None:
        with ends_alone("run objects", run=run_id):
            await checkpoints.drop(self._orders.objects, run_id, root=ROOT)

    async def _attend(self, run: _Run) -> None:
        """From its first word to its last, and until its job knows how it ended."""
        run_id, is_over = run.purchase.purchase_id, False
        with ends_alone("run", run=run_id):
            async with asyncio.TaskGroup() as group:
                writing = group.create_task(self._write_orders(run))
                reading = group.create_task(self._read_log(run))
                keeping = group.create_task(self._keep_log(run))
                charging = group.create_task(self._charge(run))
                try:
                    await self._hear_all(run)
                    if run.attempt:
                        await asyncio.wait([reading], timeout=seconds(LOG_ENDS_NS))
                finally:
                    for task in (writing, reading, keeping, charging):
                        task.cancel()
            await self._flush(run)
            await self._over(run)
            await checkpoints.drop(self._orders.objects, run_id, root=ROOT)
            is_over = True
        self._runs.pop(run_id, None)
        if not is_over:
            self._queue.add(run_id, self._clock.monotonic_ns() + AGAIN_NS)
        self._purchases.backends.queue.add(run.purchase.backend)

    async def _over(self, run: _Run) -> None:
        code, said = run.exit_code, run.said
        if run.is_planned and code != 0:
            code, said = None, run.purchase.reason or PLANNED
        elif not run.has_ended:
            said = run.said or LOST

        def change(uow: UnitOfWork) -> None:
            self._charges.close(uow, run.purchase, said or "its command ended", code)
            self._jobs.ended(
                uow,
                run.job_id,
                run.purchase.purchase_id,
                code,
                said,
                is_planned=run.is_planned,
                log_bytes=min(run.log_bytes, LOG_KEPT_MAX) if run.attempt else None,
                log_truncated=run.log_bytes >= LOG_KEPT_BYTES,
                files_bytes=run.files_bytes if run.has_files else None,
            )

        await self._store.write(change, name="run.ended")

    # --- what the helper says ----------------------------------------------------------------------------------------

    async def _hear_all(self, run: _Run) -> None:
        """Take all words until the helper has left, or its run is over."""
        while True:
            number = 0
            try:
                async with aclosing(_lines(self._pieces(run, Stream.WORDS))) as lines:
                    async for line in lines:
                        number += 1
                        if number > WORDS_MAX:
                            run.said = "its helper at the service said too much"
                            return
                        if number > run.heard:
                            is_last = await self._hear(run, line)
                            run.heard = number
                            if is_last:
                                return
                return
            except (Doubtful, Refused, WindrowError) as error:
                log.info("run_not_heard", run=run.purchase.purchase_id, said=str(error)[:300])
                if run.purchase.state in (State.ENDING, *FINAL):
                    return
                await self._clock.sleep_ns(AGAIN_NS)

    async def _hear(self, run: _Run, line: bytes) -> bool:
        """Take one word; True: it was the last. What is no word, such as the trace of a bug, is kept as it is."""
        try:
            word = json.loads(line)
            say = word["say"]
        except (ValueError, KeyError, TypeError, RecursionError):
            run.note("helper_said", line=line[:300])
            return False
        match say:
            case "hello" if not run.attempt:
                return not await self._start(run)
            case "runs" if not run.has_run:
                run.has_run = True
                run_id = run.purchase.purchase_id
                await self._store.write(lambda uow: self._jobs.running(uow, run.job_id, run_id), name="run.runs")
            case "found" | "saved" if run.attempt:
                await self._checkpoint(run, word, is_stored=say == "saved")
            case "ended" if run.attempt and not run.has_ended:
                await self._ended(run, word)
            case "left":
                run.has_files = word.get("files") is True
                return True
            case "broken" | "alone" | "unsaved":
                run.said = f"its helper at the service said: {say}: {_shown(word.get('why', ''))}".rstrip(": ")
        return False

    async def _start(self, run: _Run) -> bool:
        """Let its job start here, and give the helper what it needs; False: the job does not wait any more."""
        purchase = run.purchase
        row = await self._store.read(lambda uow: find_backend(uow, purchase.backend))
        place, why = place_at(row.name, purchase.offer, row.margin_percent, run_id=purchase.purchase_id), ""
        try:
            if not await self._jobs.begin(run.job_id, place, partial(self._charges.open, purchase)):
                why = "its job does not wait any more"
        except (InsufficientFunds, SpendingLimitReached) as error:
            why = error.detail or error.code
        if why:
            await self._store.write(lambda uow: self._purchases.drop(uow, purchase.purchase_id, why), name="run.drop")
            return False
        run_id = purchase.purchase_id
        await self._store.write(lambda uow: self._purchases.run_began(uow, run_id), name="run.began")
        self._purchases.backends.queue.add(purchase.backend)
        job = await self._store.read(lambda uow: answers.find(uow, run.job_id))
        assert job is not None, "it has just begun"
        run.attempt = len(job.attempts)
        run.log_bytes = await self._files.log_bytes(run.job_id, run.attempt)
        run.begun.set()
        if job.state is JobState.CHECKPOINTING:
            run.orders["end"] = {"grace_s": GRACE_S}
        run.order(job=await self._job_of(job, run_id))
        return True

    async def _job_of(self, job: Job, run_id: str) -> Mapping[str, object]:
        """The helper's first order: the command, and what it goes on from."""
        asked = cluster_request(logins.whole(self._seal_key, replace(job, attempts=job.attempts[:-1])))
        found = await self._plain.lay_out(job.account_id, job.job_id, f"{ROOT}/{run_id}/in")
        laid = None
        if found is not None:
            step, pieces = found
            laid = {"step": step, "pieces": [[name, self._orders.get(key)] for key, name in pieces.items()]}
        return {
            "argv": list(asked.argv),
            "env": dict(asked.env),
            "folder": self._orders.get(folder_key(job.group)) if job.request.await_files else None,
            "checkpoint": laid,
            "save_every_s": seconds(job.request.checkpoint_every_ns),
        }

    async def _checkpoint(self, run: _Run, word: Mapping[str, Any], *, is_stored: bool) -> None:
        """Give calls for the pieces of a checkpoint, or seal what came by them."""
        try:
            step = int(word["step"])
            pieces = [Piece(file_name(name), int(at), int(size)) for name, at, size in word["pieces"]]
            check_pieces(tuple(pieces))
            is_right = 0 <= step <= STEP_MAX and all(0 <= one.size_bytes <= CHECKPOINT_BYTES_MAX for one in pieces)
        except (WindrowError, ValueError, KeyError, TypeError, OverflowError):
            is_right = False
        if not is_right:
            run.note("checkpoint_refused")
            return
        size = sum(one.size_bytes for one in pieces)
        keys = [out_key(run.purchase.purchase_id, step, number) for number in range(len(pieces))]
        if not is_stored:
            if sum(run.given.values()) + size > GIVEN_MAX:
                run.note("checkpoint_refused", error="the calls for others were not used yet")
                return
            run.given[step] = run.given.get(step, 0) + size
            puts = await asyncio.to_thread(
                lambda: [self._orders.put(key, one.size_bytes) for key, one in zip(keys, pieces, strict=True)]
            )
            run.order(puts={str(step): puts})
            await self._clock.sleep_ns(len(pieces) * PIECE_APART_NS)
            return
        if run.given.pop(step, None) is None:
            run.note("checkpoint_refused", error="it had no calls for it")
            return
        try:
            is_new = await self._plain.take_in(run.purchase.account_id, run.job_id, step, pieces, keys)
        except WindrowError as error:
            if error.retryable:
                raise
            run.note("checkpoint_refused", error=str(error)[:300])
            return
        if is_new:
            await self._store.write(
                lambda uow: self._jobs.saved(uow, run.job_id, run.purchase.purchase_id, step), name="run.saved"
            )
        for key in keys:
            await self._orders.objects.delete(key)

    async def _ended(self, run: _Run, word: Mapping[str, Any]) -> None:
        """The command has ended: its code is known, and its files may come."""
        run.has_ended, code, size = True, word.get("code"), word.get("files_bytes")
        run.exit_code = code if type(code) is int and 0 <= code <= 255 else None  # True is no code
        room = await self._store.read(lambda uow: (QUOTA_BYTES - taken(uow, run.purchase.account_id)[1]) // 2)
        if type(size) is int and 0 <= size <= min(FILES_KEPT_MAX, room):
            run.files_bytes = size
            run.order(files=self._orders.put(files_key(run.job_id, run.attempt), size))
        else:
            run.said = _shown(word.get("why")) or "its files are larger than what is left of the quota"
            run.order(files=None)

    # --- beside that -------------------------------------------------------------------------------------------------

    async def _write_orders(self, run: _Run) -> None:
        """Write the orders when they have changed, and now and then in any case."""
        while True:
            run.changed.clear()
            run.beat = max(run.beat + 1, self._clock.wall_ns() // SECOND)
            try:
                await self._orders.write(run.purchase.purchase_id, run.beat, run.orders)
            except WindrowError as error:
                log.warning("orders_not_written", run=run.purchase.purchase_id, error=str(error)[:300])
                await self._clock.sleep_ns(AGAIN_NS)
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds(BEAT_NS)):
                    await run.changed.wait()

    async def _read_log(self, run: _Run) -> None:
        """Read all that the command prints, from where it is kept on."""
        await run.begun.wait()
        while True:
            at = 0
            try:
                async with aclosing(self._pieces(run, Stream.LOG)) as pieces:
                    async for piece in pieces:
                        skip = max(0, run.log_bytes + len(run.held) - at)
                        at += len(piece)
                        run.held += piece[skip:]
                        while len(run.held) > LOG_HELD_MAX:
                            await self._flush(run)
                return
            except (Doubtful, Refused, WindrowError):
                await self._clock.sleep_ns(AGAIN_NS)

    async def _charge(self, run: _Run) -> None:
        """Charge its renter for its time now and then, and end it where a limit is reached. Not at once: what is heard
        first may be that it has ended while the Master was away."""
        await run.begun.wait()
        while True:
            await self._clock.sleep_ns(CHARGE_EVERY_NS)

            def change(uow: UnitOfWork) -> None:
                self._charges.count(uow, run.purchase)
                self._jobs.looked(uow, run.job_id, run.purchase.purchase_id)

            if not run.has_ended:
                await self._store.write(change, name="run.charge")

    async def _close(self, purchase: Purchase, reason: str) -> None:
        """Charge for the last time, where that has not been done."""
        await self._store.write(lambda uow: self._charges.close(uow, purchase, reason, None), name="run.close")

    async def _keep_log(self, run: _Run) -> None:
        while True:
            await self._clock.sleep_ns(LOG_EVERY_NS)
            with suppress(WindrowError):
                await self._flush(run)

    async def _flush(self, run: _Run) -> None:
        """Keep what was printed; beyond its limit nothing."""
        async with run.keeping:
            if not run.held or not run.attempt:
                return
            data = bytes(run.held)
            if run.log_bytes < LOG_KEPT_BYTES:
                await self._files.keep_log(run.job_id, run.attempt, run.log_bytes, data)
            run.log_bytes += len(data)
            del run.held[: len(data)]

    async def _pieces(self, run: _Run, stream: Stream) -> AsyncGenerator[bytes]:
        row = await self._store.read(lambda uow: uow[BackendRepository].get(run.purchase.backend))
        if row is None:
            raise Refused(RefusedFor.LIMIT, f"{run.purchase.backend} was removed.")
        backend = cast(Runs, self._purchases.backends.opened(row))
        async for piece in backend.follow(run.purchase.machine_id, stream):
            yield piece


async def _lines(pieces: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """The whole lines of a stream; one that is too long is left out."""
    held = bytearray()
    async with aclosing(pieces):
        async for piece in pieces:
            *whole, rest = (bytes(held) + piece).split(b"\n")
            for line in whole:
                yield line
            held[:] = rest if len(rest) <= LINE_MAX else b""


def _shown(why: object) -> str:
    """The reason of a helper, as one may show and keep it."""
    return "".join(one for one in str(why or "")[:200] if one.isprintable())


def _purchase(uow: UnitOfWork, run_id: str) -> Purchase | None:
    return uow[PurchaseRepository].get(run_id)


def _living(uow: UnitOfWork) -> list[Purchase]:
    """The purchases of runs that are not over."""
    rows = uow[BackendRepository].all()
    return [one for row in rows for one in uow[PurchaseRepository].living(row.name) if one.offer.is_run]
