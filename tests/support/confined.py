"""Process workloads of a host whose agent is any user: the shipped runtime in a process of that user.

`python -m tests.support.confined` runs what its standard input says, and prints what became of it. The user needs a
Python that it may read: the system's own, of the same version, with the packages of this one.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from windrow_agent.runtimes.process import ProcessRuntime
from windrow_proto.clock import SystemClock
from windrow_proto.ids import ClusterId, HostId, SlotId, WorkloadId
from windrow_proto.model import SlotGrant, WorkloadSpec

ORDINARY = 65_533
"""A user of nobody's: not root, and not who workloads of a root's agent are."""
SYSTEM_PYTHON = "/usr/bin/python3"
DEADLINE_S = 60.0
OVER = b"all is said\n"
STAY = "echo all is said; sleep 600"
"""The end of a command beside which another is executed: it is ended once both have said all."""
REPOSITORY = Path(__file__).parents[2]
HOST = HostId("host_confined")


@dataclass(frozen=True, slots=True)
class Said:
    """The outcome of a workload. log: of its command; beside: of the command that was executed beside it."""

    exit_code: int | None
    log: str
    beside: str
    condition: str


@dataclass(frozen=True, slots=True)
class Confined:
    """A host's folder with the agent's secrets in it, for one user. planted: what none of them may be read as."""

    folder: Path
    user: int | None
    planted: str
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def secrets(self) -> tuple[Path, ...]:
        """Files that no workload may read."""
        return tuple(self.folder / name for name in ("cli.json", "agent/identity/sign.key", "agent/journal/1"))

    def run(
        self,
        argv: Sequence[str],
        env: Mapping[str, str] = {},
        files: Mapping[str, str] = {},
        beside: Sequence[str] = (),
    ) -> Said:
        """Run it with these files in its folder, each from a file of this machine; and a command beside it."""
        asked = {"folder": str(self.folder), "argv": list(argv), "env": dict(env), "beside": list(beside)}
        asked["files"] = {name: Path(path).read_bytes().hex() for name, path in files.items()}
        done = subprocess.run(
            [sys.executable if self.user is None else SYSTEM_PYTHON, "-m", "tests.support.confined"],
            input=json.dumps(asked),
            stdout=subprocess.PIPE,
            text=True,
            user=self.user,
            group=self.user,
            extra_groups=None if self.user is None else (),
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(_paths()), **self.environment},
            timeout=DEADLINE_S,
            check=True,
        )
        return Said(**json.loads(done.stdout))


@contextmanager
def confined(user: int | None, planted: str, **environment: str) -> Iterator[Confined]:
    """A host of this user's; None: of whoever runs the tests."""
    if user is not None and os.geteuid() != 0:
        pytest.skip("only root can be another user")
    if user is not None:
        _need_system_python()
    with tempfile.TemporaryDirectory(prefix="windrow-confined-", dir="/var/tmp") as name:
        host = Confined(Path(name), user, planted, environment)
        for secret in host.secrets:
            secret.parent.mkdir(parents=True, exist_ok=True)
            secret.write_text(planted)
            secret.chmod(0o600)
        if user is not None:
            for path in (host.folder, *host.folder.rglob("*")):
                os.chown(path, user, user)
        yield host


def _need_system_python() -> None:
    wanted = f"import sys; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"
    if subprocess.run([SYSTEM_PYTHON, "-c", wanted], check=False).returncode:
        pytest.skip("the system's Python is another version")


def _paths() -> list[str]:
    own = [str(REPOSITORY / name) for name in ("tunnel", "proto", "agent", "access", "master", "sdk", "up", ".")]
    return [*own, *(path for path in sys.path if path.endswith("-packages"))]


async def _log(runtime: ProcessRuntime, work: WorkloadId) -> bytes:
    return b"".join([piece async for piece in await runtime.logs(work, 0, False)])


async def _run(asked: dict[str, Any]) -> Said:
    folder = Path(asked["folder"])
    runtime = ProcessRuntime(folder / "agent" / "process", folder, HOST)
    slots = (SlotGrant(SlotId("cpu/0"), 7),)
    work, argv = WorkloadId("work_" + os.urandom(8).hex()), tuple(asked["argv"])
    spec = WorkloadSpec(work, ClusterId("cluster_x"), slots, "process", "", argv, asked["env"])
    facts = await runtime.facts()
    assert facts.is_usable, facts.detail
    try:
        await runtime.prepare(spec, lambda *_, **__: None)
        own = await runtime.work_folder(work)
        assert own is not None
        for name, content in asked["files"].items():
            (own / name).write_bytes(bytes.fromhex(content))
            (own / name).chmod(0o755)
        await runtime.start(work)
        beside = ""
        if asked["beside"]:
            session = await runtime.exec(work, tuple(asked["beside"]))
            await session.write(b"")
            while (piece := await session.read()) is not None:
                beside += piece[1].decode(errors="replace")
            await session.close()
            while OVER not in await _log(runtime, work):
                await runtime.pause(work, SystemClock())
            await runtime.stop(work, 0)
        while (run := await runtime.observe(work)) is not None and run.exit_code is None:
            await runtime.pause(work, SystemClock())
        log = await _log(runtime, work)
    finally:
        await runtime.remove(work)
    code = None if run is None else run.exit_code
    return Said(code, log.decode(errors="replace"), beside, facts.condition)


if __name__ == "__main__":
    os.umask(0o077)
    said = asyncio.run(_run(json.load(sys.stdin)))
    print(json.dumps({name: getattr(said, name) for name in Said.__slots__}))
