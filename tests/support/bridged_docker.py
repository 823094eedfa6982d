"""A Docker daemon of a test's own, in a network of its own: its containers are on no network of this machine."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.support.namespaces import Namespace
from tests.waiting import poll

START_S: Final = 60.0
STOP_S: Final = 60.0


@contextmanager
def own_docker(network: Namespace) -> Iterator[str]:
    """The DOCKER_HOST of this daemon; ended with all its state at the end."""
    with tempfile.TemporaryDirectory(prefix="wrd-", dir="/tmp", ignore_cleanup_errors=True) as name:  # sockets: short
        state = Path(name)
        url = f"unix://{state / 'sock'}"
        folders = [f"--data-root={state / 'data'}", f"--exec-root={state / 'exec'}", f"--pidfile={state / 'pid'}"]
        with (state / "log").open("wb") as log, network.entered():
            command = ["dockerd", f"--host={url}", *folders]
            process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        try:
            poll(lambda: process.poll() is not None or _answers(url), START_S, "dockerd answers")
            assert process.poll() is None, (state / "log").read_text(errors="replace")[-1500:]
            yield url
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def docker(url: str, *words: str) -> str:
    """Returns the output of a command of the client about this daemon."""
    own = os.environ | {"DOCKER_HOST": url}
    done = subprocess.run(["docker", *words], capture_output=True, text=True, timeout=START_S, check=True, env=own)
    return done.stdout.strip()


def _answers(url: str) -> bool:
    own = os.environ | {"DOCKER_HOST": url}
    return (
        subprocess.run(["docker", "version"], capture_output=True, timeout=START_S, check=False, env=own).returncode
        == 0
    )
