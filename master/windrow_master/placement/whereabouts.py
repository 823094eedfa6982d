"""Tries where a host is and how good it has to be: region, distance, country, provider, labels, bandwidth, reliability,
verification; and says the same in words. Pure.

The distance of two regions is the median round trip that hosts of one measured to relays of the other, rounded up to
milliseconds (fleet/distances.py); a region is at 0 ms from itself.
"""

from collections.abc import Mapping, Sequence, Set
from typing import Final

from windrow_master.placement.model import Candidate, Miss, Obstacle, Request
from windrow_master.spec import NEAR_MS, NEAR_MS_MAX

PLACES: Final = frozenset({Obstacle.NEAR, Obstacle.REGION, Obstacle.COUNTRY, Obstacle.PROVIDER, Obstacle.LABEL})
"""Obstacles of where a host is and whose, which stay as they are; what is measured of it may change."""
REGIONS_SHOWN: Final = 8
"""Of all, where a request names a region that nothing is known of."""


def near_of(text: str) -> tuple[str, int]:
    """The region of `eu-1` or `eu-1:20`, and how many milliseconds from it are near."""
    region, _, most_ms = text.partition(":")
    return region, int(most_ms) if most_ms else NEAR_MS


def middle_of(request: Request) -> str | None:
    """The region from which distances are told; None: the request names none."""
    return near_of(request.near)[0] if request.near is not None else request.region


def misplaced(request: Request, host: Candidate) -> Miss | None:
    """Return why this host is in the wrong place, or not good enough; None: it will do. The changes of a miss are those
    with which it would."""
    return elsewhere(request, host) or _measured(request, host)


def elsewhere(request: Request, host: Candidate) -> Miss | None:
    """The same of what stays as it is: where the host is and whose, and its labels."""
    return _apart(request, host) or _labelled(request, host)


def _apart(request: Request, host: Candidate) -> Miss | None:
    kinds = (host.region,) if host.region else ()
    if request.region is not None and host.region != request.region:
        detail = f"in {_place(host)}" if host.region else "its own is not known"
        label = f"not in the region {request.region}"
        return Miss(Obstacle.REGION, label, detail, kinds=kinds, changes={"region": host.region or None})
    if request.near is not None and host.near_ms is not None:
        region, most_ms = near_of(request.near)
        if host.near_ms > most_ms:
            wider = f"{region}:{host.near_ms}" if host.near_ms <= NEAR_MS_MAX else None
            label, detail = f"more than {most_ms} ms from {region}", f"in {_place(host)}"
            return Miss(Obstacle.NEAR, label, detail, -host.near_ms, changes={"near": wider})
    if request.country is not None and host.country != request.country:
        label, kinds = f"not in the country {request.country}", (host.country or "nobody says where",)
        detail = f"in {host.country}" if host.country else kinds[0]
        return Miss(Obstacle.COUNTRY, label, detail, kinds=kinds, changes={"country": host.country or None})
    return None


def _labelled(request: Request, host: Candidate) -> Miss | None:
    if request.provider_id is not None and host.owner_account != request.provider_id:
        return Miss(Obstacle.PROVIDER, "not of the provider that you name", changes={"provider_id": None})
    missing = [one for one in request.labels if one not in host.labels]
    if not missing:
        return None
    changes = {"labels": tuple(one for one in request.labels if one in host.labels)}
    detail = f"it has {', '.join(host.labels)}" if host.labels else "it has none"
    return Miss(Obstacle.LABEL, f"without the label {', '.join(missing)}", detail, changes=changes)


