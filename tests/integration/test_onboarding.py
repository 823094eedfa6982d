"""A second machine comes in by the one line, works, and goes without a trace; whoever is not ours is refused."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.second_host import SecondHost, bridge, need_namespaces, second_host
from tests.support.stack import Stack, stack, wait_for
from windrow_proto import enrol

pytestmark = [pytest.mark.timeout(400), pytest.mark.slow, pytest.mark.xdist_group("onboarding")]

JOIN_S = 180
"""For the line to end on a busy machine of two cores."""
NAME = "second-host"


@dataclass(frozen=True, slots=True)
class Market:
    """A running market that listens for other machines, and the bridge they come by."""

    stack: Stack
    bridge: str
    address: str

    def ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """One call of the HTTP API."""
        with self.stack.client() as api:
            answer: dict[str, Any] = api.request(method, path, body=body)
            return answer

    def token(self) -> dict[str, Any]:
        """A fresh join token with its line."""
        return self.ask("POST", "/join-tokens", body={"role": "host"})

    def host(self, host_id: str) -> dict[str, Any]:
        """One host as the Master sees it."""
        return self.ask("GET", f"/hosts/{host_id}")

    def wheel(self) -> Path:
        """The agent's wheel, as the Master serves it."""
        return next((self.stack.data_dir / "wheels" / "ours").glob("windrow_agent-*.whl"))


@pytest.fixture(scope="module")
def market() -> Iterator[Market]:
    need_namespaces()
    with bridge() as (name, address), stack("--listen", "0.0.0.0", "--public", address) as running:
        found = Market(running, name, address)
        wait_for(lambda: found.ask("GET", "/me"))
        wait_for(lambda: json.loads((running.data_dir / "wheels" / "manifest.json").read_text())["files"])
        yield found


@pytest.fixture
def machine(market: Market) -> Iterator[SecondHost]:
    with second_host(market.bridge, market.address) as found:
        yield found


def joined_as(machine: SecondHost) -> str:
    """The id in the identity of the agent installed there."""
    read = machine.run("cat /var/lib/windrow-agent/identity/identity.json")
    found: str = json.loads(read.stdout)["id"]
    return found


@pytest.mark.proves("a second host joins by one line, is online, and leaves nothing", by="make test")
def test_a_second_host_joins_by_one_line_is_online_and_leaves_nothing(market: Market, machine: SecondHost) -> None:
    files, processes = machine.files(), machine.processes()
    made = market.token()
    done = machine.run(made["command"], JOIN_S)
    assert done.returncode == 0, done.stdout + done.stderr
    host_id = joined_as(machine)
    host = wait_for(lambda: (found := market.host(host_id))["link_state"] == "online" and found)
    assert host["name"].startswith(NAME)
    assert host["simulated"] is False
    work = {"kind": "box", "host_id": host_id, "argv": ["sleep", "3600"], "runtime": "process"}
    cluster = market.ask("POST", "/clusters", body=work)["cluster"]["id"]
    wait_for(lambda: market.ask("GET", f"/clusters/{cluster}")["phase"].lower() == "running")
    running = machine.processes()
    assert any("windrow-agent run" in line for line in running)
    assert any(line == "sleep 3600" for line in running)
    assert not any(made["join_token"] in line for line in running)
    gone = machine.run("sh /opt/windrow-agent/install.sh uninstall --yes", JOIN_S)
    assert gone.returncode == 0, gone.stdout + gone.stderr
    assert machine.processes() == processes
    assert machine.files() == files


def test_a_used_token_is_refused_with_its_sentence_and_leaves_nothing(
    market: Market, machine: SecondHost, tmp_path: Path
) -> None:
    made = market.token()
    command = made["command"]
    url, first = market.stack.cli["https_url"], enrol.IdentityFolder(tmp_path)
    enrol.join(first, url, made["join_token"], enrol.JoinRequest("host", "came-first"))
    files = machine.files()
    done = machine.run(command, JOIN_S)
    assert done.returncode != 0
    assert "join token" in done.stderr and "could not join" in done.stderr
    assert machine.files() == files


def test_one_changed_byte_in_a_served_wheel_is_refused_and_leaves_nothing(market: Market, machine: SecondHost) -> None:
    files, wheel = machine.files(), market.wheel()
    content = wheel.read_bytes()
    try:
        wheel.write_bytes(content[:5_000] + bytes([content[5_000] ^ 1]) + content[5_001:])
        done = machine.run(market.token()["command"], JOIN_S)
    finally:
        wheel.write_bytes(content)
    assert done.returncode != 0
    assert f"{wheel.name} is not the file that the Master listed" in done.stderr
    assert machine.files() == files


def test_a_master_with_another_key_is_not_listened_to(market: Market, machine: SecondHost) -> None:
    files = machine.files()
    url, other = market.stack.cli["https_url"], "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
    done = machine.run(f"set -e; curl -fsSL -k --pinnedpubkey {other} {url}/install.sh >/tmp/got; sh /tmp/got")
    assert done.returncode == 90  # curl: the pinned key does not match
    assert machine.run("test ! -s /tmp/got && rm -f /tmp/got").returncode == 0
    assert machine.files() == files
