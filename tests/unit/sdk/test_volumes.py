"""Volumes of a cluster in `windrow cluster show`."""

from collections.abc import Iterator
from typing import Any, cast

import httpx2
import pytest
from typer.main import get_command

from windrow.cli import cluster_text, clusters, jobs
from windrow.cli.main import app
from windrow.cli.streams import ProgramOutput
from windrow.client import Client
from windrow.config import Config
from windrow.errors import WaitTimedOut

SAVED = "2027-01-15T08:00:00.000Z"
KEPT: dict[str, Any] = {"version": 3, "saved_at": SAVED, "problem": None}
CLUSTER: dict[str, Any] = {
    "id": "cluster_1",
    "name": "lab",
    "account_id": "account_1",
    "phase": "Running",
    "workloads": [],
}
ME: dict[str, Any] = {"account": {"id": "account_1"}, "roles": ["renter"]}


def shown(
    monkeypatch: pytest.MonkeyPatch, mounts: list[str], *volumes: dict[str, Any], me: dict[str, Any] = ME
) -> list[str]:
    """Ask a Master with these volumes; the paths that it was asked for after the cluster's."""
    asked: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.path.removeprefix("/api/v1"))
        if asked[-1] == "/volumes":
            return httpx2.Response(200, json={"items": volumes, "next_cursor": None})
        if asked[-1] == "/me":
            return httpx2.Response(200, json=me)
        if asked[-1] == "/clusters/cluster_1/usage":
            return httpx2.Response(200, json={"members": []})
        item = CLUSTER | {"request": {"volumes": mounts}}
        return httpx2.Response(200, json={"items": [item]} if asked[-1] == "/clusters" else item)

    told = Client(Config("http://master", "wr_x"), transport=httpx2.MockTransport(answer))
    monkeypatch.setattr(clusters, "client", lambda context: context.with_resource(told))
    get_command(app)(["cluster", "show", "lab"], standalone_mode=False)
    return asked


@pytest.mark.parametrize(
    ("mount", "kept", "said"),
    [
        ("data:/data", KEPT, f"data at /data, version 3, saved {SAVED}"),
        ("data:/set:ro", KEPT, f"data at /set, read-only, version 3, saved {SAVED}"),
        ("data:/d", KEPT | {"version": 0, "saved_at": None}, "data at /d, nothing saved yet"),
        ("data:/d", KEPT | {"problem": "not saved: too large"}, f"saved {SAVED}; not saved: too large"),
        ("gone:/d", KEPT, "gone at /d"),
    ],
)
def test_a_cluster_names_its_volumes_and_what_is_kept_of_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], mount: str, kept: dict[str, Any], said: str
) -> None:
    shown(monkeypatch, [mount, "other:/other"], {"name": "data"} | kept, {"name": "other"} | KEPT)
    out = " ".join(capsys.readouterr().out.split())
    assert f"{said} Volume other at /other, version 3" in out


@pytest.mark.parametrize("me", [ME | {"account": {"id": "account_2"}}, ME | {"roles": ["auditor"]}])
def test_who_may_not_ask_for_its_volumes_sees_where_they_are_and_no_others_of_that_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], me: dict[str, Any]
) -> None:
    assert "/volumes" not in shown(monkeypatch, ["data:/data"], {"name": "data"} | KEPT, me=me)
    out = capsys.readouterr().out
    assert "data at /data" in out and "version" not in out


def test_one_without_volumes_asks_for_none(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert "/volumes" not in shown(monkeypatch, [])
    assert "Volume" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("phase", "work", "mount", "is_over"),
    [
        ("Finished", "exited", "data:/d", False),
        ("Failed", "stopping", "data:/d", False),
        ("Finished", "gone", "data:/d", True),
        ("Deleted", "stopping", "data:/d", True),
        ("Finished", "exited", "data:/d:ro", True),
        ("Deleting", "gone", "data:/d", False),
    ],
)
def test_a_cluster_is_settled_once_its_volumes_are_saved_too(phase: str, work: str, mount: str, is_over: bool) -> None:
    found = CLUSTER | {"phase": phase, "request": {"volumes": [mount]}, "workloads": [{"phase": work}]}
    assert cluster_text.is_settled(found) is is_over
    assert cluster_text.is_settled(found | {"workloads": [{"phase": work, "is_lost": True}]}) is (phase != "Deleting")


class Saving:
    """A Master whose job has failed, and whose volumes are not saved yet."""

    def job_logs(self, job_id: str, **_: Any) -> Iterator[bytes]:
        return iter(())

    def wait_job(self, job_id: str, timeout_s: float | None) -> dict[str, Any]:
        return {"attempts": [{"cluster_id": "cluster_1"}], "state": "Failed", "exit_code": 7}

    def cluster(self, cluster_id: str) -> dict[str, Any]:
        return {"id": cluster_id, "request": {"volumes": ["data:/data"]}}

    def wait_cluster(self, *_: Any) -> dict[str, Any]:
        raise WaitTimedOut("Cluster cluster_1 is still Failed after 180 s.")


def test_a_jobs_exit_code_is_told_although_its_volumes_are_still_being_saved(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert jobs._followed(cast(Client, Saving()), "job_1", ProgramOutput()) == 7
    assert "The volumes of job_1 are still being saved" in capsys.readouterr().err
