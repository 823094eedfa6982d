"""Starts a cluster, the first time or again, in the caller's unit of work: its hosts, its network, its rental and the
commands for its hosts, all together or none of it.

again: what was stopped, or waits, is placed and rented anew, under its own id. Its steps and what it was asked for
stay; its earlier workloads and their rental are past. Its image is what it ran before, by digest.
"""

from collections.abc import Sequence
from dataclasses import replace

from windrow_master.clusters import end_limits, quota_use
from windrow_master.clusters.ceilings import Ceilings
from windrow_master.clusters.decision_repository import DecisionRepository
from windrow_master.clusters.end_limits import BudgetTooSmall
from windrow_master.clusters.launch import Launcher
from windrow_master.clusters.meeting import Meeter
from windrow_master.clusters.model import Cluster, ClusterPhase, ClusterRequest, Step
from windrow_master.clusters.needs import Look, Needs, Ready, eviction
from windrow_master.clusters.repository import WorkloadRepository
from windrow_master.clusters.snapshot import Placer
from windrow_master.clusters.states import ClusterEvent, answer, noted
from windrow_master.identity.model import Principal
from windrow_master.market import lookup
from windrow_master.market.model import Rental, RentalId, RentalState
from windrow_master.market.service import MarketService
from windrow_master.placement.live import Nominated
from windrow_master.placement.model import Chosen, Placement, Refusal
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import AccountId, ClusterId, HostId
from windrow_proto.sealed import RegistryLogin
from windrow_proto.units import Microcents

REASON_MAX = 400
"""Characters of why members meet as they do."""


