"""The shipped stack for tests and benchmarks: `windrow up` in its own folder, its daemons' pids, a client for it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.canaries import Canaries, collect, leaks, leaks_of, plant
from tests.support.ports import own_ports
from windrow.client import Client
from windrow.config import Config
from windrow_proto.crashes import CRASHED

WINDROW = str(Path(sys.executable).with_name("windrow"))
START_S = 120.0
STOP_S = 120.0
MEASURE_MIB = "4"
"""The size of a host's bandwidth measurement, in MiB: as shipped it is seconds of both processors for each market."""
PAUSE_MIN_S, PAUSE_MAX_S = 0.02, 0.5
LAST_LINES = 12
FETCHED = Path(__file__).parents[2] / "build" / "test-wheels"
"""What pip fetched for the Masters of earlier tests: fetching it anew is 15 s of a processor for each."""
WHEELS = ("wheels", "cli-wheels")
"""Folders of a data directory, each with a folder by the digest of what is wanted."""


@dataclass(slots=True)
class Stack:
    """One running market. started_at: monotonic seconds at which the command was given."""

    process: "subprocess.Popen[bytes]"
    data_dir: Path
    started_at: float

    @property
    def cli(self) -> dict[str, Any]:
        """Returns the file that the Master wrote for clients; raises FileNotFoundError until it has."""
        record: dict[str, Any] = json.loads((self.data_dir / "cli.json").read_text())
        return record

    def client(self) -> Client:
        """A client with the first account's token."""
        return Client(Config(self.cli["url"], self.cli["token"]))

    def pids(self) -> list[int]:
        """Every process below the supervisor."""
        return _descendants(self.process.pid)

    def deaths(self) -> list[str]:
        """Returns the daemons that its supervisor has reported as ended unasked, each with the last lines of its
        log."""
        try:
            said = (self.data_dir / "logs" / "up.log").read_text(errors="replace").splitlines()
        except OSError:
            return []
        ended = [line for line in said if "; it starts again in " in line]
        return [f"{line}\n{_last_lines(line.rpartition('Log: ')[2])}" for line in ended]

    def must_answer(self) -> None:
        """Wait while its Master is being started again; raises AssertionError with its last words when it has ended."""
        wait_for(lambda: self.process.poll() is not None or self._answers())
        ended = self.process.poll()
        assert ended is None, f"this market has ended ({ended}): {_last_lines(self.data_dir / 'logs' / 'up.log')}"

    def _answers(self) -> bool:
        with self.client() as api:
            return bool(api.request("GET", "/me"))

    def daemons(self) -> dict[str, list[int]]:
        """Pids by daemon name (master, access, agent), children of the supervisor included."""
        found: dict[str, list[int]] = {}
        for pid in _descendants(self.process.pid):
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue  # it has ended meanwhile
            for word in words[:4]:
                name = os.path.basename(word).decode(errors="replace")
                kind = next(
                    (k for k in ("master", "access", "agent") if name.startswith((f"windrow-{k}", f"windrow_{k}"))),
                    None,
                )
                if kind is not None:
                    found.setdefault(kind, []).append(pid)
                    break
        return found


def _last_lines(path: str | Path) -> str:
    try:
        return "\n".join(Path(path).read_text(errors="replace").splitlines()[-LAST_LINES:])
    except OSError as error:
        return str(error)


def _descendants(root: int) -> list[int]:
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                fields = (path / "stat").read_text(errors="replace").rsplit(")", 1)[1].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(path.name))
    found, todo = [], [root]
    while todo:
        children = parents.get(todo.pop(), [])
        found += children
        todo += children
    return found


def choose_ports(data_dir: Path) -> None:
    """Give a new market ports of its own, as if of its last start: while its Master is down after a kill, no other
    market that is tested at the same time takes them."""
    own = own_ports()
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    ports = {"http": own[0], "https": own[3], "trunk": own[6], "health": own[15], "access": [own[9], own[10]]}
    ports["service"] = [own[12], own[13]]
    masters = [{"http": own[n], "https": own[3 + n], "trunk": own[6 + n], "health": own[15 + n]} for n in range(3)]
    (data_dir / "cli.json").write_text(json.dumps({"ports": ports, "masters": masters}))


