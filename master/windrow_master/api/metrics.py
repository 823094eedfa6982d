"""Exports the Master's own metrics to Prometheus; the adapter of its client library."""

from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from windrow_master.api.services import Figure
from windrow_proto.units import SECOND

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS_S: Final = (0.001, 0.005, 0.02, 0.05, 0.2, 1.0, 5.0, 30.0)


class HttpFigures:
    """Requests by route template: labels stay bounded whatever is asked for."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "windrow_http_requests", "Requests answered", ["method", "route", "status"], registry=registry
        )
        self._seconds = Histogram(
            "windrow_http_request_seconds", "Time to answer", ["route"], buckets=BUCKETS_S, registry=registry
        )

    def count(self, method: str, route: str, status: int, took_ns: int) -> None:
        """Count one answer."""
        known = method if method in {"GET", "HEAD", "POST", "PUT", "DELETE"} else "OTHER"
        self._requests.labels(known, route, str(status)).inc()
        self._seconds.labels(route).observe(took_ns / SECOND)


class Gauges(Collector):
    """Gauges whose values callables return at the moment of the scrape."""

    def __init__(self, source: Callable[[], Iterable[Figure]]) -> None:
        self._source = source

    def collect(self) -> Iterable[CounterMetricFamily | GaugeMetricFamily]:
        """One family per name; one that ends in `_total` is a counter, whose name Prometheus' library says without."""
        families: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
        for name, text, value, labels in self._source():
            family = families.get(name)
            if family is None:
                kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
                family = families[name] = kind(f"windrow_{name}", text, labels=sorted(labels))
            family.add_metric([labels[label] for label in sorted(labels)], value)
        return families.values()


def new_registry() -> CollectorRegistry:
    """A registry of this application alone: two applications in one test process do not meet."""
    return CollectorRegistry()


def exposition(registry: CollectorRegistry) -> bytes:
    """Everything as the text that Prometheus scrapes."""
    return generate_latest(registry)
