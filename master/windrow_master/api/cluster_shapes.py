"""Clusters, plans and explanations as the JSON of the HTTP API."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from windrow_master.api.fleet_shapes import isolation_text
from windrow_master.api.paging import money_or_none, seconds_or_none, time_or_none
from windrow_master.clusters.kinds import box
from windrow_master.clusters.model import ClusterRequest, NetworkMode, Results, Step, Template, Workload
from windrow_master.clusters.views import ClusterView, Preview
from windrow_master.network.tunnels import Ticket
from windrow_master.placement.model import Chosen, Decision
from windrow_proto.keys import SERVER_NAMES
from windrow_proto.model import Isolation
from windrow_proto.service_names import forward_host
from windrow_proto.tunnels import HOST_NAME
from windrow_proto.units import SECOND, Microcents, money_text, seconds, time_text
from windrow_tunnel.wire import PROTOCOL


def cluster_json(view: ClusterView, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A cluster with its workloads. env: the values that may be shown."""
    cluster = view.cluster
    return {
        "id": cluster.cluster_id,
        "name": cluster.name,
        "forward_host": forward_host(cluster.name, cluster.cluster_id),
        "account_id": cluster.account_id,
        "kind": cluster.kind.value,
        "phase": cluster.phase.value,
        "reason": cluster.reason or None,
        "steps": [_step_json(step) for step in cluster.steps],
        "workloads": [_workload_json(workload) for workload in view.workloads],
        "request": _request_json(cluster.request, env or {}),
        "urls": {str(port): url for port, url in view.urls.items()},
        "traffic": asdict(view.traffic),
        "network": _network_json(view),
        "tier": cluster.tier,
        "price_per_hour": money_text(cluster.price_per_hour),
        "cost_so_far": money_text(view.cost),
        "started_at": time_or_none(cluster.started_at_ns),
        "ended_at": time_or_none(cluster.ended_at_ns),
        "ends_at": time_or_none(view.ends_at_ns),
        "client_lease_ends_at": time_or_none(view.client_lease_ends_at_ns),
        "created_at": time_text(cluster.created_at_ns),
        "rental_id": cluster.rental_id,
        "first_port": cluster.first_port,
        "restarts": cluster.restarts,
        "needs_login": cluster.needs_login,
        "version": cluster.version,
    }


def template_json(template: Template) -> dict[str, Any]:
    """A template, whose request is what `POST /clusters` takes."""
    return {
        "name": template.name,
        "request": _request_json(template.request, {} if template.sealed else template.request.env),
        "saved_at": time_text(template.saved_at_ns),
    }


def _network_json(view: ClusterView) -> dict[str, Any] | None:
    if view.cluster.network is NetworkMode.NONE:
        return None
    return {
        "mode": view.cluster.network.value,
        "reason": view.cluster.network_reason,
        "cords": len(view.cords),
        "cords_up": sum(view.cords),
        "problem": view.cord_problem or None,
    }


def box_json(view: ClusterView) -> dict[str, Any]:
    """How its renter, and nobody else, enters a box."""
    runtime = view.workloads[0].runtime if view.workloads else ""
    found = box.doors(view.cluster, runtime)
    return {
        "ssh_port": found.ssh_port,
        "notebook_port": found.notebook_port,
        "notebook_token": None if found.notebook_port is None else box.token(view.whole or view.cluster),
    }


def tunnel_json(ticket: Ticket) -> dict[str, Any]:
    """What a renter needs to come to an Access."""
    return {
        "id": ticket.tunnel_id,
        "grant": ticket.grant,
        "address": ticket.address,
        "server_name": SERVER_NAMES["access"],
        "ca_pem": ticket.ca_pem,
        "protocol": PROTOCOL,
        "host_pem": ticket.host_pem,
        "host_server_name": HOST_NAME,
        "secret": ticket.secret.hex(),
        "expires_at": time_text(ticket.not_after_ns),
        "access_id": ticket.access_id or None,
        "accesses": [{"id": one.access_id, "address": one.renters} for one in ticket.accesses],
    }


