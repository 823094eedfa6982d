"""Looks up what signals ask for, in the transaction that reads the events."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from windrow_master.clusters import lookup as clusters
from windrow_master.clusters.model import Cluster
from windrow_master.fleet import lookup as fleet
from windrow_master.fleet.model import Host
from windrow_master.jobs import answers as jobs
from windrow_master.jobs.model import Job, JobId
from windrow_master.market.lookup import charged, on_host, renter_of
from windrow_master.market.model import PROOF_ACCOUNT, RentalId
from windrow_master.store.model import EventRow
from windrow_master.store.unit import UnitOfWork
from windrow_master.watch.model import NAMES_MAX, Raise, Signal
from windrow_master.watch.repository import WindowRepository
from windrow_master.watch.signals import SAME_JOB, Planned
from windrow_proto.ids import ClusterId, HostId
from windrow_proto.units import Microcents

Sees = Callable[[UnitOfWork, str, Iterable[str]], bool]
"""Whether an account may be told of an event with these subjects, as the list of events has it."""


class StoredFacts:
    """What the store says now. A new one for each transaction."""

    def __init__(self, uow: UnitOfWork) -> None:
        self._uow = uow
        self._hosts: dict[str, Host | None] = {}
        self._windows: dict[str, str] | None = None
        self._concerned: dict[int, frozenset[str]] = {}
        self.told: dict[str, int] = {}
        """How often each own rule fired in this transaction."""

    def host(self, host_id: str) -> Host | None:
        """One host."""
        if host_id not in self._hosts:
            self._hosts[host_id] = fleet.find_host(self._uow, HostId(host_id)) if host_id else None
        return self._hosts[host_id]

    def cluster(self, cluster_id: str) -> Cluster | None:
        """One cluster."""
        return clusters.find(self._uow, ClusterId(cluster_id)) if cluster_id else None

    def job(self, job_id: str) -> Job | None:
        """One job."""
        return jobs.find(self._uow, JobId(job_id)) if job_id else None

    def name_of(self, thing_id: str) -> str:
        """The name of a host, cluster or job; empty: it is none that is known."""
        found = self.host(thing_id) or self.cluster(thing_id) or self.job(thing_id)
        return "" if found is None else found.name

    def spread_over(self, host_id: str) -> tuple[str, str] | None:
        """The id and the name of the job or cluster over several hosts that this host works for; None: none."""
        cluster = clusters.over_several(self._uow, HostId(host_id), SAME_JOB)
        if cluster is None:
            return None
        job = jobs.living_of_cluster(self._uow, cluster.cluster_id)
        return (cluster.cluster_id, cluster.name) if job is None else (job.job_id, job.name)

    def rental(self, cluster_id: str, host_id: str) -> str | None:
        """The newest rental of a cluster on this host."""
        return next(reversed(on_host(self._uow, ClusterId(cluster_id), HostId(host_id))), None)

    def cost(self, cluster_id: str) -> Microcents:
        """The charges of a cluster so far."""
        return charged(self._uow, ClusterId(cluster_id))

    def apart(self, signal: Signal) -> Signal:
        """The signal. Hosts of a maintenance window have a wider cause of their own, silent with them."""
        if not isinstance(signal, Raise) or not signal.wider:
            return signal
        if self._windows is None:
            running = [one for one in self._uow[WindowRepository].open() if one.runs(self._uow.now_wall_ns)]
            self._windows = {host: one.window_id for one in running for host in one.hosts}
        window_id = self._windows.get(signal.cause)
        return signal if window_id is None else replace(signal, wider=f"{window_id}/{signal.wider}")

    def planned(self, window_id: str) -> Planned | None:
        """One maintenance window."""
        window = self._uow[WindowRepository].get(window_id)
        if window is None:
            return None
        hosts = [host for one in window.hosts if (host := self.host(one)) is not None]
        told = {str(host.owner_account) for host in hosts}
        told |= {one.account_id for host in hosts for one in clusters.holding(self._uow, host.host_id)}
        names, more = ", ".join(host.name for host in hosts[:NAMES_MAX]), len(hosts) - NAMES_MAX
        return Planned(window, f"{names} and {more} more" if more > 0 else names, tuple(sorted(told - {PROOF_ACCOUNT})))

    def concerned(self, row: EventRow, sees: Sees) -> frozenset[str]:
        """The accounts that an event is about and that may see it."""
        if row.number not in self._concerned:
            found = self._read_concerned(row)
            self._concerned[row.number] = frozenset(one for one in found if sees(self._uow, one, row.subjects))
        return self._concerned[row.number]

    def _read_concerned(self, row: EventRow) -> frozenset[str]:
        found: set[str | None] = set()
        for one in row.subjects:
            match one.partition("_")[0]:
                case "account":
                    found.add(one)
                case "host":
                    host = self.host(one)
                    found.add(host.owner_account if host is not None else None)
                case "cluster":
                    found.add(clusters.owner_of(self._uow, ClusterId(one)))
                case "job":
                    job = self.job(one)
                    found.add(job.account_id if job is not None else None)
                case "rental":
                    found.add(renter_of(self._uow, RentalId(one)))
        return frozenset(one for one in found if one is not None)
