"""Route of the queue, and the shape of an entry as jobs and clusters show it while they wait."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any
from zlib import crc32

from pydantic import Field

from windrow_master.api import answers, visibility
from windrow_master.api.answers import Out, Read, Time
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.event_names import as_told
from windrow_master.api.paging import Cursor, Limit, page, read_cursor
from windrow_master.api.route import Routes
from windrow_master.api.services import Services
from windrow_master.hybrid.search.words import Told
from windrow_master.identity.decide import Permission
from windrow_master.identity.model import Principal
from windrow_master.identity.people_lookup import name_of
from windrow_master.queue.estimate import asks_text, ordinal
from windrow_master.queue.order import Waits
from windrow_master.queue.service import Standing
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import InvalidInput, NotFound

route = Routes("queue")


def label(name: str, index: int | None) -> str:
    """The name of a job as people see it. index: of one of an array."""
    return name if index is None else f"{name}[{index}]"


class EstimateOut(Out):
    """When an entry is expected to start: 80 % of such intervals hold."""

    start_at: Annotated[Time, Read("start_ns")]
    low_at: Annotated[Time, Read("low_ns")]
    high_at: Annotated[Time, Read("high_ns")]
    words: Annotated[str, Field(description="`14:20 UTC ± 6 min`")]


class FactorsOut(Out):
    """The place of an entry in numbers, compared in this order."""

    priority_class: Annotated[int, Field(description="0 urgent, 1 normal, 2 low, 3 spot: lower is first")]
    is_above: Annotated[
        list[bool],
        Field(
            description="From the organisation down: whether it holds its guaranteed share, or has none, which is later"
        ),
    ]
    usage: Annotated[
        list[float], Field(description="From the organisation down: its recent use by its weight; less is first")
    ]
    is_top: Annotated[bool, Field(description="Put at the top of its project")]
    points: Annotated[float, Field(description="`priority` and `age` together; more is first")]
    priority: Annotated[int, Field(description="From -100 to 100")]
    age: Annotated[float, Field(description="Points for the time that it has waited: 200 for a day")]
    submitted_at: Annotated[Time, Read("submitted_ns")]


class QueuedOut(Out):
    """An entry of the queue. A name that is not the caller's to see reads `other work`."""

    id: Annotated[str, Field(description="Of the job, or of the machine"), Read("entry.entry_id")]
    kind: Annotated[str, Field(description="job or machine")]
    name: Annotated[
        str,
        Field(description="Of one of an array with its index: `train[3]`"),
        Read(lambda one: label(one.entry.name, one.entry.index if one.entry.array else None)),
    ]
    account_id: Annotated[str, Read("entry.leaf")]
    project: Annotated[str | None, Field(description="The name of the project")]
    priority_class: Annotated[
        str,
        Field(description="urgent, normal, low or spot"),
        Read(lambda one: one.entry.priority_class.name.lower()),
    ]
    priority: Annotated[int, Read("entry.priority")]
    state: Annotated[Waits, Field(description="ready: it waits for nothing but a place")]
    place: Annotated[
        int | None, Field(description="In the whole queue, from 1; null: it is not ready, or behind the first 1,000")
    ]
    summary: Annotated[str, Field(description="`3rd in the queue, starts 14:20 UTC ± 6 min`")]
    why: Annotated[str, Field(description="Why it still waits")]
    elsewhere: Annotated[
        str | None, Field(description="`a machine is being bought at aws eu-central-1a`; null: nothing is done there")
    ]
    estimate: Annotated[
        EstimateOut | None,
        Field(description="On a host of this market; null: nothing is known, or a place is bought"),
    ]
    factors: FactorsOut
    asks: Annotated[
        str,
        Field(description="What it asks for: `2 x (8 GPUs, 64 CPUs)`"),
        Read(lambda one: asks_text(one.entry.need)),
    ]
    submitted_at: Annotated[Time, Read("entry.submitted_ns")]
    held_by: Annotated[str | None, Field(description="Who holds it; null: nobody")]


