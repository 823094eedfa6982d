"""Messages of jobs to the packages above them. Pure."""

from dataclasses import dataclass

from windrow_master.jobs.model import AttemptPlace, JobId
from windrow_master.store.messages import Fact, Question
from windrow_proto.ids import AccountId, HostId


@dataclass(frozen=True, slots=True)
class RouteFollowed(Fact):
    """A job that follows a kept route was submitted; the first one of an array. host_id, tier: the place that it names,
    if any. Raises NotFound where its account has no such route."""

    account_id: AccountId
    job_id: JobId
    route_id: str
    host_id: str | None
    tier: str | None


@dataclass(frozen=True, slots=True)
class PlaceOf(Question[AttemptPlace | None]):
    """Asks at which backend this host was bought; None: it was not."""

    host_id: HostId


@dataclass(frozen=True, slots=True)
class RunLetGo(Fact):
    """An attempt that is a run at a service is over: the run is to end, if it goes on."""

    job_id: JobId
    run_id: str
