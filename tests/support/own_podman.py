"""Podman's service on a socket of a test's own, with its own storage, in a network of its own."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.support import truth
from tests.support.namespaces import namespace
from tests.waiting import poll

START_S: Final = 60.0
STOP_S: Final = 30.0


@contextmanager
def own_podman() -> Iterator[str]:
    """What DOCKER_HOST has to say to reach it; ended with all its state at the end."""
    with tempfile.TemporaryDirectory(prefix="wrp-", dir="/tmp") as name, namespace() as own:
        state = Path(name)
        socket, url = state / "sock", f"unix://{state / 'sock'}"
        # crun refuses machines where both kinds of control groups are mounted.
        words = ["podman", "--root", str(state / "data"), "--runroot", str(state / "run"), "--runtime", "runc"]
        words += ["--cgroup-manager", "cgroupfs", "--events-backend", "file", "--tmpdir", str(state / "tmp")]
        words += ["--network-config-dir", str(state / "net")]
        with (state / "log").open("wb") as log, own.entered():
            command = [*words, "system", "service", "--time=0", url]
            process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        try:
            poll(lambda: process.poll() is not None or socket.exists(), START_S, "Podman's service answers")
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
            # What watches over a container says to Podman that it has ended: its state would be made anew by that.
            poll(lambda: not truth.naming(f"{state}/"), STOP_S, "Podman's last words are said")
            subprocess.run(["umount", "-l", str(state / "data" / "overlay")], capture_output=True, check=False)
