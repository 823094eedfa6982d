"""A cluster that is shared: somebody else opens a shell and a tunnel in it by the command line, until the share is
withdrawn."""

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.test_people import PASSWORD, Person
from tests.support.places import commands
from tests.support.ports import own_port
from tests.support.rental import Renter
from tests.support.stack import WINDROW, wait_for
from tests.waiting import PATIENCE_S, poll

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ADDRESS = "ada.shares@example.org"
SLEEP = "sleep 86391"
"""A command that no other test runs."""
SERVER = """
import socket, threading
server = socket.create_server(("127.0.0.1", PORT))
print("serving", flush=True)
while True:
    one, _ = server.accept()
    threading.Thread(target=lambda one=one: (one.sendall(b"here"), one.recv(1)), daemon=True).start()
"""


@contextmanager
def _running(person: Person, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """`windrow ...` that goes on."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith("WINDROW_")}
    own = bare | {"HOME": str(person.home), "XDG_CONFIG_HOME": str(person.home / "config")} | person.own
    with subprocess.Popen([WINDROW, *words], cwd=person.home, env=own, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(PATIENCE_S)


def _invited(renter: Renter, folder: Path, owner: Person) -> Person:
    """Ada, a viewer of another project."""
    (folder / "ada").mkdir()
    secret = folder / "password"
    secret.write_text(PASSWORD + "\n")
    ada = Person(folder / "ada", {})
    owner.windrow("project", "add", "lab-of-shares")
    link = owner.windrow("invite", "--address", ADDRESS, "--project", "lab-of-shares:viewer").strip()
    ada.windrow("login", link, "--name", "Ada", "--password-file", str(secret))
    return ada


@pytest.mark.proves("a cluster is shared: another user's shell and tunnel in it end when the share is withdrawn")
def test_a_shell_and_a_tunnel_by_a_share_end_when_it_is_withdrawn(renter: Renter, tmp_path: Path) -> None:
    port = own_port()
    cluster = renter.create("python3", "-u", "-c", SERVER.replace("PORT", str(port)))
    wait_for(lambda: b"serving" in renter.log(cluster["id"]))
    found = renter.stack.cli
    (tmp_path / "owner").mkdir()
    owner = Person(tmp_path / "owner", {"WINDROW_URL": found["url"], "WINDROW_TOKEN": found["token"]})
    ada = _invited(renter, tmp_path, owner)
    assert "no such machine" in ada.windrow("cluster", "show", cluster["id"], fails=True)

    share = owner.json("share", "add", cluster["id"], "--with", ADDRESS, "--level", "use", "--for", "2h")
    (received,) = ada.json("share", "ls", "--received")
    assert (received["object_id"], received["project"]) == (cluster["id"], "default")
    assert ada.windrow("cluster", "exec", cluster["id"], "--", "echo", "inside") == "inside\n"
    assert "manage" in ada.windrow("cluster", "stop", cluster["id"], fails=True)
    with (
        _running(ada, "cluster", "exec", cluster["id"], "--", "sh", "-c", f"echo here; {SLEEP}") as shell,
        _running(ada, "cluster", "forward", cluster["id"], str(port), "--json") as forward,
    ):
        assert shell.stdout is not None and forward.stdout is not None
        assert shell.stdout.readline() == "here\n"
        local = int(json.loads(forward.stdout.readline())["local_address"].rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", local), PATIENCE_S) as connection:
            assert connection.recv(4) == b"here"

            owner.windrow("share", "rm", share["id"])

            assert shell.wait(PATIENCE_S) != 0
            assert connection.recv(1) == b""
    poll(lambda: SLEEP not in commands(), what="the shell's command ends")
    assert "renter" in ada.windrow("cluster", "exec", cluster["id"], "--", "true", fails=True)
    assert "no such machine" in ada.windrow("cluster", "show", cluster["id"], fails=True)
    assert renter.ask("GET", f"/clusters/{cluster['id']}")["phase"] == "Running"
    assert {"share.made", "share.used", "share.withdrawn"} <= set(renter.events(cluster["id"]))
    owner.windrow("member", "rm", ADDRESS, "--yes")
    renter.delete(cluster["id"])
