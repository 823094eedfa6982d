"""Route that explains where work runs, why not elsewhere, why it still waits, and what would change that."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Query
from pydantic import Field

from windrow_master.api.answers import Out, Time
from windrow_master.api.auth import Reach
from windrow_master.api.cluster_routes import ExplanationOut, explanation_json
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.event_names import as_told
from windrow_master.api.names import host_of
from windrow_master.api.paging import time_or_none
from windrow_master.api.queue_routes import QueuedOut, label, standing_json
from windrow_master.api.refusals import RefusalOut
from windrow_master.api.route import Routes
from windrow_master.api.services import Services
from windrow_master.clusters.model import ClusterPhase, ClusterRequest
from windrow_master.hybrid.search import words
from windrow_master.hybrid.search.model import Search, TryState
from windrow_master.identity.decide import Permission
from windrow_master.identity.model import Principal
from windrow_master.identity.object_shares import Level
from windrow_master.jobs.model import AttemptPlace, JobId, JobState
from windrow_master.jobs.request import cluster_request
from windrow_master.jobs.states import FINAL, PLACEABLE
from windrow_master.placement import reasons
from windrow_master.placement.model import Decision, Refusal
from windrow_master.queue.backfill import Holder
from windrow_master.queue.estimate import clock_text
from windrow_master.queue.order import Waits
from windrow_master.spec import Elsewhere
from windrow_proto.errors import NotFound, WindrowError
from windrow_proto.ids import AccountId, ClusterId, HostId

route = Routes("queue")

HOLDERS_MAX: Final = 3
"""Hosts that are listed with the work that holds them; free ones come first."""
NAMES_MAX: Final = 2
"""Pieces of work on one of these."""


class ExplainOut(Out):
    """The reasons for the place of a job or a machine, in sentences, with what they are made of."""

    id: str
    kind: Annotated[str, Field(description="job or machine")]
    name: str
    state: Annotated[str, Field(description="Of the job, or the phase of the machine")]
    decided_at: Annotated[Time | None, Field(description="When its place was chosen; null: it has none")]
    here: Annotated[list[str], Field(description="Why it runs where it runs, from the record of that decision")]
    not_there: Annotated[str | None, Field(description="Why not on the host that was asked about")]
    is_recorded: Annotated[
        bool, Field(description="Whether `not_there` is from the record; false: from a look at the host as it is now")
    ]
    otherwise: Annotated[str | None, Field(description="The outcome by the weights that were asked about")]
    not_yet: Annotated[list[str], Field(description="Why it still waits, and what holds the hosts that would do")]
    changes: Annotated[list[str], Field(description="What would have to change, so that it has a place now")]
    decision: Annotated[ExplanationOut | None, Field(description="The record; null: none is kept")]
    queue: Annotated[QueuedOut | None, Field(description="Null: it does not wait")]
    refusal: Annotated[RefusalOut | None, Field(description="Why it finds no place now; null: there is one")]


@route.get(
    "/explain/{entry_id}",
    may=Permission.RENT_READ,
    reach=Reach.OWN_OR_OVERSEEN,
    shared=Level.SEE,
    answer=ExplainOut,
)
async def explain(
    services: Serving,
    principal: Asking,
    entry_id: str,
    host: Annotated[str | None, Query(max_length=128, description="Why not there: a host by its name or id")] = None,
    weights: Annotated[
        str | None, Query(max_length=200, description="What it would have been by these: `cost=8,packing=0`")
    ] = None,
) -> Any:
    """The reasons why a job or a machine runs where it runs, why not on another host, why it still waits, and what
    would have to change."""
    subject = await _subject(services, principal, entry_id)
    record = await _record(services, principal, subject)
    decision = None if record is None else record[1]
    queued = await standing_json(services, principal, entry_id) if subject.waits else None
    refusal = subject.refusal
    there, is_recorded = "", False
    if host is not None:
        there, is_recorded = await _not_there(services, principal, subject, decision, host_of(services, host))
    held = _holders(services, subject)
    holders = await _held(services, principal, held[:HOLDERS_MAX])
    if len(held) > HOLDERS_MAX:
        holders.append(f"{len(held) - HOLDERS_MAX} more would do if they were free.")
    search, now_ns = await services.searches.find(entry_id), services.clock.wall_ns()
    bought = _bought(subject, search)
    decided_ns = subject.began_ns if record is None and bought else None if record is None else record[0]
    waits = queued is not None and queued["state"] == Waits.READY
    never = [refusal.detail] if refusal is not None and not refusal.is_possible else []
    waiting = [] if queued is None else [queued["why"], *never, *holders, *_start(queued, search, now_ns)]
    return ExplainOut.of(
        subject,
        decided_at=None if decided_ns is None else time_or_none(decided_ns),
        here=[*bought, *([] if decision is None else reasons.here(decision))],
        not_there=there or None,
        is_recorded=is_recorded,
        otherwise=None if weights is None or decision is None else reasons.with_weights(decision, weights),
        not_yet=list(dict.fromkeys(waiting)),  # the reason of the wait may be what the refusal says
        changes=[
            *(words.changes(search, subject.asked, now_ns) if search is not None and waits else ()),
            *([] if refusal is None else [f"{way.text}." for way in refusal.ways]),
        ],
        decision=None if decision is None else explanation_json(decision),
        queue=queued,
        refusal=None if refusal is None else RefusalOut.of(refusal),
    )


@dataclass(frozen=True, slots=True)
class _Subject:
    """The job or machine that is asked about. cluster_id: where it runs or ran last; None: nowhere yet. asked: where
    else it may run. place, began_ns: of the last attempt of a job that runs or is over; None: of this market."""

    id: str
    kind: str
    name: str
    state: str
    account_id: AccountId
    request: ClusterRequest
    waits: bool
    cluster_id: ClusterId | None
    refusal: Refusal | None
    asked: Elsewhere
    place: AttemptPlace | None = None
    began_ns: int | None = None
    is_over: bool = False


async def _subject(services: Services, principal: Principal, entry_id: str) -> _Subject:
    if entry_id.startswith("job_"):
        view = await services.jobs.get(principal, JobId(entry_id))
        job, waits = view.job, view.job.state in PLACEABLE or view.job.state is JobState.SUBMITTED
        last = job.attempts[-1] if job.attempts and not waits else None
        where = None if last is None else last.cluster_id or None
        place, began_ns = (None, None) if last is None else (last.place, last.began_at_ns)
        name = label(job.name, job.array_index if job.request.array_size else None)
        about = (entry_id, "job", name, job.state.value, job.account_id)
        there = (job.request, place, began_ns, job.state in FINAL)
        return _Subject(*about, cluster_request(job), waits, where, view.refusal, *there)
    cluster = (await services.clusters.get(principal, ClusterId(entry_id))).cluster
    waits, refusal = cluster.phase in (ClusterPhase.REQUESTED, ClusterPhase.QUEUED), None
    if waits:
        with suppress(WindrowError):  # such as a volume that is gone: its next try says so
            refusal = await services.clusters.refusal(cluster.account_id, cluster.request)
    where = None if waits else cluster.cluster_id
    shown = (entry_id, "machine", cluster.name, cluster.phase.value, cluster.account_id)
    return _Subject(*shown, cluster.request, waits, where, refusal, cluster.request)


async def _record(services: Services, principal: Principal, subject: _Subject) -> tuple[int, Decision] | None:
    if subject.cluster_id is not None:
        with suppress(NotFound):  # it is kept for some time only
            return await services.clusters.explain(principal, subject.cluster_id)
    return None


def _bought(subject: _Subject, search: Search | None) -> list[str]:
    """Why it runs at a place that was bought, where it does."""
    tries, place = () if search is None else search.tries, subject.place
    if place is None and subject.kind == "machine" and not subject.waits:
        place = next((one.place for one in reversed(tries) if one.state is TryState.USED), None)
    return [] if place is None else words.here(place, tries, subject.asked, is_over=subject.is_over)


async def _not_there(
    services: Services, principal: Principal, subject: _Subject, decision: Decision | None, host: str
) -> tuple[str, bool]:
    """The sentence about a host, and whether it is from the record."""
    host_id = HostId(host)
    said = None if decision is None else reasons.not_there(decision, host_id)
    if said is not None:
        return said, True
    verdict = await services.clusters.judged(subject.account_id, subject.request, host_id)
    kept = [] if verdict.reason else [one for one in _holders(services, subject, host_id) if one.by]
    return " ".join([reasons.not_there_now(decision, verdict), *await _held(services, principal, kept)]), False


def _holders(services: Services, subject: _Subject, host_id: HostId | None = None) -> Sequence[Holder]:
    try:
        return services.queue.holders(subject.id, host_id) if subject.waits else ()
    except NotFound:
        return ()


async def _held(services: Services, principal: Principal, holders: Sequence[Holder]) -> list[str]:
    """The work that holds each host that would do, and until when."""
    ids = list({each for one in holders for each in (one.host_id, *one.by)})
    told = await services.store.read(lambda uow: as_told(services, uow, principal, ids))
    names = dict(zip(ids, told, strict=True))
    return [_held_text(one, names, services.clock.wall_ns()) for one in holders]


def _held_text(one: Holder, names: Mapping[str, str], now_ns: int) -> str:
    host, by = names[one.host_id], list(dict.fromkeys(names[each] for each in one.by))
    if not by:
        return f"{host} has room for it now."
    who = " and ".join(by) if len(by) <= NAMES_MAX else f"{', '.join(by[:NAMES_MAX])} and {len(by) - NAMES_MAX} more"
    unset = f"which {'has' if len(by) == 1 else 'have'} no set end"
    until = unset if one.free_ns is None else f"until about {clock_text(one.free_ns, now_ns)}"
    return f"{host} would do: it is held by {who}, {until}."


def _start(queued: Mapping[str, Any], search: Search | None, now_ns: int) -> list[str]:
    if search is not None and search.open_try is not None:
        return words.start(search, now_ns)
    estimate = queued["estimate"]
    return [] if estimate is None else [f"It is expected to start at {estimate['words']}."]
