"""Describes conditions for the HTTP API and for Prometheus, by their rows in windrow_proto/conditions.py. Pure."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from windrow_master.api.services import Figure
from windrow_master.fleet import availability
from windrow_master.fleet.model import Condition, Host
from windrow_proto import conditions
from windrow_proto.conditions import Severity
from windrow_proto.units import time_text


def condition_json(text: str, detail: str, since_ns: int) -> dict[str, Any]:
    """One condition, with its remedy; one that is not known here says that."""
    known = conditions.find(text)
    return {
        "code": text,
        "title": conditions.heading_of(text),
        "about": None,
        "detail": detail,
        "severity": Severity.TICKET if known is None else known.severity,
        "remedy": conditions.UNKNOWN_REMEDY if known is None else known.remedy,
        "runbook": conditions.PAGE if known is None else known.runbook,
        "since": time_text(since_ns),
    }


def of_host(host: Host, one: Condition) -> dict[str, Any]:
    """A condition as a host has it."""
    return condition_json(one.code, one.detail, one.since_ns) | {"about": availability.about(host, one.code)}


def figures(texts: Iterable[str]) -> Iterable[Figure]:
    """Return the number of hosts, GPUs and processes with each condition now. Codes that are not known here would be
    labels of a stranger's choice, and are not counted."""
    for code, count in sorted(Counter(known for text in texts if (known := conditions.find(text))).items()):
        labels = {"code": code.value, "scope": code.scope.value, "severity": code.severity.value}
        yield "conditions", "Hosts, GPUs and processes that have each condition now", count, labels
