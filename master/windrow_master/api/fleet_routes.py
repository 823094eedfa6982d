"""Routes of the fleet: hosts and what people decide about them, GPUs, commands, and the live stream of both."""

import json
from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import Query, Request, Response
from pydantic import Field

from windrow_master.api import answers, sse, streaming, visibility
from windrow_master.api.answers import OperationOut, Out
from windrow_master.api.auth import Reach
from windrow_master.api.bodies import Body, Given, Reason
from windrow_master.api.deps import Asking, Services, Serving
from windrow_master.api.event_names import as_seen
from windrow_master.api.fleet_feed import Viewer, feed_of
from windrow_master.api.fleet_shapes import CommandOut, GpusOut, HostOut, Sees
from windrow_master.api.gpu_shapes import GpuPageOut, gpu_page_json
from windrow_master.api.json_text import listed, tag_of, tagged_text
from windrow_master.api.paging import Cursor, Limit, accepted, read_cursor, sifted, tagged, write_cursor
from windrow_master.api.route import Routes
from windrow_master.api.sharing import ShareKind
from windrow_master.api.visibility import own_host
from windrow_master.fleet import availability
from windrow_master.fleet.conditions import MASTERS_CODES
from windrow_master.fleet.lookup import find_command
from windrow_master.fleet.model import AdminState, CardBenchmark, CommandRow
from windrow_master.fleet.states import AdminEvent
from windrow_master.fleet.view import Entry
from windrow_master.identity.decide import Permission
from windrow_master.identity.model import Principal, Role
from windrow_master.sift import sift
from windrow_master.spec import COUNTRY_FORM, LABEL_FORM, LABELS_MAX, check_labels
from windrow_master.store.model import EventRow
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Forbidden, InvalidInput, NotFound
from windrow_proto.ids import ClusterId, CommandId, HostId
from windrow_proto.model import GpuFacts
from windrow_proto.units import money_text

route = Routes("fleet")

Text = Annotated[str | None, Query(max_length=200)]

EVENTS_READ: Final = 50
"""Of a GPU's latest events, in which its latest XID is looked for."""
GPU_XID: Final = "gpu.xid"
IMAGE_CHARS_MAX: Final = 255


class MeasuringOut(Out):
    """A measurement of a host's bandwidth that has begun."""

    operation: OperationOut
    host_id: str


