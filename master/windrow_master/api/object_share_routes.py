"""Routes of shares of objects: a cluster, job or template for a user, a project or an organisation beside its own."""

from typing import Annotated, Any

from fastapi import Query, Response
from pydantic import Field

from windrow_master.api import answers
from windrow_master.api.answers import Out, Read, Time
from windrow_master.api.auth import Reach
from windrow_master.api.bodies import Body
from windrow_master.api.deps import Asking, Services, Serving
from windrow_master.api.paging import Cursor, Limit, page, read_cursor
from windrow_master.api.route import Routes
from windrow_master.identity.decide import Permission
from windrow_master.identity.model import Principal
from windrow_master.identity.object_share_service import ShareRequest
from windrow_master.identity.object_shares import LIFE_NS_MAX, Level, ObjectKind, ReceiverKind
from windrow_master.jobs.model import JobId
from windrow_proto.ids import ClusterId
from windrow_proto.units import SECOND

route = Routes("shares")

ObjectId = Annotated[
    str | None, Query(max_length=64, description="Only of one object: id of a machine or job, or name of a template")
]


class ObjectShareBody(Body):
    """A new share. It replaces an earlier share of the object with the same receiver."""

    object_kind: ObjectKind
    object_id: Annotated[
        str, Field(min_length=1, max_length=64, description="Id of a machine or job, or name of a template")
    ]
    receiver_kind: ReceiverKind
    receiver: Annotated[
        str,
        Field(min_length=1, max_length=320, description="Id or name. A user of another organisation is named by id"),
    ]
    level: Annotated[
        Level,
        Field(
            description="see: read its page. use: also commands, SSH, tunnels, log and files. "
            "manage: also stop, start, resize and delete"
        ),
    ]
    expires_in_s: Annotated[
        int | None, Field(ge=1, le=LIFE_NS_MAX // SECOND, description="Null: it does not expire")
    ] = None


class ObjectShareOut(Out):
    """A share of an object."""

    id: Annotated[str, Read("share.id")]
    object_kind: Annotated[str, Read("share.object_kind")]
    object_id: Annotated[str, Read("share.object_id")]
    object_name: Annotated[str, Read("share.object_name"), Field(description="The name when the share was made")]
    project_id: Annotated[
        str, Read("share.account_id"), Field(description="The project that owns the object and pays for it")
    ]
    project: Annotated[str, Read("project_name")]
    receiver_kind: Annotated[str, Read("share.receiver_kind")]
    receiver_id: Annotated[str, Read("share.receiver_id")]
    receiver: Annotated[str, Read("receiver_name")]
    level: Annotated[str, Read("share.level")]
    created_by: Annotated[str, Read("share.made_by")]
    created_by_name: Annotated[str, Read("maker_name")]
    created_at: Annotated[Time, Read("share.made_at_ns")]
    expires_at: Annotated[Time | None, Read("share.until_ns")]
    is_active: Annotated[
        bool, Field(description="False: the project is suspended, or the maker has lost the right to share")
    ]


@route.post("/shares", may=Permission.SHARES, changes_rights=True, status_code=201, answer=ObjectShareOut)
async def share_object(services: Serving, principal: Asking, body: ObjectShareBody) -> Any:
    """Share an object of the project. The project still owns it and pays for it."""
    wanted = ShareRequest(
        body.object_kind,
        body.object_id,
        await _name_of(services, principal, body),
        body.receiver_kind,
        body.receiver,
        body.level,
        None if body.expires_in_s is None else body.expires_in_s * SECOND,
    )
    return ObjectShareOut.of(await services.identity.object_shares.add(principal, wanted))


@route.get("/shares", may=Permission.RENT_READ, answer=answers.Page[ObjectShareOut])
async def shares(
    services: Serving, principal: Asking, object_id: ObjectId = None, limit: Limit = 100, cursor: Cursor = None
) -> Any:
    """The shares of the project's objects, the oldest first."""
    found = await services.identity.object_shares.given(principal, object_id, read_cursor(cursor), limit + 1)
    return page(found, limit, ObjectShareOut.of, lambda view: view.share.id)


@route.get("/shares/received", may=Permission.SIGNED_IN, answer=answers.Page[ObjectShareOut])
async def received_shares(
    services: Serving, principal: Asking, object_id: ObjectId = None, limit: Limit = 100, cursor: Cursor = None
) -> Any:
    """The shares with the caller, the caller's project or its organisation, the oldest first."""
    found = await services.identity.object_shares.received(principal, object_id, read_cursor(cursor), limit + 1)
    return page(found, limit, ObjectShareOut.of, lambda view: view.share.id)


@route.delete("/shares/{share_id}", may=Permission.SHARES, reach=Reach.OWN, status_code=204)
async def withdraw_share(services: Serving, principal: Asking, share_id: str) -> Response:
    """Withdraw a share. Requests are refused at once; commands, tunnels and streams end within 5 seconds."""
    await services.identity.object_shares.withdraw(principal, share_id)
    return Response(status_code=204)


async def _name_of(services: Services, principal: Principal, body: ObjectShareBody) -> str:
    """The name of an object of the caller's project. Raises NotFound for one that is another's."""
    match body.object_kind:
        case ObjectKind.CLUSTER:
            return (await services.clusters.get_own(principal, ClusterId(body.object_id))).cluster.name
        case ObjectKind.JOB:
            return (await services.jobs.get_own(principal, JobId(body.object_id))).job.name
        case ObjectKind.TEMPLATE:
            return (await services.templates.get(principal, body.object_id)).name
