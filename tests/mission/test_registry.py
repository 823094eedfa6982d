"""The Hybrid Computing Layer's own requests, as its document prints them, at a real Master: with curl and no token."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import poll

pytestmark = pytest.mark.timeout(120)

ADDRESS = "http://localhost:8000"
"""As the document has it; the Master of the test has a port of its own."""
REGISTER = """curl -X POST "http://localhost:8000/api/model-studio/compute-resources" \\
-H "Content-Type: application/json" \\
-d '{
"resource_id": "rivergen-gpu-cluster-02",
"resource_type": "on-premise",
"location": "RiverGen Data Center - Building B",
"capabilities": {
"gpu": true,
"gpu_count": 4,
"gpu_type": "NVIDIA V100",
"cpu_cores": 64,
"memory_gb": 512
},
"supported_frameworks": ["pytorch", "tensorflow", "sklearn"],
"status": "available",
"max_parallel_jobs": 2
}'"""
LIST = (
    'curl "http://localhost:8000/api/model-studio/compute-resources?status_filter=available&resource_type=on-premise"'
)
MAINTAIN = """curl -X PUT "http://localhost:8000/api/model-studio/compute-resources/rivergen-gpu-cluster-02" \\
-H "Content-Type: application/json" \\
-d '{
"status": "maintenance"
}'"""
EXAMPLES: tuple[dict[str, Any], ...] = (
    {
        "resource_id": "rivergen-gpu-cluster-01",
        "resource_type": "on-premise",
        "location": "RiverGen Data Center - Building A",
        "capabilities": {
            "gpu": True,
            "gpu_count": 8,
            "gpu_type": "NVIDIA A100",
            "cpu_cores": 128,
            "memory_gb": 1024,
            "storage_tb": 50,
        },
        "supported_frameworks": ["pytorch", "tensorflow", "sklearn", "xgboost"],
        "max_parallel_jobs": 4,
        "cost_per_hour_usd": 0.0,
    },
    {
        "resource_id": "aws-us-east-1-p4d",
        "resource_type": "cloud",
        "provider": "AWS",
        "region": "us-east-1",
        "capabilities": {
            "gpu": True,
            "gpu_count": 8,
            "gpu_type": "NVIDIA A100",
            "cpu_cores": 96,
            "memory_gb": 1152,
        },
        "supported_frameworks": ["pytorch", "tensorflow", "mxnet"],
        "max_parallel_jobs": 10,
        "cost_per_hour_usd": 32.77,
        "network_bandwidth_gbps": 400.0,
    },
    {
        "resource_id": "edge-device-fleet-01",
        "resource_type": "edge",
        "location": "Distributed IoT Network",
        "capabilities": {"gpu": False, "cpu_cores": 4, "memory_gb": 8, "storage_gb": 64},
        "supported_frameworks": ["tensorflow-lite", "onnx"],
        "max_parallel_jobs": 1,
        "latency_ms": 2,
    },
)
REQUEST = {
    "resource_id": "rivergen-gpu-cluster-02",
    "resource_type": "on-premise",
    "location": "RiverGen Data Center - Building B",
    "capabilities": {"gpu": True, "gpu_count": 4, "gpu_type": "NVIDIA V100", "cpu_cores": 64, "memory_gb": 512},
    "supported_frameworks": ["pytorch", "tensorflow", "sklearn"],
    "status": "available",
    "max_parallel_jobs": 2,
    "network_bandwidth_gbps": 10.0,
    "cost_per_hour_usd": 0.0,
    "auth_method": "ssh_key",
    "latency_ms": 5,
}
RESPONSE = (
    '{"id":5,"resource_id":"rivergen-gpu-cluster-02","resource_type":"on-premise","provider":null,'
    '"location":"RiverGen Data Center - Building B","region":null,"capabilities":{"gpu":true,"gpu_count":4,'
    '"gpu_type":"NVIDIA V100","cpu_cores":64,"memory_gb":512},'
    '"supported_frameworks":["pytorch","tensorflow","sklearn"],'
    '"status":"available","max_parallel_jobs":2,"network_bandwidth_gbps":10.0,"cost_per_hour_usd":0.0,'
    '"auth_method":"ssh_key","latency_ms":5,"created_at":TIME,"updated_at":null}'
)