@contextmanager
def started(
    command: Sequence[str], data_dir: Path, log_path: Path, environment: Mapping[str, str] | None = None
) -> Iterator[Stack]:
    """Run this `windrow up`; stops it as Ctrl-C does, and kills it if it does not stop."""
    with log_path.open("ab") as log:
        began = time.monotonic()
        own = os.environ | {"WINDROW_PROOFS": "off", "WINDROW_MEASURE_MIB": MEASURE_MIB} | dict(environment or {})
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, env=own)
        try:
            yield Stack(process, data_dir, began)
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@contextmanager
def stack(
    *flags: str,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    command: Sequence[str] = (WINDROW,),
) -> Iterator[Stack]:
    """Run `windrow up` with these flags, and stop it in order.

    At the end no secret may stand in a log, a command line, an environment or a database (tests/support/canaries.py),
    and no daemon may have met a bug of its own.

    Its hosts are not rented by the Master to try them, unless `environment` says so: a test counts what it did itself.

    folder: where its data directory lies and stays, for a second start; else a temporary one.
    environment: what it gets beside this process's own. command: in place of `windrow`.
    """
    with ExitStack() as cleanup:
        place = folder or Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="windrow-stack-")))
        data_dir = place / "data"
        if not data_dir.exists():
            choose_ports(data_dir)
            _link_wheels(FETCHED, data_dir)
        words = [*command, "up", "--data-dir", str(data_dir), "--no-faults", *flags]
        with started(words, data_dir, place / "up.log", environment) as running:
            yield running
            secrets, found = _watched(running)
        _link_wheels(data_dir, FETCHED)
        found += [*leaks(secrets, (), data_dir), *_crashes(data_dir)]
        assert not found, "; ".join(found[:20])


def _link_wheels(source: Path, target: Path) -> None:
    """Give the target each folder of fetched wheels that it lacks. The Master compares them with its lock."""
    for fetched in [one for name in WHEELS for one in (source / name).glob("*") if (one / "wanted.txt").is_file()]:
        place = target / fetched.parent.name / fetched.name
        if place.exists() or fetched.suffix:
            continue
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
        shutil.copytree(fetched, fresh, dirs_exist_ok=True)
        try:
            fresh.rename(place)
        except OSError:  # another test was first
            shutil.rmtree(fresh)


def _crashes(data_dir: Path) -> list[str]:
    """Returns the unexpected errors in daemons' logs: each ends only the task that met it, but is a bug."""
    logs = [path.read_text(errors="replace").splitlines() for path in data_dir.glob("logs/*.log*")]
    return [line[-2_000:] for lines in logs for line in lines if f'{CRASHED}"' in line]


def _watched(running: Stack) -> tuple[Canaries, list[str]]:
    """The secrets of this market, those planted now included, and which process shows any. Files are for the end."""
    secrets = collect(running.data_dir)
    if running.process.poll() is None and running.cli.get("token"):
        plant(secrets, running.cli["url"], running.cli["token"])
    return secrets, leaks_of(secrets, running.pids())


def wait_for(read: Any, deadline_s: float = START_S, pause_s: float | None = None) -> Any:
    """The first true answer of `read`, which may raise meanwhile; raises TimeoutError.

    pause_s: between two looks; by itself it grows with the wait, since who looks all the time takes the processor from
    what he waits for.
    """
    began = time.monotonic()
    last: Exception | None = None
    while (waited_s := time.monotonic() - began) < deadline_s:
        try:
            if found := read():
                return found
        except Exception as error:  # not up yet: the deadline judges
            last = error
        time.sleep(pause_s or min(PAUSE_MAX_S, max(PAUSE_MIN_S, waited_s / 20)))
    raise TimeoutError(f"nothing within {deadline_s:.0f} s; last: {last!r}")