def plan_json(preview: Preview) -> dict[str, Any]:
    """A preview; `refusals` only where nothing fits."""
    price = Microcents(sum(member.price_per_hour for member in preview.members))
    return {
        "fits": preview.chosen is not None,
        "fits_soon": preview.is_soon,
        "placement": [_chosen_json(member) for member in preview.members],
        "tested": list(preview.proofs_on),
        "price_per_hour": None if preview.chosen is None else money_text(price),
        "hold": money_or_none(preview.hold),
        "balance": money_text(preview.balance),
        "refusals": [
            {"host_id": verdict.host_id, "host_name": verdict.host_name, "reason": verdict.reason}
            for verdict in preview.refusals
        ],
    }


def explanation_json(decision: Decision) -> dict[str, Any]:
    """Why it runs where it runs, and what stood against the others."""
    chosen = decision.chosen
    taken = {member.host_id for member in (chosen, *decision.others) if member is not None}
    verdicts = [verdict for verdict in decision.verdicts if verdict.host_id not in taken]
    winner = next((v for v in decision.verdicts if chosen is not None and v.host_id == chosen.host_id), None)
    terms = {} if winner is None else dict(winner.terms)
    said = ", ".join(f"{name} {value}" for name, value in terms.items())
    return {
        "decision": "nothing fits" if chosen is None else f"{chosen.host_name} has the best score ({said})",
        "weights": asdict(decision.weights),
        "chosen": None
        if chosen is None
        else {**_chosen_json(chosen), "score": winner.score if winner else None, "terms": terms},
        "others_chosen": [_chosen_json(member) for member in decision.others],
        "losers": [
            {
                "host": verdict.host_name,
                "host_id": verdict.host_id,
                "reason": verdict.reason or "it fits, with a lower score or a later turn among equals",
                "score": verdict.score,
                "terms": dict(verdict.terms),
            }
            for verdict in verdicts
        ],
        "others": dict(decision.unkept),
    }


def _chosen_json(chosen: Chosen) -> dict[str, Any]:
    return {
        "host_id": chosen.host_id,
        "host_name": chosen.host_name,
        "slots": list(chosen.slot_ids),
        "tier": chosen.tier,
        "runtime": chosen.runtime.value,
        "image": chosen.image,
        "price_per_hour": money_text(chosen.price_per_hour),
        "note": chosen.note,
    }


def _request_json(request: ClusterRequest, env: Mapping[str, str]) -> dict[str, Any]:
    spans = {
        "max_duration_ns": "max_duration_seconds",
        "idle_ns": "idle_seconds",
        "client_lease_ns": "client_lease_s",
    }
    said = {spans.get(name, name): value for name, value in asdict(request).items()}
    return said | {
        "kind": request.kind.value,
        "argv": list(request.argv),
        "env": {name: env.get(name) for name in request.env},
        "ports": list(request.ports),
        "ssh_keys": list(request.ssh_keys),
        "volumes": [one.text for one in request.volumes],
        "max_price_per_hour": money_or_none(request.max_price_per_hour),
        "budget": money_or_none(request.budget),
        "max_duration_seconds": seconds_or_none(request.max_duration_ns),
        "idle_seconds": seconds_or_none(request.idle_ns),
        "client_lease_s": None if request.client_lease_ns is None else request.client_lease_ns // SECOND,
    }


def _step_json(step: Step) -> dict[str, Any]:
    progress = None if step.progress_permille is None else step.progress_permille / 1000
    said = {"detail": step.detail or None, "member": step.member or None}
    return {"at": time_text(step.at_ns), "name": step.name, "progress": progress, **said}


def _workload_json(workload: Workload) -> dict[str, Any]:
    return {
        "id": workload.workload_id,
        "host_id": workload.host_id,
        "host_name": workload.host_name,
        "phase": workload.phase.value,
        "is_lost": workload.lost_since_ns is not None,
        "detail": workload.detail or None,
        "runtime": workload.runtime,
        "image": workload.image or None,
        "slots": [slot.slot_id for slot in workload.slots],
        "isolation": isolation_text(max((slot.isolation for slot in workload.slots), default=Isolation.UNSPECIFIED)),
        "exit_code": workload.exit_code,
        "ports": dict(workload.ports),
        "running_s": round(seconds(workload.running_ns), 3),
        "rank": workload.rank,
        "address": workload.address,
        "is_member": workload.is_member,
        "results": None if workload.results is None else _results_json(workload.results),
    }


def _results_json(results: Results) -> dict[str, Any]:
    return {
        "kept_at": time_text(results.kept_at_ns),
        "log_bytes": results.log_bytes,
        "files_bytes": results.files_bytes,
        "problem": results.problem or None,
    }
