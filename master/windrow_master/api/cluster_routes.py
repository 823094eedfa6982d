"""Routes of clusters: plan, create, read, follow, stop, start, delete, and what goes on inside: log, exec, files."""

import base64
import contextlib
import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal
from zlib import crc32

from fastapi import Header, Query, Request, Response
from pydantic import BaseModel, Field, SecretStr

from windrow_master.api import out, out_clusters, sse, streaming
from windrow_master.api.cluster_shapes import box_json, cluster_json, explanation_json, plan_json, tunnel_json
from windrow_master.api.deps import Asking, Services, Serving
from windrow_master.api.event_tail import CLUSTER
from windrow_master.api.idempotency import make_router
from windrow_master.api.identity_routes import Body
from windrow_master.api.names import host_of
from windrow_master.api.paging import Cursor, Json, Limit, accepted, page, read_cursor, tagged
from windrow_master.clusters.model import ClusterKind, ClusterRequest
from windrow_master.clusters.request import HOSTS_MAX
from windrow_master.clusters.views import ClusterView
from windrow_master.fleet.slices import PROFILE_FORM
from windrow_master.identity.model import Principal
from windrow_master.network.nearest_access import LISTED_MAX, Wish
from windrow_proto.errors import InvalidInput, WindrowError
from windrow_proto.ids import ClusterId, HostId
from windrow_proto.messages import ChannelClose, ChannelData
from windrow_proto.sealed import RegistryLogin
from windrow_proto.units import MICROCENTS_PER_UNIT, MILLISECOND, SECOND, Bytes, Microcents, money_text, parse_money
from windrow_proto.volumes import MOUNTS_MAX, parse_mount

router = make_router("clusters")

Rank = Annotated[int, Query(ge=0, lt=HOSTS_MAX, description="Of which member, where there are several")]
SECONDS_MAX = 10**8
MONEY_MAX = Microcents(10**9 * MICROCENTS_PER_UNIT)
"""More than anybody has; a hundred times of it still fits 64 bits."""
RTT_MS_MAX = 60_000
ENTITY_MAX = 2**53
"""Sizes that JavaScript still counts exactly."""


class RegistryLoginBody(Body):
    """What the registry of a private image is shown."""

    username: Annotated[str, Field(min_length=1, max_length=256)]
    password: Annotated[SecretStr, Field(min_length=1, max_length=8_192)]

    def parsed(self) -> RegistryLogin:
        """The same as a value."""
        return RegistryLogin(self.username, self.password.get_secret_value())