class QueueOut(answers.Page[QueuedOut]):
    """A page of the queue, in the order in which its entries are to start."""

    waiting: Annotated[int, Field(description="Entries that wait; of the own project, for operators and auditors all")]
    running: Annotated[int, Field(description="Entries that run; of the own project, for operators and auditors all")]
    estimates_scored: Annotated[int, Field(description="Entries of all projects whose first estimate was scored")]
    estimates_held: Annotated[int, Field(description="Those of them that started within its 80 % interval")]


@route.get("/queue", may=Permission.RENT_READ, answer=QueueOut)
async def queue(services: Serving, principal: Asking, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """All of the project that waits for a place (operators and auditors: of all projects), the next to start first,
    then held entries and those that wait for a job or a time."""
    leaves = None if visibility.oversees(principal) else frozenset({str(principal.account_id)})
    found = services.queue.standings(leaves, limit + 1, _rank(cursor))
    shown = await queued_json(services, principal, found)
    by_id = {one["id"]: one for one in shown}
    totals = services.queue.totals(leaves)
    return page(found, limit, lambda one: by_id[one.entry.entry_id], lambda one: "{} {}".format(*one.rank)) | {
        "waiting": totals.waiting,
        "running": totals.running,
        "estimates_scored": totals.scored,
        "estimates_held": totals.held,
    }


async def standing_json(services: Services, principal: Principal, entry_id: str) -> dict[str, Any] | None:
    """The entry of this id; None where nothing of the queue has it."""
    try:
        found = services.queue.standing(entry_id)
    except NotFound:
        return None
    return (await queued_json(services, principal, [found]))[0]


def queued_tag(queued: Mapping[str, Any] | None) -> str:
    """The part of an ETag that stands for an entry: what is not told by its place, its start and its line only ages."""
    return "" if queued is None else format(crc32(repr((queued["summary"], queued["why"])).encode()), "08x")


async def queued_json(services: Services, principal: Principal, found: Sequence[Standing]) -> list[dict[str, Any]]:
    """These entries as the caller may see them."""

    def read(uow: UnitOfWork) -> tuple[list[str], dict[str, str | None], Mapping[str, Told]]:
        ready = [one.entry.entry_id for one in found if one.state is Waits.READY]
        elsewhere = services.searches.told(uow, ready)
        whys = [elsewhere[one.entry.entry_id].why if one.entry.entry_id in elsewhere else one.why for one in found]
        texts = [text for one, why in zip(found, whys, strict=True) for text in (why, one.entry.held_by)]
        projects = {one.entry.leaf: name_of(uow, one.entry.leaf) for one in found}
        return as_told(services, uow, principal, texts), projects, elsewhere

    told, projects, elsewhere = await services.store.read(read) if found else ([], {}, {})
    shown = list[dict[str, Any]]()
    for one, why, held_by in zip(found, told[::2], told[1::2], strict=True):
        there = elsewhere.get(one.entry.entry_id)
        entry = replace(one, estimate=None) if there is not None and there.has_place else one
        made = QueuedOut.of(
            entry,
            kind="job" if one.entry.entry_id.startswith("job_") else "machine",
            project=projects[one.entry.leaf],
            why=why,
            elsewhere=None if there is None else there.short,
            held_by=held_by or None,
            summary=_summary(entry, why, there),
        )
        shown.append(made)
    return shown


def _summary(one: Standing, why: str, there: Told | None) -> str:
    """Its place and its start, or why it has none. there: what happens elsewhere for it."""
    if one.state is not Waits.READY:
        return why
    start = f"{ordinal(one.place)} in the queue" if one.place else "In the queue"
    if there is not None:
        return f"{start}: {there.short}"
    return (
        f"{start}, starts {one.estimate.words}" if one.estimate is not None else f"{start}, its start is not known yet"
    )


def _rank(cursor: str | None) -> tuple[int, str]:
    place, _, entry_id = read_cursor(cursor).partition(" ")
    if place and not (place.isascii() and place.isdecimal()):
        raise InvalidInput("cursor is not one that a list returned.")
    return int(place or 0), entry_id
