"""The fields of requests for clusters and jobs, each once: its type, bounds, words and flag. Pure.

A request is a frozen dataclass of annotated fields. The API's bodies and answers, the check of bounds, the stored
request, the flags of the command line, the arguments of the SDK and the schema of `windrow apply` all follow from it.
contributing/add-a-request-field.md says how to add one.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from enum import EnumType, StrEnum
from functools import lru_cache
from operator import attrgetter
from types import NoneType
from typing import Annotated, Any, Final, TypeVar, get_args, get_origin, get_type_hints

from windrow_proto.errors import InvalidInput
from windrow_proto.ids import HostId
from windrow_proto.units import DAY, HOUR, MINUTE, SECOND, Bytes, Microcents, money_text
from windrow_proto.volumes import MOUNTS_MAX, Mount

R = TypeVar("R", bound="Resources")

GPUS_MAX: Final = 64
CPUS_MAX: Final = 4_096
BYTES_MAX: Final = (1 << 50) - 1
ARGV_MAX: Final = 256
ENV_MAX: Final = 128
TEXT_MAX: Final = 8_192
"""Characters of one argument or one value of the environment."""
NAME_GIVEN_MAX: Final = 1_024
"""Characters of a name as it is given; it is cleaned and cut afterwards."""
SECRETS_MAX: Final = 32
"""Of one request."""
SECRET_NAME: Final = r"[A-Z][A-Z0-9_]{0,63}"
SECRET_FORM: Final = rf"^{SECRET_NAME}(?:=[A-Za-z_][A-Za-z0-9_]{{0,127}})?$"
DURATION_MAX_NS: Final = 365 * DAY
PROFILE_FORM: Final = r"(?:[1-9]g\.[1-9][0-9]{0,3}gb[a-z.+-]{0,12}|mps\.(?:100|[1-9][0-9]?))"
"""How the profile of a slice is written: by MIG `2g.20gb`, by MPS `mps.50`."""
REGION_CHARS_MAX: Final = 64
NEAR_FORM: Final = rf"^[^\s:]{{1,{REGION_CHARS_MAX}}}(?::(?:1000|[0-9]{{1,3}}))?$"
NEAR_MS: Final = 30
"""Milliseconds of a round trip that are near where a request does not say how many."""
NEAR_MS_MAX: Final = 1000
COUNTRY_FORM: Final = r"^[A-Z]{2}$"
LABELS_MAX: Final = 16
LABEL_FORM: Final = r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}(?:=[A-Za-z0-9._/-]{1,63})?$"
"""A word, or KEY=VALUE."""


class Unit(StrEnum):
    """The way in which the API writes a field of nanoseconds: as SECONDS, as WHOLE_SECONDS or as a TIME."""

    NONE = ""
    SECONDS = "seconds"
    WHOLE_SECONDS = "whole_seconds"
    TIME = "time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """The properties of a field besides its type and default.

    text: describes it in the API and, unless `help` is set, on the command line. least, most: the bounds of a number,
    in the field's own unit, and of each number of a list. chars: the most characters of a text, or of each of several.
    items, items_least: the bounds of a list's length. form: a regular expression. name: in JSON, where that is not the
    field's own name. flag: of the command line; empty: none, or one that the command line reads in a way of its own.
    is_filter: lists can be filtered by the value of this field.
    may_be_empty: on a command line, an empty text is a value.
    """

    text: str = ""
    least: int | None = None
    most: int | None = None
    chars: int | None = None
    items: int | None = None
    items_least: int = 0
    form: str | None = None
    choices: tuple[str, ...] = ()
    unit: Unit = Unit.NONE
    name: str = ""
    flag: str = ""
    help: str = ""
    is_filter: bool = False
    may_be_empty: bool = False


@dataclass(frozen=True, kw_only=True)
class Resources:
    """The hardware of each host, where it is and how good it has to be, and the highest price of all hosts together."""

    __slots__ = ()

    gpus: Annotated[int, Spec(least=0, most=GPUS_MAX, text="Whole GPUs, or slices of the profile `slice`")] = 0
    gpu_model: Annotated[str | None, Spec(chars=64, text="Such as H100")] = None
    gpu_memory_bytes: Annotated[Bytes | None, Spec(least=1, most=BYTES_MAX, text="Of each GPU, at least")] = None
    cpus: Annotated[int, Spec(least=1, most=CPUS_MAX, flag="--cpus", text="Number of CPUs")] = 1
    memory_bytes: Annotated[
        Bytes | None,
        Spec(least=1, most=BYTES_MAX, flag="--memory", text="Main memory", help="Main memory, for example 8GB."),
    ] = None
    slice: Annotated[
        str | None,
        Spec(
            form=f"^{PROFILE_FORM}$",
            flag="--slice",
            text="Such as 2g.20gb or mps.50",
            help="A slice of a GPU by its profile: 1g.10gb (with --gpu).",
        ),
    ] = None
    image: Annotated[
        str | None,
        Spec(
            chars=255,
            flag="--image",
            text="Container image; default: a plain process on your own host, elsewhere the host's default image",
        ),
    ] = None
    tier: Annotated[str | None, Spec(chars=64, flag="--tier", text="Only this tier, for example h100/A")] = None
    runtime: Annotated[
        str | None,
        Spec(
            choices=("process", "docker", "simulated"),
            flag="--runtime",
            text="docker, process or simulated; default: the Master chooses",
        ),
    ] = None
    host_id: Annotated[HostId | None, Spec(chars=64, flag="--host", text="Only this host")] = None
    max_price_per_hour: Annotated[
        Microcents | None, Spec(least=0, flag="--max-price", text="Highest price per hour, for all hosts together")
    ] = None
    region: Annotated[
        str | None, Spec(chars=REGION_CHARS_MAX, flag="--region", text="Only hosts whose relay is in this region")
    ] = None
    near: Annotated[
        str | None,
        Spec(
            form=NEAR_FORM,
            flag="--near",
            text=f"REGION or VOLUME, then :MS; only hosts in it, or within MS milliseconds (0 to 1000, else {NEAR_MS})",
        ),
    ] = None
    country: Annotated[
        str | None,
        Spec(form=COUNTRY_FORM, flag="--country", text="Two capital letters (DE); only hosts whose owners say so"),
    ] = None
    provider_id: Annotated[
        str | None, Spec(chars=128, flag="--provider", text="Only hosts of this project, by its name or id")
    ] = None
    labels: Annotated[
        tuple[str, ...],
        Spec(items=LABELS_MAX, form=LABEL_FORM, flag="--label", text="WORD or KEY=VALUE; only hosts with this label"),
    ] = ()
    min_bandwidth_mbps: Annotated[
        int | None,
        Spec(least=1, most=1_000_000, flag="--min-bandwidth", text="Mbit/s, measured each way, at least"),
    ] = None
    min_reliability_percent: Annotated[
        int | None,
        Spec(least=1, most=100, flag="--min-reliability", text="Reliability of the host in per cent, at least"),
    ] = None
    verified: Annotated[bool, Spec(flag="--verified", text="Only hosts whose hardware was checked")] = False


@dataclass(frozen=True, kw_only=True)
class Work:
    """The program that runs, with its environment, files and volumes."""

    __slots__ = ()

    name: Annotated[str, Spec(chars=NAME_GIVEN_MAX, flag="--name", text="Name; default: generated", is_filter=True)] = (
        ""
    )
    argv: Annotated[tuple[str, ...], Spec(items=ARGV_MAX, chars=TEXT_MAX, text="The command, a word each")] = ()
    entrypoint: Annotated[
        str | None,
        Spec(
            form=r"^[^\x00]*$",
            flag="--entrypoint",
            text="One program, without NUL, in place of the image's ENTRYPOINT and CMD; empty: none",
            help="Program in place of the image's ENTRYPOINT; '' for none, so that the command runs by itself.",
            may_be_empty=True,
        ),
    ] = None
    env: Annotated[Mapping[str, str], Spec(items=ENV_MAX, chars=TEXT_MAX, text="The environment of the command")] = (
        field(default_factory=dict)
    )
    secrets: Annotated[
        tuple[str, ...],
        Spec(
            items=SECRETS_MAX,
            form=SECRET_FORM,
            flag="--secret",
            text="Secret of the project and the variable that holds it, as NAME or NAME=VARIABLE",
        ),
    ] = ()
    registry_secret: Annotated[
        str | None,
        Spec(
            form=f"^{SECRET_NAME}$",
            flag="--registry-secret",
            text="Secret of the project that holds the login of the image's registry",
        ),
    ] = None
    await_files: Annotated[bool, Spec(text="Wait for a folder of files before the start")] = False
    simulated: Annotated[bool, Spec(text="Use simulated hosts; default: real ones only")] = False
    volumes: Annotated[
        tuple[Mount, ...],
        Spec(
            items=MOUNTS_MAX,
            flag="--volume",
            text="Volume and its path, as NAME:/path (:ro = read-only)",
        ),
    ] = ()


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The duration and the cost at which the work is ended."""

    __slots__ = ()

    max_duration_ns: Annotated[
        int | None,
        Spec(
            least=SECOND,
            most=DURATION_MAX_NS,
            unit=Unit.SECONDS,
            name="max_duration_seconds",
            flag="--max-duration",
            text="Longest running time",
            help="Longest running time: 90s, 30m, 8h, 2d.",
        ),
    ] = None
    budget: Annotated[
        Microcents | None, Spec(least=1, flag="--budget", text="End it before it costs more than this")
    ] = None


