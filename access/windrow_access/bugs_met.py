"""Tells the Master and Prometheus of the bugs that the log of an Access has counted."""

from collections.abc import Iterable, Mapping

from windrow_proto.crashes import Crashes
from windrow_proto.scrape import Figure
from windrow_proto.v1 import services_pb2


def stated(crashes: Crashes) -> services_pb2.BugsMet | None:
    """For the Master, for a day after the last."""
    if not crashes.is_stated:
        return None
    return services_pb2.BugsMet(count=crashes.counts.total(), last=crashes.last, last_ns=crashes.last_ns)


def figures(crashes: Crashes, labels: Mapping[str, str]) -> Iterable[Figure]:
    """For Prometheus."""
    yield Figure("access_bugs_met_total", "Bugs met that ended only what met them", crashes.counts.total(), labels)
