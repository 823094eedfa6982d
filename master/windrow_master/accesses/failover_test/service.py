"""Runs a failover test: has `windrow up` kill an Access, watches its agents come back, and has the result judged.

stop ─▶ audit, event ─▶ SIGKILL ─▶ hellos of its agents ─▶ each has sent anew ─▶ the log is read ─▶ event

It exists where `windrow up` started this Master, and nowhere else. One at a time; the last of each Access is kept in
memory, and what must be remembered is in the audit log and in two events.
"""

import asyncio
from collections.abc import Collection, Mapping
from typing import Final

import structlog

from windrow_master.accesses.failover_test.judge import is_whole, judge
from windrow_master.accesses.failover_test.model import Phase, Return, Supervisor, Trial, Verdict, Watched
from windrow_master.accesses.model import no_room
from windrow_master.fleet.service import FleetService
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_master.telemetry.service import TelemetryService
from windrow_proto.errors import Conflict, InvalidInput, WindrowError
from windrow_proto.ids import AccessId, BootId, HostId
from windrow_proto.intervals import Intervals
from windrow_proto.messages import LaneMarks
from windrow_proto.model import Lane
from windrow_proto.ports import Clock
from windrow_proto.units import MILLISECOND, MINUTE, SECOND

LOOK_NS: Final = 200 * MILLISECOND
TRIAL_NS: Final = 2 * MINUTE
"""An agent's longest back-off and the longest time between two batches (30 s each), with a margin."""
BEFORE_NS: Final = MINUTE
"""Of the log, so much before the kill is looked at as well."""
NAMES_KEPT_NS: Final = 5 * SECOND
RETURNS_MAX: Final = 16
"""Comings of one agent that are kept in one trial: one that comes more often is judged by those."""

log = structlog.get_logger(__name__)