ANY_BACKEND: Final = "any"
"""In place of a backend's name: each that the project may use."""


@dataclass(frozen=True, kw_only=True)
class Elsewhere:
    """Where else the work may run, on machines that are bought for it, where this market has no room."""

    __slots__ = ()

    backend: Annotated[
        str | None,
        Spec(
            form=r"^[a-z][a-z0-9-]{0,62}$",
            flag="--backend",
            text="Buy a machine at this backend (any: at each) where there is no room here",
        ),
    ] = None
    optimize: Annotated[
        str | None,
        Spec(
            choices=("cost", "speed"),
            text="With backend: cost, also where the places here are dearer; speed, what starts first",
        ),
    ] = None
    spot: Annotated[
        bool, Spec(flag="--spot", text="With backend: spot machines first, which their provider may take back")
    ] = False


class Many(StrEnum):
    """A field holds ONE value, a LIST of them, or a MAP of texts by name."""

    ONE = "one"
    LIST = "list"
    MAP = "map"


@dataclass(frozen=True, slots=True)
class RequestField:
    """One field as the dataclass declares it. kind: of one value, without None; name: in JSON."""

    attribute: str
    name: str
    kind: Any
    many: Many
    is_optional: bool
    default: Any
    spec: Spec


_FIELDS: Final[dict[type, tuple[RequestField, ...]]] = {}
_ATTRIBUTES: Final[dict[type, tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]]] = {}


