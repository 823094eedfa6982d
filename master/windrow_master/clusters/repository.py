"""Reads and writes clusters and workloads; rows go in and out as values of the package."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from operator import attrgetter, itemgetter
from typing import Any, Final

from sqlalchemy import Select, bindparam, case, func, insert, literal_column, or_, select, update

from windrow_master.clusters.model import (
    Cluster,
    ClusterPhase,
    ClusterRequest,
    NetworkMode,
    Results,
    Step,
    Traffic,
    Workload,
    WorkPhase,
    names_of,
)
from windrow_master.clusters.tables import clusters, service_traffic, workloads
from windrow_master.market.model import PROOF_ACCOUNT
from windrow_master.queue.quota import NodeLevel
from windrow_master.queue.tables import LEVELS, is_below
from windrow_master.spec import kept, restored
from windrow_master.store.prepared import ByKey, Found, Made, few, flat, is_one_of_few, page, readable, settable
from windrow_master.store.repository import Repository, with_text
from windrow_proto.ids import AccountId, ClusterId, HostId, WorkloadId
from windrow_proto.model import Isolation, SlotGrant
from windrow_proto.units import Bytes

_LIVING = ("Requested", "Queued", "Placing", "Creating", "Running", "Degraded", "Stopping", "Deleting")

# Made once: building a statement costs more than running it, and these run for every receipt, command and look at a
# workload.
_SELECTED: Final = with_text(clusters, "request")
_ADD_CLUSTER: Final = Made(insert(clusters), clusters.c.keys(), is_late=True)
_GET_CLUSTER: Final = Found(
    select(*_SELECTED).where(clusters.c.cluster_id == bindparam("wanted")), lambda row: _cluster(row)
)
_FEW_CLUSTERS: Final = Found(select(*_SELECTED).where(is_one_of_few(clusters.c.cluster_id)), lambda row: _cluster(row))
_BY_KEY: Final = Found(
    select(*_SELECTED).where(
        clusters.c.account_id == bindparam("account"), clusters.c.request_key == bindparam("wanted")
    ),
    lambda row: (_cluster(row), bytes(row["request_sha256"])),
)
_KEYS: Final = Made(
    select(clusters.c.request_key).where(
        clusters.c.account_id == bindparam("account"), is_one_of_few(clusters.c.request_key)
    )
)
_TRAFFIC: Final = Made(select(service_traffic).where(service_traffic.c.cluster_id == bindparam("wanted")))
_COMMITMENTS: Final = (
    select(
        workloads.c.host_id,
        func.sum(workloads.c.cpus).label("cpus"),
        func.sum(workloads.c.memory_bytes).label("memory_bytes"),
        func.count().label("works"),
    )
    .where(workloads.c.is_released.is_(False))
    .group_by(workloads.c.host_id)
)
_COMMITTED: Final = Made(_COMMITMENTS)
_COMMITTED_ON: Final = ByKey(_COMMITMENTS, workloads.c.host_id, lambda row: _committed(row), itemgetter(0))
_IS_LIVING: Final = or_(*(clusters.c.phase == phase for phase in _LIVING))
_ALL_LIVING: Final = Found(
    select(*_SELECTED).where(_IS_LIVING),
    lambda row: _cluster(row),
    attrgetter("cluster_id"),
)
_COUNTS: Final = Made(
    select(clusters.c.phase, func.count().label("number")).where(_IS_LIVING).group_by(clusters.c.phase)
)
_QUEUED: Final = Found(
    select(*_SELECTED).where(clusters.c.phase == bindparam("phase")),
    lambda row: _cluster(row),
    attrgetter("cluster_id"),
)
_COUNT_QUEUED: Final = Made(
    select(func.count().label("number"))
    .select_from(clusters)
    .where(clusters.c.phase == bindparam("phase"), clusters.c.account_id == bindparam("account"))
)
_LIVING_IDS: Final = Made(select(clusters.c.cluster_id).where(_IS_LIVING))
_IN_TUNNELS: Final = Found(
    select(*_SELECTED).where(clusters.c.network == NetworkMode.TUNNELS.value, _IS_LIVING),
    lambda row: _cluster(row),
    attrgetter("cluster_id"),
)
_CLUSTER_COLUMNS: Final = tuple(name for name in settable(clusters) if name not in ("request_key", "request_sha256"))
_SAVE_CLUSTER: Final = Made(update(clusters).where(clusters.c.cluster_id == bindparam("was_id")), _CLUSTER_COLUMNS)
_ADD_WORKLOAD: Final = Made(insert(workloads), workloads.c.keys(), is_late=True)
_GET_WORKLOAD: Final = Found(
    select(workloads).where(workloads.c.workload_id == bindparam("wanted")), lambda row: _workload(row)
)
_SAVE_WORKLOAD: Final = Made(
    update(workloads).where(workloads.c.workload_id == bindparam("was_id")), settable(workloads)
)
_OF_CLUSTER: Final = ByKey(
    select(workloads).where(workloads.c.is_past.is_(False)),
    workloads.c.cluster_id,
    lambda row: _workload(row),
    attrgetter("cluster_id"),
    attrgetter("workload_id"),
)
_HELD_ON: Final = Found(
    select(workloads).where(workloads.c.host_id == bindparam("wanted"), workloads.c.is_released.is_(False)),
    lambda row: _workload(row),
    attrgetter("workload_id"),
)
_HELD_ON_FEW: Final = Found(
    select(workloads).where(is_one_of_few(workloads.c.host_id), workloads.c.is_released.is_(False)),
    lambda row: _workload(row),
    attrgetter("workload_id"),
)
_WITH_RESULTS: Final = Found(
    select(workloads).where(
        workloads.c.is_released.is_(False),
        workloads.c.delete_command.is_(None),
        or_(workloads.c.phase == bindparam("exited"), workloads.c.phase == bindparam("gone")),
    ),
    lambda row: _workload(row),
    attrgetter("workload_id"),
)
_HELD_OF: Final = Found(
    select(workloads).where(
        workloads.c.is_released.is_(False),
        select(clusters.c.cluster_id)
        .where(clusters.c.cluster_id == workloads.c.cluster_id, clusters.c.account_id == bindparam("account"))
        .exists(),  # asked of each of the few that are held: an account may have had any number of clusters
    ),
    lambda row: _workload(row),
    attrgetter("workload_id"),
)
_HELD_OF_CLUSTER: Final = Found(
    select(workloads).where(workloads.c.cluster_id == bindparam("wanted"), workloads.c.is_released.is_(False)),
    lambda row: _workload(row),
    attrgetter("workload_id"),
)
_HELD_OF_FEW: Final = Found(
    select(workloads).where(is_one_of_few(workloads.c.cluster_id), workloads.c.is_released.is_(False)),
    lambda row: _workload(row),
    attrgetter("workload_id"),
)
_HOLDING: Final = Made(select(workloads.c.cluster_id).where(workloads.c.is_released.is_(False)).distinct())
_HELD: Final = Found(
    select(workloads).where(workloads.c.is_released.is_(False)),
    lambda row: _workload(row),
    attrgetter("workload_id"),
)


def _below(level: NodeLevel, *columns: Any) -> Select[Any]:
    """Of the clusters below a node of this level that go on, by tier; without the Master's own tests, which give
    way."""
    query = select(clusters.c.tier, *columns).where(clusters.c.ended_at_ns.is_(None), is_below(clusters, level))
    return query.where(clusters.c.account_id != literal_column(f"'{PROOF_ACCOUNT}'")).group_by(clusters.c.tier)


_IS_MEANT_TO_RUN: Final = or_(*(clusters.c.phase == phase for phase in ("Creating", "Running", "Degraded")))
_PRICE: Final = func.sum(clusters.c.price_per_hour).label("price")
_RUN_BELOW: Final = {
    level: Made(_below(level, func.count().label("clusters"), _PRICE).where(_IS_MEANT_TO_RUN)) for level in LEVELS
}
_HELD_BELOW: Final = {
    level: Made(
        _below(
            level,
            func.sum(func.json_array_length(workloads.c.slots)).label("slots"),
            func.sum(workloads.c.cpus).label("cpus"),
            func.sum(workloads.c.memory_bytes).label("memory_bytes"),
        ).where(workloads.c.cluster_id == clusters.c.cluster_id, workloads.c.is_released.is_(False))
    )
    for level in LEVELS
}
_QUEUED_BELOW: Final = {
    level: Made(
        select(func.count().label("number")).where(
            clusters.c.ended_at_ns.is_(None), clusters.c.phase == ClusterPhase.QUEUED.value, is_below(clusters, level)
        )
    )
    for level in LEVELS
}


@dataclass(frozen=True, slots=True)
class HeldOfTier:
    """The clusters of one tier below a node, and what their work still holds. price: an hour of all that are meant to
    run."""

    tier: str
    clusters: int = 0
    price: int = 0
    slots: int = 0
    cpus: int = 0
    memory_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Committed:
    """The resources that the clusters placed on a host have asked for. works: how many workloads they have there."""

    cpus: int
    memory_bytes: Bytes
    works: int = 0


@dataclass(frozen=True, slots=True)
class Past:
    """The resources that a workload of an account had which has ended, and from when to when."""

    account_id: AccountId
    tier: str
    cards: int
    cpus: int
    memory_bytes: Bytes
    from_ns: int
    to_ns: int


class ClusterRepository(Repository):
    """The clusters."""

    def add(self, cluster: Cluster, request_key: str | None, request_sha256: bytes) -> None:
        """Add a cluster; its id, and its key within the account, must be new."""
        values = _cluster_values(cluster) | {"request_key": request_key, "request_sha256": request_sha256}
        _ADD_CLUSTER.run(self._connection, values)

    def save(self, cluster: Cluster) -> None:
        """Write a cluster as it is now."""
        _SAVE_CLUSTER.run(self._connection, _cluster_values(cluster) | {"was_id": cluster.cluster_id})

    def get(self, cluster_id: ClusterId) -> Cluster | None:
        """One cluster."""
        return _GET_CLUSTER.one(self._connection, {"wanted": cluster_id})

    def by_key(self, account_id: AccountId, request_key: str) -> tuple[Cluster, bytes] | None:
        """The cluster that an account asked for under this key, and the digest of what it asked."""
        return _BY_KEY.one(self._connection, {"account": account_id, "wanted": request_key})

    def keys(self, account_id: AccountId, request_keys: Sequence[str]) -> set[str]:
        """Those of these keys under which an account asked for a cluster."""
        account = {"account": account_id}
        rows = (row for wanted in few(request_keys) for row in _KEYS.rows(self._connection, wanted | account))
        return {str(row["request_key"]) for row in rows}

    def page(
        self,
        account_id: AccountId | None,
        before: str | None,
        limit: int,
        wanted: Mapping[str, str] | None = None,
        without: AccountId | None = None,
    ) -> Sequence[Cluster]:
        """The latest first; of all accounts but `without` where `account_id` is None. wanted: the values of fields of
        its request."""
        query = select(*_SELECTED).order_by(clusters.c.cluster_id.desc())
        if account_id is not None:
            query = query.where(clusters.c.account_id == account_id)
        elif without is not None:
            query = query.where(clusters.c.account_id != without)
        if before is not None:
            query = query.where(clusters.c.cluster_id < before)
        for field, value in (wanted or {}).items():
            query = query.where(clusters.c.request[field].as_string() == value)
        return page(self._connection, query, _cluster, limit)

    def starts(self, limit: int, longest_ns: int) -> Sequence[tuple[str, int]]:
        """The tier and the waiting time of recent starts on real hosts, from the request to the start.

        limit: the latest clusters that are looked at. Left out: waits above longest_ns, since such a cluster was
        stopped and started again, and clusters that waited for files or in the queue."""
        columns = (clusters.c.tier, clusters.c.request, clusters.c.created_at_ns, clusters.c.started_at_ns)
        latest = select(*columns).order_by(clusters.c.cluster_id.desc()).limit(limit).subquery()
        waited, request = latest.c.started_at_ns - latest.c.created_at_ns, latest.c.request
        query = select(latest.c.tier, waited.label("waited_ns")).where(
            latest.c.started_at_ns.is_not(None),
            waited.between(0, longest_ns),
            request["simulated"].as_boolean().is_not(True),
            request["await_files"].as_boolean().is_not(True),
            request["wait_ns"].as_string().is_(None),
            request["runtime"].as_string().is_distinct_from("simulated"),
        )
        return [(row.tier, int(row.waited_ns)) for row in self._connection.execute(query)]

    def living(self) -> Sequence[Cluster]:
        """Whatever is neither deleted, failed nor stopped."""
        return _ALL_LIVING.readable(self._connection)

    def open_of(self, account_id: AccountId) -> Sequence[Cluster]:
        """Those of them of one account, and what it stopped."""
        is_open = _IS_LIVING | (clusters.c.phase == ClusterPhase.STOPPED.value)
        query = select(*_SELECTED).where(clusters.c.account_id == account_id, is_open).order_by(clusters.c.cluster_id)
        return readable(self._connection, query, _cluster)

    def in_tunnels(self) -> Sequence[Cluster]:
        """Those of them whose members are joined by tunnels."""
        return _IN_TUNNELS.readable(self._connection)

    def queued(self) -> Sequence[Cluster]:
        """Those that wait for a place, the oldest first."""
        return _QUEUED.readable(self._connection, {"phase": ClusterPhase.QUEUED.value})

    def count_queued(self, account_id: AccountId) -> int:
        """How many of an account wait for a place."""
        row = _COUNT_QUEUED.row(self._connection, {"phase": ClusterPhase.QUEUED.value, "account": account_id})
        return 0 if row is None else int(row["number"])

    def counts(self) -> Mapping[ClusterPhase, int]:
        """The number in each phase of whatever is neither deleted, failed nor stopped."""
        return {ClusterPhase(row["phase"]): int(row["number"]) for row in _COUNTS.rows(self._connection, {})}

    def held_below(self, level: NodeLevel, node_id: str) -> Sequence[HeldOfTier]:
        """What the clusters below a node of the tree of shares hold, by tier."""
        found = dict[str, HeldOfTier]()
        for made in (_RUN_BELOW[level], _HELD_BELOW[level]):
            for row in made.rows(self._connection, {"node": node_id}):
                tier = str(row.pop("tier"))
                known = found.get(tier, HeldOfTier(tier))
                amounts: dict[str, Any] = {name: int(value) for name, value in row.items()}
                found[tier] = replace(known, **amounts)
        return list(found.values())

    def queued_below(self, level: NodeLevel, node_id: str) -> int:
        """The number of those that wait for a place."""
        (row,) = _QUEUED_BELOW[level].rows(self._connection, {"node": node_id})
        return int(row["number"])

    def living_ids(self) -> Sequence[ClusterId]:
        """The ids of whatever is neither deleted, failed nor stopped."""
        return [ClusterId(row["cluster_id"]) for row in _LIVING_IDS.rows(self._connection, {})]

    def readable(self, cluster_ids: Iterable[ClusterId]) -> Sequence[Cluster]:
        """Those of these that are there and can be read, in their order; operators are told of the others."""
        return [one for wanted in cluster_ids for one in _GET_CLUSTER.readable(self._connection, {"wanted": wanted})]

    def some(self, cluster_ids: Sequence[ClusterId]) -> Sequence[Cluster]:
        """The same in any order, with one statement for some at a time."""
        return [one for wanted in few(cluster_ids) for one in _FEW_CLUSTERS.readable(self._connection, wanted)]


class TrafficRepository(Repository):
    """The traffic of services over HTTPS."""

    def get(self, cluster_id: ClusterId) -> Traffic:
        """Of one cluster, as far as it is written; nothing of one that nobody came to."""
        row = _TRAFFIC.row(self._connection, {"wanted": cluster_id})
        return Traffic() if row is None else Traffic(row["connections"], row["bytes_in"], row["bytes_out"])

    def add(self, cluster_id: ClusterId, traffic: Traffic) -> None:
        """So much more."""
        values = asdict(self.get(cluster_id).plus(traffic))
        own = service_traffic.c.cluster_id == cluster_id
        if self._connection.execute(update(service_traffic).where(own).values(**values)).rowcount == 0:
            self._connection.execute(insert(service_traffic).values(cluster_id=cluster_id, **values))


class WorkloadRepository(Repository):
    """The workloads, by host and by cluster."""

    def add(self, workload: Workload) -> None:
        """Add a workload; its id must be new."""
        host_id, known = workload.host_id, _COMMITTED_ON.known(self._connection, workload.host_id)
        _OF_CLUSTER.insert(self._connection, _ADD_WORKLOAD, _workload_values(workload), workload)
        if known is not None and not workload.is_released:
            before = known[0][1] if known else Committed(0, Bytes(0))
            cpus, memory = before.cpus + workload.cpus, Bytes(before.memory_bytes + workload.memory_bytes)
            _COMMITTED_ON.note(self._connection, host_id, [(host_id, Committed(cpus, memory, before.works + 1))])

    def has_none(self, cluster_id: ClusterId) -> None:
        """There is no workload yet of a cluster whose id was minted now."""
        _OF_CLUSTER.note(self._connection, cluster_id, [])

    def save(self, workload: Workload) -> None:
        """Write a workload as it is now."""
        _SAVE_WORKLOAD.run(self._connection, _workload_values(workload) | {"was_id": workload.workload_id})

    def get(self, workload_id: WorkloadId) -> Workload | None:
        """One workload."""
        return _GET_WORKLOAD.one(self._connection, {"wanted": workload_id})

    def of_cluster(self, cluster_id: ClusterId) -> tuple[Workload, ...]:
        """The workloads of one cluster in its present run."""
        return tuple(_OF_CLUSTER.of(self._connection, cluster_id))

    def held_on(self, host_id: HostId) -> Sequence[Workload]:
        """Return the workloads that still hold slots of a host."""
        return _HELD_ON.readable(self._connection, {"wanted": host_id})

    def held_on_hosts(self, host_ids: Sequence[HostId]) -> Sequence[Workload]:
        """The same of each of these, with one statement for some at a time."""
        return [one for wanted in few(host_ids) for one in _HELD_ON_FEW.readable(self._connection, wanted)]

    def held(self) -> Sequence[Workload]:
        """Return the workloads that still hold slots anywhere."""
        return _HELD.readable(self._connection)

    def held_of(self, account_id: AccountId) -> Sequence[Workload]:
        """Return the workloads that still hold slots anywhere, of one account."""
        return _HELD_OF.readable(self._connection, {"account": account_id})

    def with_results(self) -> Sequence[Workload]:
        """Return the workloads that have ended by themselves and were not ordered gone: their logs and files are
        still on its host, or were."""
        phases = {"exited": WorkPhase.EXITED.value, "gone": WorkPhase.GONE.value}
        return _WITH_RESULTS.readable(self._connection, phases)

    def held_of_cluster(self, cluster_id: ClusterId) -> Sequence[Workload]:
        """Return the workloads that still hold slots of one cluster, of earlier runs, too."""
        return _HELD_OF_CLUSTER.readable(self._connection, {"wanted": cluster_id})

    def held_of_clusters(self, cluster_ids: Sequence[ClusterId]) -> dict[ClusterId, list[Workload]]:
        """The same of each of these that has any, with one statement for some at a time."""
        return _HELD_OF_FEW.of_few(self._connection, cluster_ids, lambda workload: workload.cluster_id)

    def holding_clusters(self) -> Sequence[ClusterId]:
        """The clusters of which something still holds slots."""
        return [ClusterId(row["cluster_id"]) for row in _HOLDING.rows(self._connection, {})]

    def past(self, since_ns: int, limit: int) -> Sequence[Past]:
        """Return what was had by work that was given back, of clusters that ended after that, and by earlier runs of
        those that were started again. limit: the latest clusters that are looked at."""
        latest = (
            select(
                clusters.c.cluster_id, clusters.c.account_id, clusters.c.tier, clusters.c.ended_at_ns.label("end_ns")
            )
            .where(or_(clusters.c.ended_at_ns > since_ns, clusters.c.ended_at_ns.is_(None)))
            .order_by(clusters.c.cluster_id.desc())
            .limit(limit)
            .subquery()
        )
        own = (workloads.c.slots, workloads.c.cpus, workloads.c.memory_bytes, workloads.c.created_at_ns)
        joined = latest.join(workloads, workloads.c.cluster_id == latest.c.cluster_id)
        ran_until_ns = workloads.c.created_at_ns + workloads.c.running_ns
        end_ns = case((workloads.c.is_past.is_(True), ran_until_ns), else_=latest.c.end_ns)
        ended = func.coalesce(workloads.c.ended_at_ns, workloads.c.replaced_at_ns, end_ns).label("to_ns")
        query = select(latest.c.account_id, latest.c.tier, *own, ended).select_from(joined)
        is_over = or_(latest.c.end_ns.is_not(None), workloads.c.is_past.is_(True))
        rows = self._connection.execute(query.where(workloads.c.is_released.is_(True), is_over)).mappings()
        return [
            Past(
                account_id=row["account_id"],
                tier=row["tier"],
                cards=sum(bool(slot.get("gpu_uuid")) for slot in row["slots"]),
                cpus=int(row["cpus"]),
                memory_bytes=Bytes(int(row["memory_bytes"])),
                from_ns=int(row["created_at_ns"]),
                to_ns=max(int(row["created_at_ns"]), int(row["to_ns"])),
            )
            for row in rows
        ]

    def committed(self, host_ids: Sequence[HostId] | None = None) -> dict[HostId, Committed]:
        """Return the resources asked of each host, or of each of these, by the work that still holds slots there."""
        if host_ids is None:
            return dict(map(_committed, _COMMITTED.rows(self._connection, {})))
        return dict(one for found in _COMMITTED_ON.some(self._connection, host_ids).values() for one in found)


def _committed(row: Mapping[Any, Any]) -> tuple[HostId, Committed]:
    return row["host_id"], Committed(int(row["cpus"]), Bytes(int(row["memory_bytes"])), int(row["works"]))


def request_values(request: ClusterRequest) -> dict[str, Any]:
    """A request as a column keeps it: of its environment the names only, whatever it was given."""
    return kept(request) | {"env": names_of(request.env)}


def _cluster_values(cluster: Cluster) -> dict[str, Any]:
    steps = [flat(step) for step in cluster.steps]
    return flat(cluster) | {
        "name": cluster.name,
        "request": request_values(cluster.request),
        "steps": steps,
        "phase": cluster.phase.value,
        "network": cluster.network.value,
        "secret": None,
        "spenders": list(cluster.spenders),
    }


def _cluster(row: Mapping[Any, Any]) -> Cluster:
    values = {key: value for key, value in row.items() if key not in ("name", "request_key", "request_sha256")}
    return Cluster(
        **values
        | {
            "request": restored(ClusterRequest, row["request"]),
            "phase": ClusterPhase(row["phase"]),
            "steps": tuple(Step(**step) for step in row["steps"]),
            "network": NetworkMode(row["network"] or ""),
            "network_reason": row["network_reason"] or "",
            "sealed": bytes(row["sealed"] or b""),
            "spenders": tuple(row["spenders"] or ()),
        }
    )


def _workload_values(workload: Workload) -> dict[str, Any]:
    slots = [flat(slot) for slot in workload.slots]
    results = None if workload.results is None else flat(workload.results)
    changed = {"phase": workload.phase.value, "ports": dict(workload.ports), "slots": slots, "results": results}
    return flat(workload) | changed


def _workload(row: Mapping[Any, Any]) -> Workload:
    slots = tuple(SlotGrant(**{**slot, "isolation": Isolation(slot.get("isolation", 0))}) for slot in row["slots"])
    results = None if row["results"] is None else Results(**row["results"])
    return Workload(**dict(row) | {"slots": slots, "phase": WorkPhase(row["phase"]), "results": results})
