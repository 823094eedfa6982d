"""A compute resource as people register it: its fields, their bounds, and how a change is merged. Pure."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any, Final

from windrow_proto.errors import InvalidInput
from windrow_proto.ids import HostId

RESOURCES_MAX: Final = 10_000
RESOURCE_ID_FORM: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
RESOURCE_ID_WORDS: Final = "1 to 128 letters, digits, dots, dashes and underscores; the first a letter or digit"
TEXT_MAX: Final = 256
"""Characters of a place's or a provider's name."""
WORD_MAX: Final = 64
"""Characters of a framework's or a capability's name, and of a capability's text."""
FRAMEWORKS_MAX: Final = 64
CAPABILITIES_MAX: Final = 64
JOBS_MAX: Final = 10_000
NUMBER_MAX: Final = 1e9
"""The largest cost, bandwidth, latency or numeric capability."""
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")

Capability = bool | int | float | str


class ResourceType(StrEnum):
    """The kind of place: on-premises, cloud or edge."""

    ON_PREMISE = "on-premise"
    CLOUD = "cloud"
    EDGE = "edge"


class ResourceStatus(StrEnum):
    """Whether a resource takes work, from most to least able."""

    AVAILABLE = "available"
    BUSY = "busy"
    MAINTENANCE = "maintenance"
    UNAVAILABLE = "unavailable"


OUT_OF_SERVICE: Final = frozenset({ResourceStatus.MAINTENANCE, ResourceStatus.UNAVAILABLE})
"""Declared, they keep new work off the host that the resource is bound to."""


class AuthMethod(StrEnum):
    """How one signs in to a resource."""

    SSH_KEY = "ssh_key"
    API_TOKEN = "api_token"
    IAM_ROLE = "iam_role"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """The facts that people declare of a resource. None: not said.

    capabilities: by name, `gpu`, `gpu_count`, `memory_gb` and the like. supported_frameworks: empty: not said, the
    image decides. network_bandwidth_gbps: in Gbit/s. cost_per_hour_usd: see Resource. latency_ms: to the Master.
    """

    resource_type: ResourceType
    provider: str | None = None
    location: str | None = None
    region: str | None = None
    capabilities: Mapping[str, Capability]
    supported_frameworks: tuple[str, ...] = ()
    status: ResourceStatus = ResourceStatus.AVAILABLE
    max_parallel_jobs: int = 1
    network_bandwidth_gbps: float | None = None
    cost_per_hour_usd: float | None = None
    auth_method: AuthMethod | None = None
    latency_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """How a bound host stands. name: the host's. is_there: it is online. is_open: its owner and operators let it take
    work. running: rentals on it. owner: the account of its owner. gpus: by model class, how many it has and how many of
    them are free; empty class: not graded yet. cpus: its processors. Both None: it has not said."""

    name: str
    is_there: bool
    is_open: bool
    running: int
    owner: str = ""
    gpus: Mapping[str, tuple[int, int]] | None = None
    cpus: int | None = None

    def status(self, most: int) -> ResourceStatus:
        """As a status of its resource, which runs at most so many jobs."""
        if not self.is_there:
            return ResourceStatus.UNAVAILABLE
        if not self.is_open:
            return ResourceStatus.MAINTENANCE
        return ResourceStatus.BUSY if self.running >= most else ResourceStatus.AVAILABLE


@dataclass(frozen=True, slots=True)
class Resource:
    """One row of the registry. number: counted from 1, never given twice. bound_host: the id of the host that runs its
    work; None: nothing runs on it. dedicated_to: the only account whose work that host takes; None: anybody's. seen:
    how that host stands now; None: nothing is known, or nothing is bound.
    """

    number: int
    resource_id: str
    declared: Declared
    created_at_ns: int
    updated_at_ns: int | None = None
    bound_host: str | None = None
    dedicated_to: str | None = None
    seen: "Seen | None" = None

    @property
    def status(self) -> ResourceStatus:
        """The sterner of what people declare and what is seen of its host."""
        found = [self.declared.status]
        if self.seen is not None:
            found.append(self.seen.status(self.declared.max_parallel_jobs))
        return max(found, key=list(ResourceStatus).index)

    @property
    def cost_per_hour_usd(self) -> float | None:
        """The cost of an hour in USD. If nobody stated one: 0 for on-premises and edge; None for a cloud resource,
        which costs what the price book says."""
        declared = self.declared
        if declared.cost_per_hour_usd is None and declared.resource_type is not ResourceType.CLOUD:
            return 0.0
        return declared.cost_per_hour_usd


@dataclass(frozen=True, slots=True)
class Bound:
    """A host that is bound to a resource. most: clusters at once. only_for: as `dedicated_to` of its resource."""

    host_id: HostId
    most: int
    only_for: str | None


FIELDS: Final = tuple(one.name for one in fields(Declared))