def fields_of(request: type) -> tuple[RequestField, ...]:
    """Return the fields of a request in their order; raises TypeError for one without a spec."""
    found = _FIELDS.get(request)
    if found is None:
        hints = get_type_hints(request, include_extras=True)
        found = _FIELDS[request] = tuple(_field(one, hints[one.name]) for one in fields(request))
    return found


def _field(declared: Field[Any], hint: Any) -> RequestField:
    kind, *metadata = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    spec = next((one for one in metadata if isinstance(one, Spec)), None)
    if spec is None:
        raise TypeError(f"{declared.name} has no Spec")
    many = {tuple: Many.LIST, Mapping: Many.MAP}.get(get_origin(kind), Many.ONE)
    parts = get_args(kind)
    if parts:
        kind = parts[-1] if many is Many.MAP else parts[0]
    default = {} if declared.default is MISSING else declared.default
    return RequestField(declared.name, spec.name or declared.name, kind, many, NoneType in parts, default, spec)


# --- bounds -----------------------------------------------------------------------------------------------------------


def check(request: Resources) -> None:
    """Raise InvalidInput where a field is beyond its own bounds, naming it."""
    for one in fields_of(type(request)):
        value = getattr(request, one.attribute)
        if value is not None:
            _check(one, value)


def require(field: str, holds: bool, must: str) -> None:
    """Raise InvalidInput unless it holds. must: what the field must be, in words."""
    if not holds:
        raise InvalidInput(f"{field} must be {must}.", subject=field)


def check_labels(labels: Sequence[str]) -> None:
    """Raise InvalidInput where one key of labels is there twice."""
    keys = [one.partition("=")[0] for one in labels]
    require("labels", len(set(keys)) == len(keys), "of different keys: a host has one value of each")


