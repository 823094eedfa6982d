"""Podman's service on a socket of a test's own, with its own storage, in a network of its own."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from socket import AF_UNIX, socket
from typing import Final

from tests.support import truth
from tests.support.namespaces import Namespace, namespace
from tests.waiting import poll

START_S: Final = 60.0
STOP_S: Final = 30.0


@contextmanager
def own_podman(network: Namespace | None = None, environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """The DOCKER_HOST of this service; ended with all its state at the end. network: to be in; else one of its
    own. environment: more of it."""
    there = nullcontext(network) if network is not None else namespace()
    with tempfile.TemporaryDirectory(prefix="wrp-", dir="/tmp") as name, there as own:
        state = Path(name)
        place, url = state / "sock", f"unix://{state / 'sock'}"
        # crun refuses machines where both kinds of control groups are mounted.
        words = ["podman", "--root", str(state / "data"), "--runroot", str(state / "run"), "--runtime", "runc"]
        words += ["--cgroup-manager", "cgroupfs", "--events-backend", "file", "--tmpdir", str(state / "tmp")]
        words += ["--network-config-dir", str(state / "net")]
        with (state / "log").open("wb") as log, own.entered():
            command = [*words, "system", "service", "--time=0", url]
            more = os.environ | dict(environment or {})
            process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, env=more)
        try:
            poll(lambda: process.poll() is not None or _listens(place), START_S, "Podman's service answers")
            assert process.poll() is None, (state / "log").read_text(errors="replace")[-1500:]
            yield url
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            with own.entered():
                subprocess.run([*words, "rm", "--all", "--force"], capture_output=True, timeout=STOP_S, check=False)
            poll(lambda: not _running(f"{state}/"), STOP_S, "all of Podman's own has ended")
            subprocess.run(["umount", "-l", str(state / "data" / "overlay")], capture_output=True, check=False)


def _listens(place: Path) -> bool:
    """Whether somebody takes connections at this socket: its file is there a moment earlier."""
    with socket(AF_UNIX) as probe:
        return probe.connect_ex(str(place)) == 0


def _running(text: str) -> list[truth.Running]:
    """Returns the processes whose command lines hold this. What watches over a command beside a container is ended:
    five minutes later it would tell Podman of that command, which makes its state anew then."""
    found = truth.naming(text)
    for one in found:
        if "--exec-attach" in one.argv:
            with suppress(ProcessLookupError):
                os.kill(one.pid, signal.SIGKILL)
    return found
