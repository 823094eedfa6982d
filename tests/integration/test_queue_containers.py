"""A host full of containers and three projects with shares 1:2:4: when the work on it ends, the right containers start,
and a Master that is killed finds them as they were."""

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.services import need
from tests.support import truth
from tests.support.containers import left
from tests.support.namespaces import Namespace
from tests.support.people import added
from tests.support.rental import renting
from tests.support.stack import wait_for
from tests.support.tiny_registry import tiny_registry
from tests.support.wrapped_up import COMMAND, wrapped

pytestmark = [pytest.mark.long, pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(600)]

WEIGHTS = {"one": 1, "two": 2, "four": 4}
PROCESSORS = BACKLOG = sum(WEIGHTS.values())
AGENT = f"""
import sys
from windrow_agent.__main__ import main
from windrow_agent.host.psutil_reader import PsutilHost
PsutilHost._cpu_count = lambda self: {PROCESSORS}
sys.argv += ["--registries", "REGISTRY"] if "run" in sys.argv else []
main()
"""
"""As shipped, on a machine that says it has so many processors, with a registry that all may ask."""


@pytest.mark.proves("containers of three projects start by their shares, and a killed Master changes none of them")
def test_containers_start_by_shares_and_outlive_a_killed_master() -> None:
    need("docker")
    need("busybox")
    with tiny_registry(Namespace(os.open("/proc/self/ns/net", os.O_RDONLY))) as registry:
        registry.hold(1, Path(str(shutil.which("busybox"))).read_bytes(), ("sh",))
        _serves_by_shares(registry.address)


def _serves_by_shares(registry: str) -> None:
    asked: dict[str, Any] = {
        "argv": ["sh", "-c", "trap 'exit 0' TERM; sleep 3600 & wait"],
        "image": f"{registry}/work:1",
        "cpus": 1,
        "gpus": 0,
        "max_duration_seconds": 7200,
    }
    environment = wrapped({"agent": (sys.executable, "-c", AGENT.replace("REGISTRY", registry))})
    with renting(environment=environment, command=COMMAND) as operator:
        host = wait_for(lambda: (found := operator.host()) and "docker" in found["runtimes"] and found["id"])
        fillers = operator.ask("POST", "/jobs", asked | {"array_size": PROCESSORS, "name": "filler"})["jobs"]
        wait_for(lambda: len(truth.containers(host)) == PROCESSORS)
        people = {name: added(operator.stack, name, "renter", credit="1000") for name in WEIGHTS}
        owner: dict[str, str] = {}
        for name, person in people.items():
            operator.ask("PUT", f"/fair-shares/org:{name}", {"weight": WEIGHTS[name]})
            with person.client() as api:
                jobs = api.submit_job(asked | {"array_size": BACKLOG, "name": f"{name}-work"})
                owner |= {str(job["id"]): name for job in jobs}
        waiting = wait_for(lambda: (q := operator.all("/queue")) and len(q) == len(owner) and q)
        assert Counter(owner[one["id"]] for one in waiting[:PROCESSORS]) == WEIGHTS

        for job in fillers:
            operator.ask("POST", f"/jobs/{job['id']}/cancel")
        first = [one["id"] for one in waiting[:PROCESSORS]]
        wait_for(lambda: {operator.ask("GET", f"/jobs/{one}")["state"] for one in first} == {"Running"})
        containers = _started(host)
        assert len(containers) == PROCESSORS
        rest = [one["id"] for one in operator.all("/queue")]
        for pid in operator.stack.daemons()["master"]:
            os.kill(pid, signal.SIGKILL)
        operator.stack.must_answer()

        queue = wait_for(lambda: (q := operator.all("/queue")) and len(q) == len(rest) and q)
        after = [one["id"] for one in queue]
        for name in WEIGHTS:  # between projects that have had the same, moments decide
            assert [one for one in after if owner[one] == name] == [one for one in rest if owner[one] == name]
        assert {operator.ask("GET", f"/jobs/{one}")["state"] for one in first} == {"Running"}
        assert _started(host) == containers
        found = operator.ask("GET", f"/explain/{first[0]}")
        assert operator.host()["name"] in found["here"][0]
        operator.ask("POST", f"/jobs/{first[0]}/cancel")
        wait_for(lambda: any(operator.ask("GET", f"/jobs/{one}")["state"] == "Running" for one in rest))
    wait_for(lambda: left(host) == [])


def _started(host: str) -> dict[str, str]:
    """When each container of the host's work was started, by its id."""
    command = ["docker", "inspect", "--format", "{{.State.StartedAt}} {{.RestartCount}}"]
    return {
        one: subprocess.run([*command, one], capture_output=True, text=True, check=True, timeout=60).stdout
        for one in truth.containers(host)
    }
