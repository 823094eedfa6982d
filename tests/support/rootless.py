"""Rootless daemons: as an ordinary user of a test's own, with users and networks below them that are theirs alone.

The user is in no file of this machine's: the daemon and whatever it starts see lists of users of their own, and device
files that anybody may open as on installed machines, in a mount namespace that ends with them.
"""

import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.services import need
from tests.support.namespaces import Namespace
from tests.waiting import poll

START_S, STOP_S = 60.0, 30.0
NAME = "windrow-test-rootless"
USERS = 65_536
"""Of each daemon: the first is its user, the others are below it."""
LISTS = ("passwd", "group", "subuid", "subgid")
DEVICES = {"net/tun": (10, 200), "fuse": (10, 229)}
PODMAN = ("prlimit", "--nproc=4096:4096", "podman", "--runtime", "runc", "--cgroup-manager", "cgroupfs")
"""As an ordinary user Podman's containers have its own limit of processes, whatever is asked for."""
DOCKERD = "/usr/share/docker.io/contrib/dockerd-rootless.sh"


@contextmanager
def rootless_podman(network: Namespace) -> Iterator[str]:
    """Podman's service in this network; what DOCKER_HOST has to say to reach it."""
    need("podman")
    with _daemon(
        network, lambda url: (*PODMAN, "--events-backend", "file", "system", "service", "--time=0", url)
    ) as url:
        yield url


@contextmanager
def rootless_docker(network: Namespace) -> Iterator[str]:
    """Docker likewise, as Debian has it."""
    need("docker")
    with _daemon(network, lambda url: ("sh", DOCKERD, f"--host={url}", "--storage-driver=vfs")) as url:
        yield url


@contextmanager
def _daemon(network: Namespace, words: Callable[[str], Sequence[str]]) -> Iterator[str]:
    """A rootless daemon in this network, by the words that start it at an address."""
    need("rootless")
    with tempfile.TemporaryDirectory(prefix="wrr-", dir="/tmp", ignore_cleanup_errors=True) as name:
        state = Path(name)
        users = range(first := 1_000_000_000 + os.getpid() % 10_000 * USERS, first + USERS)
        socket, url = state / "run" / "sock", f"unix://{state / 'run' / 'sock'}"
        with (state / "log").open("wb") as log, network.entered():
            command = ["unshare", "--mount", "--propagation", "private", "sh", "-euc", _prepared(state, users)]
            process = subprocess.Popen(
                [*command, "sh", *words(url)], stdout=log, stderr=log, start_new_session=True, env=_environment(state)
            )
        try:
            poll(lambda: process.poll() is not None or socket.exists(), START_S, "the rootless daemon answers")
            assert process.poll() is None, (state / "log").read_text(errors="replace")[-1500:]
            yield url
        finally:
            _end(process, users)


def _environment(state: Path) -> dict[str, str]:
    own = {"HOME": str(state / "home"), "XDG_RUNTIME_DIR": str(state / "run"), "USER": NAME}
    return {"PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"} | own


def _prepared(state: Path, users: range) -> str:
    """Returns the shell lines that run in a mount namespace of its own before the shell becomes that user and runs its
    arguments."""
    user = users[0]
    texts = {"passwd": f"{NAME}:x:{user}:{user}::{state / 'home'}:/bin/sh", "group": f"{NAME}:x:{user}:"}
    texts |= dict.fromkeys(("subuid", "subgid"), f"{NAME}:{user + 1}:{USERS - 1}")
    lines = [f"chmod 711 {state}", f"install -d -m 700 -o {user} -g {user} {state}/home {state}/run"]
    for name in LISTS:
        own = state / name
        own.write_text((Path("/etc") / name).read_text() + texts[name] + "\n")
        lines.append(f"mount --bind {own} /etc/{name}")
    for path, (major, minor) in DEVICES.items():
        own = state / Path(path).name
        lines += [f"mknod -m 666 {own} c {major} {minor}", f"mount --bind {own} /dev/{path}"]
    lines.append(f'exec setpriv --reuid={user} --regid={user} --clear-groups "$@"')
    return "\n".join(lines)


def _end(process: "subprocess.Popen[bytes]", users: range) -> None:
    """End all that the daemon's users still run."""

    def look() -> bool:
        process.poll()  # or it stays, ended
        found = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _owner(pid) in users]
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not found

    poll(look, STOP_S, "all of the rootless daemon's has ended")


def _owner(pid: int) -> int:
    with suppress(OSError):
        return os.stat(f"/proc/{pid}").st_uid
    return -1
