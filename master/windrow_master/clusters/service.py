"""The clusters' service: plan, create, delete, read; and time limits; what
hosts are told is running.py's.

Creating is one unit of work: the key of the request, the plan, the hold, the slots, the rows and the command commit
together or not at all. What happens afterwards is controller.py's, reaching into a workload network/workload_io.py's.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

from windrow_master.clusters import end_limits, environments, quota_use, stopping
from windrow_master.clusters.ceilings import Ceilings
from windrow_master.clusters.controller import CREATE_KIND, DELETE_KIND, START_KIND, STOP_KIND, ClusterLifecycle
from windrow_master.clusters.copies import Copies
from windrow_master.clusters.decision_repository import DecisionRepository
from windrow_master.clusters.due import DueClusters
from windrow_master.clusters.kinds import box
from windrow_master.clusters.launch import Launcher
from windrow_master.clusters.meeting import Meeter
from windrow_master.clusters.messages import (
    CheapestElsewhere,
    ElsewhereAsked,
    HostKeptFor,
    HostLimits,
    HostsKept,
    IsOfJob,
    VolumesAsked,
    VolumesTaken,
)
from windrow_master.clusters.model import (
    Cluster,
    ClusterKind,
    ClusterPhase,
    ClusterRequest,
    NetworkMode,
)
from windrow_master.clusters.needs import DearerHere, Evict, Look, Needs, Ready, Refused
from windrow_master.clusters.nominations import Nominations
from windrow_master.clusters.ports import Proofs
from windrow_master.clusters.repair import Mender
from windrow_master.clusters.repository import ClusterRepository, TrafficRepository, WorkloadRepository
from windrow_master.clusters.request import checked, digest
from windrow_master.clusters.resize import Resizer
from windrow_master.clusters.running import RunningWork
from windrow_master.clusters.snapshot import Placer
from windrow_master.clusters.start import Starter, names
from windrow_master.clusters.states import HOLDING
from windrow_master.clusters.topology import PeerLink, Reachability
from windrow_master.clusters.views import ClusterView, Preview, public_ports
from windrow_master.clusters.waiting import WaitingClusters, principal_of
from windrow_master.fleet.service import FleetService
from windrow_master.identity.accounts import check_may_begin
from windrow_master.identity.model import Principal, Role
from windrow_master.loops import Boundary, page_alone
from windrow_master.market import spending
from windrow_master.market.classes import MachineClass, Wanted
from windrow_master.market.lookup import charged
from windrow_master.market.model import PROOF_ACCOUNT, Offer
from windrow_master.market.service import MarketService
from windrow_master.placement.live import Nominated
from windrow_master.placement.model import Decision, Placement, Refusal, Verdict
from windrow_master.queue import quotas
from windrow_master.queue.ports import Refused as NotNow
from windrow_master.queue.quota import QuotaItem
from windrow_master.queue.service import QueueService
from windrow_master.secrets.service import SecretService
from windrow_master.spec import Resources, Work, require
from windrow_master.store.model import Operation
from windrow_master.store.store import Ahead, Store
from windrow_master.store.unit import DATABASE_FAULTS, UnitOfWork
from windrow_proto.errors import (
    Conflict,
    IdempotencyMismatch,
    InvalidInput,
    NoCapacity,
    NotFound,
    QuotaExceeded,
    Unavailable,
)
from windrow_proto.ids import AccountId, ClusterId, HostId
from windrow_proto.ports import Clock
from windrow_proto.sealed import RegistryLogin, SealKey
from windrow_proto.service_names import service_url
from windrow_proto.units import HOUR, SECOND, Microcents, money_text, time_text

LOOKS_MAX: Final = 3
"""How often the hosts of one request look for each other: others may fit each time."""
_Login = RegistryLogin | None
STARTS_KNOWN: Final = 1_000
"""Clusters that are looked at for the times that starts take."""
START_LONGEST_NS: Final = HOUR
_T = TypeVar("_T")
_SEES_ALL: Final = frozenset({Role.OPERATOR, Role.AUDITOR})
_ENDS_ALL: Final = frozenset({Role.OPERATOR})
ENDED_BY_OPERATOR: Final = "an operator of this market ended it"
"""The reason that a renter reads; the audit log has the operator's account."""


