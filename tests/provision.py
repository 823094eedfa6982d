"""Runs a command among real services: `python -m tests.provision -- COMMAND...`.

Without PROVISION=1 it only runs the command, on what is there. With it, as root on Debian, it first installs what only
Debian has and what may not stand beside our own packages, and starts a Docker daemon of its own where none answers; it
says each thing it does, and stops at the end what it started. A service that then still is missing is a failure of the
tests that need it. Without a command it installs, and no more: that may go on beside something else.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType

from tests.services import CLIENT_GENERATOR, PROVISION, REQUIRED, client_generator, faketime
from tests.waiting import poll

APT_S = 600
"""For apt to fetch and unpack: the packages together have some 130 MB."""
DAEMON_S = 120.0
STOP_S = 60.0
ANSWER_S = 30
APT_LOCK_S = 300
"""For another apt of this machine, such as its nightly upgrade, to end."""
SOCKET = Path("/var/run/docker.sock")

DAEMON_PLAIN: tuple[str, ...] = ()
DAEMON_CONFINED = ("--iptables=false", "--ip6tables=false", "--bridge=none", "--storage-driver=vfs")
"""For machines that forbid firewall rules or mounts: containers without a network, which is what our own tests use."""


class NotProvided(Exception):
    """A service could not be provided; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Package:
    """One Debian package and how to see that it is not needed."""

    name: str
    is_present: Callable[[], bool]
    why: str


def packages() -> tuple[Package, ...]:
    """Returns the packages that only Debian has."""
    return (
        Package("docker.io", lambda: daemon_answers() or bool(shutil.which("dockerd")), "a real Docker Engine"),
        Package("podman", lambda: bool(shutil.which("podman")), "the other daemon behind Docker's protocol"),
        Package("runc", lambda: bool(shutil.which("runc")), "what starts its containers"),
        Package("rootlesskit", lambda: bool(shutil.which("rootlesskit")), "Docker as an ordinary user"),
        Package("uidmap", lambda: bool(shutil.which("newuidmap")), "its users, and those of Podman"),
        Package("slirp4netns", lambda: bool(shutil.which("slirp4netns")), "their network"),
        Package("busybox-static", lambda: Path("/bin/busybox").exists(), "images made without a registry"),
        Package("iproute2", lambda: bool(shutil.which("ip")), "networks of a test's own"),
        Package("nftables", lambda: bool(shutil.which("nft")), "rules that drop packets in them"),
        Package("bubblewrap", lambda: bool(shutil.which("bwrap")), "confined processes"),
        Package("passt", lambda: bool(shutil.which("pasta")), "their way out of networks of their own"),
        Package("openssh-server", lambda: Path("/usr/sbin/sshd").exists(), "boxes that are logged in to"),
        Package("openssh-client", lambda: bool(shutil.which("ssh")), "who logs in"),
        Package("jupyter-notebook", lambda: bool(shutil.which("jupyter-notebook")), "notebooks in boxes"),
        Package("python3-ipykernel", _has_kernel, "what they run"),
        Package("pocl-opencl-icd", lambda: Path("/etc/OpenCL/vendors/pocl.icd").exists(), "OpenCL without a GPU"),
        Package("ocl-icd-libopencl1", _has_opencl_loader, "the library that finds it"),
        Package("libfaketime", lambda: faketime() is not None, "clocks that jump in real daemons"),
        Package("victoria-metrics", lambda: bool(shutil.which("victoria-metrics")), "a metrics store, and a peer"),
        Package("ceph-mon", lambda: bool(shutil.which("ceph-mon")), "a real Ceph, as a store behind S3's protocol"),
        Package("ceph-osd", lambda: bool(shutil.which("ceph-osd")), "the same"),
        Package("radosgw", lambda: bool(shutil.which("radosgw")), "its S3"),
        Package("prometheus", lambda: bool(shutil.which("prometheus")), "a metrics store that also scrapes us"),
        Package(
            "prometheus-node-exporter", lambda: bool(shutil.which("prometheus-node-exporter")), "a peer of our agent"
        ),
    )


def _has_opencl_loader() -> bool:
    return any(Path("/usr/lib").glob("*/libOpenCL.so.1"))


def _has_kernel() -> bool:
    return Path("/usr/lib/python3/dist-packages/ipykernel").is_dir()


def install_missing() -> None:
    """Install what is absent; ask for fresh lists only where a package is unknown to the ones we have."""
    missing = [package for package in packages() if not package.is_present()]
    if not missing:
        return
    for package in missing:
        say(f"installing {package.name}: {package.why}")
    names = [package.name for package in missing]
    if any(not _is_known(name) for name in names):
        _apt("update")
    _apt("install", "--yes", "--no-install-recommends", *names)


