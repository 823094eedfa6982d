"""`windrow cluster show` and `job show` say what the work uses now, and their JSON has it."""

import json
from typing import Any

import httpx2
import pytest
from typer.main import get_command

from windrow.cli import cluster_text, clusters, jobs
from windrow.cli.main import app
from windrow.client import Client
from windrow.config import Config

MEMBER: dict[str, Any] = {
    "rank": 0,
    "workload_id": "workload_1",
    "host_id": "host_1",
    "host_name": "rack-7",
    "at": "2027-01-15T08:00:00.000Z",
    "cpu_cores": 1.5,
    "memory_used_bytes": 3 * 2**30,
    "disk_used_bytes": 2**20,
    "disk_read_bytes_per_second": None,
    "disk_write_bytes_per_second": 2048,
    "network_receive_bytes_per_second": 0,
    "network_transmit_bytes_per_second": None,
    "gpu_ratio": 0.934,
    "gpu_memory_used_bytes": 40 * 2**30,
}
ALL = "1.50 CPUs, GPU 93%, memory 3.0 GiB, GPU memory 40.0 GiB, disk 1.0 MiB, 0 B/s received, 2.0 KiB/s written"
CLUSTER: dict[str, Any] = {"id": "cluster_1", "name": "lab", "account_id": "a", "workloads": [], "request": {}}
ASKED: dict[str, Any] = {
    "argv": ["true"],
    "packages": [],
    "env": {},
    "budget": None,
    "deadline": None,
    "after": [],
    "gpus": 0,
}
ATTEMPT: dict[str, Any] = {"number": 1, "cluster_id": "cluster_1", "started_at": None}
ATTEMPT |= {"outcome": None, "log_bytes": None, "files_bytes": None, "cost": "0"}
JOB: dict[str, Any] = {"id": "job_1", "name": "lab", "state": "Running", "reason": None, "exit_code": None}
JOB["account_id"] = "a"
JOB |= {"cost_so_far": "0", "request": ASKED}


def asked_of(monkeypatch: pytest.MonkeyPatch, words: list[str], item: dict[str, Any], *members: Any) -> list[str]:
    """The paths that a command asks a Master for that has this one item."""
    paths: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        paths.append(request.url.path.removeprefix("/api/v1"))
        if paths[-1].endswith("/usage"):
            return httpx2.Response(200, json={"members": members})
        if paths[-1] == "/me":
            return httpx2.Response(200, json={"account": {"id": "a"}})
        is_list = paths[-1] in ("/clusters", "/jobs")
        return httpx2.Response(200, json={"items": [item], "next_cursor": None} if is_list else item)

    told = Client(Config("http://master", "wr_x"), transport=httpx2.MockTransport(answer))
    for module in (clusters, jobs):
        monkeypatch.setattr(module, "client", lambda context: context.with_resource(told))
    get_command(app)(words, standalone_mode=False)
    return paths


@pytest.mark.parametrize("word", ["cluster", "job"])
def test_what_the_work_uses_now_is_said_as_far_as_it_was_measured(
    word: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    item = CLUSTER | {"phase": "Running"} if word == "cluster" else JOB | {"attempts": [ATTEMPT | {"ended_at": None}]}
    asked_of(monkeypatch, [word, "show", "lab"], item, MEMBER)
    assert f"Uses now {ALL}" in " ".join(capsys.readouterr().out.split())

    asked_of(monkeypatch, [word, "show", "lab", "--json"], item, MEMBER)
    assert json.loads(capsys.readouterr().out)["usage"] == [MEMBER]


def test_several_members_are_told_apart_by_their_ranks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    second = MEMBER | {"rank": 1, "cpu_cores": 0.25}
    asked_of(monkeypatch, ["cluster", "show", "lab"], CLUSTER | {"phase": "Degraded"}, MEMBER, second)
    said = " ".join(capsys.readouterr().out.split())
    assert "Rank 0 uses now 1.50 CPUs" in said and "Rank 1 uses now 0.25 CPUs" in said


@pytest.mark.parametrize("word", ["cluster", "job"])
def test_of_work_that_has_ended_nothing_is_asked(
    word: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = JOB | {"attempts": [ATTEMPT | {"ended_at": MEMBER["at"]}]}
    item = CLUSTER | {"phase": "Finished"} if word == "cluster" else ended
    asked = asked_of(monkeypatch, [word, "show", "lab", "--json"], item, MEMBER)
    assert not [path for path in asked if path.endswith("/usage")]
    assert json.loads(capsys.readouterr().out)["usage"] == []


@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        ({"request": {}}, "only when it is deleted"),
        ({"request": {"argv": ["true"]}}, "with its command, or when it is deleted"),
        ({"request": {"idle_seconds": 60}, "ends_at": "noon"}, "at noon, or after 60 s with nobody in it"),
        ({"client_lease_ends_at": "noon"}, "at noon unless its client is heard from"),
        ({"phase": "Deleted", "request": {}}, ""),
    ],
)
def test_a_cluster_says_how_it_ends_also_where_nothing_limits_it(cluster: dict[str, Any], said: str) -> None:
    assert cluster_text.ends({"phase": "Running"} | cluster) == said


def test_a_new_machine_says_what_ends_it_and_how_the_next_is_limited() -> None:
    said = cluster_text.end_text({"phase": "Running", "request": {}})
    assert said == "It ends only when it is deleted. To limit the next one: --max-duration 8h, --idle 30m."
    limited = {"phase": "Running", "request": {"idle_seconds": 60}}
    assert cluster_text.end_text(limited) == "It ends after 60 s with nobody in it."
    assert cluster_text.end_text({"phase": "Deleted"}) == ""
