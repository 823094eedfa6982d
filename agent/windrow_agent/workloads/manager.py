"""Manages the workloads of this host: starts, watches, bills, ends and removes them, and survives its own restarts.

Every change is decided by core/workload.py, journaled, and only then told. Nothing is started twice: what a crash
left half done is looked for in its runtime first.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Final

import structlog

from windrow_agent.core import lease as leases
from windrow_agent.core import workload as work
from windrow_agent.core.workload import WorkloadState
from windrow_agent.link.outbox import Outbox
from windrow_agent.runtimes.port import Progress, Run, RunState, Runtime, RuntimeSilent, worded
from windrow_agent.storage import journal as facts
from windrow_agent.storage.journal import JournalWriter
from windrow_agent.workloads.lease_exit_check import LeaseExitCheck
from windrow_agent.workloads.member_barrier import MemberBarrier
from windrow_agent.workloads.orphans import ORPHANS_EVERY_NS, Orphans
from windrow_agent.workloads.volume_hold import VolumeHold
from windrow_proto.conditions import ConditionCode
from windrow_proto.errors import Conflict, NotFound, RuntimeUnavailable, StorageFailed, WindrowError
from windrow_proto.ids import WorkloadId
from windrow_proto.model import (
    Event,
    Kind,
    Lane,
    LeaseRenewal,
    Observed,
    ObservedWorkload,
    WorkloadPhase,
    WorkloadSpec,
    observed_digest,
)
from windrow_proto.ports import Clock
from windrow_proto.units import MINUTE, SECOND, seconds
from windrow_proto.wire_host import encode_event, encode_observed, encode_receipt

log = structlog.get_logger()

PREPARE_NS: Final = 30 * MINUTE
"""For pulling an image of tens of gigabytes over a slow line."""
START_NS: Final = MINUTE
LAPSE_GRACE_NS: Final = 10 * SECOND
"""Between SIGTERM and SIGKILL when nobody named a grace."""
LOOK_NS: Final = SECOND
GONE_KEPT_NS: Final = 10 * MINUTE
"""How long what is gone is still told of: longer than a Master needs to come back."""
GONE_KEPT: Final = 256
"""And of how many at most: every report names all of them."""
HOST_STOPPED, FENCED, LOST, EXITED, DELETED = "host_stopped", "fenced", "lost", "exited", "deleted"
"""Why a workload ended, as its receipt says it."""

Message = tuple[Kind, bytes]
Spawn = Callable[[Coroutine[Any, Any, None], str], "asyncio.Task[None]"]


class WorkloadManager:
    """All workloads of one host."""

    def __init__(
        self,
        writer: JournalWriter,
        outbox: Outbox,
        runtimes: Mapping[str, Runtime],
        clock: Clock,
        kernel_boot: str,
        spawn: Spawn,
        lease_exit: LeaseExitCheck | None = None,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """changed: called when `conditions` are others."""
        self.journal, self.runtimes, self._lease_exit = writer.journal, runtimes, lease_exit
        self._writer, self._outbox, self._clock, self._kernel_boot, self._spawn = (
            writer,
            outbox,
            clock,
            kernel_boot,
            spawn,
        )
        self._locks: dict[WorkloadId, asyncio.Lock] = {}
        self._barrier, self.volume_hold = MemberBarrier(), VolumeHold(clock)
        self._watches: dict[WorkloadId, asyncio.Task[None]] = {}
        self._ending, self._lapsing = set[WorkloadId](), set[WorkloadId]()
        self._silent, self._changed = set[WorkloadId](), changed
        self._halted: dict[WorkloadId, str] = {}
        self._gone_ns: dict[WorkloadId, int] = {}
        self._orphans = Orphans(self.journal, runtimes)
        self._told: bytes | None = None

    # --- what others read -----------------------------------------------------------------------------------------

    def state(self, workload_id: WorkloadId) -> WorkloadState | None:
        """The known state of one workload."""
        return entry.state if (entry := self.journal.workloads.get(workload_id)) else None

    def awaits_files(self, workload_id: WorkloadId) -> bool:
        """True if it starts once its files have come."""
        state = self.state(workload_id)
        return state is not None and state.phase is WorkloadPhase.WAITING_FILES

    def observed(self) -> tuple[ObservedWorkload, ...]:
        """All workloads, those lately gone included."""
        return tuple(work.observed(entry.state) for _, entry in sorted(self.journal.workloads.items()))

    @property
    def conditions(self) -> tuple[str, ...]:
        """The condition of a host on which an end waits for the container daemon."""
        return (ConditionCode.DOCKER_SILENT.value,) if self._silent else ()

    def digest(self) -> bytes:
        """Of what the Master should know."""
        return observed_digest(self.observed())

    @property
    def is_empty(self) -> bool:
        """True if nothing is left of any workload."""
        return all(entry.state.phase is WorkloadPhase.GONE for entry in self.journal.workloads.values())

    def running(self) -> int:
        """The number of workloads that run now."""
        return len(self.running_states())

    def running_states(self) -> tuple[WorkloadState, ...]:
        """Those that run now."""
        states = (entry.state for entry in self.journal.workloads.values())
        return tuple(state for state in states if state.phase is WorkloadPhase.RUNNING)

    def leased_gpus(self) -> dict[str, str]:
        """The GPUs that workloads hold, and which one each."""
        held = ((i, e.state) for i, e in self.journal.workloads.items() if e.state.phase not in work.ENDED)
        return {slot.gpu_uuid: workload_id for workload_id, state in held for slot in state.slots if slot.gpu_uuid}

    def runtime_of(self, workload_id: WorkloadId) -> Runtime:
        """The runtime that has this workload; raises NotFound or RuntimeUnavailable."""
        state = self.state(workload_id)
        if state is None or state.phase is WorkloadPhase.GONE:
            raise NotFound(f"This host has no workload {workload_id}.", subject=workload_id)
        runtime = self.runtimes.get(state.runtime)
        if runtime is None:
            raise RuntimeUnavailable(f"The runtime {state.runtime!r} is not available on this host.")
        return runtime

    # --- commands -------------------------------------------------------------------------------------------------

    async def create(self, spec: WorkloadSpec, progress: Progress) -> Mapping[str, str]:
        """Prepare and start it; returns what the command's result says. Raises a WindrowError if it cannot run."""
        await self._end_older_holders(spec)
        try:
            return await self._create(spec, progress)
        except WindrowError as error:
            await self.give_up(spec, error.detail)
            raise

    async def give_up(self, spec: WorkloadSpec, why: str) -> None:
        """Removes the begun parts of a workload that cannot be made."""
        runtime = self.runtimes.get(spec.runtime)
        is_unmade = runtime is not None and not runtime.may_have(spec.workload_id)
        await self._apply(spec.workload_id, work.Broke(why, is_unmade))
        if runtime is not None:
            with contextlib.suppress(WindrowError):
                await runtime.remove(spec.workload_id)

    async def _create(self, spec: WorkloadSpec, progress: Progress) -> Mapping[str, str]:
        runtime = self.runtime_of(spec.workload_id)
        with worded("Preparing", "30 minutes"):
            async with asyncio.timeout(seconds(PREPARE_NS)):
                await runtime.prepare(spec, progress)
        modes = self._lease_exit.modes(spec.slots) if self._lease_exit else {}
        effects = await self._apply(spec.workload_id, work.Prepared(modes))
        if work.Start() not in effects:
            await self._barrier.through(spec.workload_id, partial(self._awaited, spec.workload_id), progress)
        if self._is_over(spec.workload_id):
            raise Conflict("The workload was ended before it started.", subject=spec.workload_id)
        progress("starting", 0)
        with worded("The start", "a minute"):
            async with asyncio.timeout(seconds(START_NS)):
                run = await runtime.start(spec.workload_id)
        if self._is_over(spec.workload_id):
            # Its end found nothing to stop yet; nobody would look for it again before the orphans are.
            await runtime.stop(spec.workload_id, 0)
            raise Conflict("The workload was ended while it was starting.", subject=spec.workload_id)
        await self._started(spec.workload_id, run)
        return run.told()

    def _is_over(self, workload_id: WorkloadId) -> bool:
        """True if it was deleted, fenced or its time ran out, maybe while it was still being prepared."""
        state = self.state(workload_id)
        ended = state is None or state.phase in (WorkloadPhase.STOPPING, WorkloadPhase.GONE)
        return ended or workload_id in self.journal.tombstones or workload_id in self._halted

    async def adopt(self, spec: WorkloadSpec) -> bool:
        """After a crash: whether it is there and ran; then it is watched. Raises RuntimeUnavailable if unknowable."""
        run = await self.runtime_of(spec.workload_id).observe(spec.workload_id)
        if run is None or run.state is RunState.CREATED:
            return False
        await self._started(spec.workload_id, run)
        return True

    def has_run(self, workload_id: WorkloadId) -> bool:
        """True if the journal says that this workload was started."""
        state = self.state(workload_id)
        return state is not None and state.phase in (WorkloadPhase.RUNNING, WorkloadPhase.EXITED)

    async def came(self, workload_id: WorkloadId, what: work.VolumesCame | work.FilesCame | work.MembersCame) -> None:
        """Volumes are in place, a files channel was closed with commit, or all members are ready: it goes on."""
        await self._apply(workload_id, what)

    async def delete(self, workload_id: WorkloadId, grace_ns: int, progress: Progress) -> None:
        """End and remove it, wherever it is; its tombstone is on the disk already."""
        progress("stopping", 0)
        if self.state(workload_id) is None:
            for runtime in self.runtimes.values():  # a container without a memory of it: still ours by its mark
                with contextlib.suppress(RuntimeUnavailable):
                    await runtime.remove(workload_id)
            return
        await self.end(workload_id, DELETED, grace_ns)

    async def end(self, workload_id: WorkloadId, reason: str, grace_ns: int = LAPSE_GRACE_NS) -> None:
        """Stop and remove a workload; safe to repeat and to call while another end is under way."""
        try:
            await self._apply(workload_id, work.EndAsked(reason))
        except StorageFailed:
            await self.halt(workload_id, reason, grace_ns)
            raise
        while workload_id in self._ending:
            await self._clock.sleep_ns(LOOK_NS // 20)
        state = self.state(workload_id)
        if state is None or state.phase is WorkloadPhase.GONE:
            return
        self._ending.add(workload_id)
        try:
            await self._end(state, grace_ns)
        except RuntimeSilent:
            self._note_silent(workload_id, True)  # a container of it may run: its slots stay in use until that is known
            raise
        else:
            self._note_silent(workload_id, False)
        finally:
            self._ending.discard(workload_id)

    def _note_silent(self, workload_id: WorkloadId, is_silent: bool) -> None:
        before = self.conditions
        (self._silent.add if is_silent else self._silent.discard)(workload_id)
        if self.conditions != before:
            self._changed()

    async def stop(self, workload_id: WorkloadId, grace_ns: int) -> None:
        """End what runs of it; its log and files stay, as if it had ended by itself. Raises Conflict where nothing of
        it has run, RuntimeUnavailable."""
        state = self.state(workload_id)
        if state is None or state.phase not in (WorkloadPhase.RUNNING, WorkloadPhase.EXITED):
            raise Conflict("The workload does not run here, so there is nothing to keep of it.", subject=workload_id)
        if state.phase is WorkloadPhase.RUNNING:
            self._halted.setdefault(workload_id, DELETED)
            await self.runtime_of(workload_id).stop(workload_id, grace_ns)

    async def halt(self, workload_id: WorkloadId, reason: str, grace_ns: int = LAPSE_GRACE_NS) -> None:
        """Stop a workload although the disk takes no note of it: no right to run ever hangs on a journal that works.

        What it ran is read from the runtime's own records once it can be written down, and told under this reason.
        """
        state = self.state(workload_id)
        runtime = self.runtimes.get(state.runtime) if state else None
        if state is None or runtime is None or state.phase in work.ENDED:
            return
        self._halted.setdefault(workload_id, reason)
        with contextlib.suppress(WindrowError):  # asked again, by whoever asked for this
            await runtime.stop(workload_id, grace_ns)

    async def _end(self, state: WorkloadState, grace_ns: int) -> None:
        workload_id = state.workload_id
        runtime = self.runtimes.get(state.runtime)
        if runtime is not None and not state.is_unmade:
            await runtime.stop(workload_id, grace_ns)
            run = await runtime.observe(workload_id)
            if run is not None and run.state is not RunState.CREATED:
                if state.started_wall_ns is None:
                    await self._apply(workload_id, work.Started(run.started_wall_ns or 0, run.running_ns, run.ports))
                await self._ended(workload_id, run, state.end_reason)
                if state.keeps_volumes and state.end_reason not in (HOST_STOPPED, FENCED):
                    await self.volume_hold.through(workload_id)
            await runtime.remove(workload_id)
            if await runtime.observe(workload_id) is not None:
                # With the word that it is gone its slots are free for the next one: only once nothing of it is left.
                raise RuntimeUnavailable(
                    f"Workload {workload_id} has ended, and its runtime has not cleared it away yet."
                )
        faults = await self._lease_exit.faults(self.state(workload_id) or state) if self._lease_exit else {}
        await self._apply(workload_id, work.Removed(faults))
        await self._writer.write([facts.lease_gone(workload_id)])
        self._gone_ns[workload_id] = self._clock.monotonic_ns()
        if (watch := self._watches.pop(workload_id, None)) and watch is not asyncio.current_task():
            watch.cancel()

    async def _end_older_holders(self, spec: WorkloadSpec) -> None:
        """A slot has one holder: who holds it under a lower token ends before the new one starts."""
        wanted = {slot.slot_id for slot in spec.slots}
        for workload_id, entry in list(self.journal.workloads.items()):
            held = {slot.slot_id for slot in entry.state.slots}
            if workload_id != spec.workload_id and held & wanted and entry.state.phase is not WorkloadPhase.GONE:
                await self.end(workload_id, FENCED, 0)

    async def renew(self, renewals: tuple[LeaseRenewal, ...]) -> None:
        """Set deadlines anew, counted from now."""
        now_ns, book = self._clock.monotonic_ns(), self.journal.book
        for renewal in renewals:
            book = leases.renew(book, renewal, now_ns)
        changed = [lease for key, lease in book.leases.items() if self.journal.book.leases.get(key) != lease]
        await self._writer.write([facts.lease_fact(lease, self._kernel_boot) for lease in changed])

    # --- running --------------------------------------------------------------------------------------------------

    async def recover(self) -> None:
        """Go on where the last agent stopped: tell finals that were not told, watch what runs, end what was ending."""
        for workload_id, state in [(key, entry.state) for key, entry in self.journal.workloads.items()]:
            if state.phase is WorkloadPhase.RUNNING:
                self._watch(workload_id, was_seen=False)
            elif state.phase is WorkloadPhase.STOPPING:
                self._spawn(self._retry_end(workload_id), f"end {workload_id}")
            elif state.phase is WorkloadPhase.GONE:
                self._gone_ns[workload_id] = self._clock.monotonic_ns()
        with contextlib.suppress(StorageFailed):  # told by the sweep: a full disk keeps no host from its link
            await self._tell_finals()
            await self.tell_observed(is_asked=True)

    async def run(self) -> None:
        """End what lapses, forget what is long gone, remove what nobody asked for; until cancelled.

        Two loops: a runtime that hangs while it lists what it has must not keep anything running past its time.
        """
        async with asyncio.TaskGroup() as loops:
            loops.create_task(self._end_lapsed(), name="leases")
            loops.create_task(self._sweep(), name="orphans")

    async def _end_lapsed(self) -> None:
        while True:
            await self._writer.wait_leased()
            now_ns = self._clock.monotonic_ns()
            for lapse in leases.lapsed(self.journal.book, now_ns):
                if lapse.workload_id not in self._lapsing:
                    self._lapsing.add(lapse.workload_id)
                    self._spawn(self._lapse(lapse), f"lapse {lapse.workload_id}")
            deadline_ns = leases.next_deadline_ns(self.journal.book)
            is_ahead = deadline_ns is not None and deadline_ns > now_ns
            wait_ns = min(LOOK_NS, deadline_ns - now_ns) if deadline_ns is not None and is_ahead else LOOK_NS
            await self._clock.sleep_ns(max(wait_ns, LOOK_NS // 50))

    async def _sweep(self) -> None:
        while True:
            now_ns = self._clock.monotonic_ns()
            await self._orphans.reap(now_ns)
            with contextlib.suppress(StorageFailed):
                await self._tell_finals()
            await self._forget_gone(now_ns)
            await self._clock.sleep_ns(ORPHANS_EVERY_NS)

    async def end_all(self, reason: str = HOST_STOPPED) -> None:
        """The host stops: end everything, with its final receipts."""
        for workload_id, entry in list(self.journal.workloads.items()):
            if entry.state.phase is not WorkloadPhase.GONE:
                try:
                    await self.end(workload_id, reason)
                except WindrowError as error:
                    log.warning("workload_not_ended", workload_id=workload_id, detail=error.detail)

    async def tell_observed(self, is_asked: bool = False) -> None:
        """Send what runs here, if it differs from what was sent last or somebody asks."""
        if news := self._news(is_asked):
            await self._outbox.put_all(Lane.EVIDENCE, news)

    # --- inside ---------------------------------------------------------------------------------------------------

    async def _apply(self, workload_id: WorkloadId, event: work.Event) -> tuple[work.Effect, ...]:
        """Decide, journal, tell; returns the effects, of which Start and StopAndRemove are the caller's to do."""
        async with self._locks.setdefault(workload_id, asyncio.Lock()):
            entry = self.journal.workloads.get(workload_id)
            if entry is None:
                return ()
            state, effects = work.step(entry.state, event)
            if state == entry.state and not effects:
                return ()
            if state != entry.state:
                await self._writer.write([facts.workload_fact(state, entry.is_final_spooled)])
                self._barrier.wake(workload_id)
            is_receipted = any(isinstance(effect, work.SendReceipt) for effect in effects)
            news = [self._receipt(state)] if is_receipted else []
            if work.SendObserved() in effects:
                log.info("workload_phase", workload_id=workload_id, phase=state.phase.name, reason=state.end_reason)
                news += self._news()
            await self._spool(state if is_receipted else None, news)
        return effects

    async def _tell_finals(self) -> None:
        """Spool the final receipts that the disk refused when they were due, in this life or an earlier one."""
        for workload_id in list(filter(self.journal.owes_final, self.journal.workloads)):
            async with self._locks.setdefault(workload_id, asyncio.Lock()):
                if self.journal.owes_final(workload_id) and (state := self.state(workload_id)):
                    await self._spool(state, [self._receipt(state)])

    async def _spool(self, receipted: WorkloadState | None, news: list[Message]) -> None:
        """Store what is to be told with one fsync; then note that the final receipt, if it was among it, is there."""
        if news:
            await self._outbox.put_all(Lane.EVIDENCE, news)
        if receipted is not None and receipted.is_final_sent:
            await self._writer.write([facts.workload_fact(receipted, True)])

    def _receipt(self, state: WorkloadState) -> Message:
        return Kind.RECEIPT, encode_receipt(work.receipt(state, self._clock.wall_ns()))

    def _news(self, is_asked: bool = False) -> list[Message]:
        """The workloads that run here, if they differ from what was told last or somebody asks."""
        digest = observed_digest(workloads := self.observed())
        if digest == self._told and not is_asked:
            return []
        self._told = digest
        return [(Kind.OBSERVED, encode_observed(Observed(workloads, digest, self._clock.wall_ns())))]

    async def _started(self, workload_id: WorkloadId, run: Run) -> None:
        started_wall_ns = run.started_wall_ns if run.started_wall_ns is not None else self._clock.wall_ns()
        await self._apply(workload_id, work.Started(started_wall_ns, run.running_ns, run.ports))
        self._watch(workload_id, was_seen=True)

    async def _ended(self, workload_id: WorkloadId, run: Run, reason: str) -> None:
        told = reason or (EXITED if run.state is RunState.EXITED else LOST)
        await self._apply(workload_id, work.Ended(run.exit_code, run.running_ns, told, run.detail))

    def _watch(self, workload_id: WorkloadId, *, was_seen: bool) -> None:
        """Look at it until it ends. was_seen: just now, so that the first look can wait like every other."""
        if (known := self._watches.get(workload_id)) is None or known.done():
            self._watches[workload_id] = self._spawn(self._watching(workload_id, was_seen), f"watch {workload_id}")

    async def _watching(self, workload_id: WorkloadId, was_seen: bool) -> None:
        runtime = self.runtime_of(workload_id)
        if was_seen:
            await runtime.pause(workload_id, self._clock)
        receipt_ns = self._clock.monotonic_ns() + work.RECEIPT_EVERY_NS
        while True:
            state = self.state(workload_id)
            if state is None or state.phase is not WorkloadPhase.RUNNING:
                return
            with contextlib.suppress(StorageFailed, RuntimeUnavailable):  # told again, looked at again
                run = await runtime.observe(workload_id)
                if run is None or run.state is not RunState.RUNNING:
                    await self._saw_end(state, run)
                    return
                if self._clock.monotonic_ns() >= receipt_ns:
                    receipt_ns += work.RECEIPT_EVERY_NS
                    await self._apply(workload_id, work.Ran(run.running_ns))
            await runtime.pause(workload_id, self._clock)

    async def _saw_end(self, state: WorkloadState, run: Run | None) -> None:
        workload_id = state.workload_id
        if workload_id in self._ending:
            return  # whoever ends it tells why
        if run is None:
            run = Run(workload_id, state.cluster_id, state.slots, state.runtime, RunState.LOST, detail=work.TAKEN_AWAY)
        await self._ended(workload_id, run, self._halted.get(workload_id, ""))
        code = "" if run.exit_code is None else str(run.exit_code)
        event = Event(f"workload.{run.state.value}", self._clock.wall_ns(), workload_id, "", {"exit_code": code})
        await self._outbox.put(Lane.EVIDENCE, Kind.EVENT, encode_event(event))

    async def _lapse(self, lapse: leases.Lapse) -> None:
        log.warning("lease_over", workload_id=lapse.workload_id, reason=lapse.reason)
        try:
            # Journaled at once: from here on it is not renewed any more, and it ends even if this agent dies now.
            await self._apply(lapse.workload_id, work.EndAsked(lapse.reason))
            await self._writer.write([facts.lease_gone(lapse.workload_id)])
        except StorageFailed as error:
            log.error("lapse_not_stored", workload_id=lapse.workload_id, detail=error.detail)
        try:
            await self._retry_end(lapse.workload_id, lapse.reason)
        finally:
            self._lapsing.discard(lapse.workload_id)

    async def _retry_end(self, workload_id: WorkloadId, reason: str = DELETED) -> None:
        while True:
            try:
                await self.end(workload_id, reason)
                return
            except (RuntimeUnavailable, StorageFailed) as error:
                log.warning("end_delayed", workload_id=workload_id, detail=error.detail)
                await self._clock.sleep_ns(5 * SECOND)

    async def _forget_gone(self, now_ns: int) -> None:
        owes, beyond = self.journal.owes_final, len(self._gone_ns) - GONE_KEPT
        old = [
            key
            for place, (key, at_ns) in enumerate(self._gone_ns.items())
            if (place < beyond or now_ns - at_ns >= GONE_KEPT_NS) and not owes(key)
        ]
        await self._writer.write([facts.workload_gone(key) for key in old])
        for key in old:
            del self._gone_ns[key]
            self._halted.pop(key, None)
            self._locks.pop(key, None)
            self._barrier.forget(key)
            self.volume_hold.forget(key)
        if old:
            await self.tell_observed()

    def _awaited(self, workload_id: WorkloadId) -> str:
        """The condition that it waits for, as a step of its creation; empty: nothing more."""
        state = self.state(workload_id)
        return "" if state is None or self._is_over(workload_id) else work.AWAITED.get(state.phase, "")
