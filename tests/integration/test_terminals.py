"""Web terminals on a real market: a shell by a WebSocket, what ends it, and what others try with it."""

import json
import re
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from wsproto import events as ws

from tests.integration.test_people import PASSWORD, Person
from tests.support.places import commands
from tests.support.rental import Renter
from tests.support.web_socket import WebSocket, web_socket
from tests.waiting import PATIENCE_S, poll

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

NAP = "sleep 86373"
"""A command that no other test runs."""
ADDRESS = "ada.terminals@example.org"
ENDS_S = 5.0
"""Within which a terminal ends with the right to it; on a busy machine the whole chain takes a little longer."""


@pytest.fixture
def cluster(renter: Renter) -> Iterator[str]:
    made: str = renter.create("sleep", "600")["id"]
    yield made
    renter.delete(made)


def _path(cluster_id: str) -> str:
    return f"/api/v1/clusters/{cluster_id}/terminal"


def _ticket(renter: Renter, cluster_id: str) -> list[str]:
    found = renter.ask("POST", f"/clusters/{cluster_id}/terminal", {})
    return [found["protocol"], found["ticket"]]


@contextmanager
def _opened(renter: Renter, cluster_id: str, protocols: list[str] | None = None, **more: Any) -> Iterator[WebSocket]:
    shown = _ticket(renter, cluster_id) if protocols is None else protocols
    with web_socket(renter.stack.cli["url"], _path(cluster_id), shown, **more) as opened:
        yield opened


@pytest.mark.proves("a browser's terminal is a real shell in the machine: keys, size, Ctrl-C, its exit code")
def test_a_shell_by_a_web_socket(renter: Renter, cluster: str) -> None:
    with _opened(renter, cluster) as shell:
        assert shell.status == 101
        shell.size(133, 43)
        shell.type("stty size; tty >/dev/null; echo $TERM-$((6*7))\n")
        shell.until(b"43 133\r\n")
        shell.until(b"xterm-256color-42")
        shell.type(f"{NAP}\n")
        poll(lambda: NAP in commands(), what="it sleeps")
        shell.type("\x03echo int$((1))\n")
        shell.until(b"int1")
        shell.type("env | grep -c -e Bearer -e wdr_; cat /dev/null; exit 3\n")
        assert shell.over() == {"ended": "The shell has ended.", "exit_code": 3}
        assert shell.closed == 1000 and b"\r0\r\n" in shell.printed
        assert shell.told[0] == {"open": True}
    said = renter.all("/audit")
    assert [one["action"] for one in said if one["subject"] == cluster and "terminal" in one["action"]]
    assert "terminal.ended" in renter.events(cluster)


@pytest.mark.proves("a closed browser, a withdrawn share and a deleted machine each end a terminal and what it runs")
def test_a_terminal_ends_with_its_browser_and_its_machine(renter: Renter) -> None:
    cluster_id = renter.create("sleep", "600")["id"]
    with _opened(renter, cluster_id) as shell:
        shell.type(f"{NAP}\n")
        poll(lambda: NAP in commands(), what="it sleeps")
    poll(lambda: NAP not in commands(), what="it ended with the connection")
    with _opened(renter, cluster_id) as shell:
        shell.type("echo up$((1))\n")
        shell.until(b"up1")
        renter.ask("DELETE", f"/clusters/{cluster_id}")
        began = time.monotonic()
        assert shell.over() == {"ended": "The machine has ended."}
        assert time.monotonic() - began < ENDS_S + PATIENCE_S / 10
    renter.phase(cluster_id, "Deleted")


