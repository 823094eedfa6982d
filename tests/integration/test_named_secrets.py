"""Named secrets on a running market: the workload has them, and nothing else does, whatever dies and is exported."""

import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.hostile.test_restore import done
from tests.services import need
from tests.support.canaries import Canaries, below, leaks
from tests.support.containers import image as image
from tests.support.killing import Killer
from tests.support.rental import Renter, renting
from tests.support.stack import wait_for
from tests.waiting import PATIENCE_S

ASKED = (
    *("/me", "/secrets", "/jobs", "/clusters", "/templates", "/audit", "/events", "/commands", "/operations"),
    *("/receipts", "/ledger", "/sessions", "/tokens", "/hosts", "/health"),
)
EACH = 3
"""The secrets of each job and of each cluster; the last one is a file."""


@dataclass
class Planted:
    """Secrets of a market by name, and what to look for."""

    values: dict[str, bytes] = field(default_factory=dict)
    canaries: Canaries = field(default_factory=Canaries)

    def make(self, name: str, is_file: bool) -> bytes:
        """A value nobody has elsewhere."""
        drawn = os.urandom(24)
        value = bytes(range(24)) + drawn if is_file else f"wrs_{drawn.hex()}".encode()
        self.values[name] = value
        self.canaries.add(name, value if is_file else value.decode())
        return value

    def digests(self, names: Iterable[str]) -> list[str]:
        """What work prints that has them: the SHA-256 of each variable."""
        return [hashlib.sha256(self.values[name]).hexdigest() for name in names]


@dataclass(frozen=True)
class Work:
    """The kind of work that has them. tools: before the programs that its shell calls."""

    request: dict[str, Any] = field(default_factory=dict)
    tools: str = ""

    def digests_of(self, names: list[str]) -> str:
        """The shell that prints the SHA-256 of each value; the last one is a file, in base64."""
        texts, tools = " ".join(f'"${name}"' for name in names[:-1]), self.tools
        each = f'for value in {texts}; do printf %s "$value" | {tools}sha256sum; done'
        return f'{each}; printf %s "${names[-1]}" | {tools}base64 -d | {tools}sha256sum'


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.proves("named secrets of processes: in the workload, and in no file, log, argv, environment or answer")
def test_secrets_are_in_the_workload_and_nowhere_else(tmp_path: Path) -> None:
    with renting(folder=tmp_path / "market") as renter:
        _play(renter, tmp_path, 1, Work())


