"""A clean Debian with Python and curl has `windrow` by one line of a real Master, signed in, and loses it again."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support import clean_debian
from tests.support.second_host import SecondHost, bridge, clean_host, need_namespaces
from tests.support.stack import Stack, stack, wait_for

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow, pytest.mark.long]

PROMISED_S = 60
LINE_S = 300
LOCAL = "$HOME/.local/bin/windrow"


@dataclass(frozen=True, slots=True)
class Market:
    """A running market, the bridge that other machines come by, and the line of its page."""

    stack: Stack
    bridge: str
    address: str
    line: str

    def ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        with self.stack.client() as api:
            answer: dict[str, Any] = api.request(method, path, body=body)
            return answer


@pytest.fixture(scope="module")
def market() -> Iterator[Market]:
    need_namespaces()
    with bridge() as (name, address), stack("--listen", "0.0.0.0", "--public", address) as running:
        running.must_answer()
        with running.client() as api:
            offer = api.get("/cli")
        assert (offer["this_machine_only"], offer["url"]) == (False, running.cli["https_url"])
        wait_for(lambda: (running.data_dir / "cli-wheels" / "files.txt").exists(), LINE_S)
        yield Market(running, name, address, offer["command"])


@pytest.fixture
def laptop(market: Market, tmp_path: Path) -> Iterator[SecondHost]:
    """A clean Debian as it is after `apt-get install python3 curl`: no venv, no pip, no authorities of the web."""
    clean_debian.need_debian()
    root = clean_debian.make(tmp_path / "root", "curl", "python3")
    with clean_host(market.bridge, market.address, root, has_systemd=False) as found:
        yield found


def files_of(laptop: SecondHost) -> set[str]:
    """All but the bytecode of the system's Python: Debian makes it with the package, this copy of one later."""
    return {line for line in laptop.files() if not ("/usr/lib/python3" in line and "__pycache__" in line)}


@pytest.mark.proves("one line installs windrow on a clean machine in under a minute and signs in", by="make long")
def test_one_line_installs_the_command_signs_in_and_uninstalling_leaves_nothing(
    market: Market, laptop: SecondHost
) -> None:
    files = files_of(laptop)
    link = market.ask("POST", "/accounts", {"name": "anna", "roles": ["renter"]})["link"]
    line = market.line.replace("| sh", '| WINDROW_LINK="$LINK" sh')
    began_s = time.monotonic()
    done = laptop.run(line, LINE_S, more={"LINK": link})
    took_s = time.monotonic() - began_s
    assert done.returncode == 0, done.stdout + done.stderr
    assert took_s < PROMISED_S, f"the line took {took_s:.0f} s"
    assert "Signed in as anna" in done.stdout + done.stderr
    said = laptop.run(f"{LOCAL} whoami --json")
    assert json.loads(said.stdout)["user"]["name"] == "anna", said.stderr
    again = laptop.run(market.line, LINE_S)
    assert again.returncode == 0 and "is installed already" in again.stdout, again.stderr
    gone = laptop.run("sh $HOME/.local/share/windrow/install-cli.sh --uninstall", LINE_S)
    assert gone.returncode == 0 and "Signed out" in gone.stdout + gone.stderr, gone.stderr
    assert files_of(laptop) == files


def test_the_list_has_wheels_for_every_python_that_people_have(market: Market) -> None:
    head, *lines = (market.stack.data_dir / "cli-wheels" / "files.txt").read_text().splitlines()
    assert head.split()[2] == "3.11,3.12,3.13,3.14"
    names = {line.split()[2].split("-")[0] for line in lines}
    assert {"windrow", "windrow_tunnel", "cryptography", "cffi", "typer", "httpx2"} <= names
