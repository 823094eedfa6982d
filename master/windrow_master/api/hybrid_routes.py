"""Routes of the router: where a workload should run, what it would cost there, and why."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from windrow_master.api import answers
from windrow_master.api.answers import Money, Out, Read, Time
from windrow_master.api.auth import Reach
from windrow_master.api.bodies import Body
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.model_studio_routes import Id, Status
from windrow_master.api.paging import Cursor, Limit, page, read_cursor
from windrow_master.api.route import Routes
from windrow_master.api.services import Services
from windrow_master.hybrid.analysis import CODE_MAX, Analysis
from windrow_master.hybrid.kept import KeptRoute
from windrow_master.hybrid.model import Resource
from windrow_master.hybrid.places import NOT_BOUND, price_of, wanted_of
from windrow_master.hybrid.routing import Place, Work
from windrow_master.hybrid.service import Routed, completed
from windrow_master.identity.decide import Permission, is_allowed
from windrow_master.jobs.model import Attempt, JobState
from windrow_master.jobs.service import JobView
from windrow_proto.errors import Forbidden, InvalidInput
from windrow_proto.ids import HostId
from windrow_proto.units import HOUR, MICROCENTS_PER_UNIT, Microcents, money_text

route = Routes("routing")

BODY_MAX = 4 * CODE_MAX
"""A program as JSON, where each character may be escaped."""

Text = Annotated[str, Field(min_length=1, max_length=256)]
Hours = Annotated[float, Field(gt=0, le=8_760)]
Usd = Annotated[float, Field(ge=0, le=1e6)]
Confidence = Literal["high", "medium", "low"]


class RequirementsBody(Body):
    """Requirements of the workload."""

    gpu_count: Annotated[int, Field(ge=0, le=1_024, description="GPUs of one host; default: 1")] | None = None
    cpu_count: Annotated[int, Field(ge=1, le=4_096, description="Processors; default: 1")] = 1
    gpu: Annotated[Text | None, Field(description="Model or class, such as NVIDIA A100 or h100; default: any")] = None
    gpu_memory_gb: Annotated[
        float | None,
        Field(gt=0, le=1e4, description="Of one GPU, in GiB; default: as its model needs, or any"),
    ] = None
    duration_hours_estimated: Annotated[Hours | None, Field(description="Without it there is no total")] = None
    checkpoint_frequency_minutes: Annotated[float | None, Field(gt=0, le=1e5)] = None
    interruptible: Annotated[bool, Field(description="It may be moved while it runs, so that spot is allowed")] = False
    max_cost_usd: Usd | None = None
    dataset_size_gb: Annotated[float, Field(ge=0, le=1e7, description="To be brought there, 10**9 bytes")] = 0.0
    results_size_gb: Annotated[float, Field(ge=0, le=1e7, description="To be brought home, 10**9 bytes")] = 0.0
    framework: Annotated[Text | None, Field(description="Default: what the program imports")] = None
    countries: Annotated[
        tuple[Annotated[str, Field(pattern="^[A-Z]{2}$")], ...],
        Field(max_length=300, description="Where the data centre may be, ISO 3166-1; empty: anywhere"),
    ] = ()


class PreferencesBody(Body):
    """How to order the places, and which providers to compare."""

    optimize_for: Literal["balanced", "cost", "speed"] = "balanced"
    allowed_backends: Annotated[list[Text] | None, Field(max_length=100, description="Providers; null: all")] = None


class ConstraintsBody(BaseModel):
    """Limits of a task intent of Model Studio. preferred_provider prefers; required_provider refuses all others."""

    model_config = ConfigDict(extra="forbid", strict=True)

    max_cost_per_hour_usd: Usd | None = None
    preferred_provider: Text | None = None
    required_provider: Text | None = None
    required_gpu_count: Annotated[int, Field(ge=0, le=1_024)] | None = None


class RouteBody(Body):
    """A workload: its program, what it needs, and what matters. The fields from task_name on are those of a task intent
    of Model Studio, which is taken as it is."""

    code: Annotated[str | None, Field(description=f"A Python program; {CODE_MAX >> 20} MiB are read, none is run")] = (
        None
    )
    requirements: RequirementsBody = RequirementsBody()
    preferences: PreferencesBody = PreferencesBody()
    keep: Annotated[bool, Field(description="Keep the answer, so that a job can follow it by `route_id`")] = False
    task_name: Annotated[
        Text | None, Field(description="Without a duration, it runs as long as your jobs of this name took")
    ] = None
    ml_task: Text | None = None
    compute_preference: Literal["auto", "on-premise", "cloud", "edge"] = "auto"
    constraints: ConstraintsBody = ConstraintsBody()


class FactOut(Out):
    """One thing that the program says."""

    name: str
    value: str
    line: Annotated[int, Field(description="Counted from 1")]
    confidence: Confidence


class AnalysisOut(Out):
    """Facts found in the program. `reason` is set if the program could not be read."""

    facts: list[FactOut]
    reason: str | None
    gpu_memory_gb: Annotated[float | None, Read("gpu_memory_gib"), Field(description="A guess by the model's name")]


class CostOut(Out):
    """Estimated cost of the run; 8 of 10 runs cost between `low` and `high`. Without a duration these are null."""

    hourly: Annotated[Money, Read("place.per_hour")]
    total: Annotated[Money | None, Read(lambda one: one.cost and one.cost.total)]
    low: Annotated[Money | None, Read(lambda one: one.cost and one.cost.low)]
    high: Annotated[Money | None, Read(lambda one: one.cost and one.cost.high)]
    currency: Annotated[str, Read(lambda _: "USD")]
    as_of: Annotated[str | None, Read("place.as_of"), Field(description="The day of the price; null: today's")]
    source: Annotated[str, Read("place.source")]
    confidence: Confidence


class WaitOut(Out):
    """Seconds until the program starts."""

    p50: Annotated[float, Read(lambda place: place.start_s[0])]
    p90: Annotated[float, Read(lambda place: place.start_s[1])]


def _status(place: Place) -> str:
    return "limited" if place.not_usable else "available"


class AvailabilityOut(Out):
    """Availability of a place: whether it can be used now, and how long a program waits there before it starts."""

    status: Annotated[Literal["available", "limited"], Read(lambda place: _status(place))]
    wait_seconds: Annotated[WaitOut, Read(lambda place: place)]


class TermsOut(Out):
    """The terms of the score, each from 0 to 1."""

    locality: Annotated[float, Read(lambda terms: terms["locality"])]
    availability: Annotated[float, Read(lambda terms: terms["availability"])]
    cost: Annotated[float, Read(lambda terms: terms["cost"])]
    latency: Annotated[float, Read(lambda terms: terms["latency"])]


class RecommendationOut(Out):
    """A place that could do the work."""

    backend: Annotated[str, Read("place.backend")]
    provider: Annotated[str, Read("place.provider")]
    offer: Annotated[str, Read("place.offer")]
    host: Annotated[str | None, Read("place.host"), Field(description="The id of the host that it is bound to")]
    gpu: Annotated[str | None, Read("place.gpu")]
    gpu_count: Annotated[int, Read("place.gpu_count")]
    usable: Annotated[bool, Read(lambda one: not one.place.not_usable), Field(description="It can be chosen now")]
    buys: Annotated[
        str | None,
        Read(lambda one: one.place.buys or None),
        Field(description="The backend where your project may have a machine for it bought: `backend` of a job"),
    ]
    score: Annotated[float, Field(description="0 to 100")]
    terms: Annotated[TermsOut, Read("terms")]
    cost_estimate: Annotated[CostOut, Read(lambda one: one)]
    availability: Annotated[AvailabilityOut, Read("place")]
    pros: list[str]
    cons: list[str]


class RefusedOut(Out):
    """A place that cannot do the work, and why."""

    backend: Annotated[str, Read("place.backend")]
    provider: Annotated[str, Read("place.provider")]
    offer: Annotated[str, Read("place.offer")]
    price_per_hour: Annotated[Money, Read("place.per_hour")]
    reason: str


class RouteOut(Out):
    """The places for a workload, the best first."""

    route_id: Annotated[str | None, Field(description="Null: the answer was not kept")]
    chosen: Annotated[str | None, Field(description="The best that can be used now")]
    recommendations: list[RecommendationOut]
    refused: list[RefusedOut]
    analysis: Annotated[AnalysisOut | None, Field(description="Null: no program was sent")]


class ForecastOut(Out):
    """A kept route: what was forecast of the place that was taken, and what the job that followed it has cost."""

    route_id: str
    at: Annotated[Time, Read("at_ns")]
    chosen: str | None
    backend: Annotated[
        str | None,
        Read(lambda one: one.taken and one.taken.place.backend),
        Field(description="The place that the job took; without a job, the chosen one"),
    ]
    hours: Annotated[float | None, Field(description="Expected length of the run")]
    cost_estimate: Annotated[CostOut | None, Read("taken")]
    job_id: Annotated[str | None, Field(description="The first job that followed it; of an array, its first")]
    job_state: str | None
    cost: Annotated[Money | None, Field(description="Charged for that job so far")]
    hours_taken: Annotated[float | None, Field(description="Running time of all its attempts so far")]
    held: Annotated[
        bool | None,
        Field(
            description="Whether the job, which succeeded, cost from `low` to `high`; null: not known, or it is free"
        ),
    ]


class KeptRouteOut(ForecastOut):
    """The same, with the answer as it was given, but for what its program says."""

    route: RouteOut


class BindingBody(Body):
    """The host that is to run a resource's work."""

    host: Annotated[str, Field(min_length=1, max_length=64, description="Its id")]
    dedicated: Annotated[bool, Field(description="It takes no work but its owner's, who alone can ask for it")] = False


