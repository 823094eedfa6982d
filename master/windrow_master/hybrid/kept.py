"""A kept route: what was known and what was answered, as bytes, from which it is answered again. Pure.

The record is canonical JSON, compressed, so that equal answers are equal bytes. What is said of a place depends on the
place and on the totals of all, which the record has: one without the last places is answered again to the same bytes.
"""

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from windrow_master.hybrid.routing import (
    Cost,
    Place,
    Recommendation,
    Refused,
    Route,
    Totals,
    Where,
    Work,
    order,
    recommend,
)
from windrow_proto.ids import AccountId

PLACES_MAX: Final = 200
"""A record has the best places, at most so many of each kind: usable, suitable but not usable, unsuitable."""


@dataclass(frozen=True, slots=True)
class KeptRoute:
    """A route that was kept. at_ns: wall time. hours: the expected length of the run. chosen: the place that it
    recommended. taken: the forecast of the place that its job took; without a job, of the chosen one. job_id: the first
    job that followed it."""

    route_id: str
    account_id: AccountId
    at_ns: int
    hours: float | None
    chosen: str | None
    taken: Recommendation | None
    job_id: str | None = None


def first_kept(route_id: str, account_id: AccountId, at_ns: int, work: Work, route: Route) -> KeptRoute:
    """A route that no job has followed yet."""
    best = route.chosen
    return KeptRoute(route_id, account_id, at_ns, work.hours, None if best is None else best.place.backend, best)


def taken(route: Route, host_id: str | None, tier: str | None) -> Recommendation | None:
    """The forecast for this host or this tier. Without both, the forecast for the chosen place."""
    if host_id is None and tier is None:
        return route.chosen
    found = (one for one in route.ranked if host_id and one.place.host == host_id)
    tiers = (one for one in route.ranked if one.place.where is Where.MARKET and one.place.offer == tier)
    return next(found, None) or next(tiers, None)


def record_bytes(work: Work, route: Route) -> bytes:
    """The record as it is stored."""
    usable = [one for one in route.ranked if not one.place.not_usable][:PLACES_MAX]
    others = [one for one in route.ranked if one.place.not_usable][:PLACES_MAX]
    ranked = sorted([*usable, *others], key=order)
    said = {"work": work, "ranked": ranked, "refused": route.refused[:PLACES_MAX], "totals": route.totals}
    return zlib.compress(_text(said).encode(), 1)


def forecast_json(forecast: Recommendation | None) -> Any:
    """A forecast as a value of JSON."""
    return None if forecast is None else json.loads(_text(forecast))


def parse_forecast(raw: Mapping[str, Any] | None) -> Recommendation | None:
    """The inverse of forecast_json."""
    return None if raw is None else _recommendation(raw)


def parse_record(record: bytes) -> tuple[Work, Route]:
    """The inverse of record_bytes."""
    raw = json.loads(zlib.decompress(record))
    ranked = [_recommendation(one) for one in raw["ranked"]]
    refused = [Refused(_place(one["place"]), one["reason"]) for one in raw["refused"]]
    return Work(**_with_tuples(raw["work"])), Route(ranked, refused, Totals(**raw.get("totals", {})))


def replayed(record: bytes) -> bytes:
    """The record of the same question, answered again; the same bytes unless the router has changed."""
    work, route = parse_record(record)
    places = [*(one.place for one in route.ranked), *(one.place for one in route.refused)]
    return record_bytes(work, recommend(work, places, route.totals))


def _text(value: Any) -> str:
    return json.dumps(value, default=_named, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _named(value: Any) -> Mapping[str, Any]:
    return {one.name: getattr(value, one.name) for one in fields(value)}


def _with_tuples(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in raw.items()}


def _place(raw: Mapping[str, Any]) -> Place:
    return Place(**{**_with_tuples(raw), "where": Where(raw["where"])})


def _recommendation(raw: Mapping[str, Any]) -> Recommendation:
    cost = raw["cost"]
    parts = {"place": _place(raw["place"]), "cost": None if cost is None else Cost(**cost)}
    return Recommendation(**{**_with_tuples(raw), **parts})