class Registry:
    """A running Master, asked by command lines."""

    def __init__(self, url: str) -> None:
        self.url = url

    def run(self, command: str, *prefix: str) -> tuple[int, Any]:
        """The status and the JSON with which a printed command is answered."""
        command = command.replace(ADDRESS, self.url).replace("curl ", "curl -s -w '\\n%{http_code}' ", 1)
        done = subprocess.run([*prefix, "bash", "-c", command], capture_output=True, text=True, timeout=30, check=False)
        text, _, status = done.stdout.rpartition("\n")
        return int(status), json.loads(text) if text else None

    def register(self, record: dict[str, Any]) -> tuple[int, Any]:
        """POST a record."""
        address = f"{ADDRESS}/api/model-studio/compute-resources"
        return self.run(f"curl -X POST {address} -H 'Content-Type: application/json' -d '{json.dumps(record)}'")


@pytest.fixture
def registry(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Registry]:
    """A Master of its own; parameter: whether it trusts its own user."""
    if shutil.which("curl") is None:
        pytest.skip("no curl on this machine")
    flags = ["--trust-local-user"] if getattr(request, "param", True) else []
    ports = ("--http-port", "0", "--https-port", "0", "--trunk-port", "0", "--health-port", "0")
    command = [sys.executable, "-m", "windrow_master", "--data-dir", str(tmp_path / "d"), *ports, *flags]
    with (tmp_path / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as master:
        try:
            record = tmp_path / "d" / "cli.json"
            poll(lambda: master.poll() is not None or record.exists(), what="the Master listens")
            assert master.poll() is None, (tmp_path / "log").read_text()[-2000:]
            yield Registry(json.loads(record.read_text())["url"].replace("127.0.0.1", "localhost"))
        finally:
            master.terminate()
            master.wait(30)


def test_the_documents_requests_run_as_printed(registry: Registry) -> None:
    status, made = registry.run(REGISTER)
    assert (status, made["id"], made["status"]) == (201, 1, "available")
    assert registry.run(REGISTER)[0] == 400, "an id that there is"
    assert registry.run(LIST) == (200, [made])

    status, changed = registry.run(MAINTAIN)
    assert (status, changed) == (200, made | {"status": "maintenance", "updated_at": changed["updated_at"]})
    assert changed["updated_at"] is not None
    assert registry.run(LIST) == (200, [])


def test_the_documents_bodies_come_back_key_for_key(registry: Registry) -> None:
    for number, record in enumerate(EXAMPLES, 1):
        status, made = registry.register(record)
        assert (status, made["id"], made["status"]) == (201, number, "available")
        assert {name: made[name] for name in record} == record
    registry.register({"resource_id": "four", "resource_type": "edge", "capabilities": {}})
    status, made = registry.register(REQUEST)
    assert status == 201
    expected = RESPONSE.replace("TIME", json.dumps(made["created_at"]))
    assert json.dumps(made, separators=(",", ":")) == expected


def test_nobody_else_is_answered_without_a_token_and_nothing_but_the_registry(registry: Registry) -> None:
    assert registry.run(LIST)[0] == 200
    for header in ("Origin: http://localhost", "Sec-Fetch-Site: same-origin", "X-Forwarded-For: ::1"):
        assert registry.run(f"{LIST} -H '{header}'")[0] == 401, header
    for path in ("/api/v1/me", "/api/v1/hosts", "/api/v1/tokens", "/api/v1/clusters"):
        assert registry.run(f"curl {ADDRESS}{path}")[0] == 401, path
    if os.getuid() == 0:  # only root runs a command as another user
        for line in (LIST, REGISTER):
            assert registry.run(line, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")[0] == 401


@pytest.mark.parametrize("registry", [False], indirect=True)
def test_a_master_that_was_not_told_so_trusts_nobody(registry: Registry) -> None:
    assert registry.run(LIST)[0] == 401