def _measured(request: Request, host: Candidate) -> Miss | None:
    if request.near is not None and host.near_ms is None:
        label, kinds = f"its distance from {near_of(request.near)[0]} is not measured", (host.region or "no region",)
        return Miss(Obstacle.NEAR, label, f"in {kinds[0]}", kinds=kinds, changes={"near": None})
    asked, has = request.min_bandwidth_mbps, host.bandwidth_mbps
    if asked is not None and (has is None or has < asked):
        detail = "not measured" if has is None else f"{has} Mbit/s, you ask for {asked}"
        changes = {"min_bandwidth_mbps": has or None}
        return Miss(Obstacle.BANDWIDTH, "too little bandwidth", detail, has or 0, changes=changes)
    asked, has = request.min_reliability_percent, host.reliability_percent
    if asked is not None and (has is None or has < asked):
        detail = "too little was seen of it" if has is None else f"{has} %, you ask for {asked} %"
        changes = {"min_reliability_percent": has or None}
        return Miss(Obstacle.RELIABILITY, "not reliable enough", detail, has or 0, changes=changes)
    if request.verified and host.verify_state != "verified":
        return Miss(Obstacle.UNVERIFIED, "not verified", f"now {host.verify_state}", changes={"verified": False})
    return None


def _place(host: Candidate) -> str:
    return host.region if host.near_ms is None else f"{host.region}, {host.near_ms} ms away"


# --- words ------------------------------------------------------------------------------------------------------------


def asked_place(request: Request, lacking: Set[Obstacle]) -> str:
    """The part of a request that no host has, to be put behind the hardware; empty where hosts lack none of it."""
    near, most_ms = near_of(request.near) if request.near is not None else ("", 0)
    words = {
        Obstacle.REGION: f"in the region {request.region}",
        Obstacle.NEAR: f"within {most_ms} ms of {near}",
        Obstacle.COUNTRY: f"in the country {request.country}",
        Obstacle.PROVIDER: "of the provider that you name",
        Obstacle.LABEL: f"with the label {', '.join(request.labels)}",
    }
    return "".join(f" {text}" for obstacle, text in words.items() if obstacle in lacking)


def nearest_place(request: Request, hosts: Sequence[Candidate]) -> str:
    """A sentence about the nearest of these hosts, which are not where the request has to run; empty: there is none."""
    region = middle_of(request)
    if region is None or not hosts:
        return ""
    known = [(one.near_ms, one.region) for one in hosts if one.near_ms is not None]
    if not known:
        others = sorted({one.region for one in hosts if one.region})
        if others and region not in others:
            return f" No host is in {region}, and nobody has measured how far it is: hosts are in {_some(others)}."
        return f" How far other regions are from {region} is not measured."
    distance_ms, where = min(known)
    return f" The nearest elsewhere is {where}, {distance_ms} ms from {region}."


def _some(regions: Sequence[str]) -> str:
    return ", ".join(regions[:REGIONS_SHOWN]) + (", ..." if len(regions) > REGIONS_SHOWN else "")


def distance_of(changes: Mapping[str, object]) -> int:
    """An order of changes: the milliseconds that are near with them; without a limit the most."""
    if "near" not in changes:
        return 0
    return near_of(str(changes["near"]))[1] if changes["near"] is not None else 1 << 30


def change_text(request: Request, name: str, value: object) -> str | None:
    """A change of one of these fields in words: `within 42 ms of eu-1 instead of 30 ms`; None: of another field."""
    asked = getattr(request, name)
    if name == "near":
        region, most_ms = near_of(asked)
        far = "at any distance" if value is None else f"within {near_of(str(value))[1]} ms"
        return f"{far} of {region} instead of {most_ms} ms" if value is not None else f"{far} from {region}"
    if name == "labels":
        kept = value if isinstance(value, tuple) else ()
        return f"without the label {', '.join(one for one in asked if one not in kept)}"
    some, none = _TEXTS.get(name, ("", ""))
    if not none:
        return None
    return none if value in (None, False) else some.format(now=value, asked=asked)


_TEXTS: Final = {
    "region": ("in the region {now} instead of {asked}", "in any region"),
    "country": ("in the country {now} instead of {asked}", "in any country"),
    "provider_id": ("", "of another provider"),
    "min_bandwidth_mbps": ("with {now} Mbit/s instead of {asked}", "with bandwidth that is not measured"),
    "min_reliability_percent": ("with {now} % reliability instead of {asked} %", "with reliability that is not known"),
    "verified": ("", "on a host that is not verified"),
}
