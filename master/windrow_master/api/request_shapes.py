"""Bodies and answers of requests for clusters and jobs, and the filters of their lists, made from their spec."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from inspect import Parameter, Signature
from operator import attrgetter
from typing import Annotated, Any, Final, Literal, TypeVar

from fastapi import Query
from pydantic import AwareDatetime, BaseModel, Field, create_model

from windrow_master.api.answers import VALUES, Amount, Out, Read, Span, Time, Written
from windrow_master.api.bodies import Body, GivenMoney, money_of
from windrow_master.spec import Many, RequestField, Resources, Unit, fields_of
from windrow_proto.errors import InvalidInput
from windrow_proto.units import SECOND, Microcents, moment_ns
from windrow_proto.volumes import Mount, parse_mount

B = TypeVar("B", bound=Body)
M = TypeVar("M", bound=BaseModel)
A = TypeVar("A", bound=Out)
R = TypeVar("R", bound=Resources)


@dataclass(frozen=True, slots=True)
class Form:
    """A value in JSON. given: its type in a body; read: turns that into the value; shown: its type in an answer."""

    given: Any
    read: Callable[[Any], Any]
    shown: Any


_SECONDS: Final = Form(float, lambda span_s: int(span_s * SECOND), Span)
_WHOLE_SECONDS: Final = Form(
    int, lambda span_s: span_s * SECOND, Annotated[int, Written(lambda span_ns: span_ns // SECOND)]
)
_MOUNT: Final = Form(str, parse_mount, Annotated[str, Written(attrgetter("text"))])


def body_of(request: type) -> Callable[[type[B]], type[B]]:
    """Add the fields of a request to a body."""

    def made(body: type[B]) -> type[B]:
        return _made(body, {one.name: _given(one) for one in fields_of(request)})

    return made


def answer_of(request: type) -> Callable[[type[A]], type[A]]:
    """Add the fields of a request to an answer, which shows each as the body takes it."""

    def made(answer: type[A]) -> type[A]:
        return _made(answer, {one.name: (_shown(one), ...) for one in fields_of(request)})

    return made


def parsed(body: BaseModel, request: type[R]) -> R:
    """Return the request that a body asks for. Raises InvalidInput."""
    kind: Any = request  # mypy holds classes of dataclasses for unhashable
    found = [(attribute, read, getattr(body, name)) for attribute, name, read in _readers(kind)]
    return request(**{name: value if value is None or read is None else read(value) for name, read, value in found})


def filters_of(request: type) -> Callable[..., Awaitable[Mapping[str, str]]]:
    """Return a dependency of a list's route: the values that each item's request has to have, by field."""

    async def wanted(**given: str | None) -> Mapping[str, str]:
        return {name: value for name, value in given.items() if value is not None}

    found = [_filter(one) for one in fields_of(request) if one.spec.is_filter]
    wanted.__signature__ = Signature(found)  # type: ignore[attr-defined]  # as FastAPI reads it
    return wanted


def _filter(one: RequestField) -> Parameter:
    query = Query(alias=one.name, max_length=one.spec.chars, description=f"Only those with this {one.name}")
    return Parameter(one.attribute, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[str | None, query])


def _made(model: type[M], found: dict[str, Any]) -> type[M]:
    return create_model(model.__name__, __base__=model, __module__=model.__module__, __doc__=model.__doc__, **found)


def _form(one: RequestField) -> Form:
    if one.kind is Mount:
        return _MOUNT
    if one.kind is Microcents:
        return Form(GivenMoney, partial(money_of, one.name), Amount)
    if one.spec.unit is Unit.TIME:
        return Form(AwareDatetime, partial(_wall_ns, one.name), Time)
    if one.spec.unit is not Unit.NONE:
        return _SECONDS if one.spec.unit is Unit.SECONDS else _WHOLE_SECONDS
    kind = one.kind if isinstance(one.kind, type) else one.kind.__supertype__  # of a NewType
    return Form(Literal[one.spec.choices] if one.spec.choices else kind, _same, str if issubclass(kind, str) else kind)


def _same(value: Any) -> Any:
    return value


def _wall_ns(name: str, at: Any) -> int:
    try:
        return moment_ns(at)
    except ValueError as error:
        raise InvalidInput(f"{name}: {error}.", subject=name) from None


_Reader = Callable[[Any], Any] | None


@cache
def _readers(request: type) -> tuple[tuple[str, str, _Reader], ...]:
    """Return the fields of a kind of request: the attribute, the name in a body, and what converts the value. None: the
    value is taken unchanged."""
    return tuple((one.attribute, one.name, _reader(one)) for one in fields_of(request))


def _reader(one: RequestField) -> _Reader:
    read = _form(one).read
    if one.many is Many.MAP or (read is _same and one.many is not Many.LIST):
        return None
    return (lambda value: tuple(read(each) for each in value)) if one.many is Many.LIST else read


def _bounds(one: RequestField) -> dict[str, Any]:
    """Return the bounds of one value as models and the API's description have them."""
    spec, found = one.spec, dict[str, Any]()
    if one.kind is not Microcents and spec.unit is not Unit.TIME:
        unit = 1 if spec.unit is Unit.NONE else SECOND
        bounds = {"ge": spec.least, "le": spec.most}
        found = {name: bound // unit for name, bound in bounds.items() if bound is not None}
    if spec.chars is not None:
        found |= {"max_length": spec.chars} | ({"min_length": 1} if one.is_optional else {})
    return found | ({"pattern": spec.form} if spec.form is not None else {})


def _described(one: RequestField) -> dict[str, Any]:
    return {"description": one.spec.text} if one.spec.text else {}


def _given(one: RequestField) -> tuple[Any, Any]:
    """Return the annotation and the default of a field of a body."""
    kind, bounds = _form(one).given, _bounds(one)
    if one.many is Many.ONE:
        default = one.default / SECOND if one.default and one.spec.unit is Unit.SECONDS else one.default
        return Annotated[kind | None if one.is_optional else kind, Field(**bounds, **_described(one))], default
    part: Any = Annotated[kind, Field(**bounds)]
    many, empty = (dict[str, part], dict) if one.many is Many.MAP else (list[part], list)
    least = one.spec.items_least
    default = ... if least else Field(default_factory=empty)
    return Annotated[many, Field(min_length=least or None, max_length=one.spec.items, **_described(one))], default


def _shown(one: RequestField) -> Any:
    """Return the annotation of a field of an answer."""
    if one.many is Many.MAP:
        return Annotated[dict[str, str | None], Field(description=VALUES)]
    kind: Any = _form(one).shown
    kind = list.__class_getitem__(kind) if one.many is Many.LIST else kind | None if one.is_optional else kind
    return Annotated[kind, Field(**_described(one)), Read(one.attribute)]