class ClusterBody(Body):
    """What to rent and run. `simulated` asks for simulated hosts; without it only real ones serve."""

    name: Annotated[str, Field(max_length=1_024)] = ""
    kind: ClusterKind = ClusterKind.BOX
    gpus: Annotated[int, Field(ge=0, le=1_024)] = 0
    gpu_model: Annotated[str | None, Field(min_length=1, max_length=64)] = None
    gpu_memory_bytes: Annotated[int | None, Field(gt=0, le=ENTITY_MAX)] = None
    cpus: Annotated[int, Field(ge=1, le=4_096)] = 1
    memory_bytes: Annotated[int | None, Field(gt=0, le=ENTITY_MAX)] = None
    image: Annotated[str | None, Field(min_length=1, max_length=255)] = None
    argv: Annotated[list[str], Field(default_factory=list, max_length=256)]
    env: Annotated[dict[str, str], Field(default_factory=dict, max_length=128)]
    ports: Annotated[list[int], Field(default_factory=list, max_length=32)]
    await_files: bool = False
    host_id: Annotated[str | None, Field(min_length=1, max_length=64)] = None
    tier: Annotated[str | None, Field(min_length=1, max_length=64)] = None
    runtime: Literal["process", "docker", "simulated"] | None = None
    simulated: bool = False
    slice: Annotated[str | None, Field(pattern=f"^{PROFILE_FORM}$", description="Such as 2g.20gb or mps.50")] = None
    max_price_per_hour: Annotated[str | None, Field(max_length=30)] = None
    hosts: Annotated[int, Field(ge=1, le=HOSTS_MAX, description="Each gives all that is asked for")] = 1
    restart_members: bool = False
    ssh_keys: Annotated[
        list[str], Field(default_factory=list, max_length=16, description="Who may log in to a box: public keys")
    ]
    notebook: Annotated[bool, Field(description="Whether a box starts Jupyter")] = False
    max_duration_seconds: Annotated[float | None, Field(gt=0, le=SECONDS_MAX, description="It is ended then")] = None
    budget: Annotated[str | None, Field(max_length=30, description="It is ended before it costs more")] = None
    idle_seconds: Annotated[
        float | None,
        Field(gt=0, le=SECONDS_MAX, description="It is ended after so long without a command, file or tunnel in it"),
    ] = None
    client_lease_s: Annotated[
        int | None,
        Field(ge=10, le=86_400, description="It is ended after so long without `POST /clusters/{id}/renew`"),
    ] = None
    volumes: Annotated[
        list[str],
        Field(default_factory=list, max_length=MOUNTS_MAX, description="NAME:/path, or NAME:/path:ro"),
    ]
    registry_login: Annotated[
        RegistryLoginBody | None,
        Field(description="For one pull of the image on each host, sealed to it; kept nowhere and never shown again"),
    ] = None

    def parsed(self) -> ClusterRequest:
        """The same as a value of the room."""
        return ClusterRequest(
            kind=self.kind,
            name=self.name,
            gpus=self.gpus,
            gpu_model=self.gpu_model,
            gpu_memory_bytes=None if self.gpu_memory_bytes is None else Bytes(self.gpu_memory_bytes),
            cpus=self.cpus,
            memory_bytes=None if self.memory_bytes is None else Bytes(self.memory_bytes),
            image=self.image,
            argv=tuple(self.argv),
            env=dict(self.env),
            ports=tuple(self.ports),
            await_files=self.await_files,
            host_id=None if self.host_id is None else HostId(self.host_id),
            tier=self.tier,
            runtime=self.runtime,
            simulated=self.simulated,
            slice=self.slice,
            max_price_per_hour=money_if("max_price_per_hour", self.max_price_per_hour),
            hosts=self.hosts,
            restart_members=self.restart_members,
            ssh_keys=tuple(key.strip() for key in self.ssh_keys),
            notebook=self.notebook,
            max_duration_ns=nanoseconds_of(self.max_duration_seconds),
            budget=money_if("budget", self.budget),
            idle_ns=nanoseconds_of(self.idle_seconds),
            client_lease_ns=nanoseconds_of(self.client_lease_s),
            volumes=tuple(parse_mount(one) for one in self.volumes),
        )


class ExecBody(Body):
    """One more command to run beside the work."""

    argv: Annotated[list[str], Field(min_length=1, max_length=256)]


class ResizeBody(Body):
    """How many hosts a Ray or Dask cluster is to have, and what all of them may cost."""

    hosts: Annotated[int, Field(ge=1, le=HOSTS_MAX)]
    max_price_per_hour: Annotated[str | None, Field(max_length=30, description="Of all of it; else as was asked")] = (
        None
    )
    registry_login: Annotated[RegistryLoginBody | None, Field(description="For the image, on new hosts")] = None


class StartBody(Body):
    """What all of it may cost now, and what was kept nowhere."""

    max_price_per_hour: Annotated[str | None, Field(max_length=30, description="Of all of it; else as was asked")] = (
        None
    )
    registry_login: Annotated[
        RegistryLoginBody | None, Field(description="For the image; to be given again where it was at the creation")
    ] = None


AccessName = Annotated[str, Field(max_length=128)]


class MeasuredAccess(Body):
    """How far an Access is from the renter."""

    id: AccessName
    rtt_ms: Annotated[float, Field(ge=0, le=RTT_MS_MAX, allow_inf_nan=False)]