def test_a_withdrawn_share_ends_it_and_see_is_not_enough(renter: Renter, cluster: str, tmp_path: Path) -> None:
    (tmp_path / "owner").mkdir()
    (tmp_path / "ada").mkdir()
    (tmp_path / "password").write_text(PASSWORD + "\n")
    found = renter.stack.cli
    owner = Person(tmp_path / "owner", {"WINDROW_URL": found["url"], "WINDROW_TOKEN": found["token"]})
    ada = Person(tmp_path / "ada", {})
    owner.windrow("project", "add", "lab-of-terminals")
    link = owner.windrow("invite", "--address", ADDRESS, "--project", "lab-of-terminals:viewer").strip()
    ada.windrow("login", link, "--name", "Ada", "--password-file", str(tmp_path / "password"))
    config = re.search(r'"token": *"([^"]+)"', next((tmp_path / "ada").rglob("config.json")).read_text())
    assert config is not None

    def asked() -> tuple[int, list[str]]:
        request = urllib.request.Request(f"{found['url']}{_path(cluster)}", b"{}", method="POST")
        request.add_header("Authorization", f"Bearer {config[1]}")
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                said = json.load(answer)
                return answer.status, [said["protocol"], said["ticket"]]
        except urllib.error.HTTPError as error:
            return error.code, []

    seen = owner.json("share", "add", cluster, "--with", ADDRESS, "--level", "see", "--for", "2h")
    assert asked()[0] == 403
    owner.windrow("share", "rm", seen["id"])
    assert asked()[0] in {403, 404}
    used = owner.json("share", "add", cluster, "--with", ADDRESS, "--level", "use", "--for", "2h")
    status, protocols = asked()
    assert status == 201
    with _opened(renter, cluster, protocols) as shell:
        shell.type(f"{NAP}\n")
        poll(lambda: NAP in commands(), what="it sleeps")
        owner.windrow("share", "rm", used["id"])
        began = time.monotonic()
        assert shell.over() == {"ended": "Your right to this machine ended."}
        assert time.monotonic() - began < ENDS_S
    poll(lambda: NAP not in commands(), what="its command ended")
    owner.windrow("member", "rm", ADDRESS, "--yes")


@pytest.mark.proves("no page of another origin, used ticket, other cluster or huge message gets through a web terminal")
def test_what_others_try(renter: Renter, cluster: str) -> None:
    url = renter.stack.cli["url"]
    with _opened(renter, cluster, origin="https://evil.example") as refused:
        assert refused.status == 403
    used = _ticket(renter, cluster)
    with _opened(renter, cluster, used) as first:
        assert first.status == 101
        with _opened(renter, cluster, used) as second:
            assert second.status == 403
    other = _ticket(renter, cluster)
    with web_socket(url, _path("cluster_00000000000000000000000000000000"), other) as refused:
        assert refused.status == 403
    for protocols in ([], ["windrow.terminal"], ["windrow.terminal", renter.stack.cli["token"]]):
        with _opened(renter, cluster, protocols) as refused:
            assert refused.status == 403
    with web_socket(url, "/api/v1/clusters", ["windrow.terminal"]) as refused:
        assert refused.status == 403
    with _opened(renter, cluster) as huge:
        huge.say(ws.BytesMessage(b"x" * 70_000))
        huge.over()
        assert huge.closed == 1009
    with _opened(renter, cluster) as fragmented:
        for _ in range(70):
            fragmented.say(ws.BytesMessage(b"x" * 1_000, message_finished=False))
        fragmented.over()
        assert fragmented.closed == 1009
    renter.stack.must_answer()


def test_who_reads_nothing_holds_no_memory_and_is_cut_off(renter: Renter, cluster: str) -> None:
    found = urlsplit(renter.stack.cli["url"])
    with _opened(renter, cluster) as shell:
        shell.until(b"")
        shell.type("cat /dev/zero\n")
        ping = shell.connection.send(ws.Ping(b"x" * 125))
        shell.socket.settimeout(2)
        sent = 0
        with pytest.raises((TimeoutError, OSError)):
            while sent < 64 << 20:  # each ping would be answered into a buffer of the Master
                sent += shell.socket.send(ping * 500)
        assert sent < 32 << 20
    with socket.create_connection((found.hostname or "", found.port or 0), PATIENCE_S):
        renter.stack.must_answer()
