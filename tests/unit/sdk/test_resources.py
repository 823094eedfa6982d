"""`windrow resource`: what its options say as a record, files of records, and its list."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from typer.testing import CliRunner

from windrow.cli.main import app
from windrow.client import Client
from windrow.config import Config

Json = dict[str, Any]
PATH = "/api/model-studio/compute-resources"
KEPT: Json = {
    "id": 1, "resource_id": "lab", "resource_type": "on-premise", "provider": None, "location": "Building A",
    "region": None, "capabilities": {"gpu": True, "gpu_count": 8, "gpu_type": "NVIDIA A100", "memory_gb": 1024},
    "supported_frameworks": [], "status": "available", "max_parallel_jobs": 4, "network_bandwidth_gbps": 10.0,
    "cost_per_hour_usd": 0.0, "auth_method": None, "latency_ms": None, "created_at": "2026-01-30T18:00:00Z",
    "updated_at": None,
}  # fmt: skip

HOST: Json = {"id": "host_0123456789abcdef", "name": "box", "admin_state": "active"}
BOUND: Json = {
    "host": HOST["id"], "host_name": "box", "status": "available", "running": 2, "price_per_hour": "0.00",
    "price_source": "its registration",
}  # fmt: skip


class Registry:
    """A Master that keeps what it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *rows: Json) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self.rows = rows
        transport = httpx2.MockTransport(self._answer)
        monkeypatch.setattr(
            "windrow.cli.resources.client", lambda context: Client(Config("http://master", "wt_x"), transport)
        )

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content) if request.content else None
        self.asked.append((request.method, request.url.raw_path.decode(), body))
        if request.method == "GET" and request.url.path == PATH:
            return httpx2.Response(200, json=list(self.rows))
        if request.url.path.startswith("/api/v1/resources/"):
            return httpx2.Response(200, json=BOUND if request.method != "DELETE" else BOUND | {"host_name": None})
        if request.url.path == "/api/v1/hosts":
            return httpx2.Response(200, json={"items": [HOST], "next_cursor": None})
        if request.method == "DELETE":
            return httpx2.Response(204)
        return httpx2.Response(201 if request.method == "POST" else 200, json=KEPT | (body or {}))

    def run(self, *words: str, given: str | None = None, code: int = 0) -> str:
        done = CliRunner().invoke(app, ["resource", *words], input=given)
        assert done.exit_code == code, done.output + str(done.exception)
        return done.stdout if code == 0 else str(done.exception)


def test_options_become_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry(monkeypatch)
    words = "add lab --type on-premise --location X --gpu-count 8 --cpu-cores 64 --memory-gb 1.5 --storage-gb 100"
    registry.run(
        *words.split(), "--gpu-type", "NVIDIA A100", "--framework", "a", "--framework", "b", "--latency-ms", "0"
    )
    assert registry.asked == [
        (
            "POST",
            PATH,
            {
                "resource_id": "lab",
                "resource_type": "on-premise",
                "location": "X",
                "supported_frameworks": ["a", "b"],
                "latency_ms": 0,
                "capabilities": {
                    "gpu_count": 8,
                    "gpu_type": "NVIDIA A100",
                    "cpu_cores": 64,
                    "memory_gb": 1.5,
                    "storage_gb": 100,
                    "gpu": True,
                },
            },
        )
    ]


def test_no_gpus_are_said_and_nothing_is_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry(monkeypatch)
    registry.run("add", "edge", "--type", "edge", "--gpu-count", "0")
    registry.run("add", "bare", "--type", "edge")
    assert [body["capabilities"] for _, _, body in registry.asked] == [{"gpu_count": 0, "gpu": False}, {}]


def test_the_records_of_a_file_and_of_standard_input(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    registry = Registry(monkeypatch)
    (tmp_path / "one.json").write_text('{"resource_id": "one"}')
    registry.run("add", "--file", str(tmp_path / "one.json"))
    said = registry.run("add", "--file", "-", "--json", given='[{"resource_id": "two"}, {"resource_id": "three"}]')
    assert [body["resource_id"] for _, _, body in registry.asked] == ["one", "two", "three"]
    assert [one["resource_id"] for one in json.loads(said)] == ["two", "three"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("add",), "Give the ID of the resource"),
        (("add", "lab", "--file", "x.json"), "either --file or an ID"),
        (("add", "--file", "none.json"), "cannot be read"),
        (("add", "--file", "-"), "is not JSON"),
        (("set", "lab"), "Nothing to change was given"),
    ],
)
def test_what_cannot_be_meant_is_refused(monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], says: str) -> None:
    registry = Registry(monkeypatch)
    done = CliRunner().invoke(app, ["resource", *words], input="no json")
    assert done.exit_code != 0
    assert says in str(done.exception)
    assert registry.asked == []


def test_a_change_of_one_capability_keeps_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry(monkeypatch)
    registry.run("set", "lab", "--memory-gb", "2048", "--status", "maintenance")
    assert registry.asked[1] == (
        "PUT",
        f"{PATH}/lab",
        {"status": "maintenance", "capabilities": KEPT["capabilities"] | {"memory_gb": 2048}},
    )


def test_a_name_stays_one_part_of_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry(monkeypatch)
    registry.run("rm", "../../v1/tokens/x", "--yes")
    assert registry.asked == [("DELETE", f"{PATH}/..%2F..%2Fv1%2Ftokens%2Fx", None)]


def test_the_list_says_what_and_where_and_filters(monkeypatch: pytest.MonkeyPatch) -> None:
    cloud = KEPT | {"resource_id": "p4d", "provider": "AWS", "region": "us-east-1", "location": None}
    cloud |= {"resource_type": "cloud", "cost_per_hour_usd": None, "capabilities": {}}
    registry = Registry(monkeypatch, KEPT, cloud)
    head, *lines = registry.run("ls", "-o", "tsv", "--type", "cloud", "--provider", "aws").splitlines()
    assert registry.asked[0][1] == f"{PATH}?resource_type=cloud&provider=aws"
    rows = [dict(zip(head.split("\t"), line.split("\t"), strict=True)) for line in lines]
    assert [(one["ID"], one["GPUS"], one["PLACE"], one["PER HOUR"]) for one in rows] == [
        ("lab", "8 x NVIDIA A100", "Building A", "0.00 USD"),
        ("p4d", "none", "AWS, us-east-1", ""),
    ]


def test_one_is_shown_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    said = Registry(monkeypatch).run("show", "lab")
    for words in ("8 x NVIDIA A100", "Building A", "10 Gbit/s", "0.00 USD, by its registration", "not said", "box"):
        assert words in said


def test_a_host_is_bound_by_its_name_and_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry(monkeypatch)
    assert json.loads(registry.run("bind", "lab", "--host", "box", "--json"))["host_name"] == "box"
    registry.run("unbind", "lab")
    path = "/api/v1/resources/lab/binding"
    changes = [one for one in registry.asked if one[0] != "GET"]
    assert changes == [("PUT", path, {"host": HOST["id"], "dedicated": False}), ("DELETE", path, None)]