class ClusterService:
    """Clusters of all accounts. Methods that take a `uow` run inside the caller's unit of work."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        fleet: FleetService,
        market: MarketService,
        seal_key: SealKey,
        *,
        secrets: SecretService,
        proofs: Proofs,
        reachability: Reachability,
        peer_links: Callable[[ClusterId], Sequence[PeerLink]],
        service_place: Callable[[HostId], str],
        placer: Placer,
        queue: QueueService,
    ) -> None:
        """seal_key: the Master's own, for the values of environments. secrets: those that requests name. proofs: test
        rentals, which end where a renter's request finds no capacity because of them. reachability: which hosts reach
        each other. peer_links: those of a cluster's private network. service_place: DOMAIN:PORT of an Access with an
        HTTPS path to services, the nearest to a host; empty: there is none. queue: of all that waits for a place."""
        self._store, self._clock, self._fleet, self._market = store, clock, fleet, market
        self._seal_key, self._secrets = seal_key, secrets
        self._proofs, self._reachability, self._peer_links, self._service_place = (
            proofs,
            reachability,
            peer_links,
            service_place,
        )
        self._placer = placer
        self.nominations = Nominations(store, clock, fleet, market, self._placer)
        self._listeners: list[Callable[[ClusterId], None]] = []
        self._step_listeners: list[Callable[[ClusterId], None]] = []
        self._are_waiting_put = False
        self._faults = Boundary("cluster", DATABASE_FAULTS)
        self._launcher = Launcher(fleet, seal_key, secrets, service_place)
        self._meeter = Meeter(fleet, self._placer, reachability)
        self._ceilings = Ceilings(queue)
        self._starter = Starter(market, self._placer, self._launcher, self._meeter, self._ceilings)
        self.lifecycle = ClusterLifecycle(fleet, market, self._changed, self.touch, queue.drop)
        self.waiting = WaitingClusters(store, queue, seal_key, self.lifecycle, self._place_waiting)
        mender = Mender(market, self._meeter, self._launcher, self.lifecycle)
        self.running = RunningWork(store, fleet, market, self._faults)
        self.copies = Copies(store, self.nominations, self)
        self._due = DueClusters(store, clock, market, self.lifecycle, mender, proofs, reachability, self._faults)
        self._resizer = Resizer(market, self._meeter, self._launcher, self.lifecycle, self._ceilings)

    def touch(self, cluster_id: ClusterId) -> None:
        """Something about a cluster is worth showing."""
        for listener in self._listeners:
            listener(cluster_id)

    def on_change(self, listener: Callable[[ClusterId], None]) -> None:
        """Call `listener` on the loop whenever a cluster has changed."""
        self._listeners.append(listener)

    def on_step(self, listener: Callable[[ClusterId], None]) -> None:
        """Call `listener` on the loop whenever more of a cluster than its cost and its running time has changed."""
        self._step_listeners.append(listener)

    # --- what people ask ---------------------------------------------------------------------------------------------

    async def plan(self, principal: Principal, request: ClusterRequest, budget: Microcents | None = None) -> Preview:
        """Return the outcome of creating this now, where proofs make way for it; changes nothing. budget: as for
        `create`. Raises BudgetTooSmall, SpendingLimitReached, QuotaExceeded."""
        request = checked(request, ClusterId("cluster_preview"))

        def read(uow: UnitOfWork, among: Nominated | None) -> Preview:
            self.check_secrets(uow, principal.account_id, request)
            limits = quota_use.check(uow, principal.account_id, request)
            uow.publish(VolumesAsked(principal.account_id, request.volumes))
            answer = self._starter.placed(uow, principal.account_id, request, budget=budget, among=among)
            balance = self._market.balance(uow, principal.account_id)
            proofs_on: tuple[HostId, ...] = ()
            if isinstance(answer, Refusal):
                if answer.without_proofs is None:
                    _ = answer.ways  # looked for here, in the reader's thread
                    return Preview((), None, balance, answer)
                proofs_on = answer.proofs_on
                answer = answer.without_proofs
            quota_use.check_at(uow, limits, request, answer)
            self._ceilings.check(uow, principal.account_id, request, answer)
            self._market.check_limits(uow, principal.account_id, principal.spenders, answer.price_per_hour)
            hold = self._market.first_hold(answer.price_per_hour)
            return Preview(answer.members, hold, balance, proofs_on=proofs_on)

        return await self.nominations.placed(
            principal.account_id, request, lambda among: self._store.read(partial(read, among=among)), is_preview=True
        )

    async def create(
        self,
        principal: Principal,
        request: ClusterRequest,
        key: str | None = None,
        *,
        is_proof: bool = False,
        login: RegistryLogin | None = None,
        budget: Microcents | None = None,
        but: frozenset[HostId] | None = None,
    ) -> tuple[Operation, ClusterView]:
        """Rent and start, or raise Refused with the reasons, InsufficientFunds, SpendingLimitReached, QuotaExceeded,
        InvalidInput (BudgetTooSmall among them), or DiskFull where the Master has no space for more.

        key: the request's Idempotency-Key; the same one again answers with the cluster that it made. is_proof: the
        Master tries a host, at most at the suggested price; it gives way to whoever finds no capacity because of it.
        login: for one pull of its image on each host, sealed to it; it is no part of the request, and is not kept.
        budget: for a job, what it may still cost; None: as was asked. but: hosts that are left out; None: those kept
        for what waits.

        One that may wait is Queued where there is no place now, or where others wait, and its operation goes on.
        """
        may_wait = request.wait_ns is not None
        compares = request.optimize == "cost" and request.backend is not None
        said = "it may wait without a registry login alone, which is kept nowhere: keep the login as a secret"
        require("registry_login", not (may_wait and login), f"left out with wait_seconds: {said}")
        if may_wait and (len(self.waiting) or compares):
            said = "Prices elsewhere are looked up first." if compares else "Others wait before it."
            return await self._enqueue(principal, request, key, said)
        is_in_turn = but is not None or is_proof
        kept = frozenset[HostId]() if is_in_turn else self.waiting.kept(principal.account_id, request)
        out = but or kept
        try:
            return await self._meeting_needs(lambda: self._order(principal, request, key, is_proof, login, budget, out))
        except (NoCapacity, QuotaExceeded) as refused:
            if not may_wait:
                if kept and isinstance(refused, NoCapacity) and not refused.retryable:
                    raise NoCapacity(f"{NotNow.by(refused, kept).said} Wait for your turn: --wait") from None
                raise
            return await self._enqueue(principal, request, key, refused.detail or refused.code)

    async def _enqueue(
        self, principal: Principal, request: ClusterRequest, key: str | None, said: str
    ) -> tuple[Operation, ClusterView]:
        """Let it wait. Raises Refused where no host is large enough for it, or none is where it has to be."""

        def known(uow: UnitOfWork) -> tuple[Cluster, bytes] | None:
            return uow[ClusterRepository].by_key(principal.account_id, key) if key is not None else None

        def look(uow: UnitOfWork) -> Placement | Refusal | None:
            preview = checked(request, ClusterId("cluster_preview"))
            return self._starter.placed(uow, principal.account_id, preview) if known(uow) is None else None

        found = await self._store.read(look)
        if isinstance(found, Refusal) and not found.is_possible and request.backend is None:
            raise Refused(found)

        def change(uow: UnitOfWork) -> tuple[Operation, ClusterView]:
            if (before := known(uow)) is not None:
                return self._again(uow, principal, request, before)
            cluster_id, asked = self._admitted(uow, principal, request)
            self.check_waits(uow, principal.account_id, asked, 1)
            if asked.backend is not None:
                uow.publish(ElsewhereAsked(principal.account_id, (cluster_id,), asked.backend))
            cluster = self.waiting.new(uow, principal, cluster_id, asked, said)
            uow[ClusterRepository].add(cluster, key, self._digest(request))
            uow.audit(principal.actor, CREATE_KIND, cluster_id, "asked for: it waits for a place")
            told = f"{cluster.name} waits for a place: {said}"
            uow.event("cluster.queued", (cluster_id, cluster.account_id), told, actor=principal.actor)
            uow.after_commit(lambda: self._changed(cluster_id))
            operation = uow.operation(CREATE_KIND, cluster_id, principal.account_id, principal.actor)
            return operation, self._view(uow, cluster)

        return await self._store.write(change, name="cluster.queue")

    async def _place_waiting(self, cluster_id: ClusterId, but: frozenset[HostId]) -> ClusterView | None:
        """Start what waits now, on none of these hosts, or raise what `create` does: then it waits on. None: it does
        not wait any more."""

        def waits(uow: UnitOfWork) -> Cluster | None:
            found = uow[ClusterRepository].get(cluster_id)
            return found if found is not None and found.phase is ClusterPhase.QUEUED else None

        def change(uow: UnitOfWork, among: Nominated | None) -> ClusterView | Needs | None:
            if (cluster := waits(uow)) is None:
                return None
            check_may_begin(uow, cluster.account_id)
            self._store.admit()
            self.check_secrets(uow, cluster.account_id, cluster.request)
            uow.publish(VolumesAsked(cluster.account_id, cluster.request.volumes))
            out = uow.ask(HostsKept(cluster_id)) | but
            ready = self._starter.prepare(uow, cluster.account_id, cluster.request, among=among, but=out)
            if not isinstance(ready, Ready):
                return ready
            uow.publish(VolumesTaken(cluster.account_id, cluster.request.volumes, cluster_id))
            who = principal_of(cluster, uow.now_wall_ns)
            after = self._starter.again(uow, cluster, ready, who, None)
            uow[ClusterRepository].save(after)
            self.tell_start(uow, who, after, ready.found, "cluster.place")
            return self._view(uow, after)

        if (cluster := await self._store.read(waits)) is None:
            return None
        if cluster.request.optimize == "cost":
            await self.check_price(principal_of(cluster, self._clock.wall_ns()), cluster.request, cluster_id)

        async def ask() -> ClusterView | Needs | None:
            return await self.nominations.placed(
                cluster.account_id,
                cluster.request,
                lambda among: self._store.write(partial(change, among=among), name="cluster.place"),
                but=but,
            )

        return await self._meeting_needs(ask)

    def check_budget(
        self, uow: UnitOfWork, account_id: AccountId, request: ClusterRequest, budget: Microcents | None
    ) -> None:
        """Raises BudgetTooSmall where this budget does not pay for a minute where it would run now."""
        if budget is not None:
            self._starter.placed(uow, account_id, request, budget=budget)

    async def check_price(self, principal: Principal, request: ClusterRequest, entry_id: str) -> None:
        """Raises DearerHere where a request that is optimised for its cost has a place here, and one elsewhere costs
        less; Unavailable while that is not known."""

        def read(uow: UnitOfWork) -> Microcents | None:
            return None if uow.ask(HostKeptFor(entry_id)) is not None else uow.ask(CheapestElsewhere(entry_id))

        best = await self._store.read(read)
        here = () if best is None else (await self.plan(principal, request)).members
        price = Microcents(sum(one.price_per_hour for one in here))
        if best is not None and here and price > best:
            raise DearerHere(f"A place here costs {money_text(price)} an hour, one elsewhere {money_text(best)}.")

    def check_waits(self, uow: UnitOfWork, account_id: AccountId, request: ClusterRequest, count: int) -> None:
        """Raises QuotaExceeded where so many more may not wait, or one of them is larger than a quota."""
        found = quota_use.check(uow, account_id, request, may_wait=True)
        quotas.check(uow, found, {(QuotaItem.WAITING, ""): count})

    def check_begins(
        self,
        uow: UnitOfWork,
        account_id: AccountId,
        spenders: Sequence[str],
        asked: Sequence[tuple[Resources, str, Microcents]],
    ) -> None:
        """Raises QuotaExceeded, SpendingLimitReached or InsufficientFunds where not all of these machines may begin
        beside what there is: what each asks for, its tier and price."""
        quota_use.check_all(uow, account_id, asked)
        price = Microcents(sum(each for *_, each in asked))
        self._market.check_begins(uow, account_id, spenders, price, len(asked))

    def check_secrets(self, uow: UnitOfWork, account_id: AccountId, request: Work, login: _Login = None) -> None:
        """Raises InvalidInput where the request names a secret that is not there or cannot be used so."""
        require("registry_secret", not (login and request.registry_secret), "left out beside registry_login")
        self._secrets.open(uow, account_id, request)

    async def _meeting_needs(self, ask: Callable[[], Awaitable[_T | Needs]]) -> _T:
        """Ask, and again once hosts have looked for each other, and once more when test rentals have made way."""
        looks, may_evict = 0, True
        while looks < LOOKS_MAX:
            answer = await ask()
            if isinstance(answer, Look):
                await self._reachability.look(answer.hosts)
                looks += 1
            elif isinstance(answer, Evict):
                if not (may_evict and await self._proofs.give_way(answer.hosts)):
                    raise answer.refused
                looks, may_evict = 0, False
            else:
                return answer
        raise Unavailable("The hosts that fit changed with every try, and nothing was created. Try again.")

    async def resize(
        self,
        principal: Principal,
        cluster_id: ClusterId,
        hosts: int,
        most: Microcents | None = None,
        login: RegistryLogin | None = None,
    ) -> ClusterView:
        """Give it so many hosts; asked again it answers again. More in resize.py."""

        def change(uow: UnitOfWork) -> ClusterView | Needs:
            cluster = self._load(uow, principal, cluster_id, frozenset())
            self._store.admit()
            found = self._resizer.resize(uow, cluster, hosts, principal, most, login)
            return self._view(uow, found) if isinstance(found, Cluster) else found

        return await self._meeting_needs(lambda: self._store.write(change, name="cluster.resize"))

    async def extend(self, principal: Principal, cluster_id: ClusterId, duration_ns: int) -> ClusterView:
        """Let it run for so long since its start; asked again it answers again. What is set aside for it stays: that is
        filled some minutes ahead, however long it may run. Raises Conflict, also where a host is closed before that;
        InvalidInput; Forbidden as `resize`."""

        def change(uow: UnitOfWork) -> ClusterView:
            cluster = self._load(uow, principal, cluster_id, frozenset())
            if uow.ask(IsOfJob(cluster_id)):
                raise Conflict("This cluster belongs to a job, which has limits of its own.", subject=cluster_id)
            after = end_limits.extended(cluster, duration_ns)
            if after == cluster:
                return self._view(uow, cluster)
            self._check_open(uow, after)
            spending.check_counts(uow, principal.spenders, cluster.rental_id)
            length = f"{duration_ns // SECOND} s"
            uow.audit(principal.actor, "cluster.extend", cluster_id, "asked for", {"max_duration": length})
            said = f"{cluster.name} may run for {length} in all"
            uow.event("cluster.extended", (cluster_id, cluster.account_id), said, actor=principal.actor)
            after = replace(after, version=cluster.version + 1)
            self.lifecycle.keep(uow, after)
            return self._view(uow, after)

        return await self._store.write(change, name="cluster.extend")

    def _check_open(self, uow: UnitOfWork, cluster: Cluster) -> None:
        """As placement, which puts nothing on a host that would not end before it is closed. Raises Conflict."""
        limits = uow.ask(HostLimits())
        hosts = {one.host_id for one in uow[WorkloadRepository].of_cluster(cluster.cluster_id)}
        closes = [at_ns for one in hosts & limits.keys() if (at_ns := limits[one].closes_at_ns) is not None]
        ends_ns = (cluster.started_at_ns or uow.now_wall_ns) + (cluster.request.max_duration_ns or 0)
        if closes and ends_ns > min(closes):
            said = f"Maintenance of a host of {cluster.name} begins at {time_text(min(closes))}, before that is over."
            raise Conflict(f"{said} Take a shorter duration, or rent another host.", subject=cluster.cluster_id)

    async def _order(
        self,
        principal: Principal,
        request: ClusterRequest,
        key: str | None,
        is_proof: bool,
        login: _Login,
        budget: Microcents | None,
        but: frozenset[HostId],
    ) -> tuple[Operation, ClusterView] | Needs:

        def change(uow: UnitOfWork, among: Nominated | None) -> tuple[Operation, ClusterView] | Needs:
            known = uow[ClusterRepository].by_key(principal.account_id, key) if key is not None else None
            if known is not None:
                return self._again(uow, principal, request, known)
            out = uow.ask(HostsKept((key or "").partition("/")[0])) | but
            made = self.new(uow, principal, request, key, is_proof, login, budget, among, out)
            return self._starts(uow, principal, *made, CREATE_KIND) if isinstance(made, tuple) else made

        return await self.nominations.placed(
            principal.account_id,
            request,
            lambda among: self._store.write(
                partial(change, among=among), name="cluster.create", ahead=self._ahead(among)
            ),
            is_proof=is_proof,
            but=but,
        )

    def new(
        self,
        uow: UnitOfWork,
        principal: Principal,
        request: ClusterRequest,
        key: str | None,
        is_proof: bool,
        login: _Login,
        budget: Microcents | None,
        among: Nominated | None,
        but: frozenset[HostId],
        like: ClusterRequest | None = None,
    ) -> tuple[Cluster, Placement] | Needs:
        """A cluster with its place, rented and not started. like: one within its limits that differs in its
        environment alone; None: all is checked."""
        cluster_id, asked = self._admitted(uow, principal, request, login, is_proof=is_proof, like=like)
        ready = self._starter.prepare(uow, principal.account_id, asked, is_proof, budget, among, but)
        if not isinstance(ready, Ready):
            return ready
        # First of all, since what a transaction knows is forgotten with a lock, also of what it has just written.
        self._fleet.lock(uow, [member.host_id for member in ready.found.members])
        uow.publish(VolumesTaken(principal.account_id, asked.volumes, cluster_id))
        cluster, whole = self._starter.first(uow, principal.account_id, asked, cluster_id, ready, login is not None)
        uow[ClusterRepository].add(cluster, key, self._digest(request))
        self._starter.rent(uow, cluster, whole, ready.found.members, principal, login, budget)
        return cluster, ready.found

    def _ahead(self, among: Nominated | None) -> Ahead | None:
        return None if among is None else Ahead(self.read_ahead, among.hosts)

    def read_ahead(self, uow: UnitOfWork, host_ids: Sequence[HostId]) -> None:
        """Read at once what starts on these hosts will read one after the other."""
        if host_ids:
            self._fleet.lock(uow, host_ids)
            self._placer.read_ahead(uow, host_ids)

    def _admitted(
        self,
        uow: UnitOfWork,
        principal: Principal,
        request: ClusterRequest,
        login: _Login = None,
        *,
        is_proof: bool = False,
        like: ClusterRequest | None = None,
    ) -> tuple[ClusterId, ClusterRequest]:
        """The id of a new cluster, and its request within all limits. like: one within its limits that differs in the
        values of its environment alone. Raises what `create` does, but for its place."""
        check_may_begin(uow, principal.account_id)
        self._store.admit()
        cluster_id = ClusterId(uow.mint("cluster"))
        asked = checked(request, cluster_id) if like is None else replace(like, env=request.env)
        if end_limits.may_end_unused(asked) and not is_proof:
            idle_ns = spending.idle_ns(uow, principal.account_id, principal.spenders)
            asked = replace(asked, idle_ns=idle_ns)
        self._check_waited(uow, principal, asked)
        self.check_secrets(uow, principal.account_id, asked, login)
        uow.publish(VolumesAsked(principal.account_id, asked.volumes))
        if asked.backend is not None:  # a wrong one is said also where there is room here
            uow.publish(ElsewhereAsked(principal.account_id, (), asked.backend))
        return cluster_id, asked

    def _check_waited(self, uow: UnitOfWork, principal: Principal, asked: ClusterRequest) -> None:
        """Raises TooMany. What has no token is the Master itself, for a job or a proof: it has the files."""
        if asked.await_files and principal.token_id and not principal.is_trusted:
            end_limits.check_waited(
                uow[ClusterRepository].page(principal.account_id, None, end_limits.LATELY_MAX), uow.now_wall_ns
            )

    def _starts(
        self, uow: UnitOfWork, principal: Principal, cluster: Cluster, found: Placement, kind: str
    ) -> tuple[Operation, ClusterView]:
        self.tell_start(uow, principal, cluster, found, kind)
        operation = uow.operation(kind, cluster.cluster_id, principal.account_id, principal.actor)
        return operation, self._view(uow, cluster)

    def tell_start(self, uow: UnitOfWork, principal: Principal, cluster: Cluster, found: Placement, kind: str) -> None:
        """Write down that it starts, and let it."""
        cluster_id, hosts = cluster.cluster_id, [member.host_id for member in found.members]
        slots = ",".join(slot_id for member in found.members for slot_id in member.slot_ids)
        uow.audit(principal.actor, kind, cluster_id, "asked for", {"host": ",".join(hosts), "slots": slots})
        said = f"{cluster.name} starts on {names(found)}"
        uow.event("cluster.creating", (cluster_id, cluster.account_id, *hosts), said, actor=principal.actor)
        uow.after_commit(lambda: self._changed(cluster_id))

    async def stop(self, principal: Principal, cluster_id: ClusterId) -> tuple[Operation, ClusterView]:
        """End its work as a delete does, but keep it: it can be started again. Asked again it answers again.

        Raises Conflict where nothing of it can run: of what is deleted, or waits for a place."""

        def change(uow: UnitOfWork) -> tuple[Operation, ClusterView]:
            cluster = self._load(uow, principal, cluster_id, frozenset())
            stopping.check_stop(cluster)
            if uow.ask(IsOfJob(cluster_id)):
                raise Conflict("This machine belongs to a job: cancel the job instead.", subject=cluster_id)
            operation = self._asked(uow, principal, cluster_id, STOP_KIND)
            after = self.lifecycle.stop(uow, cluster, principal.actor)
            after = self.lifecycle.judge(uow, after, principal.actor)
            return uow.operations.get(operation.id) or operation, self._view(uow, after)

        return await self._store.write(change, name="cluster.stop")

    async def start(
        self,
        principal: Principal,
        cluster_id: ClusterId,
        most: Microcents | None = None,
        login: RegistryLogin | None = None,
    ) -> tuple[Operation, ClusterView]:
        """Place and rent anew what was stopped, or raise what `create` does: then it stays Stopped. What was started
        already is answered again. most: what all of it may cost per hour; None: as was asked. login: as for `create`.

        Raises Conflict while it is still stopping, and where it is no stopped cluster at all.
        """

        def change(uow: UnitOfWork) -> tuple[Operation, ClusterView] | Needs:
            cluster = self._load(uow, principal, cluster_id, frozenset())
            if cluster.phase in HOLDING:
                return self._answered(uow, principal, cluster, START_KIND)
            stopping.check_start(cluster, login)
            check_may_begin(uow, cluster.account_id)
            self._store.admit()
            asked = cluster.request if most is None else replace(cluster.request, max_price_per_hour=most)
            self._check_waited(uow, principal, asked)
            self.check_secrets(uow, cluster.account_id, asked)
            uow.publish(VolumesAsked(cluster.account_id, asked.volumes))
            ready = self._starter.prepare(uow, cluster.account_id, asked)
            if not isinstance(ready, Ready):
                return ready
            uow.publish(VolumesTaken(cluster.account_id, asked.volumes, cluster_id))
            after = replace(cluster, needs_login=cluster.needs_login or login is not None)
            after = self._starter.again(uow, after, ready, principal, login)
            uow[ClusterRepository].save(after)
            return self._starts(uow, principal, after, ready.found, START_KIND)

        return await self._meeting_needs(lambda: self._store.write(change, name="cluster.start"))

    async def delete(
        self, principal: Principal, cluster_id: ClusterId, *, keeps_results: bool = False
    ) -> tuple[Operation, ClusterView]:
        """End it, whatever it is doing; asked again it answers again, and what is gone stays gone. keeps_results: its
        log and files are brought in first; so they are where it is somebody else's."""

        def change(uow: UnitOfWork) -> tuple[Operation, ClusterView]:
            cluster = self._load(uow, principal, cluster_id, _ENDS_ALL)
            operation = self._asked(uow, principal, cluster_id, DELETE_KIND)
            is_own = cluster.account_id == principal.account_id
            said = "" if is_own else ENDED_BY_OPERATOR
            after = self.lifecycle.end(uow, cluster, said, principal.actor, keeps_results=keeps_results or not is_own)
            after = self.lifecycle.judge(uow, after, principal.actor)
            return uow.operations.get(operation.id) or operation, self._view(uow, after)

        return await self._store.write(change, name="cluster.delete")

    def end_all(self, uow: UnitOfWork, account_id: AccountId, reason: str, actor: str) -> None:
        """End all clusters of an account that are not over."""
        for cluster in uow[ClusterRepository].living():
            if cluster.account_id == account_id:
                self.lifecycle.judge(uow, self.lifecycle.end(uow, cluster, reason, actor, keeps_results=True), actor)

    async def get(self, principal: Principal, cluster_id: ClusterId) -> ClusterView:
        """One cluster, whole for its renter; NotFound where there is none or it is somebody else's."""
        view = await self._store.read(lambda uow: self._view(uow, self._load(uow, principal, cluster_id, _SEES_ALL)))
        is_renter = view.cluster.account_id == principal.account_id and Role.RENTER in principal.roles
        return self._opened(view) if is_renter else view

    async def get_own(self, principal: Principal, cluster_id: ClusterId) -> ClusterView:
        """One cluster of one's own: what happens inside it is nobody else's business, not an operator's either."""

        def read(uow: UnitOfWork) -> ClusterView:
            return self._view(uow, self._load(uow, principal, cluster_id, frozenset()))

        return self._opened(await self._store.read(read))

    def notebook(self, view: ClusterView) -> tuple[int, str]:
        """The port of a box's notebook, and its address for a browser, token included. view: of `get_own`. Raises
        Conflict where it has none."""
        workload = next((one for one in view.workloads if one.rank == 0), None)
        runtime, host_id = ("", HostId("")) if workload is None else (workload.runtime, workload.host_id)
        return box.page_url(view.whole or view.cluster, runtime, self._service_place(host_id))

    async def list(
        self,
        principal: Principal,
        before: str | None,
        limit: int,
        wanted: Mapping[str, str] | None = None,
        *,
        with_tests: bool = True,
    ) -> Sequence[ClusterView]:
        """The latest first; of all accounts for operators and auditors. wanted: the values of fields of its request.
        with_tests: those too by which the Master tests hosts."""

        def read(uow: UnitOfWork) -> Sequence[ClusterView]:
            account_id = None if principal.roles & _SEES_ALL else principal.account_id
            without = None if with_tests else PROOF_ACCOUNT

            def rows(last: Cluster | None, size: int) -> Sequence[Cluster]:
                return uow[ClusterRepository].page(
                    account_id, before if last is None else last.cluster_id, size, wanted, without
                )

            return page_alone("cluster_view", rows, lambda cluster: self._view(uow, cluster), limit)

        return await self._store.read(read)

    async def counts(self) -> Mapping[ClusterPhase, int]:
        """The number in each phase of whatever is neither deleted, failed nor stopped; of everybody."""
        return await self._store.read(lambda uow: uow[ClusterRepository].counts())

    async def renew(self, principal: Principal, cluster_id: ClusterId) -> None:
        """Its client lives: its lease begins anew, where it has one."""

        def hear(uow: UnitOfWork) -> None:
            cluster = self._load(uow, principal, cluster_id, frozenset())
            if cluster.request.client_lease_ns is not None and cluster.phase in HOLDING:
                self.lifecycle.clients.heard(cluster_id, uow.now_wall_ns)

        await self._store.read(hear)

    async def explain(self, principal: Principal, cluster_id: ClusterId) -> tuple[int, Decision]:
        """The record of why it runs where it runs, and when that was decided."""

        def read(uow: UnitOfWork) -> tuple[int, Decision]:
            self._load(uow, principal, cluster_id, _SEES_ALL)
            found = uow[DecisionRepository].latest(cluster_id)
            if found is None:
                said = (
                    "The reasons for its host are no longer kept: this machine ended long ago, or it has no host yet."
                )
                raise NotFound(said, subject=cluster_id)
            return found

        return await self._store.read(read)

    async def judged(self, account_id: AccountId, request: ClusterRequest, host_id: HostId) -> Verdict:
        """The finding about one host for this request, as it is now. Raises NotFound."""
        return await self._store.read(lambda uow: self._placer.judge(uow, request, account_id, host_id))

    async def refusal(self, account_id: AccountId, request: ClusterRequest) -> Refusal | None:
        """The reasons why a request finds no place now, with what would fit; None: there is a place."""

        def read(uow: UnitOfWork) -> Refusal | None:
            found = self._starter.placed(uow, account_id, request)
            if isinstance(found, Refusal):
                _ = found.ways  # looked for here, in the reader's thread
                return found
            return None

        return await self._store.read(read)

    async def offers(self) -> tuple[Offer, ...]:
        """Return the offers of the fleet now, by tier."""
        return await self._store.read(self._placer.offers)

    async def machine_classes(self, wanted: Wanted) -> tuple[MachineClass, ...]:
        """Return what can be rented or is rented now, by machine class."""
        return await self._store.read(lambda uow: self._placer.classes(uow, wanted))

    async def starts(self) -> Sequence[tuple[str, int]]:
        """The latest starts on real hosts: the tier, and the nanoseconds from the request to the start."""
        return await self._store.read(lambda uow: uow[ClusterRepository].starts(STARTS_KNOWN, START_LONGEST_NS))

    async def tick(self) -> None:
        """Do what is due by time alone (due.py), every 5 s; at first put what waits into the queue."""
        if not self._are_waiting_put:
            await self.waiting.put_all()
            self._are_waiting_put = True
        await self._due.tick()

    def look_again(self, uow: UnitOfWork, cluster_ids: Sequence[ClusterId]) -> None:
        """Something about these may be due once this is committed."""
        for cluster_id in cluster_ids:
            uow.after_commit(partial(self._due.add, cluster_id))

    # --- inside ------------------------------------------------------------------------------------------------------

    def _again(
        self, uow: UnitOfWork, principal: Principal, request: ClusterRequest, known: tuple[Cluster, bytes]
    ) -> tuple[Operation, ClusterView]:
        cluster, asked = known
        if asked != self._digest(request):
            raise IdempotencyMismatch(subject=cluster.cluster_id)
        return self._answered(uow, principal, cluster, CREATE_KIND)

    def _digest(self, request: ClusterRequest) -> bytes:
        return self._seal_key.digest(digest(request))

    def _answered(
        self, uow: UnitOfWork, principal: Principal, cluster: Cluster, kind: str
    ) -> tuple[Operation, ClusterView]:
        """Answer a repeated request again, with the operation that still runs or one that is over."""
        running = uow.operations.running(cluster.cluster_id, kind)
        operation = self._asked(uow, principal, cluster.cluster_id, kind)
        if not running:
            uow.operations.finish(operation.id, uow.now_wall_ns)
        return uow.operations.get(operation.id) or operation, self._view(uow, cluster)

    def _asked(self, uow: UnitOfWork, principal: Principal, cluster_id: ClusterId, kind: str) -> Operation:
        """The operation of this kind that goes on and that the caller may read, or a new one, which ends with it."""
        running = uow.operations.running(cluster_id, kind)
        own = [one for one in running if one.is_of(principal.home_id, principal.actor)]
        return own[0] if own else uow.operation(kind, cluster_id, principal.account_id, principal.actor)

    def _load(self, uow: UnitOfWork, principal: Principal, cluster_id: ClusterId, others: frozenset[Role]) -> Cluster:
        """A cluster of one's own, or of anybody with one of these roles."""
        cluster = uow[ClusterRepository].get(cluster_id)
        if cluster is None or not (cluster.account_id == principal.account_id or principal.roles & others):
            raise NotFound(
                "There is no such machine, or it is not yours. List yours: windrow cluster ls", subject=cluster_id
            )
        return cluster

    def _opened(self, view: ClusterView) -> ClusterView:
        if not view.cluster.sealed:
            return view
        try:
            return replace(view, whole=environments.whole(self._seal_key, view.cluster))
        except InvalidInput:
            return view  # it was sealed to another key: its names are all that can be shown

    def _view(self, uow: UnitOfWork, cluster: Cluster) -> ClusterView:
        workloads, now_ns = uow[WorkloadRepository].of_cluster(cluster.cluster_id), uow.now_wall_ns
        view = ClusterView(cluster, workloads, charged(uow, cluster.cluster_id))
        if cluster.phase in (ClusterPhase.RUNNING, ClusterPhase.DEGRADED):
            view = replace(view, silent_hosts=self._fleet.hosts.silent(uow, [one.host_id for one in workloads]))
        view = replace(view, client_lease_ends_at_ns=self.lifecycle.clients.lease_ends_at_ns(cluster, now_ns))
        if end_limits.are_any(cluster.request):
            spent = self._market.spent(uow, cluster.rental_id)
            view = replace(view, ends_at_ns=end_limits.ends_at_ns(cluster, spent, now_ns))
        if cluster.network is NetworkMode.TUNNELS:
            peer_links = self._peer_links(cluster.cluster_id)
            problem = next((one.problem for one in peer_links if one.problem), "")
            up = tuple(one.is_up for one in peer_links)
            return replace(
                view, traffic=uow[TrafficRepository].get(cluster.cluster_id), peer_links=up, peer_link_problem=problem
            )
        if cluster.kind is not ClusterKind.SERVICE:
            return view
        place = self._service_place(workloads[0].host_id if workloads else HostId(""))
        ports = public_ports(cluster) if place and cluster.phase not in stopping.RESTS else ()
        urls = {port: service_url(cluster.cluster_id, port, place) for port in ports}
        return replace(view, urls=urls, traffic=uow[TrafficRepository].get(cluster.cluster_id))

    def _changed(self, cluster_id: ClusterId) -> None:
        """More of it is new than its cost: something may be due."""
        self._due.add(cluster_id)
        for step_listener in self._step_listeners:
            step_listener(cluster_id)
        self.touch(cluster_id)
