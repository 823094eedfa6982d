"""Routes of the store's own records: operations and events, with their live stream."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import Query, Request, Response

from windrow_master.api import answers, sse, streaming, visibility
from windrow_master.api.answers import EventOut, OperationOut
from windrow_master.api.auth import Reach
from windrow_master.api.deps import Asking, Services, Serving
from windrow_master.api.event_names import as_seen, event_json, names_in, shared_names
from windrow_master.api.event_severity import INFO_BEGINNINGS, LOUD, EventSeverity, is_at_least, severity_of
from windrow_master.api.event_texts import text_of
from windrow_master.api.paging import (
    Cursor,
    Limit,
    Moment,
    moment,
    page,
    read_cursor,
    read_number,
    sifted,
    write_cursor,
)
from windrow_master.api.route import Routes
from windrow_master.api.sharing import ShareKind
from windrow_master.identity.decide import Permission
from windrow_master.identity.model import Principal, Role
from windrow_master.identity.object_shares import Level
from windrow_master.sift import sift
from windrow_master.store.model import EventRow
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import InvalidInput, NotFound
from windrow_proto.ids import OperationId

route = Routes("records")

EVERYTHING = "events"
"""The topic of all events; those of one subject are at `events/<subject>`."""
REPLAY_MAX = 1_000
"""Events a returning listener is given of what it missed; one that missed more gets a resync."""
WINDOW = 50_000
"""Events that one request for severe ones goes through: where they are rare, the next request goes on from there."""

Subject = Annotated[str | None, Query(max_length=200)]
Severity = Annotated[EventSeverity | None, Query(description="At least so severe; none: all")]


def topics_of(row: EventRow) -> list[str]:
    """Return the topics on which an event is published."""
    return [EVERYTHING, *(f"{EVERYTHING}/{subject}" for subject in row.subjects)]


def message_of(row: EventRow) -> sse.Message:
    """An event as a stream tells it."""
    return sse.Message("event", EventOut.of(row), str(row.number))


@route.get("/operations", may=Permission.SIGNED_IN, answer=answers.Page[answers.OperationOut])
async def operations(services: Serving, principal: Asking, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """Long actions of the account (operators: of all), the latest first."""
    account = None if visibility.oversees(principal) else principal.account_id
    before = read_cursor(cursor) or None
    found = await services.store.read(lambda uow: uow.operations.list(account, before, limit + 1))
    return page(found, limit, OperationOut.of, lambda operation: operation.id)


@route.get(
    "/operations/{operation_id}", may=Permission.SIGNED_IN, reach=Reach.OWN_OR_OVERSEEN, answer=answers.OperationOut
)
async def operation(services: Serving, principal: Asking, operation_id: str) -> Any:
    """The state of a long action, for its account and for who began it."""
    found = await services.store.read(lambda uow: uow.operations.get(OperationId(operation_id)))
    is_own = found is not None and found.is_of(principal.account_id, principal.actor)
    if found is None or not (is_own or visibility.oversees(principal)):
        raise NotFound(subject=operation_id[:64])
    return OperationOut.of(found)


@route.get("/events", may=Permission.FLEET_READ, shared=Level.SEE, answer=answers.Page[answers.EventOut])
async def events(
    services: Serving,
    principal: Asking,
    subject: Subject = None,
    severity: Severity = None,
    since: Moment = None,
    until: Moment = None,
    after: Annotated[int | None, Query(ge=0, lt=2**63)] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Any:
    """Events, the latest first; with `after`, in order from the one after that number. A page may hold fewer than
    `limit` although more follow: `next_cursor` says so."""
    _check_subject(principal, subject)
    asked = _Asked(subject, severity, moment("since", since), moment("until", until), after, read_number(cursor), limit)
    return await services.store.read(lambda uow: _events(services, uow, principal, asked))


@dataclass(frozen=True, slots=True)
class _Asked:
    """What somebody asks of the events; before: below this number, or with `after` from it on."""

    subject: str | None
    severity: EventSeverity | None
    since_ns: int | None
    until_ns: int | None
    after: int | None
    before: int | None
    limit: int


def _events(services: Services, uow: UnitOfWork, principal: Principal, asked: _Asked) -> Any:
    subject, after = asked.subject, asked.after
    if subject is not None and not visibility.sees_subject(uow, principal, subject):
        raise NotFound(subject=subject[:64])
    first = None if asked.since_ns is None else uow.events.number_at(asked.since_ns)
    ends = (asked.before, None if asked.until_ns is None else uow.events.number_at(asked.until_ns))
    end = min((one for one in ends if one is not None), default=None)
    begin = first if subject is not None or after is not None else _window(uow, first, end)
    is_all = asked.severity in (None, EventSeverity.INFO)
    but, but_for = ((), ()) if is_all else (INFO_BEGINNINGS, LOUD)

    def rows(last: EventRow | None, size: int) -> Sequence[EventRow]:
        if after is not None:
            return uow.events.after(max(after, asked.before or 0) if last is None else last.number, subject, size)
        number = end if last is None else last.number
        return uow.events.newest(subject, number, size, first=begin, but=but, but_for=but_for)

    def is_wanted(row: EventRow) -> bool:
        is_loud = is_at_least(severity_of(row.kind, row.fields), asked.severity)
        return is_loud and visibility.may_see_event(uow, principal, row)

    found = sift(rows, is_wanted, asked.limit, visibility.LOOKED_MAX)
    found = [as_seen(uow, principal, row) for row in found[0]], found[1]
    names = names_in(services, uow, principal, found[0])
    answer = sifted(found, lambda row: event_json(row, names), lambda row: str(row.number))
    if answer["next_cursor"] is None and after is None and begin is not None and begin > (first or 1):
        answer["next_cursor"] = write_cursor(str(begin))
    return answer


def _window(uow: UnitOfWork, first: int | None, end: int | None) -> int:
    """The number down to which one request looks."""
    if end is None:
        newest = uow.events.newest(limit=1)
        end = newest[0].number + 1 if newest else 1
    return max(first or 1, end - WINDOW)


@route.get("/events/stream", may=Permission.FLEET_READ, shared=Level.SEE, share=ShareKind.STREAMS, **answers.STREAM)
async def events_stream(request: Request, services: Serving, principal: Asking, subject: Subject = None) -> Response:
    """Events as they happen; a returning listener gets what it missed first."""
    _check_subject(principal, subject)
    if subject is not None and not await services.store.read(
        lambda uow: visibility.sees_subject(uow, principal, subject)
    ):
        raise NotFound(subject=subject[:64])
    seen = sse.last_event_id(request)
    listener = services.broadcaster.listen(EVERYTHING if subject is None else f"{EVERYTHING}/{subject}")
    return streaming.stream(request, _resumed(services, listener, seen, subject, principal))


async def _resumed(
    services: Services,
    listener: sse.Listener,
    seen: int | None,
    subject: str | None,
    principal: Principal | None = None,
) -> AsyncGenerator[sse.Message]:
    """Yield the events that a listener missed, then new ones. principal: the one whose rights limit it; None for
    somebody who sees all."""

    def named(message: sse.Message) -> sse.Message:
        data = message.data
        if "kind" not in data:
            return message
        names = shared_names(services, data["subjects"], data["actor"] or "", data["text"])
        text = text_of(data["kind"], data["text"], data["fields"], names)
        return replace(message, data={**data, "names": names, "text": text})

    with listener:
        last = seen or 0
        if seen is not None:
            missed = await services.store.read(lambda uow: uow.events.after(last, subject, REPLAY_MAX + 1))
            if len(missed) > REPLAY_MAX:
                yield sse.RESYNC
            else:
                for row in missed:
                    if (heard := await _heard(services, principal, message_of(row))) is not None:
                        yield named(heard)
            last = missed[-1].number if missed else last
        async for message in sse.follow(listener):
            # Listening began before the replay was read, so that nothing falls between; what both hold is told once.
            is_new = message.id is None or int(message.id) > last
            if is_new and (heard := await _heard(services, principal, message)) is not None:
                yield named(heard)


async def _heard(services: Services, principal: Principal | None, message: sse.Message) -> sse.Message | None:
    """The message as who listens may know it; None: not at all."""
    data = message.data
    if principal is None or visibility.oversees(principal) or "kind" not in data:
        return message

    def read(uow: UnitOfWork) -> sse.Message | None:
        if not visibility.sees_event(uow, principal, data["subjects"]):
            return None
        same = {name: data[name] for name in ("number", "id", "kind", "text", "fields")}
        row = EventRow(at_ns=0, subjects=tuple(data["subjects"]), actor=data["actor"] or "", **same)
        seen = as_seen(uow, principal, row)
        if seen is row:
            return message
        changed = {"subjects": list(seen.subjects), "actor": seen.actor, "text": seen.text, "fields": dict(seen.fields)}
        return replace(message, data={**data, **changed})

    return await services.store.read(read)


def _check_subject(principal: Principal, subject: str | None) -> None:
    # A host's page is open to all who see the fleet; everything at once only to those who look after it.
    if subject is None and not (principal.roles & {Role.OPERATOR, Role.AUDITOR, Role.PROVIDER}):
        raise InvalidInput(
            "Name a subject (windrow event ls --subject HOST): "
            "all events at once are for operators, providers and auditors."
        )
