"""A renter on a running market: the command line as a person types it, and clusters through the API."""

import http.client
import os
import shutil
import subprocess
import tarfile
import time
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support import truth, warm_windrow
from tests.support.stack import Stack, stack, wait_for
from tests.waiting import PATIENCE_S
from windrow.errors import ApiProblem
from windrow.soon import SOON_S, patiently

COMMAND_S = 120
PHASE_S = 120
ENDED = ("Deleted", "Finished", "Failed")
APPLETS = (
    *("sh", "sleep", "echo", "cat", "httpd", "test", "ls", "wget", "hostname", "mkdir"),
    *("head", "yes", "id", "touch", "true", "dd", "grep"),
)
PASSING = (
    "it came back less than 60 s ago",
    "offline (its link is suspect)",
    "offline (not heard yet since the Master started)",
)
"""Why a host takes no work for a moment: what a machine that stands still for 15 s does to its own host."""
SETTLED_S = 90
NO_CAPACITY = 5


class Renter:
    """Rents on one stack; every wait has its deadline."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack

    # --- by command line ---------------------------------------------------------------------------------------------

    def windrow(self, *words: str, cwd: Path | None = None, within_s: float = COMMAND_S) -> Any:
        """Run `windrow ...` to its end; returns the finished process with text output."""
        found = self.stack.cli
        environment = os.environ | {"WINDROW_URL": found["url"], "WINDROW_TOKEN": found["token"]}

        more: dict[str, Any] = {"cwd": cwd, "env": environment, "timeout": within_s}

        def done() -> Any:
            return subprocess.run([warm_windrow.command(), *words], capture_output=True, text=True, check=False, **more)

        ends = time.monotonic() + SETTLED_S
        while (ended := done()).returncode == NO_CAPACITY and is_passing(ended.stderr) and time.monotonic() < ends:
            time.sleep(1)
        return ended

    # --- by API ------------------------------------------------------------------------------------------------------

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """One call; asked again while the host takes no work for a moment."""
        ends = time.monotonic() + SETTLED_S
        with self.stack.client() as api:
            while True:
                try:
                    return api.request(method, path, body=body)
                except ApiProblem as refused:
                    if not is_passing(str(refused.reasons)) or time.monotonic() > ends:
                        raise
                time.sleep(1)

    def all(self, path: str, **params: Any) -> list[dict[str, Any]]:
        """Every item of a list."""
        with self.stack.client() as api:
            return list(api.items(path, **params))

    def host(self) -> dict[str, Any]:
        """This machine's own host; raises StopIteration while there is none."""
        return next(host for host in self.all("/hosts") if not host["simulated"])

    def slots(self) -> list[dict[str, Any]]:
        """The slots of that host."""
        found: list[dict[str, Any]] = self.ask("GET", f"/hosts/{self.host()['id']}")["slots"]
        return found

    def online(self) -> dict[str, Any]:
        """The same once it is online and may be rented."""
        found: dict[str, Any] = wait_for(
            lambda: (h := self.host())["link_state"] == "online" and h["admin_state"] == "active" and h["tier"] and h
        )
        return found

    def create(self, *argv: str, until: str = "Running", **more: Any) -> dict[str, Any]:
        """Ask for a cluster that runs `argv`, as soon as cards that are being challenged are back; wait for a phase."""
        body = {"kind": "box", "argv": list(argv), **more}
        asked = patiently(lambda: self.ask("POST", "/clusters", body), SOON_S)["cluster"]
        return self.phase(asked["id"], until, *ENDED) if until else asked

    def create_once(self, *argv: str) -> str:
        """Ask for one box that runs `argv`, by one key until the answer has come, while daemons come and go: its id."""
        body, key = {"kind": "box", "argv": list(argv)}, uuid.uuid4().hex

        def asked() -> Any:
            with self.stack.client() as api:
                return api.request("POST", "/clusters", body=body, key=key)["cluster"]

        return str(wait_for(asked)["id"])

    def phase(self, cluster_id: str, *phases: str, within_s: float = PHASE_S) -> dict[str, Any]:
        """Wait until the cluster is in one of these phases."""
        found: dict[str, Any] = wait_for(
            lambda: (c := self.ask("GET", f"/clusters/{cluster_id}")) and c["phase"] in phases and c, within_s
        )
        return found

    def exited(self, cluster_id: str, within_s: float = PHASE_S) -> dict[str, Any]:
        """Wait until its one workload has ended by itself; returns the workload."""

        def look() -> Any:
            (one,) = self.ask("GET", f"/clusters/{cluster_id}")["workloads"]
            return one["exit_code"] is not None and one

        found: dict[str, Any] = wait_for(look, within_s)
        return found

    def delete(self, cluster_id: str) -> dict[str, Any]:
        """Delete it and wait for its end and its last receipt; safe to repeat, and while daemons come and go."""
        wait_for(lambda: self.ask("DELETE", f"/clusters/{cluster_id}") or True)
        self.phase(cluster_id, *ENDED)
        self.cleared(cluster_id)
        return self.receipt(cluster_id)

    def cleared(self, cluster_id: str) -> None:
        """Wait until nothing is on its hosts any more of work that has ended by itself. A host that is not heard of for
        a moment is waited for: what it still holds is not saved yet."""
        wait_for(lambda: self._is_cleared(cluster_id), PHASE_S)

    def _is_cleared(self, cluster_id: str) -> bool:
        found = self.ask("GET", f"/clusters/{cluster_id}")
        left = {one["phase"] for one in found["workloads"]}
        return found["phase"] == "Deleted" or not {"exited", "stopping"} & left

    def receipt(self, cluster_id: str) -> dict[str, Any]:
        """The closed receipt of a cluster."""
        found: dict[str, Any] = wait_for(
            lambda: next((one for one in self.all("/receipts", cluster=cluster_id) if one["ended_at"]), None), PHASE_S
        )
        return found

    def log(self, cluster_id: str) -> bytes:
        """Returns the log that it has written so far."""
        with self.stack.client() as api:
            return b"".join(api.logs(cluster_id))

    def balance(self) -> str:
        """Returns the balance that the account can spend, as the Master writes it."""
        return str(self.ask("GET", "/me")["balance"]["amount"])

    def events(self, subject: str) -> list[str]:
        """The kinds of a subject's events."""
        return [event["kind"] for event in self.all("/events", subject=subject)]

    # --- what must hold at the end -----------------------------------------------------------------------------------

    def flaws(self, *cluster_ids: str) -> list[str]:
        """Returns the faults of the ledger and of the bills of these clusters; empty when nothing is."""
        data_dir = self.stack.data_dir
        return truth.ledger_flaws(data_dir) + [f for one in cluster_ids for f in truth.billing_flaws(data_dir, one)]


