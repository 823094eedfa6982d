"""Routes of the Accesses: their health, and draining one so that its agents move to others."""

from collections.abc import Mapping
from statistics import median
from typing import Annotated, Any, Final

from fastapi import Body as FromBody
from pydantic import Field

from windrow_master.accesses.failover_test.model import Phase, Trial
from windrow_master.accesses.model import LOAD_FULL, AccessState, Drained, state_of
from windrow_master.accesses.service import no_access
from windrow_master.api import answers
from windrow_master.api.answers import Out, Read, Span, Time
from windrow_master.api.auth import Reach
from windrow_master.api.bodies import Body, Given
from windrow_master.api.deps import Asking, Services, Serving
from windrow_master.api.event_names import relay_names
from windrow_master.api.fleet_shapes import link_json
from windrow_master.api.paging import Cursor, Limit, page, read_cursor
from windrow_master.api.route import Routes
from windrow_master.fleet.model import AdminState
from windrow_master.fleet.view import Entry
from windrow_master.identity.decide import Permission
from windrow_master.identity.model import Principal, Role
from windrow_proto.errors import NotFound
from windrow_proto.ids import AccessId
from windrow_proto.units import MILLISECOND, SECOND, time_text

route = Routes("accesses")

COUNTED: Final = (
    "Counted from the Master's log as it lies on the disk, from a minute before the kill to the end. A batch counts as "
    "acknowledged if the Master's marks say so, or if the agent, by its own word when it came back, holds it no more. "
    "Each of these sequences has to be a record in the log; what is missing in its newest part is looked for in all of "
    "it before it is called lost. Evidence is committed with its mark in one transaction: what agents hold for "
    "acknowledged is compared with the marks."
)
NOT_DRAINED: Final = {"drained_at": None, "drained_by": None, "drain_reason": None}


class AccessOut(Out):
    """One relay, all of its workers together."""

    id: str
    name: Annotated[str, Field(description="For people: `relay` and its region, numbered where it has several")]
    region: Annotated[str | None, Field(description="Null where nobody knows: gone before this Master started")]
    address: Annotated[str | None, Field(description="What agents dial")]
    version: str | None
    state: Annotated[AccessState, Field(description="Draining: it takes nobody new, and its agents are sent elsewhere")]
    workers: int
    agents: Annotated[int, Field(description="Connected through it now")]
    load_permille: Annotated[int, Field(description="Of the fullest worker, of what it may carry")]
    rtt_ms: Annotated[float | None, Field(description="The median of what its agents measured; null if nobody did")]
    since: Annotated[Time | None, Field(description="Attached since, or gone since")]
    drained_at: Annotated[Time | None, Field(description="Null unless people took it out of service")]
    drained_by: str | None
    drain_reason: str | None
    stop_name: Annotated[
        str | None, Field(description="What `windrow up` calls it: it may be stopped as a test; null elsewhere")
    ]
    stopped_at: Annotated[Time | None, Field(description="Of the latest test that stopped it: `/stop` tells of that")]


class AgentOut(Out):
    """One host's link, as a map of the relays shows it."""

    id: str
    name: str
    simulated: bool
    link_state: str
    access_id: Annotated[str | None, Field(description="Where it was heard last; null before the first time")]
    rtt_ms: Annotated[float | None, Field(description="Its round trip to that relay; null if it is not known")]
    version: Annotated[int, Field(description="Grows with each change of the host, as in `/hosts`")]


class CountedOut(Out):
    """The samples of a failover test's agents, counted in the log on the disk."""

    acked_samples: Annotated[int, Field(description="Acknowledged and in the log, from a minute before the kill on")]
    acked_batches: int
    lost_samples: Annotated[int, Field(description="Acknowledged and not in the log")]
    lost_batches: int
    lost_evidence: Annotated[int, Field(description="Records of evidence that agents hold for acknowledged, likewise")]
    given_up_batches: Annotated[
        int, Field(description="Never acknowledged, and told by their agent to be gone"), Read("given_up")
    ]
    longest_gap_s: Annotated[
        Span | None, Field(description="Between two batches of one agent, ended after the kill"), Read("longest_gap_ns")
    ]
    usual_gap_s: Annotated[Span | None, Field(description="The median before the kill"), Read("usual_gap_ns")]


