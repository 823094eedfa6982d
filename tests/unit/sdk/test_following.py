"""A job that lets the Master choose its place: what is asked, what is submitted, what is refused."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from typer.testing import CliRunner

from windrow import routing
from windrow.cli.main import app
from windrow.client import Client
from windrow.config import Config
from windrow.errors import InvalidInput, WindrowClientError
from windrow.jobs import Platform

Json = dict[str, Any]
COST = {"hourly": "1.00", "total": "3.108", "low": "2.65", "high": "3.9", "confidence": "medium"}
TIER: Json = {
    "backend": "windrow/h100/A",
    "offer": "h100/A",
    "host": None,
    "cost_estimate": COST,
    "pros": ["starts at once"],
}
LAB: Json = {**TIER, "backend": "resource/lab", "offer": "lab", "host": "host_1"}
REFUSED = [{"backend": "windrow/cpu", "reason": "1 GPUs are wanted; it has 0."}]


class Master:
    """Answers `/route` with this, and `/jobs` with a job; keeps what was sent."""

    def __init__(self, best: Json | None) -> None:
        found = [] if best is None else [best]
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
        answer = self.route if path == "/route" else {"jobs": [{"id": "job_1", "refusal": None}]}
        return httpx2.Response(200 if path == "/route" else 201, json=answer)

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