def is_passing(text: str) -> bool:
    """True if a refusal names only why a host takes no work for a moment."""
    return any(reason in text for reason in PASSING)


def body_at(port: int) -> bytes | None:
    """Returns the answer of a web server on this port of the machine; None while there is none."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=PATIENCE_S) as answer:
            body: bytes = answer.read()
            return body
    except (OSError, http.client.HTTPException):
        return None


@contextmanager
def renting(*flags: str, **more: Any) -> Iterator[Renter]:
    """A renter on a market of its own whose host may be rented; flags and more as for `stack`."""
    with stack(*flags, **more) as running:
        found = Renter(running)
        found.online()
        yield found


@contextmanager
def local_image(folder: Path, programs: Mapping[str, str] | None = None) -> Iterator[str]:
    """A container image of one static binary, imported here: no registry is asked. Its name is its own, so that tests
    that run at the same time, in this checkout or in another, do not remove each other's."""
    name = f"windrow-test-{uuid.uuid4().hex[:12]}:local"
    import_image(folder, name, programs)
    try:
        yield name
    finally:
        subprocess.run(["docker", "rmi", "-f", name], capture_output=True, timeout=120, check=False)


def import_image(
    folder: Path,
    name: str,
    programs: Mapping[str, str] | None = None,
    docker_url: str | None = None,
    *,
    change: str = "",
) -> None:
    """Make the image of one static binary under this name. folder: for its files, not there yet or empty. programs:
    scripts in it, by their paths without the first slash. docker_url: of the daemon, where it is another one.
    change: lines of a Dockerfile."""
    (folder / "bin").mkdir(parents=True)
    shutil.copy(str(shutil.which("busybox")), folder / "bin" / "busybox")
    for applet in APPLETS:
        (folder / "bin" / applet).symlink_to("busybox")
    for path, script in (programs or {}).items():
        (folder / path).parent.mkdir(parents=True)
        (folder / path).write_text(script)
        (folder / path).chmod(0o755)
    archive = folder / "image.tar"
    with tarfile.open(archive, "w") as tar:
        tops = sorted({"bin", *(path.split("/")[0] for path in programs or {})})
        for top in tops:
            tar.add(folder / top, top)
        for inner in sorted({"tmp", "proc", "sys", "dev", "etc"} - set(tops)):
            member = tarfile.TarInfo(inner)
            member.type, member.mode = tarfile.DIRTYPE, 0o1777 if inner == "tmp" else 0o755
            tar.addfile(member)
    own = os.environ | ({"DOCKER_HOST": docker_url} if docker_url else {})
    changes = [f"--change={line}" for line in change.splitlines()]
    subprocess.run(
        ["docker", "import", *changes, str(archive), name], check=True, capture_output=True, timeout=120, env=own
    )
