"""Facts that jobs publish for the packages above them."""

from dataclasses import dataclass

from windrow_master.jobs.model import JobId
from windrow_master.store.messages import Fact
from windrow_proto.ids import AccountId


@dataclass(frozen=True, slots=True)
class RouteFollowed(Fact):
    """A job that follows a kept route was submitted; the first one of an array. host_id, tier: the place that it names,
    if any. Raises NotFound where its account has no such route."""

    account_id: AccountId
    job_id: JobId
    route_id: str
    host_id: str | None
    tier: str | None