def declared_of(given: Mapping[str, Any]) -> Declared:
    """The declaration in a request's fields; null is the same as left out. Raises InvalidInput that names the field."""
    said = {name: value for name, value in given.items() if value is not None}
    for name in ("resource_type", "capabilities"):
        if name not in said:
            raise _wrong(name, "is required")
    kinds: dict[str, type[StrEnum]] = {
        "resource_type": ResourceType,
        "status": ResourceStatus,
        "auth_method": AuthMethod,
    }
    values: dict[str, Any] = {name: kinds[name](value) if name in kinds else value for name, value in said.items()}
    for name in ("network_bandwidth_gbps", "cost_per_hour_usd"):
        if name in values:
            values[name] = float(values[name])
    if "supported_frameworks" in values:
        values["supported_frameworks"] = tuple(values["supported_frameworks"])
    values["capabilities"] = checked_capabilities(values["capabilities"])
    if values["resource_type"] is not ResourceType.CLOUD and values.get("cost_per_hour_usd") == 0:
        del values["cost_per_hour_usd"]  # as where nobody said it
    declared = Declared(**values)
    if declared.resource_type is ResourceType.CLOUD and declared.provider is None:
        raise _wrong("provider", "is required for a cloud resource, for example AWS, Azure or GCP")
    return declared


def changed(declared: Declared, changes: Mapping[str, Any]) -> Declared:
    """The declaration with these fields replaced; null puts an optional one back to its default. Raises InvalidInput
    that names the field."""
    return declared_of({**kept(declared), **changes})


def kept(declared: Declared) -> dict[str, Any]:
    """The declaration as values of JSON, from which `declared_of` makes it again."""
    found: dict[str, Any] = {}
    for name in FIELDS:
        value = getattr(declared, name)
        found[name] = list(value) if isinstance(value, tuple) else dict(value) if isinstance(value, Mapping) else value
    return {name: str(value) if isinstance(value, StrEnum) else value for name, value in found.items()}


def checked_capabilities(given: Mapping[str, object]) -> Mapping[str, Capability]:
    """The capabilities as they are. Raises InvalidInput that names the wrong one."""
    if len(given) > CAPABILITIES_MAX:
        raise _wrong("capabilities", f"has at most {CAPABILITIES_MAX} entries")
    for name, value in given.items():
        if len(name) > WORD_MAX or not _NAME.fullmatch(name):
            raise _wrong("capabilities", f"has names of at most {WORD_MAX} small letters, digits and underscores")
        _check_capability(name, value)
    if given.get("gpu") is False and given.get("gpu_count"):
        raise _wrong("capabilities.gpu_count", "is 0, or absent, where gpu is false")
    return dict(given)  # type: ignore[arg-type]


def _check_capability(name: str, value: object) -> None:
    """Known names have their type; any other is a flag, a number or a text."""
    place = f"capabilities.{name}"
    kind = _KINDS.get(name)
    if kind is not None and not kind.holds(value):
        raise _wrong(place, f"is {kind.words}")
    if not any(one.holds(value) for one in (_FLAG, _NUMBER, _TEXT)):
        raise _wrong(place, f"is true or false, {_NUMBER.words}, or {_TEXT.words}")


@dataclass(frozen=True, slots=True)
class _Kind:
    types: tuple[type, ...]
    words: str

    def holds(self, value: object) -> bool:
        if type(value) not in self.types:  # a bool is an int for Python
            return False
        if isinstance(value, str):
            return 0 < len(value) <= WORD_MAX
        return isinstance(value, bool) or (math.isfinite(value) and 0 <= value <= NUMBER_MAX)  # type: ignore[arg-type,operator]


_FLAG: Final = _Kind((bool,), "true or false")
_COUNT: Final = _Kind((int,), f"a whole number from 0 to {NUMBER_MAX:.0f}")
_NUMBER: Final = _Kind((int, float), f"a number from 0 to {NUMBER_MAX:.0f}")
_TEXT: Final = _Kind((str,), f"a text of 1 to {WORD_MAX} characters")
_KINDS: Final = {
    "gpu": _FLAG,
    "gpu_count": _COUNT,
    "gpu_type": _TEXT,
    "cpu_cores": _COUNT,
    "memory_gb": _NUMBER,
    "storage_gb": _NUMBER,
    "storage_tb": _NUMBER,
}


def check_same(read_only: Mapping[str, Any], shown: Mapping[str, Any]) -> None:
    """Raise InvalidInput where one of these fields, which nobody changes, is otherwise in `shown`."""
    for name, value in read_only.items():
        if value != shown[name]:
            raise _wrong(name, f"cannot be changed; it is {shown[name]}")


def picked(
    resources: Sequence[Resource], status: ResourceStatus | None, kind: ResourceType | None, provider: str | None
) -> list[Resource]:
    """The resources to which all of these filters apply; None filters nothing, and a provider's case does not count."""
    wanted = None if provider is None else provider.casefold()
    return [
        one
        for one in resources
        if status in (None, one.status)
        and kind in (None, one.declared.resource_type)
        and wanted in (None, (one.declared.provider or "").casefold())
    ]


def updated(resource: Resource, declared: Declared, now_ns: int) -> Resource:
    """The resource with another declaration; as it is where nothing differs."""
    if declared == resource.declared:
        return resource
    return replace(resource, declared=declared, updated_at_ns=now_ns)


def _wrong(field: str, must: str) -> InvalidInput:
    return InvalidInput(f"{field}: It {must}.", subject=field)