class BindingOut(Out):
    """The host that runs a resource's work, its status and its price."""

    resource_id: str
    declared_status: Annotated[Status, Read("declared.status")]
    status: Annotated[Status, Field(description="The sterner of the declared one and what the host shows")]
    host: Annotated[str | None, Read("bound_host"), Field(description="Id of the host; null: nothing runs on it")]
    host_name: Annotated[str | None, Read(lambda one: one.seen and one.seen.name)]
    dedicated: Annotated[bool, Read(lambda one: one.dedicated_to is not None), Field(description="Its owner's alone")]
    running: Annotated[int, Read(lambda one: one.seen.running if one.seen else 0), Field(description="Clusters on it")]
    reason: Annotated[str | None, Read(lambda one: None if one.bound_host else NOT_BOUND)]
    price_per_hour: Annotated[Money | None, Field(description="In USD; null: nobody knows")]
    price_source: str | None


@route.get("/resources", may=Permission.FLEET_READ, answer=answers.Page[BindingOut])
async def resource_bindings(services: Serving, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """The host of each registered resource, with status and price. Ordered by registration."""
    last = read_cursor(cursor)
    found = await services.registry.page(int(last) if last.isdecimal() else 0, limit + 1)
    return page(found, limit, lambda one: _bound(services, one), lambda one: str(one.number))


@route.get("/resources/{resource_id}", may=Permission.FLEET_READ, reach=Reach.ALL, answer=BindingOut)
async def resource_binding(services: Serving, resource_id: Id) -> Any:
    """The host that runs a resource's work, its status, and the price of an hour with its source."""
    return _bound(services, await services.registry.get(resource_id))


@route.put("/resources/{resource_id}/binding", may=Permission.RESOURCES, reach=Reach.ALL, answer=BindingOut)
async def bind_resource(services: Serving, principal: Asking, resource_id: Id, body: BindingBody) -> Any:
    """Let a host of this market run the resource's work, instead of the one that is bound now."""
    return _bound(
        services, await services.registry.bind(principal, resource_id, HostId(body.host), dedicated=body.dedicated)
    )


@route.delete("/resources/{resource_id}/binding", may=Permission.RESOURCES, reach=Reach.ALL, answer=BindingOut)
async def unbind_resource(services: Serving, principal: Asking, resource_id: Id) -> Any:
    """Let no host run the resource's work; what runs goes on."""
    return _bound(services, await services.registry.bind(principal, resource_id, None))


def _bound(services: Serving, resource: Resource) -> dict[str, Any]:
    price, source = price_of(resource, services.price_book, services.router.today())
    return BindingOut.of(
        resource,
        price_per_hour=None if price is None else money_text(price),
        price_source=source or None,
    )


@route.post("/route", may=Permission.MARKET_READ, body_max=BODY_MAX, answer=RouteOut)
async def route_workload(services: Serving, principal: Asking, body: RouteBody) -> Any:
    """Recommend where a workload should run. Lists each suitable place with score, cost, wait, pros and cons, and each
    unsuitable one with the reason. Starts nothing; the program is read and never run."""
    asked = work_of(body)
    if asked.hours is None and body.task_name is not None:
        usual_ns = await services.jobs.usual_ns(principal.account_id, body.task_name)
        if usual_ns:
            asked = replace(asked, hours=usual_ns / HOUR, hours_from="history")
    if body.keep and not is_allowed(principal.roles, Permission.RENT):
        raise Forbidden("Only renters keep estimates: jobs follow them. Ask without keep.")
    done = await services.router.route(principal, body.code, lambda analysis: completed(asked, analysis))
    return answer_of(await services.router.keep(principal, done) if body.keep else done)


@route.get("/routes", may=Permission.RENT_READ, answer=answers.Page[ForecastOut])
async def kept_routes(services: Serving, principal: Asking, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """The account's kept routes, the latest first: each forecast, and what the job that followed it has cost."""
    found = await services.router.list(principal, read_cursor(cursor) or None, limit + 1)
    jobs = await services.jobs.of_ids(principal, [one.job_id for one in found if one.job_id])
    return page(found, limit, lambda one: _forecast(services, one, jobs), lambda one: str(one.route_id))


@route.get("/routes/{route_id}", may=Permission.RENT_READ, reach=Reach.OWN, answer=KeptRouteOut)
async def kept_route(services: Serving, principal: Asking, route_id: str) -> Any:
    """A kept route: its forecast, what the job that followed it has cost, and all that was answered."""
    kept, answer = await services.router.kept(principal, route_id)
    jobs = await services.jobs.of_ids(principal, [kept.job_id] if kept.job_id else [])
    return {**_forecast(services, kept, jobs), "route": answer_of(answer)}


def _forecast(services: Services, kept: KeptRoute, jobs: Mapping[str, JobView]) -> dict[str, Any]:
    """A kept route as JSON, beside the job that followed it."""
    view, forecast = jobs.get(kept.job_id or ""), kept.taken
    held = None
    if view and forecast and forecast.cost and forecast.cost.total and view.job.state is JobState.SUCCEEDED:
        held = forecast.cost.low <= view.cost <= forecast.cost.high
    return ForecastOut.of(
        kept,
        job_state=view and view.job.state.value,
        cost=view and money_text(view.cost),
        hours_taken=view and _hours(view.job.attempts, services.clock.wall_ns()),
        held=held,
    )


def _hours(attempts: Sequence[Attempt], now_ns: int) -> float:
    """The running time of these attempts together. One that still runs counts up to now."""
    spans = [(one.ended_at_ns or now_ns) - one.started_at_ns for one in attempts if one.started_at_ns is not None]
    return round(sum(spans) / HOUR, 6)


def answer_of(done: Routed) -> dict[str, Any]:
    """A route as JSON."""
    chosen = done.route.chosen
    return {
        "route_id": done.route_id,
        "chosen": chosen and chosen.place.backend,
        "recommendations": [RecommendationOut.of(one) for one in done.route.ranked],
        "refused": [RefusedOut.of(one) for one in done.route.refused],
        "analysis": done.analysis and _analysis(done.analysis),
    }


def _analysis(analysis: Analysis) -> dict[str, Any]:
    return AnalysisOut.of(analysis, facts=[FactOut.of(one) for one in analysis.facts])


def work_of(body: RouteBody) -> Work:
    """The workload that a request describes. Raises InvalidInput that names the field."""
    needs, limits = body.requirements, body.constraints
    gpus = needs.gpu_count if needs.gpu_count is not None else limits.required_gpu_count
    gpu = None
    if needs.gpu is not None:
        gpu = wanted_of(needs.gpu)
        if gpus == 0:
            said = f"requirements.gpu: {needs.gpu!r} is wanted, and 0 GPUs. Leave out one of them."
            raise InvalidInput(said, subject="requirements.gpu")
        if not gpu:
            raise InvalidInput(f"requirements.gpu: There is no GPU {needs.gpu!r}.", subject="requirements.gpu")
    return Work(
        gpus=1 if gpus is None else gpus,
        cpus=needs.cpu_count,
        gpu=gpu,
        gpu_memory_gib=needs.gpu_memory_gb,
        hours=needs.duration_hours_estimated,
        interruptible=needs.interruptible,
        checkpoint_minutes=needs.checkpoint_frequency_minutes,
        dataset_gb=needs.dataset_size_gb,
        results_gb=needs.results_size_gb,
        framework=needs.framework and needs.framework.casefold(),
        max_cost=_money(needs.max_cost_usd),
        max_cost_per_hour=_money(limits.max_cost_per_hour_usd),
        optimize=body.preferences.optimize_for,
        resource_type=None if body.compute_preference == "auto" else body.compute_preference,
        required_provider=limits.required_provider,
        preferred_provider=limits.preferred_provider,
        allowed_providers=tuple(one.casefold() for one in body.preferences.allowed_backends or ()),
        countries=needs.countries,
    )


def _money(usd: float | None) -> Microcents | None:
    return None if usd is None else Microcents(round(usd * MICROCENTS_PER_UNIT))
