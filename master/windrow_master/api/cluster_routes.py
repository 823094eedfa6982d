"""Routes of clusters: plan, create, read, follow, stop, start, delete, and what goes on inside: log, exec, files."""

import contextlib
from collections.abc import AsyncGenerator, Mapping
from typing import Annotated, Any
from zlib import crc32

from fastapi import Depends, Header, Query, Request, Response
from pydantic import Field

from windrow_master.api import answers, sse, streaming
from windrow_master.api.answers import Amount, Isolated, Money, OperationOut, Out, Read, Time
from windrow_master.api.auth import Reach, Repeat
from windrow_master.api.bodies import (
    Body,
    GivenMoney,
    RegistryLoginBody,
    login_of,
    money_if,
)
from windrow_master.api.deps import Asking, Services, Serving
from windrow_master.api.event_tail import CLUSTER
from windrow_master.api.names import with_host, with_region
from windrow_master.api.paging import (
    Cursor,
    Json,
    Limit,
    accepted,
    page,
    read_cursor,
    tagged,
    time_or_none,
)
from windrow_master.api.queue_routes import QueuedOut, queued_tag, standing_json
from windrow_master.api.refusals import RefusalOut
from windrow_master.api.request_shapes import answer_of, body_of, filters_of, parsed
from windrow_master.api.route import Routes
from windrow_master.api.sharing import ShareKind
from windrow_master.api.try_shapes import TryOut, tries_of, tries_tag
from windrow_master.clusters.kinds import box
from windrow_master.clusters.model import HOSTS_MAX, ClusterPhase, ClusterRequest, NetworkMode, Template
from windrow_master.clusters.request import check_new_name
from windrow_master.clusters.views import ClusterView
from windrow_master.identity.decide import Permission
from windrow_master.identity.model import Principal
from windrow_master.identity.object_shares import Level
from windrow_master.market.metering import SILENCE_GRACE_NS
from windrow_master.placement import reasons
from windrow_master.placement.model import Decision
from windrow_master.spec import DURATION_MAX_NS
from windrow_proto.ids import ClusterId
from windrow_proto.model import Isolation
from windrow_proto.service_names import forward_host
from windrow_proto.units import SECOND, money_text, seconds, time_text

route = Routes("clusters")

Wanted = Annotated[Mapping[str, str], Depends(filters_of(ClusterRequest))]
"""The values of fields that each item of a list was asked for with."""


@body_of(ClusterRequest)
class ClusterBody(Body):
    """A cluster to create: its hardware and its program. `simulated` asks for simulated hosts; without it only real
    ones serve."""

    registry_login: Annotated[
        RegistryLoginBody | None,
        Field(description="For one pull of the image on each host, sealed to it; kept nowhere and never shown again"),
    ] = None

    def parsed(self) -> ClusterRequest:
        """The same as a value of the package."""
        return parsed(self, ClusterRequest)


class ResizeBody(Body):
    """The new number of hosts of a Ray or Dask cluster, and the price limit of all of them."""

    hosts: Annotated[int, Field(ge=1, le=HOSTS_MAX)]
    max_price_per_hour: Annotated[GivenMoney | None, Field(description="Of all of it; else as was asked")] = None
    registry_login: Annotated[RegistryLoginBody | None, Field(description="For the image, on new hosts")] = None


