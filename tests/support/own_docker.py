"""A container daemon of a test's own, in a network of its own, that may be stopped, frozen, killed and started again.

All of its state is in one folder, so that nothing that befalls it reaches the machine's own daemon, its containers or
its networks.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.services import need
from tests.support.namespaces import Namespace
from tests.waiting import poll

START_S, STOP_S, ASK_S = 60.0, 60.0, 60
FREEZE_S = 10.0
DISK_BYTES = 96 << 20
"""Of all that it keeps: space for a small image and its containers, and soon full."""


@dataclass(slots=True)
class OwnDocker:
    """One daemon. It runs from `start` to `stop` or `kill`, as often as a test wants."""

    folder: Path
    network: Namespace
    process: "subprocess.Popen[bytes] | None" = field(default=None)
    more: tuple[str, ...] = ()
    below: "subprocess.Popen[bytes] | None" = field(default=None)
    """containerd, a service of its own as on installed machines: it outlives its caller."""

    @property
    def url(self) -> str:
        """The address of the daemon."""
        return f"unix://{self.folder / 'socket'}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        at = self.folder
        words = ["dockerd", f"--host={self.url}", f"--data-root={at / 'data'}", f"--exec-root={at / 'exec'}"]
        words += [
            f"--pidfile={at / 'pid'}",
            "--bridge=none",
            "--ip6tables=false",
            f"--containerd={at / 'below'}",
            *self.more,
        ]
        with self.network.entered(), (at / "log").open("ab") as log:
            if self.below is None:
                folders = [f"--root={at / 'root'}", f"--state={at / 'state'}", f"--address={at / 'below'}"]
                self.below = subprocess.Popen(["containerd", *folders], stdout=log, stderr=log, start_new_session=True)
                poll((at / "below").is_socket, START_S, "containerd listens")
            self.process = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)
        poll(self._answers, START_S, "the daemon answers")

    def _answers(self) -> bool:
        assert self.process is not None
        if self.process.poll() is not None:
            pytest.fail(f"dockerd ended: {(self.folder / 'log').read_text(errors='replace')[-800:]}", pytrace=False)
        return self._said("version").returncode == 0

    def ask(self, *words: str) -> str:
        """One `docker` command of this daemon's; its output."""
        done = self._said(*words)
        assert done.returncode == 0, done.stderr
        return str(done.stdout).strip()

    def _said(self, *words: str) -> "subprocess.CompletedProcess[str]":
        own = os.environ | {"DOCKER_HOST": self.url}
        return subprocess.run(["docker", *words], env=own, capture_output=True, text=True, timeout=ASK_S, check=False)

    def stop(self) -> None:
        """In order, as by the system's service manager: it ends its containers."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL: its containers go on without it."""
        self._end(signal.SIGKILL)

    def _end(self, number: int) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(STOP_S)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Meanwhile it answers nobody, and is there."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        poll(lambda: _state(self.process) == "T", FREEZE_S, "the daemon stands still")
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)


def _state(process: "subprocess.Popen[bytes] | None") -> str:
    assert process is not None
    return Path(f"/proc/{process.pid}/stat").read_text(errors="replace").rsplit(")", 1)[1].split()[0]


@contextmanager
def own_docker(network: Namespace, *more: str) -> Iterator[OwnDocker]:
    """A daemon in this network, started with these words, too; it and all that it ran are gone afterwards."""
    need("docker")
    if not shutil.which("dockerd") or os.geteuid() != 0:
        pytest.skip("a container daemon of the test's own needs root and dockerd")
    folder = Path(tempfile.mkdtemp(prefix="windrow-own-docker-"))  # short: a socket's path has at most 107 bytes
    made = OwnDocker(folder, network, more=more)
    disk = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "windrow-test", str(folder)]
    subprocess.run(disk, check=True, capture_output=True, timeout=ASK_S)
    try:
        made.start()
        yield made
    finally:
        made.kill()
        made.start()
        if left := made.ask("ps", "-aq").split():
            made.ask("rm", "--force", *left)
        made.stop()
        if made.below is not None:
            made.below.terminate()
            made.below.wait(STOP_S)
        for mount in (*reversed(_mounts(folder)), str(folder)):
            subprocess.run(["umount", "--lazy", mount], capture_output=True, timeout=ASK_S, check=False)
        shutil.rmtree(folder, ignore_errors=True)


def _mounts(folder: Path) -> list[str]:
    """Returns the mounts below a folder, in their order."""
    found = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [one for one in found if one.startswith(f"{folder}/")]