class StopOut(Out):
    """A test that killed a relay."""

    access_id: str
    name: str
    region: str | None
    asked_at: Annotated[Time, Read("asked_wall_ns")]
    asked_by: Annotated[str, Read("actor")]
    reason: str | None
    phase: Annotated[Phase, Field(description="Unfinished: not every agent was back and had sent anew in two minutes")]
    finished_at: Annotated[Time | None, Read("finished_wall_ns")]
    agents: Annotated[
        int, Field(description="Connected through it when it was killed"), Read(lambda trial: len(trial.watched))
    ]
    back: Annotated[int, Field(description="Of those, how many have connected again"), Read(lambda trial: trial.back())]
    elsewhere: Annotated[
        int, Field(description="Of those, how many are at another relay"), Read(lambda trial: trial.elsewhere())
    ]
    away_s: Annotated[float, Field(description="The longest that one of them was, or is, without a connection")]
    problem: Annotated[str | None, Field(description="Why nothing could be counted")]
    counted: Annotated[CountedOut | None, Field(description="Null while it runs"), Read("verdict")]
    how: Annotated[str, Field(description="How it is counted, in words"), Read(lambda _: COUNTED)]


@route.get("/accesses", may=Permission.HEALTH_READ, answer=answers.Page[AccessOut])
async def accesses(services: Serving, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """Every relay by id: attached, drained, gone since this Master started, or with a certificate that still holds."""
    after = read_cursor(cursor)
    found = [row for row in (await _rows(services)).values() if row["id"] > after]
    return page(found[: limit + 1], limit, lambda row: row, lambda row: str(row["id"]))


@route.get("/accesses/agents", may=Permission.FLEET_READ, answer=answers.Page[AgentOut])
async def agents(services: Serving, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """The relay of each host, by the host's id, without those that are retired: what a map is drawn from. What
    changes is on `/fleet/stream`; of two, the one with the higher `version` is newer."""
    after = read_cursor(cursor)
    found = [
        entry
        for entry in sorted(services.fleet.view, key=lambda entry: entry.host.host_id)
        if entry.host.host_id > after and entry.host.admin_state is not AdminState.RETIRED
    ]
    return page(found[: limit + 1], limit, lambda entry: _agent(services, entry), lambda entry: entry.host.host_id)


@route.get("/accesses/{access_id}", may=Permission.HEALTH_READ, reach=Reach.ALL, answer=AccessOut)
async def access(services: Serving, access_id: str) -> Any:
    """One relay."""
    return await _row(services, access_id)


@route.post("/accesses/{access_id}/drain", may=Permission.FLEET_OPERATE, reach=Reach.OPERATED, answer=AccessOut)
async def drain_access(services: Serving, principal: Asking, access_id: str, body: Given) -> Any:
    """Take a relay out of service: it takes nobody new, and its agents go to the others within seconds. It holds
    until `resume`, whoever is started anew. Conflict where no other relay could take its agents."""
    _check_operator(principal, access_id)
    mine = await _row(services, access_id)
    able = [a["access_id"] for a in services.health.accesses() if a["load_permille"] < LOAD_FULL]
    wanted = Drained(AccessId(access_id), mine["region"] or "", mine["address"] or "", 0, principal.actor, body.reason)
    await services.accesses.drain(wanted, able)
    return await _row(services, access_id)


class Stop(Body):
    """The relay to kill, said once more."""

    confirm: Annotated[str, Field(max_length=200, description="Its `stop_name`, or its id")] = ""
    reason: Annotated[str, Field(max_length=300)] = ""


@route.post(
    "/accesses/{access_id}/stop",
    may=Permission.FLEET_OPERATE,
    reach=Reach.OPERATED,
    status_code=202,
    answer=StopOut,
)
async def stop_access(
    services: Serving, principal: Asking, access_id: str, body: Annotated[Stop, FromBody()]
) -> dict[str, Any]:
    """Kill a relay as a test (SIGKILL; it starts again by itself) and count what its agents lose: `GET` tells how
    that goes. Only where `windrow up` started the market; elsewhere, and where no other relay serves, a conflict."""
    _check_operator(principal, access_id)
    mine = await _row(services, access_id)
    attached = [a["access_id"] for a in services.health.accesses() if a["load_permille"] < LOAD_FULL]
    able = [one for one in attached if not services.accesses.is_drained(one)]
    region = mine["region"] or ""
    trial = await services.trials.stop(AccessId(access_id), region, body.confirm, able, principal.actor, body.reason)
    return _trial_shaped(trial, services.clock.monotonic_ns())


@route.get("/accesses/{access_id}/stop", may=Permission.HEALTH_READ, reach=Reach.ALL, answer=StopOut)
async def stop_of_access(services: Serving, access_id: str) -> dict[str, Any]:
    """The latest failover test that killed this relay since this Master started."""
    trial = services.trials.of(access_id)
    if trial is None:
        raise NotFound("No test has stopped this relay since this Master started.", subject=access_id[:64])
    return _trial_shaped(trial, services.clock.monotonic_ns())


@route.post("/accesses/{access_id}/resume", may=Permission.FLEET_OPERATE, reach=Reach.OPERATED, answer=AccessOut)
async def resume_access(services: Serving, principal: Asking, access_id: str, body: Given) -> Any:
    """Let a drained relay take agents again; those that belong there return by themselves within ten minutes."""
    _check_operator(principal, access_id)
    before = await _row(services, access_id)
    await services.accesses.resume(AccessId(access_id), principal.actor, body.reason)
    # One that left long ago was listed for its drain alone.
    return (await _rows(services)).get(access_id) or before | NOT_DRAINED


def _check_operator(principal: Principal, access_id: str) -> None:
    """A provider decides about its own hosts; an Access is the installation's."""
    if Role.OPERATOR not in principal.roles:
        raise no_access(access_id)


def _agent(services: Services, entry: Entry) -> dict[str, Any]:
    host = entry.host
    link = link_json(host, services.fleet.presence.get(host.host_id))
    named = {"id": host.host_id, "name": host.name, "simulated": host.simulated, "version": entry.version}
    return {**named, "link_state": host.link_state, "access_id": link["access_id"], "rtt_ms": link["rtt_ms"]}


async def _row(services: Services, access_id: str) -> dict[str, Any]:
    row = (await _rows(services)).get(access_id)
    if row is None:
        raise no_access(access_id)
    return row


async def _rows(services: Services) -> dict[str, dict[str, Any]]:
    """Every Access by its id: what its trunks say, what is left of those that went, and what people decided."""
    drained = services.accesses.drained
    known: dict[str, Mapping[str, Any]] = {access_id: {} for access_id in await services.accesses.joined()}
    known |= {row.access_id: {"region": row.region, "address": row.address} for row in drained.values()}
    known |= {one["access_id"]: one for one in services.health.departed()}
    attached = {one["access_id"]: one for one in services.health.accesses()}
    rtts, stop_names, names = _rtts_ms(services), await services.trials.names(), relay_names(services)
    return {
        access_id: _shaped(access_id, known.get(access_id, {}), attached.get(access_id), drained.get(access_id), rtts)
        | {"name": names.get(access_id) or f"relay {access_id[-4:]}"}
        | {"stop_name": stop_names.get(access_id), "stopped_at": _stopped_at(services, access_id)}
        for access_id in sorted(known.keys() | attached.keys())
    }


def _shaped(
    access_id: str,
    known: Mapping[str, Any],
    attached: Mapping[str, Any] | None,
    drained: Drained | None,
    rtts_ms: Mapping[str, float],
) -> dict[str, Any]:
    facts = attached or known
    return {
        "id": access_id,
        "region": facts.get("region") or None,
        "address": facts.get("address") or None,
        "version": facts.get("version") or None,
        "state": state_of(attached is not None, drained is not None),
        "workers": facts.get("workers", 0),
        "agents": facts.get("agents", 0),
        "load_permille": facts.get("load_permille", 0),
        "rtt_ms": rtts_ms.get(access_id),
        "since": facts.get("connected_since") or facts.get("left_at"),
        **(NOT_DRAINED if drained is None else _drain_shaped(drained)),
    }


def _drain_shaped(drained: Drained) -> dict[str, Any]:
    at = time_text(drained.drained_at_ns)
    return {"drained_at": at, "drained_by": drained.actor, "drain_reason": drained.reason or None}


def _trial_shaped(trial: Trial, now_ns: int) -> dict[str, Any]:
    return StopOut.of(trial, away_s=trial.away_ns(now_ns) / SECOND)


def _stopped_at(services: Services, access_id: str) -> str | None:
    trial = services.trials.of(access_id)
    return None if trial is None else time_text(trial.asked_wall_ns)


def _rtts_ms(services: Services) -> dict[str, float]:
    """The median round trip in milliseconds that connected agents measured to their Access, by Access."""
    found: dict[str, list[int]] = {}
    for entry in services.fleet.view:
        live = services.fleet.presence.get(entry.host.host_id)
        if live is not None and live.is_open and live.route is not None and live.rtt_ns is not None:
            found.setdefault(live.route.access_id, []).append(live.rtt_ns)
    return {access_id: median(rtts) / MILLISECOND for access_id, rtts in found.items()}
