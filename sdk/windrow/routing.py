"""Asks the Master where a job should run, and lets the job's request follow the answer."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from windrow.client import Client
from windrow.errors import ApiProblem, InvalidInput, NoPlace
from windrow.words import counted, money_text

GIB: Final = 1 << 30
DECIDED: Final = {"tier": "tier", "host_id": "host", "slice": "slice", "runtime": "runtime"}
"""Fields of a request that name a place, which is what the Master is asked for."""
REASONS_MAX: Final = 5
BUSY: Final = "It is busy."
"""The reason of a place that will do when its present work has ended."""
PLANS_MAX: Final = 10
"""Recommended places that are tried, the best first."""
CODE_MAX: Final = 1 << 20
"""Bytes of a program that are read."""


def elsewhere(
    request: Mapping[str, Any],
    optimize: str | None,
    *,
    max_cost: str | float | Decimal | None = None,
    hours: float | None = None,
) -> dict[str, Any]:
    """The request of work that may run at a backend, too: there the Master chooses the place while it waits. Raises
    InvalidInput."""
    if hours is not None:
        raise InvalidInput("hours goes with optimize alone. With a backend, say the longest running time.")
    if max_cost is not None and request.get("budget") is not None:
        raise InvalidInput("max_cost is the budget of the job, too. Leave out the budget.")
    wishes = {
        "optimize": None if optimize == "balanced" else optimize,
        "budget": None if max_cost is None else str(max_cost),
    }
    return {**request, **{name: value for name, value in wishes.items() if value is not None}}


def following(
    api: Client,
    request: Mapping[str, Any],
    optimize: str,
    *,
    max_cost: str | float | Decimal | None = None,
    hours: float | None = None,
    code: str | None = None,
    keeps: bool = True,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The request with the best place that can start it now, and the recommendation that it follows.

    optimize: `cost`, `speed` or `balanced`. max_cost: in USD, of one job of an array; the forecast of its cost is at
    most this where its length is known, and the job is ended before it costs more. hours: how long it runs; by default
    as long as this account's jobs of its name took. code: its program, which is read and never run. keeps: the route is
    kept, so that its forecast can be compared with what the job costs.

    Raises InvalidInput where the request names a place already, NoPlace with the reasons where none is fit.
    """
    named = next((word for field, word in DECIDED.items() if request.get(field)), None)
    if named is not None:
        raise InvalidInput(f"optimize chooses the place, and {named} names one. Leave out one of them.")
    if max_cost is not None and request.get("budget") is not None:
        raise InvalidInput("max_cost is the budget of the job, too. Leave out the budget.")
    needs = {
        "gpu_count": request.get("gpus", 0),
        "cpu_count": request.get("cpus"),
        "gpu": request.get("gpu_model"),
        "gpu_memory_gb": request["gpu_memory_bytes"] / GIB if request.get("gpu_memory_bytes") else None,
        "duration_hours_estimated": hours,
        "max_cost_usd": None if max_cost is None else float(max_cost),
    }
    asked = {
        "keep": keeps,
        "code": code,
        "task_name": request.get("name"),
        "requirements": {name: value for name, value in needs.items() if value is not None},
        "preferences": {"optimize_for": optimize, "allowed_backends": None},
    }
    answer = api.request("POST", "/route", body={name: value for name, value in asked.items() if value is not None})
    asks, best = _placed(api, request, answer, max_cost)
    return {**asks, **({"route_id": answer["route_id"]} if keeps else {})}, best


def _placed(
    api: Client, request: Mapping[str, Any], answer: Mapping[str, Any], max_cost: str | float | Decimal | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The request with the best recommended place that could start it now. A job that waits for another takes the best
    one as it is, and where all are busy a tier of this market that is. max_cost becomes its budget, but on a machine of
    one's own that costs nothing: the rent that is charged there goes back to the same project."""
    limit = {} if max_cost is None else {"budget": str(max_cost)}
    usable = [one for one in answer["recommendations"] if one["usable"]]
    full, problems = [], list[ApiProblem]()
    for best in usable[:PLANS_MAX]:
        is_free = best["host"] and not Decimal(best["cost_estimate"]["hourly"])
        place = {"host_id": best["host"]} if best["host"] else {"tier": best["offer"]}
        asks = {**request, **({} if is_free else limit), **place}
        if request.get("after"):
            return asks, best
        try:
            plan = api.request("POST", "/jobs/plan", body=asks)
        except ApiProblem as problem:
            if problem.status not in (402, 422):
                raise
            problems.append(problem)
            full.append({"backend": best["backend"], "reason": problem.detail})
            continue
        if plan["fits"] or plan["fits_soon"]:
            return asks, best
        full.append({"backend": best["backend"], "reason": plan["refusal"]["detail"]})
    waiting = [one for one in answer["refused"] if one["reason"] == BUSY and one["backend"].startswith("windrow/")]
    if request.get("after") and waiting:
        return {**request, **limit, "tier": waiting[0]["offer"]}, {**waiting[0], "waits": True}
    if problems and len(problems) == len(full):
        raise problems[0]
    bought = [one for one in answer["recommendations"] if one.get("buys")]
    others = len(answer["recommendations"]) - len(usable) - len(bought)
    raise NoPlace(_nowhere([*full, *answer["refused"]], others, sorted({one["buys"] for one in bought})))


def said(best: Mapping[str, Any]) -> str:
    """A recommendation in one line."""
    if best.get("waits"):
        return f"Chosen: {best['backend']}, which is busy now, at {money_text(best['price_per_hour'], 2)} USD an hour."
    cost = best["cost_estimate"]
    words = ", ".join(best["pros"])
    if cost["total"] is None:
        forecast = f"{money_text(cost['hourly'], 2)} USD an hour"
    else:
        low, total, high = (money_text(cost[name], 2) for name in ("low", "total", "high"))
        forecast = f"expected cost {total} USD ({low} to {high})"
    return f"Chosen: {best['backend']}, {forecast}" + (f": {words}." if words else ".")


def program_of(command: Sequence[str], folder: Path) -> str | None:
    """The text of the Python program that a command runs, where it is a file of this folder; None: there is none, or it
    is too long to be read."""
    for word in command:
        path = folder / word
        if word.endswith(".py") and path.is_file() and path.stat().st_size <= CODE_MAX:
            return path.read_text(encoding="utf-8", errors="replace")
    return None


def _nowhere(refused: Iterable[Mapping[str, Any]], others: int, backends: Sequence[str] = ()) -> str:
    """Why no place can be used, of the market's own. others: places that could do it, and are not connected; backends:
    where a machine can be bought for it."""
    own = [one for one in refused if one["backend"].startswith(("windrow/", "resource/"))]
    lines = [f"- {one['backend']}: {one['reason']}" for one in own[:REASONS_MAX]]
    if len(own) > REASONS_MAX:
        lines.append(f"- and {counted(len(own) - REASONS_MAX, 'more place')}")
    lines += [f"- a machine can be bought for it at {name}: --backend {name}" for name in backends]
    if others:
        are = "is" if others == 1 else "are"
        lines.append(
            f"- {counted(others, 'other place')} could do it and {are} not connected. List: windrow route FILE"
        )
    first = "No place can start this job now; it was not submitted. To let it wait for one, leave out --optimize."
    return "\n".join([first, *lines])