@route.get("/hosts", may=Permission.FLEET_READ, answer=answers.Page[HostOut])
async def hosts(
    request: Request,
    services: Serving,
    principal: Asking,
    state: Text = None,
    simulated: bool | None = None,
    q: Text = None,
    gpus: bool | None = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Any:
    """Hosts in the order of their joining. `state`: a headline, or an admin or link state; retired ones only when
    asked for. `q`: part of a name, id, processor or GPU. `gpus`: only hosts that have some, or that have none."""
    if state is not None and state not in availability.HOST_STATES:
        raise InvalidInput(f"There is no state {state!r} of hosts. There are: {', '.join(availability.HOST_STATES)}.")
    after = read_cursor(cursor)
    found = [
        entry
        for entry in sorted(services.fleet.view, key=lambda entry: entry.host.host_id)
        if entry.host.host_id > after and _matches(entry, state, simulated, q, gpus)
    ]
    shown = found[:limit]
    following = json.dumps(write_cursor(shown[-1].host.host_id) if len(found) > limit else None)
    wholes = await feed_of(services).wholes(shown)
    rest = f'"next_cursor":{following}'.encode()
    viewer = _viewer(principal)
    tag = tag_of([viewer, len(found) > limit, *(whole.number for whole in wholes)])
    return tagged_text(request, tag, lambda: listed([whole.text_for(viewer) for whole in wholes], rest))


def _viewer(principal: Principal) -> Viewer:
    return None if visibility.oversees(principal) else principal.account_id


async def _sees(services: Services, principal: Principal, entry: Entry) -> Sees | None:
    """Return which slots' holders they may know: all of their own host, elsewhere those that their own clusters
    hold."""
    if visibility.oversees(principal) or entry.host.owner_account == principal.account_id:
        return None
    holders = {slot.holder for slot in entry.slots if slot.holder is not None}
    if not holders:
        return lambda slot: False

    def read(uow: UnitOfWork) -> frozenset[ClusterId]:
        return frozenset(one for one in holders if visibility.sees_subject(uow, principal, one))

    own = await services.store.read(read)
    return lambda slot: slot.holder in own


def _matches(entry: Entry, state: str | None, simulated: bool | None, q: str | None, gpus: bool | None) -> bool:
    host = entry.host
    if simulated is not None and host.simulated is not simulated:
        return False
    if gpus is not None and gpus is not bool(host.inventory and host.inventory.gpus):
        return False
    if state is None:
        if host.admin_state is AdminState.RETIRED:
            return False
    elif state not in {availability.headline(entry).word, str(host.admin_state), str(host.link_state)}:
        return False
    if q is None:
        return True
    inventory = host.inventory
    names = [gpu.name for gpu in inventory.gpus] if inventory else []
    words = [host.name, host.host_id, inventory.cpu_model if inventory else "", *names]
    return any(q.lower() in word.lower() for word in words)


@route.get("/hosts/{host_id}", may=Permission.FLEET_READ, reach=Reach.ALL, answer=HostOut)
async def host(services: Serving, principal: Asking, request: Request, host_id: str) -> Any:
    """One host with its GPUs and slots. Whose it is, and who holds a slot, is for its owner, who holds it, operators
    and auditors."""
    entry = services.fleet.entry(HostId(host_id))
    feed = feed_of(services)
    body = feed.host(entry, await feed.book(), await _sees(services, principal, entry))
    live = services.telemetry.live.version_of(entry.host.host_id)
    return tagged(request, body, f"{services.store.epoch}.{entry.version}.{live}.{body['last_seen_at']}")


async def _decide(services: Services, principal: Principal, host_id: str, event: AdminEvent, body: Reason) -> Any:
    owned = own_host(services, principal, host_id)
    entry = await services.fleet.decide(owned, event, principal.actor, body.reason)
    feed = feed_of(services)
    return feed.host(entry, await feed.book(), await _sees(services, principal, entry))


@route.post("/hosts/{host_id}/drain", may=Permission.FLEET_OPERATE, reach=Reach.OWN_OR_OPERATED, answer=HostOut)
async def drain(services: Serving, principal: Asking, host_id: str, body: Given) -> Any:
    """Let what runs there end and start nothing new."""
    return await _decide(services, principal, host_id, AdminEvent.DRAIN, body)


@route.post("/hosts/{host_id}/activate", may=Permission.FLEET_OPERATE, reach=Reach.OWN_OR_OPERATED, answer=HostOut)
async def activate(services: Serving, principal: Asking, host_id: str, body: Given) -> Any:
    """Offer it again; for a quarantined host this says that it was found sound (operators only)."""
    owned = own_host(services, principal, host_id)
    is_quarantined = services.fleet.entry(owned).host.admin_state.value == "quarantined"
    if is_quarantined and Role.OPERATOR not in principal.roles:
        raise Forbidden("Only an operator may lift a quarantine.", subject=owned)
    return await _decide(services, principal, host_id, AdminEvent.ACTIVATE, body)


@route.post("/hosts/{host_id}/maintenance", may=Permission.FLEET_OPERATE, reach=Reach.OWN_OR_OPERATED, answer=HostOut)
async def maintenance(services: Serving, principal: Asking, host_id: str, body: Given) -> Any:
    """Take a drained host out of service."""
    return await _decide(services, principal, host_id, AdminEvent.MAINTAIN, body)


@route.post("/hosts/{host_id}/quarantine", may=Permission.FLEET_OPERATE, reach=Reach.OWN_OR_OPERATED, answer=HostOut)
async def quarantine(services: Serving, principal: Asking, host_id: str, body: Given) -> Any:
    """Trust it no more: it is cut off until an operator activates it."""
    return await _decide(services, principal, host_id, AdminEvent.QUARANTINE, body)


@route.post("/hosts/{host_id}/retire", may=Permission.FLEET_OPERATE, reach=Reach.OWN_OR_OPERATED, answer=HostOut)
async def retire(services: Serving, principal: Asking, host_id: str, body: Given) -> Any:
    """Let it go for good."""
    return await _decide(services, principal, host_id, AdminEvent.RETIRE, body)


class DefaultImageBody(Body):
    """The image that runs on a host where a request names none; null: none."""

    image: Annotated[str | None, Field(max_length=IMAGE_CHARS_MAX)]


@route.put("/hosts/{host_id}/default-image", may=Permission.FLEET_OPERATE, reach=Reach.OWN_OR_OPERATED, answer=HostOut)
async def default_image(services: Serving, principal: Asking, host_id: str, body: DefaultImageBody) -> Any:
    """Choose what a request without an image runs there; the owner offers this image to everybody who may rent it."""
    owned = own_host(services, principal, host_id)
    entry = await services.fleet.set_default_image(owned, body.image, principal.actor)
    feed = feed_of(services)
    return feed.host(entry, await feed.book(), await _sees(services, principal, entry))


class PlaceBody(Body):
    """The place of a host as its owner says it; null, empty: not said."""

    country: Annotated[str | None, Field(pattern=COUNTRY_FORM, description="ISO 3166-1: two capital letters")] = None
    labels: Annotated[
        list[Annotated[str, Field(pattern=LABEL_FORM)]], Field(max_length=LABELS_MAX, default_factory=list)
    ]


@route.put("/hosts/{host_id}/place", may=Permission.FLEET_OPERATE, reach=Reach.OWN_OR_OPERATED, answer=HostOut)
async def place(services: Serving, principal: Asking, host_id: str, body: PlaceBody) -> Any:
    """Say in which country the host is, and give it labels, which requests can ask for."""
    check_labels(body.labels)
    owned = own_host(services, principal, host_id)
    labels = tuple(sorted(body.labels))
    entry = await services.fleet.set_place(owned, body.country, labels, principal.actor)
    feed = feed_of(services)
    return feed.host(entry, await feed.book(), await _sees(services, principal, entry))


@route.post(
    "/hosts/{host_id}/measure",
    may=Permission.FLEET_OPERATE,
    reach=Reach.OWN_OR_OPERATED,
    status_code=202,
    answer=MeasuringOut,
)
async def measure(services: Serving, principal: Asking, host_id: str) -> Response:
    """Measure its bandwidth now; the operation ends when both ends have reported."""
    owned = own_host(services, principal, host_id)
    operation_id = await services.fleet.measure(owned, principal.account_id, principal.actor)
    operation = await services.store.read(lambda uow: uow.operations.get(operation_id))
    assert operation is not None, "it was made a moment ago"
    return accepted(operation, {"host_id": owned})


class PartitionBody(Body):
    """Into what to cut a GPU: the layout that its owner allows, or whole again."""

    whole: bool = False


@route.post(
    "/hosts/{host_id}/gpus/{gpu_id}/partition",
    may=Permission.FLEET_OPERATE,
    reach=Reach.OWN_OR_OPERATED,
    status_code=202,
    answer=MeasuringOut,
)
async def partition(services: Serving, principal: Asking, host_id: str, gpu_id: str, body: PartitionBody) -> Response:
    """Cut an idle GPU of a drained host into the slices that its owner allows; the operation ends with the host's
    word."""
    owned = own_host(services, principal, host_id)

    ask = services.fleet.cuts.ask
    operation = await services.store.write(
        lambda uow: ask(uow, owned, gpu_id, body.whole, principal.account_id, principal.actor), name="gpu.partition"
    )
    return accepted(operation, {"host_id": owned})


@route.get("/gpus", may=Permission.FLEET_READ, answer=GpusOut)
async def gpus(services: Serving, principal: Asking, request: Request) -> Any:
    """Every GPU of the fleet as one flat list, without pages."""
    feed = feed_of(services)
    await feed.refresh()
    version, viewer = feed.version, _viewer(principal)
    return tagged_text(
        request, tag_of([version, viewer]), lambda: listed(feed.rows(viewer), f'"version":{version}'.encode())
    )


@route.get("/gpus/{gpu_id}", may=Permission.FLEET_READ, reach=Reach.ALL, answer=GpuPageOut)
async def gpu(services: Serving, principal: Asking, gpu_id: str) -> Any:
    """One GPU: every field of the table with its value or null, its conditions, what its claims and measurements gave.
    Its serial number and per-device id are its host's owner's, operators' and auditors' to see."""
    entry, facts = _holder(services, gpu_id)

    def read(uow: UnitOfWork) -> tuple[list[EventRow], Sequence[CardBenchmark]]:
        rows = uow.events.newest(gpu_id, limit=EVENTS_READ, kind=GPU_XID)
        benchmarks = services.fleet.hosts.benchmarks(uow, entry.host.host_id, facts.uuid)
        seen = visibility.seen_events(uow, principal, rows)
        return [as_seen(uow, principal, row) for row in seen], benchmarks

    xids, benchmarks = await services.store.read(read)
    host = entry.host
    book = await feed_of(services).book()
    slot = next((slot for slot in entry.slots if slot.gpu_uuid == facts.uuid), None)
    price = money_text(book.price(host.owner_account, slot.tier)) if slot is not None and slot.tier else None
    reading = services.telemetry.live.get(host.host_id)
    sees = await _sees(services, principal, entry)
    return gpu_page_json(entry, facts, reading, xids, benchmarks, price, sees)


def _holder(services: Services, gpu_id: str) -> tuple[Entry, GpuFacts]:
    """The host that has this GPU; of two that claim it, the one whose claim is older."""
    found = [(entry, facts) for entry in services.fleet.view if (facts := entry.host.gpu(gpu_id)) is not None]
    if not found:
        raise NotFound("There is no such GPU. List GPUs: windrow gpu ls", subject=gpu_id[:64])
    return min(found, key=lambda one: (_is_disputed(one[0], gpu_id), one[0].host.created_at_ns))


def _is_disputed(entry: Entry, gpu_id: str) -> bool:
    return any(c.code.endswith(f":{gpu_id}") and c.code.startswith(MASTERS_CODES) for c in entry.host.conditions)


@route.get("/fleet/stream", may=Permission.FLEET_READ, share=ShareKind.STREAMS, **answers.STREAM)
async def fleet_stream(
    services: Serving,
    principal: Asking,
    request: Request,
    after: Annotated[int | None, Query(ge=0, lt=2**63)] = None,
) -> Response:
    """Rows (`rows`) and hosts (`hosts`) as they change, at most once a second; everything first, or what changed after
    a version that a list or a message named (`after`, or Last-Event-ID)."""
    seen = sse.last_event_id(request)
    return streaming.stream(request, feed_of(services).stream(after if seen is None else seen, _viewer(principal)))


@route.get("/commands", may=Permission.FLEET_READ, answer=answers.Page[CommandOut])
async def commands(
    services: Serving, principal: Asking, host: Text = None, limit: Limit = 100, cursor: Cursor = None
) -> Any:
    """Commands, the latest first: to one's own hosts and for one's own clusters (operators and auditors: all). A page
    may hold fewer than `limit` although more follow: `next_cursor` says so."""
    before = read_cursor(cursor) or None
    host_id = HostId(host) if host is not None else None

    def read(uow: UnitOfWork) -> tuple[list[CommandRow], CommandRow | None]:
        def rows(last: CommandRow | None, size: int) -> Sequence[CommandRow]:
            return services.fleet.commands.newest(uow, host_id, before if last is None else last.command_id, size)

        return sift(rows, lambda row: visibility.sees_command(uow, principal, row), limit, visibility.LOOKED_MAX)

    return sifted(
        await services.store.read(read), lambda row: _command_json(services, row), lambda row: str(row.command_id)
    )


@route.get("/commands/{command_id}", may=Permission.FLEET_READ, reach=Reach.OWN_OR_OVERSEEN, answer=CommandOut)
async def command(services: Serving, principal: Asking, command_id: str) -> Any:
    """One command and what became of it."""

    def read(uow: UnitOfWork) -> CommandRow | None:
        found = find_command(uow, CommandId(command_id))
        return found if found is not None and visibility.sees_command(uow, principal, found) else None

    row = await services.store.read(read)
    if row is None:
        raise NotFound(
            "There is no such command, or it is not yours. List yours: windrow command ls", subject=command_id[:64]
        )
    return _command_json(services, row)


def _command_json(services: Services, row: CommandRow) -> dict[str, Any]:
    entry = services.fleet.view.get(row.host_id)
    return CommandOut.of(row, host_name=None if entry is None else entry.host.name)
