"""Moves clusters from phase to phase: reports and verdicts of time become events of the table, and its effects are done
at once.

All of it happens inside the unit of work of the report that caused it, so state and effects commit together:

    report ─▶ workload (reports.py) ─▶ judge ─▶ step (states.py) ─▶ effects: slots, commands, rental, operations
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from windrow_master.clusters import end_limits, images, reports
from windrow_master.clusters.kinds import multi_host
from windrow_master.clusters.messages import IsOfJob, RankFailed
from windrow_master.clusters.model import OVER_HOSTS, Cluster, ClusterPhase, Results, Step, Workload, WorkPhase
from windrow_master.clusters.repository import ClusterRepository, WorkloadRepository
from windrow_master.clusters.states import HOLDING, ClusterEvent, Effect, noted, step
from windrow_master.fleet.model import CommandRow, CommandState, LinkState
from windrow_master.fleet.service import FleetService
from windrow_master.market import spending
from windrow_master.market.service import MarketService
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import AccountId, ClusterId, CommandId, HostId, OperationId, WorkloadId
from windrow_proto.image_names import is_pinned
from windrow_proto.model import Command, CommandKind, DeleteSpec, ObservedWorkload, Receipt, StartSpec
from windrow_proto.units import DAY, MINUTE, SECOND
from windrow_proto.wire_command import decode_command

DELETE_GRACE_NS: Final = 10 * SECOND
"""Between asking a workload to end and ending it."""
DELETE_NOT_AFTER_NS: Final = 30 * DAY
"""A delete is good for as long as its tombstone: a host that comes back late still gets it."""
START_NOT_AFTER_NS: Final = MINUTE
"""A start command is good for this long: members start together, and the others wait for a late one."""
AGAIN_NS: Final = MINUTE
_NOT_DONE: Final = (CommandState.FAILED, CommandState.TIMED_OUT, CommandState.CANCELLED)
CREATE_KIND: Final = "cluster.create"
START_KIND: Final = "cluster.start"
STOP_KIND: Final = "cluster.stop"
DELETE_KIND: Final = "cluster.delete"
_STARTS: Final = (CREATE_KIND, START_KIND)
UNPAID: Final = "unpaid"
_END_WORDS: Final = {
    UNPAID: "the funds ran out, so the host ended the work at the last paid second",
    "lease_lapsed": "the host heard nothing from the Master for the length of its lease and ended the work itself",
    "lost": "the host restarted and the work was gone",
    "fenced": "a newer holder of its slot came to the host",
    "host_stopped": "the host was stopped by its owner",
}


class ClusterLifecycle:
    """Takes in the events of clusters and workloads, one report at a time. Called on the loop after a commit:
    `changed` for a cluster of which something new may be due, `touched` where only its cost and its running time go
    on, `waits_no_more` for one that has ended in the queue."""

    def __init__(
        self,
        fleet: FleetService,
        market: MarketService,
        changed: Callable[[ClusterId], None],
        touched: Callable[[ClusterId], None],
        waits_no_more: Callable[[ClusterId], None],
    ) -> None:
        self._fleet = fleet
        self._market = market
        self._changed, self._touched, self._waits_no_more = changed, touched, waits_no_more
        self.uses = end_limits.Uses()
        self.clients = end_limits.Clients()

    # --- what the fleet tells ----------------------------------------------------------------------------------------

    def on_command(self, uow: UnitOfWork, row: CommandRow) -> None:
        """A command's row changed: progress of a creation, or the end of a creation or deletion."""
        if row.kind not in (CommandKind.CREATE, CommandKind.START, CommandKind.DELETE) or not row.subject:
            return
        workload = uow[WorkloadRepository].get(WorkloadId(row.subject))
        if workload is None or workload.host_id != row.host_id:
            return
        if row.kind is CommandKind.CREATE:
            self._on_create(uow, workload, row)
        elif row.kind is CommandKind.START:
            if row.state in _NOT_DONE:
                self._save(uow, self._failed(uow, workload, f"not started: {_why(row)}"))
        else:
            self._on_delete(uow, workload, row)

    def had(self, uow: UnitOfWork, host_id: HostId, workload_id: str) -> bool:
        """Return whether this workload was placed on this host."""
        workload = uow[WorkloadRepository].get(WorkloadId(workload_id))
        return workload is not None and workload.host_id == host_id

    def holds(self, uow: UnitOfWork, host_id: HostId, workload_id: str) -> bool:
        """Return whether this host has this workload and has not yet let go of it."""
        workload = uow[WorkloadRepository].get(WorkloadId(workload_id))
        return workload is not None and workload.host_id == host_id and not workload.is_released

    def cluster_of(self, uow: UnitOfWork, host_id: HostId, workload_id: str) -> str:
        """The cluster of a workload that this host has or had; empty where it had none of that name."""
        workload = uow[WorkloadRepository].get(WorkloadId(workload_id))
        return workload.cluster_id if workload is not None and workload.host_id == host_id else ""

    def on_workload(self, uow: UnitOfWork, host_id: HostId, report: ObservedWorkload) -> None:
        """A host reports a workload, maybe again and maybe late."""
        workload = uow[WorkloadRepository].get(report.workload_id)
        if workload is None or workload.host_id != host_id:
            return
        said = replace(report, detail=_END_WORDS.get(report.detail, report.detail))
        after = reports.observed(workload, said, uow.now_wall_ns)
        if after == workload:
            return
        if after.phase is WorkPhase.RUNNING and workload.phase is not WorkPhase.RUNNING:
            self._fleet.slots_running(uow, after.slots, f"host/{host_id}", "the work runs")
        if report.faults:
            self._fleet.slots.faulted(uow, after.slots, report.faults, f"host/{host_id}")
        if after.phase is WorkPhase.GONE and after.running_ns == 0:
            self._market.nothing_ran(uow, after.workload_id)
        if after.phase is WorkPhase.EXITED and workload.phase is not WorkPhase.EXITED:
            self._fleet.slots_scrubbing(uow, after.slots, f"host/{host_id}", "the work has ended")
        self._save(uow, after, is_worth_showing=replace(after, running_ns=workload.running_ns) != workload)

    def on_receipt(self, uow: UnitOfWork, host_id: HostId, receipt: Receipt, sealed: bytes) -> None:
        """A signed receipt: the market charges it; why a work ended is said of its cluster."""
        line = self._market.on_receipt(uow, host_id, receipt, sealed)
        workload = uow[WorkloadRepository].get(receipt.workload_id)
        if line is None or workload is None or workload.cluster_id != receipt.cluster_id:
            return
        words = _END_WORDS.get(receipt.end_reason, "") if receipt.final else ""
        after = replace(
            workload,
            running_ns=max(workload.running_ns, receipt.running_ns),
            exit_code=receipt.exit_code if receipt.exit_code is not None else workload.exit_code,
            detail=workload.detail or words,  # what the host says of this very end is worth more
        )
        if after != workload:
            uow[WorkloadRepository].save(after)
        if receipt.final and after.delete_command is not None:
            self._fleet.slots_scrubbing(uow, after.slots, f"host/{host_id}", "the work has ended, its host cleans up")
        if receipt.final and receipt.end_reason == UNPAID:
            subjects = (workload.cluster_id, line.rental_id, host_id)
            uow.event("rental.unpaid", subjects, f"Ended at the last paid second: {words}", actor=f"host/{host_id}")
        # Cost and running time go on; whoever looks at the cluster should see it.
        tell = self._changed if receipt.final else self._touched
        uow.after_commit(lambda: tell(workload.cluster_id))

    def on_host_link(self, uow: UnitOfWork, host_id: HostId, link_state: LinkState) -> None:
        """A host became Online, Suspect or Lost; Suspect matters for its bills, and for whoever looks at the work."""
        held = uow[WorkloadRepository].held_on(host_id)
        for cluster_id in dict.fromkeys(workload.cluster_id for workload in held):
            uow.after_commit(partial(self._touched, cluster_id))
        is_heard = link_state is LinkState.ONLINE
        self._market.on_host_link(uow, [workload.workload_id for workload in held], is_heard)
        if link_state is LinkState.SUSPECT:
            return
        since_ns = uow.now_wall_ns if link_state is LinkState.LOST else None
        for workload in held:
            after = reports.lost(workload, since_ns)
            if after != workload:
                self._save(uow, after)

    def on_slots_lost(self, uow: UnitOfWork, host_id: HostId, slot_ids: Sequence[str], reason: str) -> None:
        """Held slots are out of order: what runs on them cannot go on."""
        broken = set(slot_ids)
        for workload in uow[WorkloadRepository].held_on(host_id):
            if broken & {slot.slot_id for slot in workload.slots}:
                self._save(uow, self._failed(uow, workload, reason))

    # --- what people and time ask ------------------------------------------------------------------------------------

    def end(
        self, uow: UnitOfWork, cluster: Cluster, reason: str, actor: str, *, keeps_results: bool = False
    ) -> Cluster:
        """Somebody wants a cluster gone; what is gone or on its way stays as it is. keeps_results: its log and files
        are brought in first, where its host can be reached."""
        event = ClusterEvent.EXPIRE if keeps_results else ClusterEvent.DELETE
        return self._apply(uow, cluster, event, reason, actor)

    def end_request(
        self, uow: UnitOfWork, account_id: AccountId, key: str, reason: str, actor: str, *, at_once: bool = False
    ) -> None:
        """End the cluster that an account requested under this key, if there is one. at_once: and clear it from its
        hosts, whatever of it was to be brought in first."""
        known = uow[ClusterRepository].by_key(account_id, key)
        if known is None:
            return
        ended = self.end(uow, known[0], reason, actor)
        if at_once:
            self.clear(uow, ended, actor)
            self.judge(uow, ended, actor)

    def halt(self, uow: UnitOfWork, workload: Workload, grace_ns: int, actor: str) -> None:
        """Order the end of what runs of a workload, which keeps its log and files. grace_ns: between SIGTERM and
        SIGKILL."""
        spec = DeleteSpec(workload.workload_id, workload.slots, grace_ns, keeps_files=True)
        command = Command(CommandId(""), CommandKind.DELETE, delete=spec)
        not_after_ns = uow.now_wall_ns + reports.END_OVERDUE_NS
        self._fleet.issue(uow, workload.host_id, command, not_after_ns, workload.workload_id, actor)
        self._fleet.slots_stopping(uow, workload.slots, actor, "the work is being ended")

    def stop(self, uow: UnitOfWork, cluster: Cluster, actor: str) -> Cluster:
        """Somebody wants its work gone, and will start it again."""
        return self._apply(uow, cluster, ClusterEvent.STOP, "", actor)

    def judge(self, uow: UnitOfWork, cluster: Cluster, actor: str = "master") -> Cluster:
        """Judge a cluster by all of its workloads, and by time."""
        workloads = uow[WorkloadRepository].of_cluster(cluster.cluster_id)
        if cluster.kind in OVER_HOSTS:
            found = multi_host.judge(cluster, workloads, uow.now_wall_ns)
        else:
            found = reports.judge(cluster.phase, workloads, uow.now_wall_ns)
        return cluster if found is None else self._apply(uow, cluster, found.event, found.reason, actor)

    def limit(self, uow: UnitOfWork, cluster: Cluster) -> Cluster:
        """End a cluster that has come to one of its own limits or to a spending limit, or whose client is silent for
        its lease. A job ends its own cluster at a spending limit: it is told to look."""
        if cluster.phase is ClusterPhase.QUEUED:
            is_over = end_limits.wait_left_ns(cluster, uow.now_wall_ns) <= 0
            return self.impossible(uow, cluster, end_limits.waited(cluster)) if is_over else cluster
        lease_ends_at_ns = self.clients.lease_ends_at_ns(cluster, uow.now_wall_ns)
        if lease_ends_at_ns is not None and uow.now_wall_ns >= lease_ends_at_ns:
            said = end_limits.unheard(cluster.request.client_lease_ns or 0)
            return self.end(uow, cluster, said, "master", keeps_results=True)
        soon = end_limits.least_budget(cluster.price_per_hour)
        said = spending.passed(uow, cluster.rental_id, soon) if cluster.phase in HOLDING else ""
        if said and uow.ask(IsOfJob(cluster.cluster_id)):
            uow.after_commit(partial(self._changed, cluster.cluster_id))
        elif said:
            return self.end(uow, cluster, said, "master", keeps_results=True)
        if not end_limits.are_any(cluster.request):
            return cluster
        spent = self._market.spent(uow, cluster.rental_id)
        idle_ns = self.uses.idle_ns(cluster.cluster_id, uow.now_wall_ns)
        reason = end_limits.reached(cluster, spent, idle_ns, uow.now_wall_ns)
        return self.end(uow, cluster, reason, "master", keeps_results=True) if reason else cluster

    def impossible(self, uow: UnitOfWork, cluster: Cluster, reason: str) -> Cluster:
        """End a cluster that waits for a place."""
        is_waiting = cluster.phase is ClusterPhase.QUEUED
        return self._apply(uow, cluster, ClusterEvent.BROKEN, reason, "master") if is_waiting else cluster

    def order_again(self, uow: UnitOfWork, workload: Workload) -> None:
        """Order its end once more where its host refused or failed to end it, a minute after it said so, or where it
        was to end with its results kept, and did not."""
        if workload.delete_command is None:
            cluster = uow[ClusterRepository].get(workload.cluster_id)
            if cluster is not None and reports.is_end_overdue(cluster, workload, uow.now_wall_ns):
                self._order_end(uow, workload, "master")
            return
        has_failed = self._fleet.commands.has_failed_for(uow, workload.delete_command, AGAIN_NS)
        if has_failed and self._fleet.hosts.is_online(uow, workload.host_id):
            self._order_end(uow, replace(workload, delete_command=None), "master")

    # --- inside ------------------------------------------------------------------------------------------------------

    def _on_create(self, uow: UnitOfWork, workload: Workload, row: CommandRow) -> None:
        if row.state in _NOT_DONE:
            step = f"while {row.step}: " if row.step and workload.address is not None else ""
            self._save(uow, self._failed(uow, workload, f"{step}{_why(row)}"))
            return
        workload = self._resolved(uow, workload, row)
        if row.step == "waiting_files":
            after = reports.advanced(workload, WorkPhase.WAITING_FILES, uow.now_wall_ns)
            workload = self._save(uow, after) if after != workload else workload
        # The end of the command is no step of its own: the workload's report says that it runs.
        if workload.is_member and row.step and row.state is not CommandState.SUCCEEDED:
            self.progress(uow, workload, row.step, row.progress_permille)

    def _resolved(self, uow: UnitOfWork, workload: Workload, row: CommandRow) -> Workload:
        """Write down which image its tag was found to be: from then on that is what is started in its place."""
        cluster, said = uow[ClusterRepository].get(workload.cluster_id), str(row.result.get("image", ""))
        if cluster is None or not images.pins(said, workload.image):
            return workload
        found = replace(workload, image=said)
        uow[WorkloadRepository].save(found)
        who = multi_host.named(workload) if cluster.kind in OVER_HOSTS else ""
        self.keep(uow, noted(cluster, Step(uow.now_wall_ns, "image", None, said, who)))
        others = multi_host.members_of(uow[WorkloadRepository].of_cluster(cluster.cluster_id))
        known = [one for one in others if is_pinned(one.image) and one.workload_id != found.workload_id]
        why = images.disagreement([*known, found]) if found.is_member else ""
        return self._save(uow, self._failed(uow, found, why)) if why else found

    def _on_delete(self, uow: UnitOfWork, workload: Workload, row: CommandRow) -> None:
        spec = decode_command(row.body).delete
        if spec is not None and spec.keeps_files:
            if row.state in _NOT_DONE:  # else its own report says that it has ended
                self._order_end(uow, workload, "master")
        elif row.state is CommandState.SUCCEEDED:
            gone = reports.advanced(workload, WorkPhase.GONE, uow.now_wall_ns)
            if gone.running_ns == 0:
                self._market.nothing_ran(uow, gone.workload_id)
            self._save(uow, gone)
        elif row.is_done and not workload.is_released:
            # The host could not, or was retired; reconcile asks again for what is still seen there.
            cluster = uow[ClusterRepository].get(workload.cluster_id)
            if cluster is not None:
                said = f"{workload.host_name} could not delete it: {row.error_detail or row.error_code}"
                self.keep(uow, noted(cluster, Step(uow.now_wall_ns, "delete_failed", None, said)))

    def _failed(self, uow: UnitOfWork, workload: Workload, detail: str) -> Workload:
        if workload.phase in (WorkPhase.EXITED, WorkPhase.GONE, WorkPhase.STOPPING):
            return workload
        return reports.advanced(workload, WorkPhase.FAILED, uow.now_wall_ns, detail)

    def _save(self, uow: UnitOfWork, workload: Workload, is_worth_showing: bool = True) -> Workload:
        """Write a workload down, give back its slots once nothing of it is left, and judge its cluster."""
        if workload.phase is WorkPhase.GONE and workload.delete_command is not None and not workload.is_released:
            self._fleet.slots_released(uow, workload.slots, f"host/{workload.host_id}", "nothing of the work is left")
            workload = replace(workload, is_released=True)
            self._fleet.changes(uow, workload.host_id)
        uow[WorkloadRepository].save(workload)
        cluster = uow[ClusterRepository].get(workload.cluster_id)
        if cluster is not None:
            after = self.judge(uow, cluster, f"host/{workload.host_id}")
            if after == cluster and is_worth_showing:
                self.keep(uow, replace(cluster, version=cluster.version + 1))
        return workload

    def _apply(self, uow: UnitOfWork, cluster: Cluster, event: ClusterEvent, reason: str, actor: str) -> Cluster:
        after, effects = step(cluster, event, reason, uow.now_wall_ns)
        if after != cluster:
            self.keep(uow, after)
        if after.phase is not cluster.phase:
            fields = {"from": cluster.phase.value, "to": after.phase.value}
            uow.audit(actor, f"cluster.{event}", cluster.cluster_id, reason, fields)
            said = f"{after.name} is {after.phase.value}" + (f": {reason}" if reason else "")
            uow.event(f"cluster.{after.phase.value.lower()}", self._subjects(uow, after), said, actor=actor)
        if cluster.phase is ClusterPhase.QUEUED is not after.phase:
            uow.after_commit(partial(self._waits_no_more, cluster.cluster_id))
        for effect in effects:
            self._do(uow, after, effect, actor)
        return after

    def _do(self, uow: UnitOfWork, cluster: Cluster, effect: Effect, actor: str) -> None:
        match effect:
            case Effect.START_MEMBERS:
                for workload in multi_host.members_of(uow[WorkloadRepository].of_cluster(cluster.cluster_id)):
                    self._order_start(uow, workload)
            case Effect.END_WORK:
                self._close(uow, cluster, actor)
                self.clear(uow, cluster, actor)
            case Effect.CLOSE_WORK:
                self._close(uow, cluster, actor)
                for workload in uow[WorkloadRepository].of_cluster(cluster.cluster_id):
                    self._order_rest(uow, workload, actor)
            case Effect.FINISH_CREATE:
                self._finish(uow, cluster, *_STARTS)
            case Effect.FAIL_CREATE:
                word = "stopped" if cluster.phase is ClusterPhase.STOPPING else "deleted"
                said = cluster.reason or f"it was {word} first"
                self._finish(uow, cluster, *_STARTS, error_code="workload_failed", detail=said)
            case Effect.FINISH_STOP:
                self._finish(uow, cluster, STOP_KIND)
            case Effect.FAIL_STOP:
                self._finish(uow, cluster, STOP_KIND, error_code="conflict", detail="it was deleted first")
            case Effect.FINISH_DELETE:
                self._finish(uow, cluster, DELETE_KIND)

    def _close(self, uow: UnitOfWork, cluster: Cluster, actor: str) -> None:
        """Nobody uses it or pays for it from now on."""
        self.uses.forget(cluster.cluster_id)
        self.clients.forget(cluster.cluster_id)
        self._market.end_rental(uow, cluster.rental_id, cluster.reason or cluster.phase.value.lower())

    def clear(self, uow: UnitOfWork, cluster: Cluster, actor: str) -> None:
        """Order the end of whatever is left of a cluster on its hosts."""
        for workload in uow[WorkloadRepository].of_cluster(cluster.cluster_id):
            self._order_end(uow, workload, actor)

    def keep_results(self, uow: UnitOfWork, workload_id: WorkloadId, results: Results) -> None:
        """Keep the results of work that has ended: its host clears it away, and missing results are reported."""
        workload = uow[WorkloadRepository].get(workload_id)
        if workload is None or workload.delete_command is not None or workload.is_released:
            return
        after = replace(workload, results=results)
        uow[WorkloadRepository].save(after)
        self._order_end(uow, after, "master")
        cluster = uow[ClusterRepository].get(workload.cluster_id)
        if cluster is None:
            return
        if results.problem:
            said = f"{multi_host.named(workload)}: {results.problem}"
            uow.event("cluster.results_cut", self._subjects(uow, cluster), f"{cluster.name}: {said}", actor="master")
            cluster = replace(cluster, reason=f"{cluster.reason}; not kept: {said}")
        self.keep(uow, noted(cluster, Step(uow.now_wall_ns, "results", None, results.problem)))

    def tell_first_end(self, uow: UnitOfWork, cluster_id: ClusterId, lines: tuple[str, ...]) -> None:
        """Tell which rank of a gang failed first, once in a run. lines: the last of its log."""
        workloads, cluster = uow[WorkloadRepository].of_cluster(cluster_id), uow[ClusterRepository].get(cluster_id)
        first = None if cluster is None else multi_host.first_ended(cluster, workloads)
        if cluster is None or first is None or multi_host.is_first_end_told(cluster):
            return
        kept = replace(cluster, steps=tuple(one for one in cluster.steps if one.name != multi_host.FIRST_END))
        step = Step(uow.now_wall_ns, multi_host.FIRST_END, None, reports.exit_text(first), multi_host.named(first))
        self.keep(uow, noted(kept, step))
        uow.publish(RankFailed(cluster, first, len(multi_host.members_of(workloads)), lines))

    def _order_start(self, uow: UnitOfWork, workload: Workload) -> None:
        if workload.start_command is not None or workload.phase is not WorkPhase.WAITING_MEMBERS:
            return
        spec = StartSpec(workload.workload_id, workload.slots)
        command = Command(CommandId(""), CommandKind.START, start=spec)
        not_after_ns = uow.now_wall_ns + START_NOT_AFTER_NS
        command_id = self._fleet.issue(uow, workload.host_id, command, not_after_ns, workload.workload_id)
        uow[WorkloadRepository].save(replace(workload, start_command=command_id))

    def progress(self, uow: UnitOfWork, workload: Workload, step: str, permille: int | None, detail: str = "") -> None:
        """Show how far a workload has come, as a step of its cluster while that is meant to run."""
        cluster = uow[ClusterRepository].get(workload.cluster_id)
        if cluster is None or cluster.phase not in HOLDING:
            return
        who = multi_host.named(workload) if cluster.kind in OVER_HOSTS else ""
        told = noted(cluster, Step(uow.now_wall_ns, step, permille, detail, who))
        if told is not cluster:
            self.keep(uow, told)

    def broke(self, uow: UnitOfWork, workload_id: WorkloadId, detail: str) -> None:
        """Fail a workload that cannot get what it needs to start."""
        workload = uow[WorkloadRepository].get(workload_id)
        if workload is not None:
            self._save(uow, self._failed(uow, workload, detail))

    def let_go(self, uow: UnitOfWork, workload: Workload) -> None:
        """Write a member down as replaced, and order its end."""
        uow[WorkloadRepository].save(workload)
        self._order_end(uow, workload, "master")

    def _order_rest(self, uow: UnitOfWork, workload: Workload, actor: str) -> None:
        """Order the end of what runs of a workload, whose log and files are brought in before the rest is cleared."""
        is_asked = workload.phase is WorkPhase.RUNNING and self._fleet.hosts.is_online(uow, workload.host_id)
        if is_asked and not uow.ask(IsOfJob(workload.cluster_id)):  # a job brings in what it leaves
            if workload.delete_command is None:
                self.halt(uow, workload, DELETE_GRACE_NS, actor)
        elif reports.has_results(workload):
            said = "the work has ended, its log and files are brought in"
            self._fleet.slots_stopping(uow, workload.slots, actor, said)
            self._fleet.slots_scrubbing(uow, workload.slots, actor, said)
        else:
            self._order_end(uow, workload, actor)

    def _order_end(self, uow: UnitOfWork, workload: Workload, actor: str) -> None:
        if workload.is_released or workload.delete_command is not None:
            return
        spec = DeleteSpec(workload.workload_id, workload.slots, DELETE_GRACE_NS)
        command = Command(CommandId(""), CommandKind.DELETE, delete=spec)
        not_after_ns = uow.now_wall_ns + DELETE_NOT_AFTER_NS
        command_id = self._fleet.issue(uow, workload.host_id, command, not_after_ns, workload.workload_id, actor)
        self._fleet.slots_stopping(uow, workload.slots, actor, "the work is being ended")
        if workload.phase is WorkPhase.EXITED:
            self._fleet.slots_scrubbing(uow, workload.slots, actor, "the work ended by itself, its host cleans up")
        after = replace(workload, delete_command=command_id)
        if after.phase is WorkPhase.GONE:
            # It went by itself; the order still goes out, since its tombstone keeps it from ever coming back.
            self._fleet.slots_released(uow, after.slots, actor, "nothing of the work is left")
            after = replace(after, is_released=True)
            self._fleet.changes(uow, after.host_id)
        uow[WorkloadRepository].save(after)

    def _finish(
        self, uow: UnitOfWork, cluster: Cluster, *kinds: str, error_code: str | None = None, detail: str = ""
    ) -> None:
        for kind in kinds:
            for operation in uow.operations.running(cluster.cluster_id, kind):
                uow.operations.finish(OperationId(operation.id), uow.now_wall_ns, error_code, detail)

    def keep(self, uow: UnitOfWork, cluster: Cluster) -> None:
        """Write a cluster down, and tell of it once that is committed."""
        uow[ClusterRepository].save(cluster)
        uow.after_commit(lambda: self._changed(cluster.cluster_id))

    def _subjects(self, uow: UnitOfWork, cluster: Cluster) -> tuple[str, ...]:
        hosts = tuple(workload.host_id for workload in uow[WorkloadRepository].of_cluster(cluster.cluster_id))
        return (cluster.cluster_id, cluster.account_id, *hosts)


def _why(row: CommandRow) -> str:
    return f"{row.error_code or 'workload_failed'}: {row.error_detail or 'the host gave no reason'}"