def install_client_generator() -> None:
    """Install what makes clients of OpenAPI descriptions into an environment of its own."""
    if Path(client_generator()).exists():
        return
    name, _, version = CLIENT_GENERATOR.name.rpartition("-")
    say(f"installing {name} {version}: a client as strangers make it")
    _run(sys.executable, "-m", "venv", str(CLIENT_GENERATOR))
    _run(str(CLIENT_GENERATOR / "bin" / "python"), "-m", "pip", "install", "--quiet", f"{name}=={version}")


def daemon_answers() -> bool:
    """True if some Docker daemon serves us already: at its socket, or where the environment says."""
    host = os.environ.get("DOCKER_HOST", f"unix://{SOCKET}")
    if not shutil.which("docker"):
        return host == f"unix://{SOCKET}" and SOCKET.is_socket()
    try:
        return subprocess.run(["docker", "version"], capture_output=True, timeout=ANSWER_S, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


@contextmanager
def docker_daemon() -> Iterator[None]:
    """A Docker daemon: the one that answers, or our own with all its state in a temporary folder."""
    if daemon_answers():
        yield
        return
    state = Path(tempfile.mkdtemp(prefix="windrow-docker-"))
    try:
        with (state / "log").open("wb") as log:
            process = _start_daemon(state, log.fileno())
            say(f"started dockerd ({process.pid}), state in {state}")
            try:
                yield
            finally:
                _stop(process)
                say("stopped dockerd")
    finally:
        shutil.rmtree(state, ignore_errors=True)


def _start_daemon(state: Path, log: int) -> subprocess.Popen[bytes]:
    for extra in (DAEMON_PLAIN, DAEMON_CONFINED):
        folders = [f"--data-root={state / 'data'}", f"--exec-root={state / 'exec'}", f"--pidfile={state / 'pid'}"]
        command = ["dockerd", f"--host=unix://{SOCKET}", *folders, *extra]
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        try:
            poll(partial(_is_settled, process), DAEMON_S, "dockerd answers")
        except AssertionError:
            _stop(process)
        if process.poll() is None:
            return process
        say(f"dockerd with {' '.join(extra) or 'its defaults'} ended with {process.returncode}")
    tail = (state / "log").read_text(errors="replace").strip().splitlines()[-5:]
    raise NotProvided("no Docker daemon could be started here:\n" + "\n".join(tail))


def _is_settled(process: subprocess.Popen[bytes]) -> bool:
    return process.poll() is not None or daemon_answers()


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(timeout=STOP_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _is_known(name: str) -> bool:
    shown = subprocess.run(["apt-cache", "policy", name], capture_output=True, text=True, timeout=60, check=False)
    return "Candidate: " in shown.stdout and "Candidate: (none)" not in shown.stdout


def _apt(*arguments: str) -> None:
    _run("apt-get", "--quiet=2", f"-oDPkg::Lock::Timeout={APT_LOCK_S}", *arguments)


def _run(*command: str) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=APT_S + APT_LOCK_S,
        check=False,
    )
    if done.returncode != 0:
        raise NotProvided(f"`{' '.join(command)}` ended with {done.returncode}:\n{done.stdout[-1500:]}")


def say(what: str) -> None:
    """One line about what is done to this machine."""
    print(f"provision: {what}", flush=True)


def run(command: Sequence[str], environment: dict[str, str]) -> int:
    """Run the command to its end; a signal to us reaches it first, and we outlive it to clean up."""
    child: subprocess.Popen[bytes] | None = None
    early: list[int] = []

    def pass_on(number: int, _frame: FrameType | None) -> None:
        if child is None:
            early.append(number)
        else:
            child.send_signal(number)

    kept = {number: signal.signal(number, pass_on) for number in (signal.SIGTERM, signal.SIGHUP)}
    # The terminal sends it to the child as well, which must not begin with it ignored: so it is taken, for nothing.
    kept[signal.SIGINT] = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        child = subprocess.Popen(command, env=environment)
        for number in early:
            child.send_signal(number)
        return child.wait()
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def main(arguments: Sequence[str]) -> int:
    """Provide, run, and take away again; the exit status is the command's, 0 where there is none."""
    command = list(arguments[1:] if arguments[:1] == ["--"] else arguments)
    if os.environ.get(PROVISION, "") in {"", "0"}:
        return run(command, dict(os.environ)) if command else 0
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        print("PROVISION=1 installs Debian packages and starts a daemon: run it as root on Debian.", file=sys.stderr)
        return 2
    try:
        install_missing()
        install_client_generator()
        if not command:
            return 0
        with docker_daemon():
            return run(command, {**os.environ, REQUIRED: "1"})
    except NotProvided as missing:
        print(f"provision: {missing}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