class Starter:
    """Starts clusters."""

    def __init__(
        self, market: MarketService, placer: Placer, launcher: Launcher, meeter: Meeter, ceilings: Ceilings
    ) -> None:
        self._market, self._placer, self._launcher, self._meeter = market, placer, launcher, meeter
        self._ceilings = ceilings

    def placed(
        self,
        uow: UnitOfWork,
        account_id: AccountId,
        request: ClusterRequest,
        is_proof: bool = False,
        budget: Microcents | None = None,
        among: Nominated | None = None,
        but: frozenset[HostId] = frozenset(),
    ) -> Placement | Refusal:
        """Return the places where it would run: on hosts that see each other, or else on others, if a network can be
        made for them. budget: what all of it may cost; None: as was asked. among, but: as of `Placer.place`. Raises
        BudgetTooSmall where the budget does not pay for a minute of any."""
        budget = request.budget if budget is None else budget
        found = self._placed(uow, account_id, request, is_proof, among, but)
        place = found.without_proofs if isinstance(found, Refusal) else found
        if budget is None or place is None or end_limits.least_budget(place.price_per_hour) <= budget:
            return found
        request = replace(request, max_price_per_hour=end_limits.dearest(budget))
        found = self._placed(uow, account_id, request, is_proof, among, but)
        if isinstance(found, Refusal) and found.without_proofs is None:
            raise BudgetTooSmall(budget, place.price_per_hour)
        return found

    def _placed(
        self,
        uow: UnitOfWork,
        account_id: AccountId,
        request: ClusterRequest,
        is_proof: bool,
        among: Nominated | None,
        but: frozenset[HostId],
    ) -> Placement | Refusal:
        found = self._placer.place(uow, request, account_id, is_proof, but, among=among)
        if isinstance(found, Placement) or request.hosts == 1:
            return found
        private = self._placer.place(uow, request, account_id, is_proof, but, is_private=True)
        is_better = isinstance(private, Placement) or (found.without_proofs is None and bool(private.without_proofs))
        return private if is_better else found

    def prepare(
        self,
        uow: UnitOfWork,
        account_id: AccountId,
        request: ClusterRequest,
        is_proof: bool = False,
        budget: Microcents | None = None,
        among: Nominated | None = None,
        but: frozenset[HostId] = frozenset(),
    ) -> Ready | Needs:
        """Return where it runs and how its members meet, or what has to happen first; raises NoCapacity, QuotaExceeded
        and BudgetTooSmall. It writes nothing. is_proof: at most at the suggested price, so that nobody grows rich by
        being tried, and whatever quotas say, since it gives way. budget, among, but: as for `placed`."""
        limits = () if is_proof else quota_use.check(uow, account_id, request)
        found = self.placed(uow, account_id, request, is_proof, budget, among, but)
        if isinstance(found, Refusal):
            return eviction(found)
        quota_use.check_at(uow, limits, request, found)
        if not is_proof:
            self._ceilings.check(uow, account_id, request, found)
        else:
            found = replace(found, members=tuple(self._fair(member) for member in found.members))
        network = self._meeter.network(uow, {member.host_id: member.runtime for member in found.members})
        return network if isinstance(network, Look) else Ready(found, network)

    def _fair(self, chosen: Chosen) -> Chosen:
        price = min(chosen.price_per_hour, self._market.suggested(chosen.tier) * len(chosen.slot_ids))
        return replace(chosen, price_per_hour=Microcents(price))

    def first(
        self,
        uow: UnitOfWork,
        account_id: AccountId,
        request: ClusterRequest,
        cluster_id: ClusterId,
        ready: Ready,
        needs_login: bool,
    ) -> tuple[Cluster, Cluster]:
        """The row of a new cluster as its command goes out, and the same whole: it has passed through its first phases
        at once."""
        self._placer.turn(account_id)
        uow[WorkloadRepository].has_none(cluster_id)
        lookup.has_none(uow, cluster_id)
        new = Cluster(
            cluster_id=cluster_id,
            account_id=account_id,
            request=request,
            phase=ClusterPhase.REQUESTED,
            rental_id=RentalId(""),
            tier="",
            price_per_hour=ready.found.price_per_hour,
            created_at_ns=uow.now_wall_ns,
            needs_login=needs_login,
            version=0,
        )
        return self._placed_on(uow, new, ready)

    def again(
        self, uow: UnitOfWork, stopped: Cluster, ready: Ready, principal: Principal, login: RegistryLogin | None
    ) -> Cluster:
        """Start what was stopped in these places. Raises what a creation does, and then nothing is changed."""
        past = uow[WorkloadRepository].of_cluster(stopped.cluster_id)
        empty = replace(stopped, reason="", started_at_ns=None, ended_at_ns=None, restarts=0, first_port=None)
        cluster, whole = self._placed_on(uow, empty, ready)
        self._audit(uow, stopped, principal.actor)
        self.rent(uow, cluster, whole, ready.found.members, principal, login)
        for workload in past:
            uow[WorkloadRepository].save(replace(workload, is_past=True))
        return cluster

    def rent(
        self,
        uow: UnitOfWork,
        cluster: Cluster,
        whole: Cluster,
        members: Sequence[Chosen],
        principal: Principal,
        login: RegistryLogin | None,
        budget: Microcents | None = None,
    ) -> None:
        """Lease all slots, put the commands into the outbox, and set the money aside for all of them together; it
        counts for the tokens of who asks. budget: as for `placed`."""
        places = dict(enumerate(members))
        launched = self._launcher.launch(uow, cluster, places, principal.actor, login=login, whole=whole)
        rental = Rental(
            cluster.rental_id,
            cluster.cluster_id,
            cluster.name,
            cluster.account_id,
            cluster.tier,
            cluster.price_per_hour,
            0,
            launched.is_simulated,
            RentalState.OPEN,
            uow.now_wall_ns,
            budget=cluster.request.budget if budget is None else budget,
            spenders=principal.spenders,
        )
        self._market.start_rental(uow, rental, launched.lines)
        for workload in launched.workloads:
            uow[WorkloadRepository].add(workload)

    def _audit(self, uow: UnitOfWork, stopped: Cluster, actor: str) -> None:
        before = stopped.phase
        for event, phase in _moves(before):
            fields = {"from": before.value, "to": phase.value}
            said = "started again" if stopped.phase is ClusterPhase.STOPPED else "its turn in the queue"
            uow.audit(actor, f"cluster.{event}", stopped.cluster_id, said, fields)
            before = phase

    def _placed_on(self, uow: UnitOfWork, cluster: Cluster, ready: Ready) -> tuple[Cluster, Cluster]:
        found = ready.found
        said = f"on {names(found)} in tier {found.chosen.tier}"
        placed = noted(
            cluster,
            Step(uow.now_wall_ns, "placed", None, said),
            phase=_moves(cluster.phase)[-1][1],
            rental_id=RentalId(uow.mint("rental")),
            tier=found.chosen.tier,
            price_per_hour=found.price_per_hour,
            network=ready.network.mode,
            network_reason=ready.network.reason[:REASON_MAX],
        )
        uow[DecisionRepository].add(cluster.cluster_id, uow.now_wall_ns, found.decision)
        return self._launcher.networked(uow, placed, found.members)


def _moves(phase: ClusterPhase) -> list[tuple[ClusterEvent, ClusterPhase]]:
    """Through which phases it comes as its command goes out."""
    moves = []
    for event in (ClusterEvent.PLACE, ClusterEvent.GRANTED):
        phase = answer(phase, event).phase
        moves.append((event, phase))
    return moves


def names(found: Placement) -> str:
    """Of the hosts that it runs on."""
    return ", ".join(member.host_name for member in found.members)
