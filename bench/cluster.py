"""`cluster`: a container asked for through the API until the console would say Running, beside a bare `docker run`.

Goal: at most 1.3 times `docker run -d` of the same local image. The two are taken in turn, each once nothing is going
on and the host holds a network ahead again (runtimes/docker_pause.py). And at least 99.5 % of 1,000 creations succeed
while Master, Accesses and agents are killed (simulated hosts: it is the path that is tried, not Docker). A creation is
retried by its caller under one Idempotency-Key until the Master has answered, as any client may.
"""

import random
import shutil
import subprocess
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench._report import last_line, median, percentile, scale, table
from tests.support import truth
from tests.support.killing import Killer
from tests.support.rental import ENDED, Renter, local_image
from tests.support.stack import stack, wait_for
from windrow.client import Client
from windrow_agent.runtimes import docker_pause

PAIRS = 30
CREATIONS = 1000
AT_ONCE = 12
HOSTS = 8
KILL_EVERY_S = (4.0, 9.0)
KINDS = ("master", "access", "agent")
CREATED_S = 180.0
ARGV = ("sh", "-c", "trap 'exit 0' TERM; sleep 300 & wait")
"""Ends when it is told to, so that no pair waits for the grace of the one before."""
SEED = 1


def docker_run_s(image: str) -> float:
    """Seconds of one `docker run -d` that returns once the container runs."""
    name = f"windrow-bench-{uuid.uuid4().hex[:12]}"
    began = time.monotonic()
    subprocess.run(["docker", "run", "-d", "--name", name, image, *ARGV], check=True, capture_output=True, timeout=60)
    took_s = time.monotonic() - began
    subprocess.run(["docker", "rm", "-f", name], check=True, capture_output=True, timeout=60)
    return took_s


def created_s(renter: Renter, api: Client, image: str) -> float:
    """Seconds from asking for a box of the same image to the phase Running, as the stream of a page tells it."""
    began = time.monotonic()
    asked = api.create_cluster({"kind": "box", "argv": list(ARGV), "image": image})
    for _, _, cluster in api.events(f"/clusters/{asked['id']}/stream"):
        phase, took_s = cluster["phase"], time.monotonic() - began
        if phase == "Running":
            renter.delete(asked["id"])
            return took_s
        if phase in ENDED or took_s > CREATED_S:
            break
    raise RuntimeError(f"{asked['id']} never ran.")


def _is_quiet(host_id: str) -> bool:
    """True if nothing of the host's runs but the one container that holds a network ahead."""
    return not truth.containers(host_id) and len(truth.containers(host_id, docker_pause.LABEL)) == 1


def beside_docker(pairs: int) -> tuple[list[float], list[float]]:
    """Ours and Docker's own, seconds each, in turn on one machine."""
    with tempfile.TemporaryDirectory(prefix="windrow-bench-") as folder, stack() as running:
        renter = Renter(running)
        renter.online()
        with local_image(Path(folder) / "image") as image, running.client() as api:
            created_s(renter, api, image)  # the first container loads the SDK of Docker
            host_id, made = renter.host()["id"], []
            for _ in range(pairs):
                wait_for(lambda: _is_quiet(host_id))
                ours = created_s(renter, api, image)
                wait_for(lambda: _is_quiet(host_id))
                made.append((ours, docker_run_s(image)))
    return [ours for ours, _ in made], [bare for _, bare in made]


class Faults:
    """Kills one daemon after another, at random moments, each only once all are there again."""

    def __init__(self, killer: Killer) -> None:
        self.kills: Counter[str] = Counter()
        self._killer = killer
        self._ended = threading.Event()
        self._chance = random.Random(SEED)

    def run(self) -> None:
        """Until `end`."""
        while not self._ended.wait(self._chance.uniform(*KILL_EVERY_S)):
            if set(KINDS) <= set(self._killer.stack.daemons()):
                kind = self._chance.choice(KINDS)
                self._killer.kill(kind)
                self.kills[kind] += 1

    @contextmanager
    def running(self) -> Iterator[None]:
        """Beside the block."""
        thread = threading.Thread(target=self.run, name="faults")
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()


def _one(renter: Renter) -> str:
    """One creation under faults; returns how it went: `ran`, or the reason why not."""
    key, body = uuid.uuid4().hex, {"kind": "box", "argv": ["sleep", "60"], "runtime": "simulated", "gpus": 1}

    def ask() -> Any:
        with renter.stack.client() as api:
            return api.request("POST", "/clusters", body=body, key=key)["cluster"]["id"]

    try:
        cluster_id = str(wait_for(ask, CREATED_S, 0.2))
        ended = wait_for(lambda: _outcome(renter, cluster_id), CREATED_S, 0.1)
        wait_for(lambda: renter.ask("DELETE", f"/clusters/{cluster_id}") or True, CREATED_S, 0.2)
        renter.phase(cluster_id, *ENDED, within_s=CREATED_S)
    except TimeoutError as error:
        return str(error)
    return str(ended)


def _outcome(renter: Renter, cluster_id: str) -> str:
    cluster = renter.ask("GET", f"/clusters/{cluster_id}")
    if cluster["phase"] == "Running" or any(one["exit_code"] is not None for one in cluster["workloads"]):
        return "ran"
    return str(cluster.get("reason") or cluster["phase"]) if cluster["phase"] in ENDED else ""


def under_faults(creations: int) -> tuple[Counter[str], Counter[str], float]:
    """How the creations went, what was killed meanwhile, and the seconds it all took."""
    with stack("--simulate", str(HOSTS)) as running:
        renter = Renter(running)
        renter.online()
        wait_for(lambda: sum(slot["slot_state"] == "free" for slot in renter.ask("GET", "/gpus")["items"]) >= AT_ONCE)
        faults, began = Faults(Killer(renter)), time.monotonic()
        with ThreadPoolExecutor(AT_ONCE) as threads, faults.running():
            outcomes = Counter(threads.map(lambda _: _one(renter), range(creations)))
        return outcomes, faults.kills, time.monotonic() - began


def main() -> None:
    """Measure, print, end."""
    pairs, creations = max(3, round(PAIRS * scale())), max(20, round(CREATIONS * scale()))
    outcomes, kills, took_s = under_faults(creations)
    success = outcomes["ran"] / creations
    rows: list[tuple[str, Any]] = [
        ("creations under faults", creations),
        ("of them ran", f"{outcomes['ran']} ({success:.2%})"),
        ("daemons killed meanwhile", ", ".join(f"{kind} {times}" for kind, times in sorted(kills.items())) or "none"),
        ("seconds", took_s),
        *((f"not: {reason[:60]}", times) for reason, times in outcomes.items() if reason != "ran"),
    ]
    detail = {"success": round(success, 5), "creations": creations, "kills": dict(kills)}
    if shutil.which("docker") is None or shutil.which("busybox") is None:
        table([*rows, ("beside docker run", "not measured: docker or busybox is missing here")])
        last_line("cluster", success, "of creations", None, None, detail)
        return
    ours, bare = beside_docker(pairs)
    table([*rows, ("create to Running, p50 s", median(ours)), ("docker run -d, p50 s", median(bare)),
           ("create to Running, p99 s", percentile(ours, 0.99)), ("pairs", pairs)])  # fmt: skip
    detail |= {"p50_s": round(median(ours), 3), "docker_run_p50_s": round(median(bare), 3), "pairs": pairs}
    last_line("cluster", median(ours), "s", "docker run -d", median(ours) / median(bare), detail)


if __name__ == "__main__":
    main()
