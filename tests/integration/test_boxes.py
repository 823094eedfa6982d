"""Boxes through the shipped daemons: a process that is logged in to and has a notebook; an image that has neither."""

import json
import os
import signal
import subprocess
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.services import need
from tests.support.box_image import need_box
from tests.support.places import commands
from tests.support.rental import Renter, local_image
from tests.support.sshd import privsep as privsep
from tests.support.stack import WINDROW, wait_for
from tests.waiting import PATIENCE_S, poll

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

WAIT_S = 120


@pytest.fixture
def key(tmp_path: Path) -> Path:
    need_box()
    path = tmp_path / "id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True, timeout=60)
    return path


@pytest.mark.long
@pytest.mark.proves("a box that is a process is logged in to with its renter's own key, and has a notebook")
def test_a_process_is_logged_in_to_and_its_notebook_opened_by_its_renter_alone(
    renter: Renter, key: Path, privsep: None
) -> None:
    name = f"lab-{uuid.uuid4().hex[:6]}"
    words = ("--name", name, "--runtime", "process", "--ssh-key", f"{key}.pub", "--json")
    made = renter.windrow("cluster", "create", *words, within_s=WAIT_S)
    assert made.returncode == 0, made.stderr
    cluster = json.loads(made.stdout)
    try:
        only = ("-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes", "-i", str(key))
        logged_in = wait_for(
            lambda: (
                (d := renter.windrow("cluster", "ssh", name, "--", *only, "pwd; echo $JUPYTER_TOKEN; exit 3"))
                and d.returncode == 3
                and d
            ),
            WAIT_S,
        )
        folder, token = logged_in.stdout.splitlines()
        assert cluster["workloads"][0]["id"] in folder
        with _forwarded(renter, name) as url:
            address, _, told = url.partition("?token=")
            assert told == token
            wait_for(lambda: _status(f"{address}api/contents?token={token}") == 200, WAIT_S)
            assert _status(f"{address}api/contents") == 403
            assert _status(f"{address}api/contents?token={token}", host="rebound.example") == 403
    finally:
        renter.delete(cluster["id"])
    poll(lambda: token not in commands() and "windrow-box." not in commands(), what="nothing of it runs")


@pytest.mark.docker
def test_an_image_without_either_says_so_in_its_log_and_stays_up(renter: Renter, key: Path, tmp_path: Path) -> None:
    need("docker")
    need("busybox")
    with local_image(tmp_path / "image") as image:
        public = key.with_suffix(".pub").read_text()
        cluster = renter.create(image=image, ssh_keys=[public], notebook=True)
        try:
            log = wait_for(lambda: (text := renter.log(cluster["id"]).decode()) and "no notebook" in text and text)
            assert "no SSH: there is no OpenSSH server here" in log
            assert renter.ask("GET", f"/clusters/{cluster['id']}")["phase"] == "Running"
        finally:
            renter.delete(cluster["id"])


@contextmanager
def _forwarded(renter: Renter, name: str) -> Iterator[str]:
    """Returns the address that `windrow cluster forward NAME 8888` says to open in a browser."""
    found = renter.stack.cli
    own = os.environ | {"WINDROW_URL": found["url"], "WINDROW_TOKEN": found["token"]}
    command = [WINDROW, "cluster", "forward", name, "8888", "--json"]
    with subprocess.Popen(command, env=own, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said: dict[str, Any] = json.loads(process.stdout.readline())
            yield str(said["url"])
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(PATIENCE_S)


def _status(url: str, host: str | None = None) -> int:
    """Returns the status for a browser, which takes every name under .localhost for this machine; Python does not."""
    named = urllib.parse.urlsplit(url)
    here = named._replace(netloc=f"127.0.0.1:{named.port}").geturl()
    request = urllib.request.Request(here, headers={"Host": host or named.netloc})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code
