"""Routes of the work inside a cluster: its log, commands, tunnels to its ports, its files."""

import base64
import contextlib
import json
from collections.abc import AsyncGenerator
from functools import partial
from typing import Annotated, Any

from fastapi import Query, Request, Response
from pydantic import BaseModel, Field

from windrow_master.api import answers, streaming
from windrow_master.api.answers import Out, Read, Time
from windrow_master.api.auth import Reach, Repeat
from windrow_master.api.bodies import (
    Body,
)
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.paging import Json
from windrow_master.api.route import Routes
from windrow_master.api.sharing import FOLDER_MAX, ShareKind
from windrow_master.clusters.model import HOSTS_MAX
from windrow_master.identity.decide import Permission
from windrow_master.identity.object_shares import Level
from windrow_master.network.nearest_access import LISTED_MAX, Wish
from windrow_proto.errors import WindrowError
from windrow_proto.ids import ClusterId
from windrow_proto.keys import SERVER_NAMES
from windrow_proto.messages import ChannelClose, ChannelData
from windrow_proto.tunnels import HOST_NAME
from windrow_proto.units import MILLISECOND
from windrow_tunnel.wire import PROTOCOL

route = Routes("clusters")
Rank = Annotated[int, Query(ge=0, lt=HOSTS_MAX, description="Of which member, where there are several")]

RTT_MS_MAX = 60_000


class ExecBody(Body):
    """One more command to run beside the work."""

    argv: Annotated[list[str], Field(min_length=1, max_length=256)]


AccessName = Annotated[str, Field(max_length=128)]


class MeasuredAccess(Body):
    """The round trip from the renter to a relay."""

    id: AccessName
    rtt_ms: Annotated[float, Field(ge=0, le=RTT_MS_MAX, allow_inf_nan=False)]


class TunnelBody(Body):
    """The TCP port of the workload to reach, and the relay to go by."""

    port: Annotated[int, Field(ge=1, le=65_535)]
    measured: Annotated[
        list[MeasuredAccess],
        Field(
            default_factory=list, max_length=LISTED_MAX, description="Round trips to `accesses` of an earlier answer"
        ),
    ]
    without: Annotated[
        list[AccessName],
        Field(default_factory=list, max_length=LISTED_MAX, description="Relays that do not answer from here"),
    ]

    def wish(self) -> Wish:
        """The same as a value of the package."""
        rtts_ns = {one.id: int(one.rtt_ms * MILLISECOND) for one in self.measured}
        return Wish(rtts_ns, frozenset(self.without))


class FilesArrived(BaseModel):
    """The files that arrived at the host."""

    bytes: int
    files: int


class TunnelAccessOut(Out):
    """A relay by which tunnels may go."""

    id: Annotated[str, Read("access_id")]
    address: Annotated[
        str, Field(description="host:port; the time that connecting takes is what to measure"), Read("renters")
    ]


class TunnelOut(Out):
    """The address of a tunnel, and the ticket that a renter shows there."""

    id: Annotated[str, Read("tunnel_id")]
    grant: Annotated[str, Field(description="Shown once, as bearer token, to the relay")]
    address: Annotated[str, Field(description="host:port of the relay")]
    server_name: Annotated[
        str, Field(description="What its certificate has to name"), Read(lambda _: SERVER_NAMES["access"])
    ]
    ca_pem: Annotated[str, Field(description="The authority of that certificate")]
    protocol: Annotated[str, Field(description="What the connection is upgraded to"), Read(lambda _: PROTOCOL)]
    host_pem: Annotated[
        str, Field(description="The host's certificate for this tunnel, and the only one to trust then")
    ]
    host_server_name: Annotated[str, Field(description="What that certificate names"), Read(lambda _: HOST_NAME)]
    secret: Annotated[
        str,
        Field(description="In hexadecimal; its bytes are what the host is told first, inside TLS"),
        Read(lambda ticket: ticket.secret.hex()),
    ]
    expires_at: Annotated[
        Time, Field(description="To connect by; the tunnel itself has no end of its own"), Read("not_after_ns")
    ]
    access_id: Annotated[str | None, Field(description="Whose `address` it is; null where the Master does not know")]
    accesses: Annotated[
        list[TunnelAccessOut], Field(description="Those that may be measured for the next one; empty without a choice")
    ]


@route.get(
    "/clusters/{cluster_id}/logs",
    may=Permission.RENT,
    reach=Reach.OWN,
    shared=Level.USE,
    share=ShareKind.DOWNLOADS,
    **answers.other("text/plain; charset=utf-8", "The log."),
)
async def logs(
    request: Request,
    services: Serving,
    principal: Asking,
    cluster_id: str,
    follow: bool = False,
    offset: Annotated[int, Query(ge=0, lt=2**63)] = 0,
    rank: Rank = 0,
) -> Response:
    """The log as the work wrote it, byte by byte; with `follow` as it is written, until the work ends. The log of work
    that has ended by itself is kept for 30 days."""
    results = services.results
    # Whatever the work prints is text to a browser and nothing else.
    safe = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
    if follow:
        pieces = await results.follow(principal, ClusterId(cluster_id), offset, rank)
        return streaming.Lasting(request, pieces, media_type="text/plain; charset=utf-8", headers=safe)
    data, is_cut = await results.log(principal, ClusterId(cluster_id), offset, rank)
    headers = {**safe, "X-Log-Truncated": _flag(is_cut)}
    return Response(data, media_type="text/plain; charset=utf-8", headers=headers)


