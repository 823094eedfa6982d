"""A job that lets the Master choose its place: what is asked, what is submitted, what is refused."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest
from typer.testing import CliRunner

from windrow import routing
from windrow.cli.main import app
from windrow.client import Client
from windrow.config import Config
from windrow.errors import ApiProblem, InvalidInput, NoPlace, WindrowClientError
from windrow.jobs import Platform

Json = dict[str, Any]
COST = {"hourly": "1.00", "total": "3.108", "low": "2.65", "high": "3.9", "confidence": "medium"}
TIER: Json = {
    "backend": "windrow/h100/A",
    "offer": "h100/A",
    "host": None,
    "cost_estimate": COST,
    "pros": ["starts at once"],
    "usable": True,
}
LAB: Json = {**TIER, "backend": "resource/lab", "offer": "lab", "host": "host_1"}
REFUSED = [{"backend": "windrow/cpu", "reason": "1 GPUs are wanted; it has 0."}]


FITS: Json = {"fits": True, "fits_soon": False, "refusal": None}
DEAR: Json = {"code": "invalid_input", "detail": "The budget 0.02 is less than a minute costs here (0.05)."}
FULL: Json = {"fits": False, "fits_soon": False, "refusal": {"detail": "No host has 4 free GPUs."}}


class Master:
    """Answers `/route` with these places, `/jobs/plan` with these plans, and `/jobs` with a job; keeps what was
    sent."""

    def __init__(self, best: Json | None, *others: Json, plans: Sequence[Json] = ()) -> None:
        found = [] if best is None else [best, *others]
        self.plans = list(plans)
        self.route = {
            "route_id": "route_1",
            "chosen": best and best["backend"],
            "recommendations": found,
            "refused": REFUSED,
        }
        self.sent: dict[str, Json] = {}

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        path = request.url.path.removeprefix("/api/v1")
        self.sent[path] = json.loads(request.content)
        job = {"jobs": [{"id": "job_1", "name": "train", "refusal": None}]}
        plan = self.plans.pop(0) if self.plans and path == "/jobs/plan" else FITS
        if "code" in plan:
            return httpx2.Response(422, json=plan)
        answer = {"/route": self.route, "/jobs/plan": plan}.get(path, job)
        return httpx2.Response(201 if path == "/jobs" else 200, json=answer)

    def client(self) -> Client:
        return Client(Config("http://master", "wt_x"), httpx2.MockTransport(self))


def test_a_job_goes_to_the_tier_that_is_best_with_its_budget_and_route(monkeypatch: pytest.MonkeyPatch) -> None:
    master = Master(TIER)
    monkeypatch.setattr("windrow.cli.jobs.client", lambda context: master.client())
    words = "job submit --no-files --name train --gpu H100:2 --optimize cost --max-cost 5 --hours 3 -- ./train"
    done = CliRunner().invoke(app, words.split())
    assert done.exit_code == 0, done.output
    assert master.sent["/route"] == {
        "keep": True,
        "task_name": "train",
        "requirements": {"gpu_count": 2, "gpu": "H100", "duration_hours_estimated": 3.0, "max_cost_usd": 5.0},
        "preferences": {"optimize_for": "cost", "allowed_backends": None},
    }
    job = master.sent["/jobs"]
    assert (job["tier"], job["route_id"], job["budget"], job["gpus"]) == ("h100/A", "route_1", "5.0", 2)
    assert "Chosen: windrow/h100/A, expected cost 3.11 USD (2.65 to 3.90): starts at once." in done.output


def test_a_job_goes_to_the_host_of_a_resource_and_its_program_is_read(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch")
    master = Master(LAB)
    platform = Platform(client=master.client())
    request, best = routing.following(
        platform.client, {"name": "a"}, "speed", code=routing.program_of(["python", "train.py"], tmp_path)
    )
    assert master.sent["/route"]["code"] == "import torch"
    assert request == {"name": "a", "host_id": "host_1", "route_id": "route_1"}
    assert best == LAB


@pytest.mark.parametrize("field", [{"tier": "h100/A"}, {"host_id": "host_1"}, {"slice": "1g.10gb"}])
def test_who_names_a_place_lets_nobody_choose_one(field: Json) -> None:
    with pytest.raises(InvalidInput, match="Leave out one of them"):
        routing.following(Master(LAB).client(), field, "cost")


def test_where_no_place_can_be_used_the_reasons_are_told_and_nothing_is_submitted() -> None:
    master = Master(None)
    with pytest.raises(WindrowClientError, match="1 GPUs are wanted; it has 0"):
        Platform(client=master.client()).submit(["./train"], None, gpu="1", optimize="cost")
    assert "/jobs" not in master.sent


@pytest.mark.parametrize("more", [{"max_cost": "5"}, {"hours": 2.0}])
def test_a_cost_or_a_length_without_a_choice_is_refused(more: Json) -> None:
    with pytest.raises(InvalidInput, match="go with optimize"):
        Platform(client=Master(TIER).client()).submit(["./train"], None, **more)


def test_a_place_that_could_not_start_it_now_is_passed_over() -> None:
    away = {**LAB, "backend": "resource/away", "usable": False}
    master = Master(LAB, away, TIER, plans=[FULL, FITS])
    request, best = routing.following(master.client(), {"name": "a", "gpus": 4, "cpus": 8}, "cost")
    assert (best, request["tier"], "host_id" in request) == (TIER, "h100/A", False)
    assert master.sent["/route"]["requirements"] == {"gpu_count": 4, "cpu_count": 8}
    assert master.sent["/jobs/plan"] == {"name": "a", "gpus": 4, "cpus": 8, "tier": "h100/A"}


def test_where_every_place_is_full_its_reason_is_told() -> None:
    master = Master(LAB, TIER, plans=[FULL, FULL])
    with pytest.raises(WindrowClientError, match="- resource/lab: No host has 4 free GPUs") as caught:
        routing.following(master.client(), {"gpus": 4}, "cost")
    assert "other place" not in str(caught.value)


def test_where_none_is_free_the_backend_that_sells_a_machine_is_named() -> None:
    bought = {**TIER, "backend": "aws/spot", "usable": False, "buys": "aws"}
    with pytest.raises(WindrowClientError, match="can be bought for it at aws: --backend aws") as caught:
        routing.following(Master(LAB, bought, plans=[FULL]).client(), {"gpus": 4}, "cost")
    assert "not connected" not in str(caught.value)


def test_a_place_that_a_budget_does_not_pay_for_is_passed_over() -> None:
    master = Master(TIER, LAB, plans=[DEAR, FITS])
    request, best = routing.following(master.client(), {"name": "a"}, "speed", max_cost="0.02")
    assert (best, request["host_id"]) == (LAB, "host_1")
    with pytest.raises(ApiProblem, match="less than a minute costs"):
        routing.following(Master(TIER, LAB, plans=[DEAR, DEAR]).client(), {}, "speed", max_cost="0.02")


def test_a_machine_of_ones_own_that_costs_nothing_gets_no_budget() -> None:
    own = {**LAB, "cost_estimate": {**COST, "hourly": "0.00"}}
    request, _ = routing.following(Master(own).client(), {"name": "a"}, "cost", max_cost="0.02")
    assert request["host_id"] == "host_1" and "budget" not in request
    request, _ = routing.following(Master(LAB).client(), {"name": "a"}, "cost", max_cost="0.02")
    assert request["budget"] == "0.02"


def test_a_job_that_waits_for_another_takes_the_best_place_as_it_is() -> None:
    master = Master(LAB, TIER, plans=[FULL])
    request, _ = routing.following(master.client(), {"after": ["job_1"]}, "cost")
    assert request["host_id"] == "host_1"
    assert "/jobs/plan" not in master.sent


def test_a_job_that_waits_for_another_takes_a_busy_tier_where_all_places_are_busy() -> None:
    busy = {"backend": "windrow/cpu/C", "offer": "cpu/C", "reason": routing.BUSY, "price_per_hour": "0.0175"}
    master = Master(None)
    master.route["refused"] = [busy]
    request, best = routing.following(master.client(), {"after": ["job_1"]}, "cost")
    assert request["tier"] == "cpu/C"
    assert routing.said(best) == "Chosen: windrow/cpu/C, which is busy now, at 0.018 USD an hour."
    with pytest.raises(NoPlace, match="It is busy"):
        routing.following(master.client(), {}, "cost")


def test_with_a_backend_the_master_chooses_while_the_job_waits_and_no_route_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    master = Master(TIER)
    monkeypatch.setattr("windrow.cli.jobs.client", lambda context: master.client())
    words = "job submit --no-files --backend aws --spot --optimize cost --max-cost 5 -- ./train"
    done = CliRunner().invoke(app, words.split())
    assert done.exit_code == 0, done.output
    job = master.sent["/jobs"]
    assert [job[name] for name in ("backend", "spot", "optimize", "budget")] == ["aws", True, "cost", "5.0"]
    assert "/route" not in master.sent
    Platform(client=master.client()).submit(["./train"], None, backend="any", optimize="balanced")
    assert (master.sent["/jobs"]["backend"], "optimize" in master.sent["/jobs"]) == ("any", False)
    with pytest.raises(InvalidInput, match="longest running time"):
        Platform(client=master.client()).submit(["./train"], None, backend="any", hours=2)
