"""Jobs as the JSON of the HTTP API."""

from collections.abc import Mapping, Sequence
from typing import Any

from windrow_master.api.paging import money_or_none, seconds_or_none, time_or_none
from windrow_master.jobs.gpu_impact import CardImpact, Figures, Spans, Stretch
from windrow_master.jobs.model import Attempt, JobRequest
from windrow_master.jobs.service import JobView
from windrow_proto.metrics import BY_NAME
from windrow_proto.units import Microcents, money_text, seconds, time_text


def job_json(view: JobView) -> dict[str, Any]:
    """A job with its attempts."""
    job = view.job
    return {
        "id": job.job_id,
        "name": job.name,
        "account_id": job.account_id,
        "group_id": job.group,
        "array_index": job.array_index,
        "state": job.state.value,
        "reason": job.reason or None,
        "request": _request_json(job.request, view.env),
        "attempts": [
            _attempt_json(number, attempt, cost)
            for number, (attempt, cost) in enumerate(zip(job.attempts, view.spent, strict=True), 1)
        ],
        "exit_code": job.attempts[-1].exit_code if job.attempts else None,
        "folder_bytes": job.folder_bytes,
        "cost_so_far": money_text(view.cost),
        "created_at": time_text(job.created_at_ns),
        "ended_at": time_or_none(job.ended_at_ns),
        "version": job.version,
    }


def _attempt_json(number: int, attempt: Attempt, cost: Microcents) -> dict[str, Any]:
    return {
        "number": number,
        "cluster_id": attempt.cluster_id,
        "began_at": time_text(attempt.began_at_ns),
        "started_at": time_or_none(attempt.started_at_ns),
        "ended_at": time_or_none(attempt.ended_at_ns),
        "exit_code": attempt.exit_code,
        "outcome": attempt.outcome or None,
        "log_bytes": attempt.log_bytes,
        "log_truncated": attempt.log_truncated,
        "files_bytes": attempt.files_bytes,
        "files_truncated": attempt.files_truncated,
        "cost": money_text(cost),
    }


def _request_json(request: JobRequest, env: Mapping[str, str]) -> dict[str, Any]:
    return {
        "argv": list(request.argv),
        "gpus": request.gpus,
        "gpu_model": request.gpu_model,
        "gpu_memory_bytes": request.gpu_memory_bytes,
        "cpus": request.cpus,
        "memory_bytes": request.memory_bytes,
        "image": request.image,
        "env": {name: env.get(name) for name in request.env},
        "tier": request.tier,
        "runtime": request.runtime,
        "simulated": request.simulated,
        "slice": request.slice,
        "max_price_per_hour": money_or_none(request.max_price_per_hour),
        "retries": request.retries,
        "retries_on_exit": request.retries_on_exit,
        "max_duration_seconds": seconds_or_none(request.max_duration_ns),
        "deadline": time_or_none(request.deadline_ns),
        "budget": money_or_none(request.budget),
        "priority": request.priority,
        "after": list(request.after),
        "array_size": request.array_size,
        "await_files": request.await_files,
        "packages": list(request.packages),
        "volumes": [one.text for one in request.volumes],
        "checkpoint_every_seconds": seconds(request.checkpoint_every_ns),
    }


def impact_json(
    number: int, attempt: Attempt | None, spans: Spans | None, cards: Sequence[CardImpact]
) -> dict[str, Any]:
    """What an attempt did to its cards; without one, or without cards, nothing."""
    return {
        "attempt": number or None,
        "started_at": time_or_none(attempt.started_at_ns) if attempt is not None else None,
        "ended_at": time_or_none(attempt.ended_at_ns) if attempt is not None else None,
        "step_s": 0 if spans is None else spans.step_ms // 1000,
        "gpus": [_card_json(one) for one in cards],
    }


def _card_json(one: CardImpact) -> dict[str, Any]:
    return {
        "host_id": one.card.host_id,
        "host_name": one.card.host_name,
        "gpu": one.card.uuid,
        "before": _stretch_json(one.before),
        "during": _stretch_json(one.during),
        "after": _stretch_json(one.after),
        "series": [
            {"metric": name, "unit": BY_NAME[name].unit, "points": [list(point) for point in line]}
            for name, line in one.lines.items()
        ],
    }


def _stretch_json(one: Stretch) -> dict[str, Any]:
    return {
        "utilization_ratio": _figures_json(one.use),
        "memory_used_bytes": _figures_json(one.memory_bytes),
        "power_watts": _figures_json(one.power_watts),
        "throttled_ratio": one.throttled,
    }


def _figures_json(figures: Figures) -> dict[str, float | None]:
    return {"mean": figures.mean, "max": figures.most}
