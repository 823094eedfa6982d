"""`windrow queue`, and `windrow explain` of a job or a machine."""

import json
from typing import Any

import httpx2
import pytest
from typer.main import get_command

from tests.support.filled import filled
from windrow.cli import clusters, explain, jobs, queueing
from windrow.cli.main import app
from windrow.client import Client
from windrow.config import Config
from windrow.errors import NotFound

JOB = "job_" + "0" * 16 + "9f6e1d2b00000000"
QUEUED = filled("QueuedOut", is_full=True) | {
    "id": JOB,
    "name": "train",
    "summary": "3rd in the queue, starts 14:20 UTC ± 6 min",
    "why": "3rd in the queue: no host has 8 GPUs free.",
    "place": 3,
    "asks": "8 GPUs",
    "estimate": filled("EstimateOut", is_full=True) | {"words": "14:20 UTC ± 6 min"},
    "factors": filled("FactorsOut", is_full=True)
    | {"usage": [0.5, 0.25], "is_above": [True, False], "points": 2.5, "priority": 1, "age": 1.5, "is_top": False},
}
WAY = "Fits on rack-7 with A100 instead of H100, for 1.25 per hour"
EXPLAINED = filled("ExplainOut", is_full=True) | {
    "id": JOB,
    "kind": "job",
    "name": "train",
    "state": "Queued",
    "here": [],
    "not_there": "rack-7 does not fit now: no free GPU.",
    "otherwise": None,
    "not_yet": [QUEUED["why"], "gpu-7 would do: it is held by other work, until about 14:20 UTC."],
    "changes": [f"{WAY}."],
    "queue": QUEUED,
}


@pytest.fixture
def windrow(monkeypatch: pytest.MonkeyPatch) -> Any:
    asked: list[str] = []
    answers = {
        "/queue": {"items": [QUEUED], "next_cursor": None, "waiting": 12, "running": 3}
        | {"estimates_held": 81, "estimates_scored": 100},
        f"/jobs/{JOB}": filled("JobOut", is_full=False)
        | {"id": JOB, "name": "train", "state": "Queued", "queue": QUEUED, "attempts": []}
        | {"request": filled("JobRequestOut", is_full=False) | {"gpus": 0}}
        | {"refusal": filled("RefusalOut", is_full=False) | {"detail": "No free GPU.", "ways": [{"text": WAY}]}},
        f"/explain/{JOB}": EXPLAINED,
        "/hosts": {"items": [{"id": "host_7", "name": "rack-7"}], "next_cursor": None},
    }

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(str(request.url).partition("/api/v1")[2])
        return httpx2.Response(200, json=answers[request.url.path.removeprefix("/api/v1")])

    def told() -> Client:
        return Client(Config("http://master", "wr_x"), transport=httpx2.MockTransport(answer))

    for module in (clusters, explain, jobs, queueing):
        monkeypatch.setattr(module, "client", lambda context: context.with_resource(told()))

    def run(*words: str) -> list[str]:
        get_command(app)(list(words), standalone_mode=False)
        return asked

    run.job = answers[f"/jobs/{JOB}"]  # type: ignore[attr-defined]  # for one test
    return run


def test_the_list_shows_the_place_the_start_and_why(windrow: Any, capsys: pytest.CaptureFixture[str]) -> None:
    windrow("queue", "ls", "-o", "wide")
    said = capsys.readouterr()
    head, line = (one.split() for one in said.out.splitlines())
    assert head == ["PLACE", "ID", "NAME", "PROJECT", "ASKS", "FOR", "SINCE", "STARTS", "WHY"]
    assert line[0] == "3" and "14:20 UTC ± 6 min" in said.out and QUEUED["why"] in said.out
    assert said.err == "12 wait, 3 run. 81 of 100 starts came when expected.\n"

    windrow("queue", "ls", "--json")
    said = capsys.readouterr()
    assert json.loads(said.out) == [QUEUED] and said.err == ""


def test_one_entry_shows_the_numbers_that_decide_on_its_place(windrow: Any, capsys: pytest.CaptureFixture[str]) -> None:
    windrow("queue", "show", JOB)
    said = " ".join(capsys.readouterr().out.split())
    assert QUEUED["summary"] in said and QUEUED["why"] in said
    assert "Use of organisation 0.5000 Use of project 0.2500, below its guarantee" in said
    assert "Points 2.50 = priority 1 + age 1.50" in said

    windrow("queue", "show", JOB, "--json")
    assert json.loads(capsys.readouterr().out) == QUEUED

    windrow.job.update(queue=None, state="Running")
    with pytest.raises(NotFound, match=r"train.* does not wait in the queue: it is Running\..*windrow explain train"):
        windrow("queue", "show", JOB)


def test_a_job_that_waits_says_its_place_and_the_way_that_has_one_now(
    windrow: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    windrow("job", "show", JOB)
    said = " ".join(capsys.readouterr().out.split())
    assert QUEUED["summary"] in said and f"- {WAY}" in said


def test_explain_says_all_four_and_the_verbs_of_jobs_the_same(windrow: Any, capsys: pytest.CaptureFixture[str]) -> None:
    asked = windrow("explain", JOB, "--host", "rack-7", "--weights", "cost=8")
    said = capsys.readouterr().out
    assert said.splitlines() == [
        "train (job 9f6e1d2b): Queued",
        "Why not on rack-7:",
        "  rack-7 does not fit now: no free GPU.",
        "Why not yet:",
        f"  {QUEUED['why']}",
        "  gpu-7 would do: it is held by other work, until about 14:20 UTC.",
        "What would change it:",
        f"  {WAY}.",
    ]
    assert asked[-1] == f"/explain/{JOB}?host=host_7&weights=cost%3D8"
    windrow("job", "explain", JOB, "--host", "rack-7", "--weights", "cost=8")
    assert capsys.readouterr().out == said
    windrow("job", "explain", JOB, "--json")
    assert json.loads(capsys.readouterr().out) == EXPLAINED