class TunnelBody(Body):
    """Which TCP port of the workload to reach, and by which Access."""

    port: Annotated[int, Field(ge=1, le=65_535)]
    measured: Annotated[
        list[MeasuredAccess],
        Field(
            default_factory=list, max_length=LISTED_MAX, description="Round trips to `accesses` of an earlier answer"
        ),
    ]
    without: Annotated[
        list[AccessName],
        Field(default_factory=list, max_length=LISTED_MAX, description="Accesses that do not answer from here"),
    ]

    def wish(self) -> Wish:
        """The same as a value of the room."""
        rtts_ns = {one.id: int(one.rtt_ms * MILLISECOND) for one in self.measured}
        return Wish(rtts_ns, frozenset(self.without))


class FilesArrived(BaseModel):
    """What arrived at the host."""

    bytes: int
    files: int


def login_of(shown: RegistryLoginBody | None) -> RegistryLogin | None:
    """A registry's login in a request."""
    return None if shown is None else shown.parsed()


def nanoseconds_of(span_s: float | None) -> int | None:
    """A span in a request."""
    return None if span_s is None else int(span_s * SECOND)


def money_if(field: str, text: str | None) -> Microcents | None:
    """As `money_of`, where an amount was given."""
    return None if text is None else money_of(field, text)


def money_of(field: str, text: str) -> Microcents:
    """An amount in a request, 0 or more; InvalidInput for what is none."""
    try:
        amount = parse_money(text)
    except ValueError as error:
        raise InvalidInput(f"{field}: {error}.") from None
    if not 0 <= amount <= MONEY_MAX:
        raise InvalidInput(f"{field}: An amount of money is between 0 and {money_text(MONEY_MAX)}.")
    return amount


def attach(services: Services) -> None:
    """Wake the streams of a cluster, in every process, whenever it has changed."""
    services.clusters.on_change(lambda cluster_id: services.bus.publish(CLUSTER, cluster_id))


def _asked(services: Services, body: ClusterBody) -> ClusterRequest:
    """What is asked for, with the id of the host that it names."""
    asked = body.parsed()
    return asked if asked.host_id is None else replace(asked, host_id=HostId(host_of(services, asked.host_id)))


@router.post("/clusters/plan", responses=out_clusters.PLAN)
async def plan_cluster(services: Serving, principal: Asking, body: ClusterBody) -> Any:
    """What creating this would cost and where it would run now, or why not, host by host. Changes nothing."""
    return plan_json(await services.clusters.plan(principal, _asked(services, body)))


@router.post("/clusters", status_code=202, responses=out_clusters.ACCEPTED)
async def create_cluster(
    services: Serving,
    principal: Asking,
    body: ClusterBody,
    idempotency_key: Annotated[str | None, Header(max_length=200)] = None,
) -> Response:
    """Rent and start; the operation ends when it runs."""
    login = login_of(body.registry_login)
    operation, view = await services.clusters.create(principal, _asked(services, body), idempotency_key, login=login)
    return accepted(operation, {"cluster": cluster_json(view)})


