"""Routes of the store's own records: operations and events, with their live stream."""

from collections.abc import AsyncGenerator, Sequence
from typing import Annotated, Any

from fastapi import Query, Request, Response

from windrow_master.api import answers, sse, streaming, visibility
from windrow_master.api.answers import EventOut, OperationOut
from windrow_master.api.auth import Reach
from windrow_master.api.deps import Asking, Services, Serving
from windrow_master.api.paging import (
    Cursor,
    Limit,
    page,
    read_cursor,
    read_number,
    sifted,
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

Subject = Annotated[str | None, Query(max_length=200)]


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
    after: Annotated[int | None, Query(ge=0)] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Any:
    """Events, the latest first; with `after`, in order from the one after that number. A page may hold fewer than
    `limit` although more follow: `next_cursor` says so."""
    _check_subject(principal, subject)
    before = read_number(cursor)

    def read(uow: UnitOfWork) -> tuple[list[EventRow], EventRow | None]:
        if subject is not None and not visibility.sees_subject(uow, principal, subject):
            raise NotFound(subject=subject[:64])

        def rows(last: EventRow | None, size: int) -> Sequence[EventRow]:
            number = last.number if last is not None else before
            if after is not None:
                return uow.events.after(after if number is None else number, subject, size)
            return uow.events.newest(subject, number, size)

        return sift(rows, lambda row: visibility.may_see_event(uow, principal, row), limit, visibility.LOOKED_MAX)

    return sifted(await services.store.read(read), EventOut.of, lambda row: str(row.number))


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
    with listener:
        last = seen or 0
        if seen is not None:
            missed = await services.store.read(lambda uow: uow.events.after(last, subject, REPLAY_MAX + 1))
            if len(missed) > REPLAY_MAX:
                yield sse.RESYNC
            else:
                for row in missed:
                    if await _may_hear(services, principal, row.subjects):
                        yield message_of(row)
            last = missed[-1].number if missed else last
        async for message in sse.follow(listener):
            # Listening began before the replay was read, so that nothing falls between; what both hold is told once.
            is_new = message.id is None or int(message.id) > last
            if is_new and await _may_hear(services, principal, message.data.get("subjects", ())):
                yield message


async def _may_hear(services: Services, principal: Principal | None, subjects: Sequence[str]) -> bool:
    if principal is None or visibility.oversees(principal):
        return True
    return await services.store.read(lambda uow: visibility.sees_event(uow, principal, subjects))


def _check_subject(principal: Principal, subject: str | None) -> None:
    # A host's page is open to all who see the fleet; everything at once only to those who look after it.
    if subject is None and not (principal.roles & {Role.OPERATOR, Role.AUDITOR, Role.PROVIDER}):
        raise InvalidInput(
            "Name a subject (windrow event ls --subject HOST): "
            "all events at once are for operators, providers and auditors."
        )
