"""Executes the Master's commands: journals each, answers for it, and does it once, whatever repeats or crashes."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any, Final

import structlog

from windrow_agent.core import command as core
from windrow_agent.core import lease as leases
from windrow_agent.core import workload as work
from windrow_agent.core.command import CommandState, Phase
from windrow_agent.link.outbox import Outbox
from windrow_agent.overlay.manager import OverlayManager
from windrow_agent.runtimes.port import FILES_CAP_BYTES, LOG_CAP_BYTES, Progress
from windrow_agent.storage import journal as facts
from windrow_agent.storage.journal import JournalWriter
from windrow_agent.workloads.manager import DELETED, Spawn, WorkloadManager
from windrow_agent.workloads.member_barrier import member_refusal
from windrow_agent.workloads.partition import Partitioner
from windrow_proto.errors import (
    Conflict,
    Fenced,
    InvalidInput,
    RuntimeUnavailable,
    StorageFailed,
    TooMany,
    Unavailable,
    WindrowError,
)
from windrow_proto.ids import CommandId
from windrow_proto.messages import Query
from windrow_proto.model import (
    BandwidthSpec,
    Command,
    CommandKind,
    CommandPhase,
    CommandStatus,
    Kind,
    Lane,
    StartSpec,
    WorkloadPhase,
    WorkloadSpec,
)
from windrow_proto.ports import Clock
from windrow_proto.sealed import SealKey
from windrow_proto.units import SECOND
from windrow_proto.wire_command import encode_status

log = structlog.get_logger()

OPEN_MAX: Final = 256
"""Commands that are not finished; more are refused, and the Master may try again."""
SAY_EVERY_NS: Final = SECOND
"""Between two reports of progress within one step: each costs an fsync here and a row there."""

STORE_AGAIN_NS: Final = 5 * SECOND
"""Until a result or a delete that the disk refused is tried again."""

Measure = Callable[[BandwidthSpec], Awaitable[Mapping[str, str]]]
Benchmark = Callable[[], Awaitable[Mapping[str, str]]]
RAN: Final = "The workload was started, and nothing of it is there any more. It is not started a second time."


class CommandExecutor:
    """All commands of one host. measure and benchmark do what their commands ask and return the result's words."""

    def __init__(
        self,
        writer: JournalWriter,
        outbox: Outbox,
        workloads: WorkloadManager,
        clock: Clock,
        kernel_boot: str,
        spawn: Spawn,
        measure: Measure,
        benchmark: Benchmark,
        is_disk_full: Callable[[], bool] = lambda: False,
        partitioner: Partitioner | None = None,
        overlays: OverlayManager | None = None,
        *,
        seal_key: SealKey,
    ) -> None:
        """seal_key: opens what was sealed for this host."""
        self._writer, self._journal, self._outbox, self._workloads = writer, writer.journal, outbox, workloads
        self._clock, self._kernel_boot, self._spawn = clock, kernel_boot, spawn
        self._overlays, self._seal_key = overlays, seal_key
        self._measure, self._benchmark, self._is_disk_full, self._partitioner = (
            measure,
            benchmark,
            is_disk_full,
            partitioner,
        )
        self._states = {key: entry.state for key, entry in self._journal.commands.items()}
        self._creating: dict[str, tuple[CommandId, asyncio.Task[None]]] = {}
        self._said_ns: dict[CommandId, int] = {}
        self._measuring = asyncio.Lock()
        self._untold: dict[CommandId, bytes] = {}
        self._is_telling = False

    async def arrived(self, command: Command) -> None:
        """A command came, for the first time or again."""
        state = self._states.get(command.command_id, CommandState(command.command_id))
        event = core.Arrived()
        if state.phase is Phase.NEW:
            refusal = self._refusal(command)
            if refusal is not None:
                event = core.Arrived(refusal.code, refusal.detail)
        try:
            await self._apply(command.command_id, event, command)
        except StorageFailed:
            if command.delete is not None and state.phase is Phase.NEW and not event.refusal_code:
                # Not answered, so it comes again; what it wants ended stops now, whatever the disk does.
                await self._workloads.halt(command.delete.workload_id, DELETED, max(0, command.delete.grace_ns))
            raise

    async def asked(self, query: Query) -> None:
        """The Master wants to know what became of these."""
        for command_id in query.command_ids:
            if command_id in self._states:
                await self._apply(command_id, core.Asked(), None)
            else:
                unknown = CommandStatus(command_id, CommandPhase.NEVER_SEEN, at_wall_ns=self._clock.wall_ns())
                await self._outbox.put(Lane.EVIDENCE, Kind.COMMAND_STATUS, encode_status(unknown))
        if query.observed:
            await self._workloads.tell_observed(is_asked=True)

    async def recover(self) -> None:
        """Go on with what the last agent of this host had not finished."""
        for command_id, entry in list(self._journal.commands.items()):
            if entry.state.phase not in core.FINAL:
                await self._apply(command_id, core.Resumed(), entry.command)

    # --- deciding -------------------------------------------------------------------------------------------------

    def _refusal(self, command: Command) -> WindrowError | None:
        unfinished = sum(state.phase not in core.FINAL for state in self._states.values())
        if unfinished >= OPEN_MAX and command.kind is not CommandKind.DELETE:
            return TooMany(f"This host has {unfinished} unfinished commands.")
        if command.kind is CommandKind.CREATE and command.create is not None:
            return self._create_refusal(command.create)
        if command.kind is CommandKind.DELETE and command.delete is not None:
            fenced = leases.fence_delete(self._journal.book, command.delete)
            return Fenced(fenced.detail) if fenced is not None else None
        if command.start is not None:
            return self._start_refusal(command.start)
        if command.kind is CommandKind.MEASURE_BANDWIDTH and command.bandwidth is not None:
            return None
        if command.kind is CommandKind.BENCHMARK:
            return None
        if command.partition is not None and self._partitioner is not None:
            return self._partitioner.refusal(command.partition)
        return InvalidInput(f"This agent knows no command {command.kind.name} of this form.")

    def _create_refusal(self, spec: WorkloadSpec) -> WindrowError | None:
        if self._is_disk_full():
            return Unavailable(
                "The disk of this host is full (agent.disk_full); the host starts nothing until space is free."
            )
        if spec.workload_id in self._journal.tombstones:
            return Conflict(f"{spec.workload_id} was deleted; what is deleted never runs again.")
        fenced = leases.fence(self._journal.book, spec.workload_id, spec.slots)
        if fenced is not None:
            return Fenced(fenced.detail)
        if spec.runtime not in self._workloads.runtimes:
            have = ", ".join(sorted(self._workloads.runtimes)) or "none"
            return RuntimeUnavailable(f"This host has no runtime {spec.runtime!r}; it has {have}.")
        known = self._workloads.state(spec.workload_id)
        if known is not None and known.phase is not WorkloadPhase.GONE:
            return Conflict(f"{spec.workload_id} is on this host already, by another command.")
        refusal = member_refusal(spec)
        if spec.peers:
            refusal = (
                self._overlays.refusal(spec)
                if self._overlays
                else RuntimeUnavailable("This agent has no private networks.")
            )
        if refusal is not None:
            return refusal
        return self._partitioner.create_refusal(spec) if self._partitioner is not None else None

    def _start_refusal(self, spec: StartSpec) -> WindrowError | None:
        fenced = leases.fence(self._journal.book, spec.workload_id, spec.slots)
        if fenced is not None:
            return Fenced(fenced.detail)
        known = self._workloads.state(spec.workload_id)
        if known is None or known.phase in (WorkloadPhase.STOPPING, *work.ENDED):
            return Conflict(
                f"{spec.workload_id} is not on this host, so it cannot be started.", subject=spec.workload_id
            )
        return None

    async def _apply(self, command_id: CommandId, event: core.Event, command: Command | None) -> None:
        """Decide one event and do its effects in order; the state is believed only once it is stored."""
        state = self._states.get(command_id, CommandState(command_id))
        after, effects = core.step(state, event)
        self._states[command_id] = after
        for effect in effects:
            try:
                await self._perform(after, effect, command)
            except WindrowError:
                if isinstance(effect, core.WriteReceived | core.WriteStarted | core.WriteDone):
                    self._states[command_id] = state  # not stored: as if it had not happened; the Master asks again
                raise

    async def _perform(self, state: CommandState, effect: core.Effect, command: Command | None) -> None:
        match effect:
            case core.WriteReceived():
                await self._writer.write(self._received_facts(state, command))
                await self._apply(state.command_id, core.Journaled(), command)
            case core.WriteStarted():
                await self._writer.write([facts.command_fact(state, None, self._clock.wall_ns())])
            case core.WriteDone():
                is_new = state.command_id not in self._journal.commands
                body = command if is_new else None
                await self._writer.write([facts.command_fact(state, body, self._clock.wall_ns())])
                self._said_ns.pop(state.command_id, None)
                log.info("command_done", command_id=state.command_id, phase=state.phase.name, code=state.error_code)
            case core.Report():
                self._report(state)
            case core.Enqueue():
                self._begin(state.command_id, command, self._run(state.command_id, command))
            case core.Investigate():
                self._begin(state.command_id, command, self._investigate(state.command_id, command))
            case core.Perform():
                pass  # done by the task that said Begun or Missed, right after

    def _received_facts(self, state: CommandState, command: Command | None) -> list[facts.Fact]:
        """The command with all it changes at once: tokens before anything starts, a tombstone before anything ends."""
        assert command is not None
        now_ns, wall_ns = self._clock.monotonic_ns(), self._clock.wall_ns()
        found = [facts.command_fact(state, command, wall_ns)]
        if command.kind is CommandKind.CREATE and command.create is not None:
            spec = command.create
            book = leases.mark(self._journal.book, spec.workload_id, spec.slots)
            book = leases.grant(book, spec, now_ns)
            found += facts.slot_facts(book, spec.slots)
            found.append(facts.lease_fact(book.leases[spec.workload_id], self._kernel_boot))
            found.append(facts.workload_fact(work.begin(spec), False))
        if command.kind is CommandKind.DELETE and command.delete is not None and not command.delete.keeps_files:
            found.append(facts.tombstone(command.delete.workload_id, wall_ns))
        return found

    def _report(self, state: CommandState) -> None:
        """Have the status told beside what is done next; of one command only the newest is still worth telling."""
        status = CommandStatus(
            state.command_id,
            core.REPORTED_AS[state.phase],
            state.step,
            state.progress_permille,
            state.error_code,
            state.error_detail[:2000],
            dict(state.result),
            self._clock.wall_ns(),
        )
        self._untold[state.command_id] = encode_status(status)
        if not self._is_telling:
            self._is_telling = True
            self._spawn(self._tell(), "statuses")

    async def _tell(self) -> None:
        """Until nothing is untold. What the disk refuses is told again when the Master asks."""
        failure: StorageFailed | None = None
        try:
            while self._untold:
                bodies = list(self._untold.values())
                self._untold.clear()
                try:
                    await self._outbox.put_all(Lane.EVIDENCE, [(Kind.COMMAND_STATUS, body) for body in bodies])
                except StorageFailed as error:
                    failure = error
        finally:
            self._is_telling = False
        if failure is not None:
            raise failure

    # --- doing ----------------------------------------------------------------------------------------------------

    def _begin(self, command_id: CommandId, command: Command | None, doing: Coroutine[Any, Any, None]) -> None:
        task = self._spawn(doing, f"command {command_id}")
        if command is not None and command.create is not None:
            workload_id = command.create.workload_id
            self._creating[workload_id] = command_id, task
            task.add_done_callback(lambda _: self._creating.pop(workload_id, None))

    async def _run(self, command_id: CommandId, command: Command | None) -> None:
        await self._settle(command_id, core.Begun("starting"), command)
        await self._do(command_id, command)

    async def _investigate(self, command_id: CommandId, command: Command | None) -> None:
        while command is not None and command.create is not None:
            try:
                if await self._workloads.adopt(command.create):
                    await self._apply(command_id, core.Finished({"adopted": "true"}), command)
                    return
                if self._workloads.has_run(command.create.workload_id):
                    await self._workloads.give_up(command.create, RAN)
                    await self._apply(command_id, core.Broke(Unavailable.code, RAN), command)
                    return
                break
            except RuntimeUnavailable as error:
                log.warning("cannot_look_yet", command_id=command_id, detail=error.detail)
                await self._clock.sleep_ns(5 * SECOND)
            except WindrowError as error:
                await self._apply(command_id, core.Broke(error.code, error.detail), command)
                return
        if command is None or command.kind in (CommandKind.MEASURE_BANDWIDTH, CommandKind.BENCHMARK):
            broke = core.Broke(Unavailable.code, "The agent was restarted while it measured; ask again.")
            await self._apply(command_id, broke, command)
            return
        await self._apply(command_id, core.Missed(), command)
        await self._do(command_id, command)

    async def _do(self, command_id: CommandId, command: Command | None) -> None:
        assert command is not None
        try:
            result = await self._carry_out(command_id, command)
        except WindrowError as error:
            await self._settle(command_id, core.Broke(error.code, error.detail), command)
        except asyncio.CancelledError:
            if command.create is None or command.create.workload_id not in self._journal.tombstones:
                raise  # the agent stops; the next one goes on with it
            broke = core.Broke(Conflict.code, "The workload was deleted before it was up.")
            await self._settle(command_id, broke, command)
        except Exception as error:  # the task's top level: whoever asked hears of our own mistakes, too
            log.exception("command_crashed", command_id=command_id)
            why = f"The agent itself failed ({type(error).__name__}); its log says more of {command_id}."
            if command.create is not None:
                with contextlib.suppress(WindrowError):
                    await self._workloads.give_up(command.create, why)
            await self._settle(command_id, core.Broke(WindrowError.code, why), command)
        else:
            await self._settle(command_id, core.Finished(result), command)

    async def _settle(self, command_id: CommandId, event: core.Event, command: Command | None) -> None:
        """Store and tell a step of what is under way; where the disk refuses, again, since nobody else will."""
        while True:
            try:
                await self._apply(command_id, event, command)
                return
            except StorageFailed as error:
                log.warning("result_not_stored", command_id=command_id, detail=error.detail)
                await self._clock.sleep_ns(STORE_AGAIN_NS)

    async def _delete(self, command: Command, progress: Progress) -> None:
        """End and remove the workload; a disk that refuses a note on the way delays it and does not save it."""
        assert command.delete is not None
        grace_ns = max(0, command.delete.grace_ns)
        while True:
            try:
                await self._workloads.delete(command.delete.workload_id, grace_ns, progress)
                return
            except StorageFailed as error:
                log.warning("delete_delayed", command_id=command.command_id, detail=error.detail)
                await self._clock.sleep_ns(STORE_AGAIN_NS)

    async def _carry_out(self, command_id: CommandId, command: Command) -> Mapping[str, str]:
        def progress(step: str, permille: int, /, **found: str) -> None:
            if self._is_worth_saying(command_id, step) or found:
                self._spawn(self._apply(command_id, core.Progressed(step, permille, found), command), "progress")

        if command.create is not None:
            return await self._create(_capped(command.create), progress)
        if command.delete is not None and command.delete.keeps_files:
            await self._workloads.stop(command.delete.workload_id, max(0, command.delete.grace_ns))
            return {}
        if command.delete is not None:
            await self._give_up_creation(command.delete.workload_id)
            await self._delete(command, progress)
            return {}
        if command.start is not None:
            await self._workloads.came(command.start.workload_id, work.MembersCame())
            return {}
        if command.partition is not None and self._partitioner is not None:
            return await self._partitioner.cut(command.partition)
        async with self._measuring:
            if command.bandwidth is not None:
                return await self._measure(command.bandwidth)
            return await self._benchmark()

    async def _create(self, spec: WorkloadSpec, progress: Progress) -> Mapping[str, str]:
        """Have it made, in its private network if it is of one; what cannot be made leaves no network behind."""
        try:
            spec = _opened(spec, self._seal_key)
        except WindrowError as error:
            await self._workloads.give_up(spec, error.detail)
            raise
        if self._overlays is None:
            return await self._workloads.create(spec, progress)
        try:
            try:
                await self._overlays.join(spec, progress)
            except WindrowError as error:
                await self._workloads.give_up(spec, error.detail)
                raise
            return await self._workloads.create(spec, progress)
        except WindrowError:
            self._overlays.leave(spec.workload_id)
            raise

    async def _give_up_creation(self, workload_id: str) -> None:
        """End a creation that is under way, with a result of its own, however far it had come."""
        command_id, creating = self._creating.get(workload_id, (None, None))
        if command_id is None or creating is None:
            return
        creating.cancel()
        await asyncio.wait({creating}, timeout=30)
        # A task that is cancelled before its first step, or while it journals one, never gets to say so itself.
        broke = core.Broke(Conflict.code, "The workload was deleted before it was up.")
        await self._apply(command_id, broke, None)

    def _is_worth_saying(self, command_id: CommandId, step: str) -> bool:
        state, now_ns = self._states[command_id], self._clock.monotonic_ns()
        is_due = now_ns - self._said_ns.get(command_id, now_ns - SAY_EVERY_NS) >= SAY_EVERY_NS
        if state.step == step and not is_due:
            return False
        self._said_ns[command_id] = now_ns
        return True


def _opened(spec: WorkloadSpec, key: SealKey) -> WorkloadSpec:
    """With all of its environment, for the runtime alone. Raises BadProof where it was sealed for another host."""
    if not spec.sealed_env:
        return spec
    return replace(spec, env={**spec.env, **key.open_values(spec.sealed_env, spec.workload_id)}, sealed_env=b"")


def _capped(spec: WorkloadSpec) -> WorkloadSpec:
    """With this host's limits where the command names none."""
    log_cap, files_cap = spec.log_cap_bytes or LOG_CAP_BYTES, spec.files_cap_bytes or FILES_CAP_BYTES
    return replace(spec, log_cap_bytes=log_cap, files_cap_bytes=files_cap)