@router.get("/clusters", responses=out_clusters.CLUSTERS)
async def clusters(services: Serving, principal: Asking, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """Clusters of the account (operators and auditors: of all), the latest first."""
    found = await services.clusters.list(principal, read_cursor(cursor) or None, limit + 1)
    return page(found, limit, cluster_json, lambda view: view.cluster.cluster_id)


@router.get("/clusters/{cluster_id}", responses=out_clusters.CLUSTER)
async def cluster(request: Request, services: Serving, principal: Asking, cluster_id: str) -> Response:
    """One cluster; the values of its environment are shown to its renter alone, here alone, and until it has ended."""
    view = await services.clusters.get(principal, ClusterId(cluster_id))
    # Cost and running time go on between versions: every receipt moves them.
    running_ns = sum(workload.running_ns for workload in view.workloads)
    shown = cluster_json(view, None if view.whole is None else view.whole.request.env)
    return tagged(request, shown, f"{view.cluster.version}-{view.cost}-{running_ns}-{_served(view)}")


@router.delete("/clusters/{cluster_id}", status_code=202, responses=out_clusters.ACCEPTED)
async def delete_cluster(
    services: Serving,
    principal: Asking,
    cluster_id: str,
    keep_results: Annotated[
        bool, Query(description="Bring in its log and what it changed, as if it had ended")
    ] = False,
) -> Response:
    """End it; safe to repeat, also when it is gone."""
    operation, view = await services.clusters.delete(principal, ClusterId(cluster_id), keeps_results=keep_results)
    return accepted(operation, {"cluster": cluster_json(view)})


@router.post("/clusters/{cluster_id}/renew", status_code=204)
async def renew_client_lease(services: Serving, principal: Asking, cluster_id: str) -> None:
    """Say that the client of a cluster still lives: asked for with `client_lease_s`, it ends when nobody says so for
    that long. Safe to repeat, and nothing for a cluster without such a lease or one that has ended."""
    await services.clusters.renew(principal, ClusterId(cluster_id))


@router.post("/clusters/{cluster_id}/stop", status_code=202, responses=out_clusters.ACCEPTED)
async def stop_cluster(services: Serving, principal: Asking, cluster_id: str) -> Response:
    """End its work, which then costs nothing, and keep it to be started again. Its files are gone. Safe to repeat."""
    operation, view = await services.clusters.stop(principal, ClusterId(cluster_id))
    return accepted(operation, {"cluster": cluster_json(view)})


@router.post("/clusters/{cluster_id}/start", status_code=202, responses=out_clusters.ACCEPTED)
async def start_cluster(
    services: Serving, principal: Asking, cluster_id: str, body: StartBody | None = None
) -> Response:
    """Rent and start anew what was stopped, wherever it fits now; `POST /clusters/plan` with its request says where and
    for how much. Refused as a creation is, it stays stopped. Safe to repeat."""
    asked = body or StartBody()
    most = money_if("max_price_per_hour", asked.max_price_per_hour)
    login = login_of(asked.registry_login)
    operation, view = await services.clusters.start(principal, ClusterId(cluster_id), most, login)
    return accepted(operation, {"cluster": cluster_json(view)})


@router.post("/clusters/{cluster_id}/resize", responses=out_clusters.CLUSTER)
async def resize_cluster(services: Serving, principal: Asking, cluster_id: str, body: ResizeBody) -> Any:
    """More or fewer hosts of a Ray or Dask cluster that runs, all or none; safe to repeat. New ones join in a while."""
    most = money_if("max_price_per_hour", body.max_price_per_hour)
    view = await services.clusters.resize(
        principal, ClusterId(cluster_id), body.hosts, most, login_of(body.registry_login)
    )
    return cluster_json(view)


@router.get("/clusters/{cluster_id}/explain", responses=out_clusters.EXPLANATION)
async def explain_cluster(services: Serving, principal: Asking, cluster_id: str) -> Any:
    """Why it runs where it runs, from the record of that decision."""
    return explanation_json(await services.clusters.explain(principal, ClusterId(cluster_id)))


@router.get("/clusters/{cluster_id}/box", responses=out_clusters.BOX)
async def cluster_box(services: Serving, principal: Asking, cluster_id: str) -> Response:
    """Where a box is entered, through tunnels to these ports, and with what; nulls where it is not."""
    view = await services.clusters.get_own(principal, ClusterId(cluster_id))
    return Json(box_json(view), headers={"Cache-Control": "no-store"})


@router.get("/clusters/{cluster_id}/stream", **out.STREAM)
async def cluster_stream(request: Request, services: Serving, principal: Asking, cluster_id: str) -> Response:
    """The cluster each time it changes (server-sent events)."""
    with contextlib.ExitStack() as leaving:
        # Listening begins before the reading: a change between the two would be told with the next one only.
        listener = leaving.enter_context(services.broadcaster.listen(f"cluster/{cluster_id}"))
        first = await services.clusters.get(principal, ClusterId(cluster_id))
        leaving.pop_all()
    return streaming.stream(request, _followed(services, principal, listener, first))


async def _followed(
    services: Services, principal: Principal, listener: sse.Listener, first: ClusterView
) -> AsyncGenerator[sse.Message]:
    # A waking only says that something changed: what is told is read then, so several changes are told as one.
    shown = cluster_json(first)
    with listener:
        yield sse.Message("cluster", shown, str(first.cluster.version))
        while True:
            try:
                woken = await listener.next(sse.COMMENT_S)
            except StopAsyncIteration:
                return
            if woken is None:
                yield sse.ALIVE
                continue
            view = await services.clusters.get(principal, first.cluster.cluster_id)
            fresh = cluster_json(view)
            if fresh != shown:
                shown = fresh
                yield sse.Message("cluster", shown, str(view.cluster.version))


# --- inside ---------------------------------------------------------------------------------------------------------


@router.get("/clusters/{cluster_id}/logs", **out.other("text/plain; charset=utf-8", "The log."))
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


@router.post("/clusters/{cluster_id}/exec", **out.other("application/x-ndjson", "Lines of JSON."))
async def execute(
    request: Request, services: Serving, principal: Asking, cluster_id: str, body: ExecBody, rank: Rank = 0
) -> Response:
    """Run one more command inside: lines of JSON with its output, the last one with its exit code or an error."""
    pieces = await services.inside.execute(principal, ClusterId(cluster_id), tuple(body.argv), rank)

    async def lines() -> AsyncGenerator[bytes]:
        async for part in pieces:
            yield json.dumps(_exec_json(part, cluster_id), separators=(",", ":")).encode() + b"\n"

    safe = {"Cache-Control": "no-store"}
    return streaming.Lasting(request, lines(), media_type="application/x-ndjson", headers=safe)


@router.post("/clusters/{cluster_id}/tunnels", status_code=201, responses=out_clusters.TUNNEL)
async def open_tunnel(
    request: Request, services: Serving, principal: Asking, cluster_id: str, body: TunnelBody
) -> Response:
    """Have the host open a tunnel to a port of the workload. Connect to `address` with TLS (server name `server_name`,
    authority `ca_pem`) before `expires_at`, ask for an upgrade to `protocol`, and show `grant` as bearer, once. After
    the 101 end this TLS, shake hands with the host on the same connection (its certificate: `host_pem`, its name:
    `host_server_name`), and send `secret`. It goes by the host's Access, unless another is clearly nearer in sum by
    what both measured, or that one is in `without`: if the Access does not answer, ask once more without it."""
    is_allowed = partial(streaming.is_allowed, request)
    ticket = await services.tunnels.open(principal, ClusterId(cluster_id), body.port, is_allowed, body.wish())
    return Json(tunnel_json(ticket), 201, headers={"Cache-Control": "no-store"})


@router.put("/clusters/{cluster_id}/files", response_model=FilesArrived)
async def put_files(
    request: Request, services: Serving, principal: Asking, cluster_id: str, commit: bool = False
) -> Any:
    """Unpack a tar stream into the working folder; `commit=true` starts work that waits for its files."""
    sent = await services.inside.send_files(principal, ClusterId(cluster_id), request.stream(), commit=commit)
    return {"bytes": sent.size_bytes, "files": sent.files}


@router.get("/clusters/{cluster_id}/files", **out.other("application/x-tar", "The folder.", is_binary=True))
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
    return streaming.Lasting(request, _until_broken(pieces), media_type="application/x-tar", headers=headers)


async def _until_broken(pieces: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """What comes of a folder before its host is lost; who reads sees that its archive has no end."""
    async with contextlib.aclosing(pieces):
        with contextlib.suppress(WindrowError):
            async for piece in pieces:
                yield piece


def _served(view: ClusterView) -> str:
    """What of a service changes without a version: where it is found, and what it carried."""
    return format(crc32(repr((dict(view.urls), view.traffic)).encode()), "08x")


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