@route.post(
    "/clusters/{cluster_id}/exec",
    may=Permission.RENT,
    reach=Reach.OWN,
    shared=Level.USE,
    share=ShareKind.DOWNLOADS,
    **answers.other("text/x-ndjson; charset=utf-8", "Lines of JSON."),
)
async def execute(
    request: Request, services: Serving, principal: Asking, cluster_id: str, body: ExecBody, rank: Rank = 0
) -> Response:
    """Run one more command inside: lines of JSON with its output, the last one with its exit code or an error."""
    pieces = await services.inside.execute(principal, ClusterId(cluster_id), tuple(body.argv), rank)

    async def lines() -> AsyncGenerator[bytes]:
        async for part in pieces:
            yield json.dumps(_exec_json(part, cluster_id), separators=(",", ":")).encode() + b"\n"

    safe = {"Cache-Control": "no-store"}
    return streaming.Lasting(request, lines(), media_type="text/x-ndjson; charset=utf-8", headers=safe)


@route.post(
    "/clusters/{cluster_id}/tunnels",
    may=Permission.RENT,
    reach=Reach.OWN,
    shared=Level.USE,
    repeat=Repeat.ALWAYS,
    status_code=201,
    answer=TunnelOut,
)
async def open_tunnel(
    request: Request, services: Serving, principal: Asking, cluster_id: str, body: TunnelBody, rank: Rank = 0
) -> Response:
    """Have the host open a tunnel to a port of the workload. Connect to `address` with TLS (server name `server_name`,
    authority `ca_pem`) before `expires_at`, ask for an upgrade to `protocol`, and show `grant` as bearer, once. After
    the 101 end this TLS, shake hands with the host on the same connection (its certificate: `host_pem`, its name:
    `host_server_name`), and send `secret`. It goes by the host's relay, unless another is clearly nearer in sum by
    what both measured, or that one is in `without`: if the relay does not answer, ask once more without it."""
    is_allowed = partial(streaming.is_allowed, request)
    ticket = await services.tunnels.open(principal, ClusterId(cluster_id), body.port, is_allowed, body.wish(), rank)
    return Json(TunnelOut.of(ticket), 201, headers={"Cache-Control": "no-store"})


@route.put(
    "/clusters/{cluster_id}/files",
    may=Permission.RENT,
    reach=Reach.OWN,
    shared=Level.USE,
    share=ShareKind.UPLOADS,
    body_max=FOLDER_MAX,
    answer=FilesArrived,
)
async def put_files(
    request: Request, services: Serving, principal: Asking, cluster_id: str, commit: bool = False
) -> Any:
    """Unpack a tar stream into the working folder; `commit=true` starts work that waits for its files."""
    sent = await services.inside.send_files(principal, ClusterId(cluster_id), request.stream(), commit=commit)
    return {"bytes": sent.size_bytes, "files": sent.files}


@route.get(
    "/clusters/{cluster_id}/files",
    may=Permission.RENT,
    reach=Reach.OWN,
    shared=Level.USE,
    share=ShareKind.DOWNLOADS,
    **answers.other("application/octet-stream", "The folder, as a tar stream.", is_binary=True),
)
async def get_files(
    request: Request,
    services: Serving,
    principal: Asking,
    cluster_id: str,
    changed: bool = False,
    offset: Annotated[int, Query(ge=0, lt=2**63)] = 0,
    rank: Rank = 0,
) -> Response:
    """The working folder as a tar stream; with `changed` only what differs from what was sent. Whoever was cut off asks
    for the rest by `offset`: bytes of the stream to leave out, if the header X-Files-Version says the same in both
    answers; without it the folder may have changed. It is whole if it ends as a tar archive does. Of work that has
    ended by itself what changed is kept for 30 days, as far as the account's quota goes."""
    pieces, version = await services.results.files(
        principal, ClusterId(cluster_id), changed_only=changed, rank=rank, offset=offset
    )
    headers = {"Cache-Control": "no-store"} | ({"X-Files-Version": version} if version else {})
    return streaming.Lasting(request, _until_broken(pieces), media_type="application/octet-stream", headers=headers)


async def _until_broken(pieces: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """Yield the bytes of a folder until its host is lost; who reads sees that its archive has no end."""
    async with contextlib.aclosing(pieces):
        with contextlib.suppress(WindrowError):
            async for piece in pieces:
                yield piece


def _flag(is_set: bool) -> str:
    return "true" if is_set else "false"


def _exec_json(part: ChannelData | ChannelClose, cluster_id: str) -> dict[str, Any]:
    if isinstance(part, ChannelData):
        return {"stream": part.stream, "data": base64.b64encode(part.data).decode()}
    if part.error_code:
        return {"error": {"code": part.error_code, "detail": part.detail, "subject": cluster_id}}
    if part.exit_code is None:
        return {"error": {"code": "link_closed", "detail": "The command's end was not seen.", "subject": cluster_id}}
    return {"exit_code": part.exit_code}