class TrialService:
    """Kills Accesses of a development market and counts. Used on the loop only."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        fleet: FleetService,
        telemetry: TelemetryService,
        supervisor: Supervisor | None,
    ) -> None:
        """supervisor: keeps the processes of a development market; None elsewhere, where nothing is killed."""
        self._store, self._clock, self._fleet, self._telemetry = store, clock, fleet, telemetry
        self._supervisor = supervisor
        self._names: Mapping[str, str] = {}
        self._names_due_ns = 0
        self._trials: dict[str, Trial] = {}
        self._running: Trial | None = None
        self._asked = asyncio.Event()

    async def names(self) -> Mapping[str, str]:
        """Return the names that `windrow up` gives to its Accesses, by their ids; empty outside of development."""
        if self._supervisor is None:
            return {}
        now_ns = self._clock.monotonic_ns()
        if now_ns >= self._names_due_ns:
            self._names_due_ns = now_ns + NAMES_KEPT_NS
            try:
                self._names = await self._supervisor.accesses()
            except WindrowError as error:
                log.warning("supervisor_silent", error=error.detail)
        return self._names

    def of(self, access_id: str) -> Trial | None:
        """The latest trial of an Access since this Master started."""
        return self._trials.get(access_id)

    async def stop(
        self, access_id: AccessId, region: str, confirm: str, able: Collection[str], actor: str, reason: str
    ) -> Trial:
        """Kill this Access as a test. able: the attached Accesses, not drained, that have capacity.

        Raises Conflict outside of development, where no other one could take its agents, or while another trial runs;
        InvalidInput where the confirmation is neither its name nor its id; Unavailable when `windrow up` is silent.
        """
        name = await self._check(access_id, confirm, able)
        trial = Trial(access_id, name, region, actor, reason, self._clock.wall_ns())
        self._running = trial
        try:
            trial.watched = await self._look_around(access_id)
            await self._store.write(lambda uow: _begin(uow, trial), name="access.stop")
            trial.killed_ns, trial.killed_wall_ns = self._clock.monotonic_ns(), self._clock.wall_ns()
            assert self._supervisor is not None, "checked above"
            pid = await self._supervisor.kill(access_id)
        except BaseException:
            self._running = None
            raise
        log.warning("access_killed_as_test", access_id=access_id, pid=pid, agents=len(trial.watched))
        self._trials[access_id] = trial
        self._asked.set()
        return trial

    async def _check(self, access_id: AccessId, confirm: str, able: Collection[str]) -> str:
        if self._supervisor is None:
            raise Conflict(
                "Relays are stopped as a test only where `windrow up` started the market, for development. Elsewhere "
                "take one out of service with `windrow access drain`.",
                subject=access_id,
            )
        name = (await self.names()).get(access_id)
        if name is None:
            raise Conflict("`windrow up` did not start this relay, so it cannot stop it.", subject=access_id)
        if confirm not in {name, access_id}:
            raise InvalidInput(f"To stop this relay, confirm with its name: {name}.", subject=access_id)
        if self._running is not None:
            raise Conflict("A test that stopped a relay is still running.", subject=self._running.access_id)
        if not set(able) - {access_id}:
            raise no_room(access_id, "stop this one")
        return name

    async def _look_around(self, access_id: AccessId) -> dict[HostId, Watched]:
        boots: dict[HostId, BootId] = {}
        for host_id in self._fleet.presence.connected():
            live = self._fleet.presence.get(host_id)
            if live is not None and live.route is not None and live.route.access_id == access_id:
                boots[host_id] = live.route.boot_id
        evidence = await self._evidence(boots)
        return {h: Watched(h, boot, self._telemetry.have(h, boot), evidence[h]) for h, boot in boots.items()}

    async def _evidence(self, boots: Mapping[HostId, BootId]) -> dict[HostId, Intervals]:
        def read(uow: UnitOfWork) -> dict[HostId, Intervals]:
            return {h: Intervals.of(self._fleet.evidence.committed(uow, h).get(boot, ())) for h, boot in boots.items()}

        return await self._store.read(read)

    def on_hello(
        self,
        host_id: HostId,
        access_id: str,
        boot_id: BootId,
        named: tuple[LaneMarks, ...],
        committed: Mapping[BootId, tuple[tuple[int, int], ...]],
    ) -> None:
        """An agent was welcomed, or resumed by its second connection; the link calls it for each. named: what it
        still holds; committed: of its evidence, by boot of origin."""
        trial = self._running
        one = trial.watched.get(host_id) if trial is not None else None
        if trial is None or one is None or not trial.killed_ns:
            return
        seen = trial.returns.setdefault(host_id, [])
        if len(seen) >= RETURNS_MAX:
            return
        mine = [marks for marks in named if marks.origin_boot == one.boot_id]
        try:
            unacked = {marks.lane: Intervals.of(marks.ranges) for marks in mine}
        except (WindrowError, ValueError):
            return  # what no agent says proves nothing, and is no return
        seen.append(
            Return(
                at_ns=self._clock.monotonic_ns(),
                access_id=access_id,
                boot_id=boot_id,
                samples_unacked=unacked.get(Lane.TELEMETRY, Intervals()),
                evidence_unacked=unacked.get(Lane.EVIDENCE, Intervals()),
                samples_had=self._telemetry.have(host_id, one.boot_id).highest,
                evidence_had=Intervals.of(committed.get(one.boot_id, ())).highest,
            )
        )

    # --- the steps of a test ----------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Carry out what was asked for, one after the other, until cancelled."""
        while True:
            await self._asked.wait()
            self._asked.clear()
            trial = self._running
            if trial is None:
                continue
            try:
                await self._watch(trial)
            except (WindrowError, OSError) as error:
                log.error("trial_failed", access_id=trial.access_id, error=str(error))
                trial.problem = f"It could not be counted: {error}"
                trial.phase = Phase.UNFINISHED
            except Exception:  # the top level of this trial: the next one goes on
                log.exception("trial_crashed", access_id=trial.access_id)
                trial.problem, trial.phase = "It could not be counted: the Master failed.", Phase.UNFINISHED
            finally:
                trial.finished_ns, trial.finished_wall_ns = self._clock.monotonic_ns(), self._clock.wall_ns()
                self._running = None

    async def _watch(self, trial: Trial) -> None:
        while not self._is_whole(trial) and self._clock.monotonic_ns() - trial.killed_ns < TRIAL_NS:
            await self._clock.sleep_ns(LOOK_NS)
        is_whole = self._is_whole(trial)
        verdict = await self._judge(trial)
        await self._store.write(lambda uow: _end(uow, trial, verdict), name="access.stopped")
        trial.verdict = verdict
        trial.phase = Phase.FINISHED if is_whole else Phase.UNFINISHED

    def _is_whole(self, trial: Trial) -> bool:
        have = self._telemetry.have
        for host_id, one in trial.watched.items():
            returns = trial.returns.get(host_id, [])
            boot_have = have(host_id, returns[-1].boot_id) if returns else Intervals()
            if not is_whole(one, returns, have(host_id, one.boot_id), boot_have):
                return False
        return True

    async def _judge(self, trial: Trial) -> Verdict:
        watched = trial.watched
        acked = {host_id: self._telemetry.have(host_id, one.boot_id) for host_id, one in watched.items()}
        evidence = await self._evidence({host_id: one.boot_id for host_id, one in watched.items()})

        async def look(*, everywhere: bool) -> Verdict:
            since_ns = trial.killed_wall_ns - BEFORE_NS
            stored = await self._telemetry.stored_since(since_ns)
            older = await self._telemetry.stored_since(None) if everywhere else []
            return judge(watched, trial.returns, acked, evidence, stored, trial.killed_wall_ns, older)

        verdict = await look(everywhere=False)
        # What came out of order may lie further back: nothing is called lost before all of the log was read.
        return await look(everywhere=True) if verdict.lost_batches else verdict


def _begin(uow: UnitOfWork, trial: Trial) -> None:
    fields = {"name": trial.name, "region": trial.region, "agents": str(len(trial.watched))}
    uow.audit(trial.actor, "access.stop", trial.access_id, trial.reason, fields)
    text = f"Relay {trial.name} is to be killed as a test: {len(trial.watched)} agents will lose their connection"
    uow.event("access.stop_test", (trial.access_id,), text, fields, trial.actor)


def _end(uow: UnitOfWork, trial: Trial, verdict: Verdict) -> None:
    fields = {
        "agents": str(len(trial.watched)),
        "back": str(trial.back()),
        "acked_samples": str(verdict.acked_samples),
        "lost_samples": str(verdict.lost_samples),
        "lost_evidence": str(verdict.lost_evidence),
    }
    text = (
        f"Relay {trial.name} was killed as a test: {trial.back()} of {len(trial.watched)} agents came back, "
        f"{verdict.lost_samples} of {verdict.acked_samples + verdict.lost_samples} acknowledged samples were lost"
    )
    uow.event("access.stop_tested", (trial.access_id,), text, fields, trial.actor)
