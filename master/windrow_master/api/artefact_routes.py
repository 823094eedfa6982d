"""Routes of artefacts: list, upload, download, delete."""

from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Query, Request, Response

from windrow_master.api import answers, streaming
from windrow_master.api.answers import Out, Page, Read, Time
from windrow_master.api.auth import Reach
from windrow_master.api.deps import Asking, Serving, announced
from windrow_master.api.paging import Cursor, Limit, page, read_cursor
from windrow_master.api.route import Routes
from windrow_master.api.sharing import ShareKind
from windrow_master.identity.decide import Permission
from windrow_master.identity.object_shares import Level
from windrow_master.storage.artefacts import KEEP_NS
from windrow_master.storage.model import ARTEFACT_BYTES_MAX
from windrow_proto.errors import InvalidInput
from windrow_proto.units import DAY

route = Routes("artefacts")

KEEP_DAYS_MAX = 3650
OwnerKind = Annotated[str | None, Query(max_length=20)]
OwnerId = Annotated[str | None, Query(max_length=64)]


class ArtefactOut(Out):
    """A file that outlives what made it."""

    id: Annotated[str, Read("artefact_id")]
    owner_kind: str
    owner_id: str
    name: str
    size_bytes: int
    sha256: str
    created_at: Time
    expires_at: Time | None


@route.get("/artefacts", may=Permission.RENT, answer=Page[ArtefactOut])
async def artefacts(
    services: Serving,
    principal: Asking,
    owner_kind: OwnerKind = None,
    owner_id: OwnerId = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Any:
    """The account's artefacts, the latest first; of one owner where `owner_kind` and `owner_id` name it."""
    if (owner_kind is None) != (owner_id is None):
        raise InvalidInput("owner_kind and owner_id go together.", subject="owner_id")
    owner = None if owner_kind is None or owner_id is None else (owner_kind, owner_id)
    found = await services.artefacts.list(principal, owner, read_cursor(cursor) or None, limit + 1)
    return page(found, limit, ArtefactOut.of, lambda one: one.artefact_id)


@route.put(
    "/artefacts/{owner_kind}/{owner_id}/{name:path}",
    may=Permission.RENT,
    reach=Reach.OWN,
    share=ShareKind.UPLOADS,
    body_max=ARTEFACT_BYTES_MAX,
    answer=ArtefactOut,
)
async def put_artefact(
    request: Request,
    services: Serving,
    principal: Asking,
    owner_kind: str,
    owner_id: str,
    name: str,
    keep_days: Annotated[int, Query(ge=0, le=KEEP_DAYS_MAX)] = KEEP_NS // DAY,
) -> Any:
    """Store the body under this name, in place of an older one; `keep_days=0` keeps it until it is deleted."""
    keep_ns = keep_days * DAY or None
    made = await services.artefacts.put(
        principal, (owner_kind, owner_id), name, request.stream(), keep_ns, announced(request)
    )
    return ArtefactOut.of(made)


@route.get(
    "/artefacts/{owner_kind}/{owner_id}/{name:path}",
    may=Permission.RENT,
    reach=Reach.OWN,
    shared=Level.USE,
    share=ShareKind.DOWNLOADS,
    **answers.other("application/octet-stream", "The artefact.", is_binary=True),
)
async def get_artefact(
    request: Request, services: Serving, principal: Asking, owner_kind: str, owner_id: str, name: str
) -> Response:
    """Its bytes. An answer shorter than its Content-Length was broken off: what was stored is not what came back."""
    found, pieces = await services.artefacts.get(principal, (owner_kind, owner_id), name)
    headers = {
        "Content-Length": str(found.size_bytes),
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name.rsplit('/', 1)[-1], safe='')}",
        "X-Artefact-SHA256": found.sha256,
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
    }
    return streaming.Lasting(request, pieces, media_type="application/octet-stream", headers=headers)


@route.delete(
    "/artefacts/{owner_kind}/{owner_id}/{name:path}",
    may=Permission.RENT,
    reach=Reach.OWN,
    status_code=204,
    response_class=Response,
)
async def delete_artefact(services: Serving, principal: Asking, owner_kind: str, owner_id: str, name: str) -> Response:
    """Remove it."""
    await services.artefacts.delete(principal, (owner_kind, owner_id), name)
    return Response(status_code=204)