class ExtendBody(Body):
    """The new longest running time of a cluster."""

    max_duration_seconds: Annotated[
        int, Field(ge=1, le=DURATION_MAX_NS // SECOND, description="Since its start, not from now")
    ]


class StartBody(Body):
    """The price limit of a new start, and the secrets that were kept nowhere."""

    max_price_per_hour: Annotated[GivenMoney | None, Field(description="Of all of it; else as was asked")] = None
    registry_login: Annotated[
        RegistryLoginBody | None, Field(description="For the image; to be given again where it was at the creation")
    ] = None


def attach(services: Services) -> None:
    """Wake the streams of a cluster, in every process, whenever it has changed."""
    services.clusters.on_change(lambda cluster_id: services.bus.publish(CLUSTER, cluster_id))


async def _asked(services: Services, principal: Principal, body: ClusterBody) -> ClusterRequest:
    """Return the request of a new cluster, with the id of the host, and the region of the volume, that it names."""
    asked = body.parsed()
    check_new_name(asked.name)
    return await with_region(services, principal, with_host(services, asked))


class StepOut(Out):
    """One step of a cluster's way."""

    at: Time
    name: str
    progress: Annotated[
        float | None,
        Field(description="From 0 to 1"),
        Read(lambda step: None if step.progress_permille is None else step.progress_permille / 1000),
    ]
    detail: str | None
    member: Annotated[str | None, Field(description="Whose step it is, of a cluster of several members")]


class ResultsOut(Out):
    """The results that are kept of work that has ended by itself."""

    kept_at: Time
    log_bytes: Annotated[int | None, Field(description="Null: its log could not be had")]
    files_bytes: Annotated[
        int | None, Field(description="Of a tar of the files that it changed; null: they could not be had")
    ]
    problem: Annotated[str | None, Field(description="What is missing of it, by name, and why")]


class WorkloadOut(Out):
    """The part of a cluster that runs on one host."""

    id: Annotated[str, Read("workload_id")]
    host_id: str
    host_name: str
    phase: str
    is_lost: Annotated[bool, Read(lambda workload: workload.lost_since_ns is not None)]
    detail: str | None
    runtime: str
    image: str | None
    slots: Annotated[list[str], Read(lambda workload: [slot.slot_id for slot in workload.slots])]
    isolation: Annotated[
        Isolated, Read(lambda workload: max((slot.isolation for slot in workload.slots), default=Isolation.UNSPECIFIED))
    ]
    exit_code: int | None
    ports: dict[str, int]
    running_s: Annotated[
        float,
        Field(description="Signed by the host, in seconds"),
        Read(lambda workload: round(seconds(workload.running_ns), 3)),
    ]
    rank: Annotated[int, Field(description="Which member it is; 0 where there is only one")]
    address: Annotated[str | None, Field(description="Where the other members reach it; null where there are none")]
    is_member: Annotated[bool, Field(description="False once another has its rank, or is to have it")]
    results: Annotated[
        ResultsOut | None, Field(description="Null until its command has ended by itself and they are brought in")
    ]


@answer_of(ClusterRequest)
class KeptRequestOut(Out):
    """The request for a cluster; a field that was not given is null."""


class TrafficOut(Out):
    """The traffic of a service over HTTPS, without connections under way; or the traffic between the members of a
    private network, as one of each two counts it, and how often such two were joined. Written every ten seconds."""

    connections: int
    bytes_in: int
    bytes_out: int


class NetworkOut(Out):
    """The network by which members on several hosts reach each other."""

    mode: Annotated[str, Field(description="direct, or tunnels: in a private network, through relays")]
    reason: str
    cords: Annotated[int, Field(description="Of a private network: the pairs of members that are to be joined")]
    cords_up: Annotated[int, Field(description="Those of them that are")]
    problem: Annotated[str | None, Field(description="Why one of them is not")]


class ClusterOut(Out):
    """A cluster with its workloads."""

    id: Annotated[str, Read("cluster_id")]
    name: str
    forward_host: Annotated[
        str,
        Field(description="The name of its forwarded ports on a renter's machine"),
        Read(lambda cluster: forward_host(cluster.name, cluster.cluster_id)),
    ]
    account_id: str
    kind: str
    phase: str
    reason: str | None
    problem: Annotated[str | None, Field(description="While it runs: which of its hosts does not answer now")]
    queue: Annotated[
        QueuedOut | None, Field(description="Its place in the queue; null in lists, and once it does not wait")
    ]
    tries: Annotated[list[TryOut] | None, Field(description="Places elsewhere that were tried; null in lists")]
    steps: list[StepOut]
    workloads: list[WorkloadOut]
    request: KeptRequestOut
    urls: Annotated[
        dict[str, str],
        Field(description="Of a service, by port: where anybody who knows the address reaches it. Tell it as you like"),
    ]
    traffic: TrafficOut
    network: Annotated[NetworkOut | None, Field(description="Null where there are not several hosts")]
    tier: Annotated[
        str | None, Field(description="Null while it waits for its place"), Read(lambda cluster: cluster.tier or None)
    ]
    price_per_hour: Annotated[Amount, Read(lambda cluster: cluster.price_per_hour if cluster.tier else None)]
    cost_so_far: Annotated[Amount, Field(description="Of all its runs")]
    started_at: Annotated[Time | None, Field(description="Of its present run, from its start to its stop")]
    ended_at: Time | None
    ends_at: Annotated[Time | None, Field(description="When its duration or its budget ends it; null: neither does")]
    client_lease_ends_at: Annotated[
        Time | None, Field(description="When it ends unless its client renews; null: it goes on without a client")
    ]
    created_at: Time
    rental_id: Annotated[
        str | None,
        Field(description="Of its present run, or of the last one"),
        Read(lambda cluster: cluster.rental_id or None),
    ]
    first_port: Annotated[int | None, Field(description="Of its block of ports on its hosts; null where it has none")]
    restarts: Annotated[int, Field(description="How often members were replaced")]
    needs_login: Annotated[bool, Field(description="Whether to start it again takes its image's registry login")]
    version: int


class ClusterAcceptedOut(Out):
    """A cluster, and the operation that makes or ends it."""

    operation: OperationOut
    cluster: ClusterOut


class PlacedOut(Out):
    """The place where a request runs or would run, and its price."""

    host_id: str
    host_name: str
    slots: Annotated[list[str], Read("slot_ids")]
    tier: str
    runtime: str
    image: str | None
    price_per_hour: Money
    note: Annotated[str, Field(description="What there is to know of this way there; empty: nothing")]


class PlanOut(Out):
    """The outcome of creating a cluster now."""

    fits: Annotated[bool, Read(lambda preview: preview.chosen is not None)]
    fits_soon: Annotated[
        bool,
        Field(description="It does not fit now, but will with a card that is back in a moment"),
        Read(lambda preview: preview.refusal is not None and preview.refusal.is_soon),
    ]
    placement: Annotated[list[PlacedOut], Read("members")]
    tested: Annotated[
        list[str],
        Field(description="Ids of those hosts that the market tests now; that ends for it"),
        Read("proofs_on"),
    ]
    price_per_hour: Annotated[
        Amount, Read(lambda preview: sum(one.price_per_hour for one in preview.members) if preview.members else None)
    ]
    hold: Annotated[Amount, Field(description="What would be set aside first, a decimal amount of money")]
    balance: Money
    refusal: Annotated[RefusalOut | None, Field(description="Why nothing fits, and what would; null where it fits")]


class WeightsOut(Out):
    """The weight of each term of a score; terms are from 0 to 1000."""

    cost: int
    packing: int
    trust: int
    home: int
    grade: int


class ChosenOut(PlacedOut):
    """The best host."""

    score: int | None
    terms: dict[str, int]


class LoserOut(Out):
    """A host that was not chosen."""

    host: Annotated[str, Read("host_name")]
    host_id: str
    reason: Annotated[
        str, Read(lambda verdict: verdict.reason or "it fits, with a lower score or a later turn among equals")
    ]
    score: Annotated[int | None, Field(description="Null where it does not fit")]
    terms: dict[str, int]


class ExplanationOut(Out):
    """The reasons for the place of a cluster, from the record of that decision."""

    decision: Annotated[str, Field(description="The same in a sentence")]
    weights: WeightsOut
    chosen: ChosenOut | None
    others_chosen: Annotated[
        list[PlacedOut], Field(description="Beside the best one, of several hosts"), Read("others")
    ]
    losers: Annotated[list[LoserOut], Field(description="The best of those that were looked at, best first")]
    others: Annotated[
        dict[str, int], Field(description="How many more were looked at, by what was said of them"), Read("unkept")
    ]


class BoxOut(Out):
    """The ways by which a renter enters a box; each is null where it is not, also for what is no box."""

    ssh_port: Annotated[int | None, Field(description="Where its SSH server listens, for the keys of the request")]
    notebook_port: Annotated[int | None, Field(description="Where Jupyter listens")]
    notebook_token: Annotated[str | None, Field(description="With which Jupyter is opened: ?token= in its address")]


@route.post("/clusters/plan", may=Permission.RENT, answer=PlanOut)
async def plan_cluster(services: Serving, principal: Asking, body: ClusterBody) -> Any:
    """The price and the place of a cluster if it were created now, or the reason of each host against it. Changes
    nothing."""
    return PlanOut.of(await services.clusters.plan(principal, await _asked(services, principal, body)))


@route.post("/clusters", may=Permission.RENT, repeat=Repeat.REPEATABLE, status_code=202, answer=ClusterAcceptedOut)
async def create_cluster(
    services: Serving,
    principal: Asking,
    body: ClusterBody,
    idempotency_key: Annotated[str | None, Header(max_length=200)] = None,
) -> Response:
    """Rent and start; the operation ends when it runs. With `wait_seconds` it is Queued where there is no place now."""
    login = login_of(body.registry_login)
    asked = await _asked(services, principal, body)
    operation, view = await services.clusters.create(principal, asked, idempotency_key, login=login)
    return accepted(operation, {"cluster": cluster_json(view)})


@route.get("/clusters", may=Permission.RENT_READ, answer=answers.Page[ClusterOut])
async def clusters(
    services: Serving,
    principal: Asking,
    wanted: Wanted,
    tests: answers.Tests = False,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Any:
    """Clusters of the account (operators and auditors: of all), the latest first."""
    before = read_cursor(cursor) or None
    found = await services.clusters.list(principal, before, limit + 1, wanted, with_tests=tests)
    return page(found, limit, cluster_json, lambda view: view.cluster.cluster_id)


@route.get(
    "/clusters/{cluster_id}", may=Permission.RENT_READ, reach=Reach.OWN_OR_OVERSEEN, shared=Level.SEE, answer=ClusterOut
)
async def cluster(request: Request, services: Serving, principal: Asking, cluster_id: str) -> Response:
    """One cluster; the values of its environment are shown to its renter alone, here alone, and until it has ended."""
    view = await services.clusters.get(principal, ClusterId(cluster_id))
    # Cost and running time go on between versions: every receipt moves them.
    running_ns = sum(workload.running_ns for workload in view.workloads)
    queued, tries = await _queued(services, principal, view), await tries_of(services, view.cluster.cluster_id)
    shown = cluster_json(view, None if view.whole is None else view.whole.request.env, queued, tries)
    tag = f"{view.cluster.version}-{view.cost}-{running_ns}-{_served(view)}-{queued_tag(queued)}-{tries_tag(tries)}"
    return tagged(request, shown, tag)


async def _queued(services: Services, principal: Principal, view: ClusterView) -> Mapping[str, Any] | None:
    is_queued = view.cluster.phase is ClusterPhase.QUEUED
    return await standing_json(services, principal, view.cluster.cluster_id) if is_queued else None


@route.delete(
    "/clusters/{cluster_id}",
    may=Permission.RENT,
    reach=Reach.OWN_OR_OPERATED,
    shared=Level.MANAGE,
    status_code=202,
    answer=ClusterAcceptedOut,
)
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


@route.post(
    "/clusters/{cluster_id}/renew",
    may=Permission.RENT,
    reach=Reach.OWN,
    shared=Level.MANAGE,
    repeat=Repeat.ALWAYS,
    status_code=204,
)
async def renew_client_lease(services: Serving, principal: Asking, cluster_id: str) -> None:
    """Say that the client of a cluster still lives: asked for with `client_lease_s`, it ends when nobody says so for
    that long. Safe to repeat, and nothing for a cluster without such a lease or one that has ended."""
    await services.clusters.renew(principal, ClusterId(cluster_id))


@route.post(
    "/clusters/{cluster_id}/stop",
    may=Permission.RENT,
    reach=Reach.OWN,
    shared=Level.MANAGE,
    repeat=Repeat.REPEATABLE,
    status_code=202,
    answer=ClusterAcceptedOut,
)
async def stop_cluster(services: Serving, principal: Asking, cluster_id: str) -> Response:
    """End its work, which then costs nothing, and keep it to be started again. Its files are gone. Safe to repeat."""
    operation, view = await services.clusters.stop(principal, ClusterId(cluster_id))
    return accepted(operation, {"cluster": cluster_json(view)})


@route.post(
    "/clusters/{cluster_id}/start",
    may=Permission.RENT,
    reach=Reach.OWN,
    shared=Level.MANAGE,
    repeat=Repeat.REPEATABLE,
    status_code=202,
    answer=ClusterAcceptedOut,
)
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


@route.post(
    "/clusters/{cluster_id}/resize", may=Permission.RENT, reach=Reach.OWN, shared=Level.MANAGE, answer=ClusterOut
)
async def resize_cluster(services: Serving, principal: Asking, cluster_id: str, body: ResizeBody) -> Any:
    """More or fewer hosts of a Ray or Dask cluster that runs, all or none; safe to repeat. New ones join in a while."""
    most = money_if("max_price_per_hour", body.max_price_per_hour)
    view = await services.clusters.resize(
        principal, ClusterId(cluster_id), body.hosts, most, login_of(body.registry_login)
    )
    return cluster_json(view)


@route.post(
    "/clusters/{cluster_id}/extend", may=Permission.RENT, reach=Reach.OWN, repeat=Repeat.ALWAYS, answer=ClusterOut
)
async def extend_cluster(services: Serving, principal: Asking, cluster_id: str, body: ExtendBody) -> Any:
    """Let a running cluster that was given a longest running time run for longer; safe to repeat."""
    duration_ns = body.max_duration_seconds * SECOND
    return cluster_json(await services.clusters.extend(principal, ClusterId(cluster_id), duration_ns))


@route.get(
    "/clusters/{cluster_id}/explain",
    may=Permission.RENT_READ,
    reach=Reach.OWN_OR_OVERSEEN,
    shared=Level.SEE,
    answer=ExplanationOut,
)
async def explain_cluster(services: Serving, principal: Asking, cluster_id: str) -> Any:
    """The reasons for the place of a cluster, from the record of that decision."""
    return explanation_json((await services.clusters.explain(principal, ClusterId(cluster_id)))[1])


@route.get("/clusters/{cluster_id}/box", may=Permission.RENT, reach=Reach.OWN, shared=Level.USE, answer=BoxOut)
async def cluster_box(services: Serving, principal: Asking, cluster_id: str) -> Response:
    """The addresses of a box, through tunnels to these ports, and the secrets to enter it with; null where there is
    none."""
    view = await services.clusters.get_own(principal, ClusterId(cluster_id))
    return Json(box_json(view), headers={"Cache-Control": "no-store"})


@route.get(
    "/clusters/{cluster_id}/stream",
    may=Permission.RENT_READ,
    reach=Reach.OWN_OR_OVERSEEN,
    shared=Level.SEE,
    share=ShareKind.STREAMS,
    **answers.STREAM,
)
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
    shown = cluster_json(first, queued=await _queued(services, principal, first))
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
            fresh = cluster_json(view, queued=await _queued(services, principal, view))
            if fresh != shown:
                shown = fresh
                yield sse.Message("cluster", shown, str(view.cluster.version))


def _served(view: ClusterView) -> str:
    """Return the parts that change without a version: where a service is found, what it carried, silent hosts."""
    return format(crc32(repr((dict(view.urls), view.traffic, _problem(view))).encode()), "08x")


def _problem(view: ClusterView) -> str | None:
    """Return which hosts do not answer now, and what that means for the work and its price."""
    said = [f"{name} since {time_or_none(at_ns) or 'it joined'}" for name, at_ns in sorted(view.silent_hosts.items())]
    if not said:
        return None
    most = SILENCE_GRACE_NS // SECOND
    return f"Not heard from: {', '.join(said)}. The work may go on there; at most {most} s of this silence are charged."


def cluster_json(
    view: ClusterView,
    env: Mapping[str, str] | None = None,
    queued: Mapping[str, Any] | None = None,
    tries: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """A cluster with its workloads. env: the values that may be shown. queued: its entry of the queue. tries: the
    places elsewhere that were tried."""
    return ClusterOut.of(
        view.cluster,
        problem=_problem(view),
        queue=queued,
        tries=tries,
        workloads=[WorkloadOut.of(workload) for workload in view.workloads],
        request=_request_json(view.cluster.request, env or {}),
        urls={str(port): url for port, url in view.urls.items()},
        traffic=TrafficOut.of(view.traffic),
        network=_network_json(view),
        cost_so_far=money_text(view.cost),
        ends_at=time_or_none(view.ends_at_ns),
        client_lease_ends_at=time_or_none(view.client_lease_ends_at_ns),
    )


def template_json(template: Template, *, shows_env: bool = True) -> dict[str, Any]:
    """A template, whose request is what `POST /clusters` takes."""
    return {
        "name": template.name,
        "request": _request_json(template.request, template.request.env if shows_env and not template.sealed else {}),
        "saved_at": time_text(template.saved_at_ns),
    }


def _network_json(view: ClusterView) -> dict[str, Any] | None:
    if view.cluster.network is NetworkMode.NONE:
        return None
    return {
        "mode": view.cluster.network.value,
        "reason": view.cluster.network_reason,
        "cords": len(view.peer_links),
        "cords_up": sum(view.peer_links),
        "problem": view.peer_link_problem or None,
    }


def box_json(view: ClusterView) -> dict[str, Any]:
    """Return the ways by which its renter, and nobody else, enters a box."""
    runtime = view.workloads[0].runtime if view.workloads else ""
    found = box.entry_ports(view.cluster, runtime)
    return {
        "ssh_port": found.ssh_port,
        "notebook_port": found.notebook_port,
        "notebook_token": None if found.notebook_port is None else box.token(view.whole or view.cluster),
    }


def explanation_json(decision: Decision) -> dict[str, Any]:
    """Return the reasons for the place of a cluster, and those against the other hosts."""
    chosen = decision.chosen
    taken = {member.host_id for member in (chosen, *decision.others) if member is not None}
    winner = next((v for v in decision.verdicts if chosen is not None and v.host_id == chosen.host_id), None)
    found = None
    if chosen is not None and winner is not None:
        found = ChosenOut.of(chosen, score=winner.score, terms=dict(winner.terms))
    return ExplanationOut.of(
        decision,
        decision=next(iter(reasons.here(decision)), "Nothing fits."),
        chosen=found,
        losers=[LoserOut.of(verdict) for verdict in decision.verdicts if verdict.host_id not in taken],
    )


def _request_json(request: ClusterRequest, env: Mapping[str, str]) -> dict[str, Any]:
    return KeptRequestOut.of(request, env={name: env.get(name) for name in request.env})
