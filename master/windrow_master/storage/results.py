"""Brings in the results of work that has ended by itself, or with its time, before its host clears it away; and gives
them out afterwards.

 exited ─▶ log, changed files ─▶ artefacts of its cluster, for 30 days ─▶ delete command ─▶ its slots are free
                       └ what does not fit into the account's quota, or cannot be had, is said by name

Whoever asks for a log or files is answered by the host while the work is there, and from what is kept afterwards. What
a job's work leaves, its job brings in.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar

import structlog

from windrow_master.clusters import lookup
from windrow_master.clusters.model import Cluster, Results, Workload, WorkPhase
from windrow_master.clusters.reports import has_results, is_given_up
from windrow_master.clusters.request import LOG_CUT
from windrow_master.clusters.service import ClusterService
from windrow_master.identity.model import Principal, Role
from windrow_master.loops import GIVEN_UP, Boundary, when_due
from windrow_master.network.tar import TarSieve
from windrow_master.network.workload_io import WorkAccess
from windrow_master.shares import Share, ShareLimits, Shares
from windrow_master.storage.artefact_repository import ArtefactRepository
from windrow_master.storage.artefacts import ArtefactService
from windrow_master.storage.retention_rules import KEPT_DAYS, KEPT_NS
from windrow_master.store.store import Store
from windrow_master.store.unit import DATABASE_FAULTS, UnitOfWork
from windrow_master.work_queue import WorkQueue
from windrow_proto.errors import Conflict, NotFound, TooMany, WindrowError
from windrow_proto.ids import AccountId, ClusterId, TokenId, WorkloadId
from windrow_proto.ports import Clock
from windrow_proto.units import GIB, MINUTE, SECOND

log = structlog.get_logger(__name__)

ROOT: Final = "results"
"""The beginning of the names of these artefacts."""
QUOTA_BYTES: Final = 20 * GIB
"""Of one account's results, a part of what its artefacts may take: its volumes are saved beside them."""
LOOK_NS: Final = SECOND
AGAIN_NS: Final = 2 * SECOND
"""Before what could not be brought in is asked for again."""
TAKE_NS: Final = 30 * MINUTE
"""For the results of one workload, as long as a lost host may still come back; its slots cost nothing meanwhile."""
FOLLOWED_NS: Final = 2 * MINUTE
"""For those who follow a log when the work has ended to read it to its end: the slots of the work wait for them."""
FOLLOWED_LOOK_NS: Final = SECOND // 10
TAKES: Final = ShareLimits(limit=64, per_account=4, reserve=0)
"""Results on their way at once: a host may take its time, which holds up nobody else's."""
EMPTY_TAR: Final = bytes(10_240)
_LIFE_NS: Final = 10**18
LINES, LINE_CHARS = 5, 200
"""Of the log of the first rank of a gang that failed: as many as people read in a mail."""
LINES_NS: Final = 10 * SECOND
"""For a host to hand over such a log; then it is told without."""
T = TypeVar("T")
Work = Callable[[Workload, Cluster], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class Terms:
    """The retention time of results, and the bytes of one account."""

    kept_ns: int = KEPT_NS
    quota_bytes: int = QUOTA_BYTES


class ResultService:
    """Used on the loop only."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        clusters: ClusterService,
        artefacts: ArtefactService,
        inside: WorkAccess,
        terms: Terms | None = None,
    ) -> None:
        """inside: the way into workloads."""
        self._store, self._clock, self._clusters, self._artefacts = store, clock, clusters, artefacts
        self._inside, self._terms = inside, terms or Terms()
        self._busy: set[WorkloadId] = set()
        self._followers = Counter[WorkloadId]()
        self._faults = Boundary("results", DATABASE_FAULTS)
        self._until_ns: dict[WorkloadId, int] = {}
        self.takes = Shares("results on their way", "They are brought in in turn.", TAKES)
        self._group: asyncio.TaskGroup | None = None
        self._queue = WorkQueue[ClusterId](clock)
        self._is_listed = False
        clusters.on_step(self._queue.add)

    # --- for routes --------------------------------------------------------------------------------------------------

    async def log(self, principal: Principal, cluster_id: ClusterId, offset: int, rank: int = 0) -> tuple[bytes, bool]:
        """The log of a member from byte `offset`, as far as it is known, and whether a cap has cut it."""

        async def kept(workload: Workload, results: Results) -> tuple[bytes, bool]:
            pieces = await self._kept(principal, workload, "log", results.log_bytes, results.problem)
            return b"".join([piece async for piece in pieces])[offset:], results.is_log_cut

        return await self._live_or(
            kept, principal, cluster_id, rank, lambda way: way.log(principal, cluster_id, offset, rank)
        )

    async def last_lines(self, principal: Principal, cluster_id: ClusterId, rank: int) -> tuple[str, ...]:
        """The last five lines of a member's log that say anything, each cut at 200 characters."""
        data, _ = await self.log(principal, cluster_id, 0, rank)
        text = data.decode(errors="replace")
        lines = ["".join(one if one.isprintable() else " " for one in line).strip() for line in text.splitlines()]
        return tuple(line[:LINE_CHARS] for line in lines if line)[-LINES:]

    async def follow(
        self, principal: Principal, cluster_id: ClusterId, offset: int, rank: int = 0
    ) -> AsyncGenerator[bytes]:
        """The same as it is written, until the work ends. Opened when this returns. Raises NotFound where less is kept
        than was read before."""

        async def kept(workload: Workload, results: Results) -> AsyncGenerator[bytes]:
            if results.is_log_cut and offset > (results.log_bytes or 0):
                said = f"Of this log its host has cleared all away but the first {results.log_bytes:,} bytes."
                raise NotFound(said, subject=cluster_id)
            pieces = await self._kept(principal, workload, "log", results.log_bytes, results.problem)
            return _from(pieces, offset)

        async def live(way: WorkAccess) -> AsyncGenerator[bytes]:
            pieces = await way.follow(principal, cluster_id, offset, rank)
            found = await self._member(principal, cluster_id, rank)
            return pieces if found is None else self._followed(found.workload_id, pieces)

        return await self._live_or(kept, principal, cluster_id, rank, live)

    async def _followed(self, workload_id: WorkloadId, pieces: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
        self._followers[workload_id] += 1
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    yield piece
        finally:
            self._followers[workload_id] -= 1
            if not self._followers[workload_id]:
                del self._followers[workload_id]

    async def files(
        self, principal: Principal, cluster_id: ClusterId, *, changed_only: bool, rank: int = 0, offset: int = 0
    ) -> tuple[AsyncGenerator[bytes], str]:
        """A member's working folder as a tar stream from byte `offset` on; of work that has ended what it changed. And
        the version of it: two streams of one version are the same bytes; empty: it may change. Opened when this
        returns. Raises Conflict where what is kept is less than what was begun to be read."""

        async def kept(workload: Workload, results: Results) -> tuple[AsyncGenerator[bytes], str]:
            if offset and results.problem:
                said = f"What is kept is less than its host had ({results.problem}). Fetch it from the start."
                raise Conflict(said, subject=cluster_id)
            pieces = await self._kept(principal, workload, "files.tar", results.files_bytes, results.problem)
            version = f"{workload.workload_id}.{'kept' if results.problem else 'changed'}"
            return _from(pieces if results.files_bytes else _once(EMPTY_TAR), offset), version

        async def live(way: WorkAccess) -> tuple[AsyncGenerator[bytes], str]:
            found = await self._member(principal, cluster_id, rank)
            pieces = await way.fetch_files(principal, cluster_id, changed_only=changed_only, rank=rank, offset=offset)
            if found is None or found.phase is not WorkPhase.EXITED:
                return pieces, ""
            return pieces, f"{found.workload_id}.{'changed' if changed_only else 'all'}"

        return await self._live_or(kept, principal, cluster_id, rank, live)

    async def _live_or(
        self,
        kept: Callable[[Workload, Results], Coroutine[Any, Any, T]],
        principal: Principal,
        cluster_id: ClusterId,
        rank: int,
        live: Callable[[WorkAccess], Coroutine[Any, Any, T]],
    ) -> T:
        """From what is kept, else from the host: what it clears away while somebody reads there is kept by then."""
        found = await self._member(principal, cluster_id, rank)
        if found is None or found.results is None:
            try:
                return await live(self._inside)
            except WindrowError:
                found = await self._member(principal, cluster_id, rank)
                if found is None or found.results is None:
                    raise
        return await kept(found, found.results)

    async def _member(self, principal: Principal, cluster_id: ClusterId, rank: int) -> Workload | None:
        view = await self._clusters.get_own(principal, cluster_id)
        return next((one for one in view.workloads if one.is_member and one.rank == rank), None)

    async def _kept(
        self, principal: Principal, workload: Workload, what: str, size: int | None, problem: str
    ) -> AsyncIterator[bytes]:
        if size is None:
            raise NotFound(f"It is not kept: {problem}", subject=workload.cluster_id)
        if size == 0:
            return _nothing()
        try:
            _, pieces = await self._artefacts.get(principal, ("cluster", workload.cluster_id), _name(workload, what))
        except NotFound:
            said = f"The log and files of ended work are kept for {KEPT_DAYS} days, or until it is deleted."
            raise NotFound(said, subject=workload.cluster_id) from None
        return pieces

    # --- bringing in -------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Bring in what there is, until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                await when_due(self.tick, self._queue, LOOK_NS, "results")
            finally:
                self._group = None

    async def tick(self) -> None:
        """Look at the clusters to which something has happened, or whose work has ended and is not brought in yet."""
        assert self._group is not None, "it runs"
        if not self._is_listed:
            for cluster_id in await self._store.read(lookup.with_ended_work):
                self._queue.add(cluster_id)
            self._is_listed = True
        clusters = self._queue.take()
        if not clusters:
            return
        try:
            due = await self._store.read(partial(lookup.ended_work, cluster_ids=clusters))
            failed = await self._store.read(partial(lookup.first_ends, cluster_ids=clusters))
        except BaseException:
            for cluster_id in clusters:
                self._queue.add(cluster_id)
            raise
        for workload, cluster in failed:
            self._queue.add(cluster.cluster_id)
            if workload.workload_id not in self._busy and not self._faults.skips(workload.workload_id):
                with suppress(TooMany):
                    self._begin(workload, cluster, self._group, self._tell_first_end)
        for workload, cluster in due:
            self._queue.add(cluster.cluster_id)  # until they are kept it is in every look
            if workload.workload_id in self._busy or self._faults.skips(workload.workload_id):
                continue
            with self._faults.around(workload.workload_id, "look"):
                await self._look_at(workload, cluster, self._group)

    async def _look_at(self, workload: Workload, cluster: Cluster, group: asyncio.TaskGroup) -> None:
        if self._faults.is_spent(workload.workload_id):
            await self._keep(workload, self._lost(GIVEN_UP))
        elif not has_results(workload):
            await self._keep(workload, self._lost(workload.detail or "its host cleared them away"))
        elif is_given_up(workload, self._clock.wall_ns()):
            await self._keep(workload, self._lost("its host was not heard of for 30 minutes"))
        elif workload.lost_since_ns is None:
            with suppress(TooMany):  # a later look finds a share
                self._begin(workload, cluster, group, self._take)

    def _begin(self, workload: Workload, cluster: Cluster, group: asyncio.TaskGroup, work: Work) -> None:
        share = self.takes.take(cluster.account_id)
        self._busy.add(workload.workload_id)
        group.create_task(self._guarded(workload, cluster, share, work), name=f"results {workload.workload_id}")

    async def _guarded(self, workload: Workload, cluster: Cluster, share: Share, work: Work) -> None:
        try:
            with share:
                await work(workload, cluster)
            self._faults.went_well(workload.workload_id, "work")
        except WindrowError as error:
            log.info("results_wait", workload_id=workload.workload_id, error=str(error))
            await self._clock.sleep_ns(AGAIN_NS)
        except Exception:  # the task's top level: the others go on
            self._faults.crashed(workload.workload_id, "work")
            await self._clock.sleep_ns(AGAIN_NS)
        finally:
            self._busy.discard(workload.workload_id)

    async def _take(self, workload: Workload, cluster: Cluster) -> None:
        """Bring in the log and the changed files within their time, then let its host clear up."""
        until_ns = self._until_ns.setdefault(workload.workload_id, self._clock.monotonic_ns() + TAKE_NS)
        results = Results(self._clock.wall_ns())
        try:
            async with asyncio.timeout(TAKE_NS / SECOND):
                results = await self._take_log(workload, cluster, results)
                results = await self._take_files(workload, cluster, results)
        except TimeoutError:
            results = _missing(results, f"its host did not hand it over within {TAKE_NS // MINUTE} minutes")
        except WindrowError as error:
            if error.retryable and self._clock.monotonic_ns() < until_ns:
                raise
            results = _missing(results, error.detail or error.code)
        await self._until_followed(workload.workload_id)
        await self._keep(workload, results)

    async def _tell_first_end(self, workload: Workload, cluster: Cluster) -> None:
        lines: tuple[str, ...] = ()
        with suppress(WindrowError, TimeoutError):
            async with asyncio.timeout(LINES_NS / SECOND):
                lines = await self.last_lines(self._principal(cluster), cluster.cluster_id, workload.rank)
        tell = partial(self._clusters.lifecycle.tell_first_end, cluster_id=cluster.cluster_id, lines=lines)
        await self._store.write(tell, name="cluster.first_end")

    async def _until_followed(self, workload_id: WorkloadId) -> None:
        """Wait for those who follow its log: of a long one its host has more than what is kept."""
        until_ns = self._clock.monotonic_ns() + FOLLOWED_NS
        while self._followers[workload_id] and self._clock.monotonic_ns() < until_ns:
            await self._clock.sleep_ns(FOLLOWED_LOOK_NS)

    def _lost(self, why: str) -> Results:
        return _missing(Results(self._clock.wall_ns()), why)

    async def _take_log(self, workload: Workload, cluster: Cluster, results: Results) -> Results:
        principal = self._principal(cluster)
        data, is_cut = await self._inside.log(principal, cluster.cluster_id, 0, workload.rank)
        if not data:
            return replace(results, log_bytes=0)
        data += LOG_CUT if is_cut else b""
        room = await self._room(cluster)
        if len(data) > room:
            problem = f"its log ({len(data):,} bytes) is over half of what is left of your quota ({room:,} bytes)"
            return replace(results, problem=problem)
        await self._put(cluster, _name(workload, "log"), _once(data))
        return replace(results, log_bytes=len(data), is_log_cut=is_cut)

    async def _take_files(self, workload: Workload, cluster: Cluster, results: Results) -> Results:
        principal = self._principal(cluster)
        sieve, size = TarSieve(await self._room(cluster)), 0
        fetched = self._inside.fetch_files(principal, cluster.cluster_id, changed_only=True, rank=workload.rank)
        async with aclosing(await fetched) as pieces:
            head = bytearray()
            async for piece in pieces:
                head += sieve.feed(piece)
                if sieve.members:
                    size = await self._put(cluster, _name(workload, "files.tar"), _sieved(bytes(head), pieces, sieve))
                    break
        said = (results.problem, _left_out(sieve) if sieve.left_out else "")
        return replace(results, files_bytes=size, problem="; ".join(part for part in said if part))

    async def _put(self, cluster: Cluster, name: str, pieces: AsyncIterator[bytes]) -> int:
        owner = "cluster", cluster.cluster_id
        made = await self._artefacts.put_for(cluster.account_id, owner, name, pieces, self._terms.kept_ns)
        return made.size_bytes

    async def _room(self, cluster: Cluster) -> int:
        """For one log or folder: half of what is left, so that no single host fills an account's quota."""
        used = await self._store.read(lambda uow: uow[ArtefactRepository].used_below(cluster.account_id, f"{ROOT}/"))
        return max(0, self._terms.quota_bytes - used) // 2

    async def _keep(self, workload: Workload, results: Results) -> None:
        def keep(uow: UnitOfWork) -> None:
            self._clusters.lifecycle.keep_results(uow, workload.workload_id, results)

        await self._store.write(keep, name="cluster.results")
        self._until_ns.pop(workload.workload_id, None)
        self._faults.forget(workload.workload_id)

    def _principal(self, cluster: Cluster) -> Principal:
        """The account of a cluster, as who reaches into its own."""
        account_id: AccountId = cluster.account_id
        lives_until_ns = self._clock.wall_ns() + _LIFE_NS
        return Principal(account_id, cluster.name, frozenset({Role.RENTER}), TokenId(""), "results", lives_until_ns)


def _name(workload: Workload, what: str) -> str:
    return f"{ROOT}/{workload.rank}/{what}"


def _missing(results: Results, why: str) -> Results:
    """The same without what has not come yet, and why."""
    absent = [name for name, size in (("log", results.log_bytes), ("files", results.files_bytes)) if size is None]
    said = f"{' and '.join(absent)}: {why}" if absent else ""
    return replace(results, problem="; ".join(part for part in (results.problem, said) if part))


def _left_out(sieve: TarSieve) -> str:
    more = f" and {sieve.left_out - len(sieve.names)} more" if sieve.left_out > len(sieve.names) else ""
    what = f"{', '.join(sieve.names)}{more} ({sieve.left_out_bytes:,} bytes)"
    return f"{what}: beyond half of what is left of your quota of results"


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def _nothing() -> AsyncIterator[bytes]:
    return
    yield b""


async def _from(pieces: AsyncIterator[bytes], offset: int) -> AsyncGenerator[bytes]:
    at = 0
    async for piece in pieces:
        skip = max(0, offset - at)
        at += len(piece)
        if skip < len(piece):
            yield piece[skip:]


async def _sieved(head: bytes, pieces: AsyncIterator[bytes], sieve: TarSieve) -> AsyncIterator[bytes]:
    yield head
    async for piece in pieces:
        if kept := sieve.feed(piece):
            yield kept