@pytest.mark.long
@pytest.mark.docker
@pytest.mark.timeout(1800)
@pytest.mark.proves("30 named secrets of containers through jobs, clusters, crashes and exports", by="make long")
def test_thirty_secrets_of_containers_are_nowhere_else(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    need("docker")
    image = request.getfixturevalue("image")
    with renting(folder=tmp_path / "market") as renter:
        wait_for(lambda: "docker" in renter.host()["runtimes"])
        _play(renter, tmp_path, 5, Work({"image": image}, "busybox "))


def _play(renter: Renter, folder: Path, rounds: int, work: Work) -> None:
    """In each round: set six secrets, use them in a job and a cluster, kill daemons under them, export, and search.

    This host has room for one at a time, and takes no work for a minute after its agent died: every second job sees
    that."""
    planted, killer = Planted(), Killer(renter)
    for number in range(rounds):
        of_cluster, of_job = ([f"CANARY_{number}_{kind}_{part}" for part in range(EACH)] for kind in "CJ")
        for name in (*of_cluster, *of_job):
            _set(renter, folder, planted, name, is_file=name.endswith(f"_{EACH - 1}"))
        job_id, attempt = _job(renter, of_job, work)
        assert _in_environments(planted), "control: the work has them"
        assert _found(renter, planted) == []
        if number % 2:
            killer.kill_and_wait("agent")
        _job_ends(renter, planted, job_id, attempt, of_job, work)

        cluster_id = _cluster(renter, of_cluster, work)
        _prints(lambda cluster_id=cluster_id: renter.log(cluster_id), planted, of_cluster)
        for kind in ("agent", "master"):
            killer.kill(kind)
        killer.well()
        inside = renter.windrow("cluster", "exec", cluster_id, "--", "sh", "-c", work.digests_of(of_cluster))
        assert inside.stdout.split()[::2] == planted.digests(of_cluster), inside.stderr
        renter.ask("PUT", "/templates/all", {"argv": ["true"], "secrets": [*of_cluster, *of_job]})
        backup = folder / f"backup-{number}.tar"
        done(0, "backup", backup, "--data-dir", renter.stack.data_dir)
        assert planted.canaries.in_bytes(backup.read_bytes()) == []
        assert _found(renter, planted) == []

        renter.delete(cluster_id)
        listed = renter.all("/secrets")
        assert all(one["last_used_by"] for one in listed) and len(listed) == len(planted.values)
        wait_for(lambda: not _in_environments(planted))
        assert _found(renter, planted) == []
        wait_for(lambda: not _in_files(renter, planted))  # of the workload's own folder, too: gone with the work


def _set(renter: Renter, folder: Path, planted: Planted, name: str, *, is_file: bool) -> None:
    """A file by the command line, from one that goes again; a text by a program."""
    if not is_file:
        with renter.stack.client() as api:
            api.set_secret(name, planted.make(name, is_file).decode())
        return
    source = folder / "value"
    source.write_bytes(planted.make(name, is_file))
    said = renter.windrow("secret", "set", name, "--file", str(source), "--kind", "file")
    source.unlink()
    assert said.returncode == 0 and planted.canaries.in_bytes((said.stdout + said.stderr).encode()) == [], said.stderr


def _cluster(renter: Renter, names: list[str], work: Work) -> str:
    script = f"{work.digests_of(names)}; trap 'exit 0' TERM; while :; do sleep 1; done"
    made = renter.create("sh", "-c", script, secrets=names, **work.request)
    assert made["phase"] == "Running", made
    return str(made["id"])


def _job(renter: Renter, names: list[str], work: Work) -> tuple[str, str]:
    """One that runs, and its cluster; it ends by itself once a file is gone."""
    script = f"{work.digests_of(names)}; touch going; while test -e going; do sleep 0.2; done"
    body = {"argv": ["sh", "-c", script], "secrets": names, **work.request}
    job_id = str(renter.ask("POST", "/jobs", body)["jobs"][0]["id"])
    running = wait_for(lambda: (job := renter.ask("GET", f"/jobs/{job_id}"))["state"] == "Running" and job)
    return job_id, str(running["attempts"][-1]["cluster_id"])


def _job_ends(renter: Renter, planted: Planted, job_id: str, attempt: str, names: list[str], work: Work) -> None:
    let_go = wait_for(
        lambda: (
            (done := renter.windrow("cluster", "exec", attempt, "--", "sh", "-c", f"{work.tools}rm going"))
            and not done.returncode
        )
    )
    assert let_go
    ended = wait_for(lambda: (job := renter.ask("GET", f"/jobs/{job_id}"))["ended_at"] and job)
    assert ended["state"] == "Succeeded", ended["reason"]
    _prints(lambda: _log_of(renter, job_id), planted, names)


def _log_of(renter: Renter, job_id: str) -> bytes:
    with renter.stack.client() as api:
        return b"".join(api.job_logs(job_id))


def _prints(log: Any, planted: Planted, names: list[str]) -> None:
    """Wait until the log has the digest of each value."""
    wanted = planted.digests(names)
    wait_for(lambda: log().decode().split()[::2] == wanted)


def _found(renter: Renter, planted: Planted) -> list[str]:
    """Returns where a value stands, one sentence each: files of the data directory but for the workloads' own folders,
    environments of the daemons, command lines of all processes, answers of the Master."""
    stack = renter.stack
    daemons = [stack.process.pid, *(pid for pids in stack.daemons().values() for pid in pids)]
    found = leaks(planted.canaries, daemons, stack.data_dir)
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        found += [f"{name} stands in {path}" for name in _names_in(path, planted)]
    headers = {"Authorization": f"Bearer {stack.cli['token']}"}
    paths = [*ASKED, *(f"{kind}/{one['id']}" for kind in ("/jobs", "/clusters") for one in renter.all(kind))]
    with httpx2.Client(base_url=f"{stack.cli['url']}/api/v1", headers=headers, timeout=PATIENCE_S) as client:
        for asked in [*paths, *(f"/secrets/{name}" for name in planted.values)]:
            found += [f"{name} is told by {asked}" for name in planted.canaries.in_bytes(client.get(asked).content)]
    return found


def _in_environments(planted: Planted) -> list[str]:
    """The processes of this machine that have one of them."""
    return [str(path) for path in Path("/proc").glob("[0-9]*/environ") if _names_in(path, planted)]


def _names_in(path: Path, planted: Planted) -> list[str]:
    with suppress(OSError):  # it has ended meanwhile
        return planted.canaries.in_bytes(path.read_bytes())
    return []


def _in_files(renter: Renter, planted: Planted) -> list[str]:
    """All files of the data directory that have one of them."""
    return [str(path) for path in below(renter.stack.data_dir) if path.is_file() and _names_in(path, planted)]