ONLY_HERE: Final = (
    *("host_id", "provider_id", "region", "near", "labels", "slice", "simulated"),
    *("min_bandwidth_mbps", "min_reliability_percent"),
)
"""Fields that no machine which is bought could meet for sure."""


def check_elsewhere(request: Any) -> None:
    """Raise InvalidInput where fields of `Elsewhere` do not go with the others of the same request."""
    if request.backend is None:
        require("optimize", request.optimize is None, "left out without backend")
        require("spot", not request.spot, "left out without backend")
        return
    for name in ONLY_HERE:
        require("backend", not getattr(request, name), f"left out with {name}: no bought machine has that for sure")


def _check(one: RequestField, value: Any) -> None:
    spec, each = one.spec, (value,)
    if one.many is not Many.ONE:
        each = tuple(value.values()) if one.many is Many.MAP else value
        require(one.name, len(each) >= spec.items_least, f"at least {spec.items_least}")
        require(one.name, spec.items is None or len(each) <= spec.items, f"at most {spec.items}")
    for part in each:
        if isinstance(part, str):
            _check_text(one, part)
        elif isinstance(part, int) and not isinstance(part, bool):
            is_in = (spec.least is None or part >= spec.least) and (spec.most is None or part <= spec.most)
            require(one.name, is_in, _bounds(one))


def _check_text(one: RequestField, text: str) -> None:
    spec = one.spec
    if spec.chars is not None:
        is_said = bool(text) or not one.is_optional
        is_in = is_said and len(text) <= spec.chars and "\0" not in text
        require(one.name, is_in, f"text of at most {spec.chars} characters, without NUL")
    require(one.name, spec.form is None or re.fullmatch(spec.form, text) is not None, spec.text)
    require(one.name, not spec.choices or text in spec.choices, f"one of {', '.join(spec.choices)}")


def _bounds(one: RequestField) -> str:
    least, most = (None if bound is None else _shown(one, bound) for bound in (one.spec.least, one.spec.most))
    if least is None or most is None:
        return f"at least {least}" if most is None else f"at most {most}"
    return f"between {least} and {most}"


def _shown(one: RequestField, value: int) -> str:
    if one.kind is Microcents:
        return money_text(Microcents(value))
    if one.spec.unit is Unit.NONE:
        return str(value)
    size, unit = next(
        (pair for pair in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min")) if value % pair[0] == 0 and value), (SECOND, "s")
    )
    return f"{value // size} {unit}"


# --- as a column keeps a request --------------------------------------------------------------------------------------


_AS_IT_IS: Final = frozenset({str, int, bool, float, type(None)})
RESTORED_MAX: Final = 64
"""Requests that are remembered, by their text: an array's is read with every look at each of its jobs."""


def kept(request: Resources) -> dict[str, Any]:
    """Return a request as values of JSON."""
    names, values = _attributes(type(request))
    pairs = zip(names, values(request), strict=True)
    return {name: value if type(value) in _AS_IT_IS else _plain(value) for name, value in pairs}


def _attributes(request: type) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]:
    """Their names, and what takes all of them from a request at once."""
    found = _ATTRIBUTES.get(request)
    if found is None:
        names = tuple(one.attribute for one in fields_of(request))
        found = _ATTRIBUTES[request] = names, attrgetter(*names)
    return found


@lru_cache(maxsize=RESTORED_MAX)
def restored(request: type[R], text: str) -> R:
    """Return a request from the JSON of what `kept` made; a field that did not exist then has its default. The same
    text gives the same value, which nobody changes: all jobs of an array share theirs."""
    raw = json.loads(text)
    known = [one for one in fields_of(request) if one.attribute in raw]
    return request(**{**raw, **{one.attribute: _value(one, raw[one.attribute]) for one in known}})


def _plain(value: Any) -> Any:
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return {one.name: getattr(value, one.name) for one in fields(value)} if isinstance(value, Mount) else value


def _value(one: RequestField, raw: Any) -> Any:
    if one.many is Many.LIST:
        return tuple(Mount(**each) for each in raw) if one.kind is Mount else tuple(raw)
    return one.kind(raw) if isinstance(one.kind, EnumType) else raw
