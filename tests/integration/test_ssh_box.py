"""A machine that only ssh reaches becomes the host of a registered resource, runs its work, and is shown busy by it."""

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser.chromium import find_chromium
from tests.browser.pasted import paste_and_run
from tests.browser.running import started
from tests.services import need
from tests.support.rental import Renter
from tests.support.second_host import SecondHost, bridge, need_namespaces, second_host
from tests.support.stack import stack, wait_for
from tests.waiting import PATIENCE_S

pytestmark = [pytest.mark.timeout(400), pytest.mark.slow]

CONFIGURED = """\
Port 22
HostKey /tmp/host_key
AuthorizedKeysFile /tmp/authorized
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
StrictModes no
UsePAM no
PidFile /run/sshd.pid
"""
FIREWALL = """
iptables -P INPUT DROP
iptables -A INPUT -i lo -j ACCEPT
iptables -A INPUT -m state --state ESTABLISHED,RELATED -j ACCEPT
iptables -A INPUT -p tcp --dport 22 -j ACCEPT
"""
"""Nothing gets in but ssh; the agent dials out."""


@dataclass(frozen=True, slots=True)
class Box:
    """A machine with an ssh server, a market that it reaches, and the user's configuration of ssh."""

    machine: SecondHost
    renter: Renter
    config: Path
    known: Path

    def bind(self, *more: str) -> "subprocess.CompletedProcess[str]":
        """`windrow resource bind lab --ssh box`."""
        words = ("resource", "bind", "lab", "--ssh", "box", "--ssh-config", str(self.config), *more)
        found: subprocess.CompletedProcess[str] = self.renter.windrow(*words, within_s=300)
        return found


def keys(folder: Path, name: str) -> Path:
    made = folder / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(made)], check=True, timeout=60)
    return made


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    need_namespaces()
    need("openssh")
    with (
        bridge() as (name, address),
        stack("--listen", "0.0.0.0", "--public", address) as running,
        second_host(name, address) as machine,
    ):
        own, host = keys(tmp_path, "own"), keys(tmp_path, "host")
        files = {"host_key": host.read_text(), "authorized": own.with_suffix(".pub").read_text(), "sshd": CONFIGURED}
        for name_, text in files.items():
            put = machine.run(
                f"umask 077; printf '%s' \"$TEXT\" >/tmp/{name_}; echo >>/tmp/{name_}", more={"TEXT": text}
            )
            assert put.returncode == 0, put.stderr
        begun = machine.run(
            f"mkdir -p /run/sshd; {FIREWALL if shutil.which('iptables') else ''} /usr/sbin/sshd -f /tmp/sshd"
        )
        assert begun.returncode == 0, begun.stderr
        there = machine.run("hostname -I").stdout.split()[0]
        known = tmp_path / "known"
        known.write_text(f"{there} {host.with_suffix('.pub').read_text()}")
        config = tmp_path / "config"
        config.write_text(
            f"Host box\n  HostName {there}\n  User root\n  IdentityFile {own}\n  IdentitiesOnly yes\n"
            f"  UserKnownHostsFile {known}\n  StrictHostKeyChecking yes\n"
        )
        renter = Renter(running)
        wait_for(lambda: renter.ask("GET", "/me"))
        record = '{"resource_id": "lab", "resource_type": "on-premise", "capabilities": {"cpu_cores": 4}}'
        address = f"{running.cli['url']}/api/model-studio/compute-resources"
        asked = ["curl", "-sf", "-X", "POST", address, "-H", "Content-Type: application/json", "-d", record]
        subprocess.run(asked, check=True, timeout=60)
        yield Box(machine, renter, config, known)


def status(box: Box) -> str:
    return str(box.renter.ask("GET", "/resources/lab")["status"])


async def pasted(box: Box) -> None:
    """The same as a person in the console: a program is pasted, and runs on the machine."""
    expect.set_options(timeout=PATIENCE_S * 1000)
    async with started(find_chromium()) as browser:
        context = await browser.new_context(locale="en-GB", viewport={"width": 1440, "height": 900})
        context.set_default_timeout(PATIENCE_S * 1000)
        await paste_and_run(await context.new_page(), box.renter.stack.cli, "lab", lambda: status(box))


@pytest.mark.long
@pytest.mark.proves("a machine that only ssh reaches becomes the host of a resource and runs its work")
def test_a_machine_that_ssh_reaches_is_bound_runs_work_and_is_busy_with_it(box: Box) -> None:
    stranger = keys(box.known.parent, "stranger").with_suffix(".pub").read_text()
    right = box.known.read_text()
    box.known.write_text(f"{right.split()[0]} {stranger}")
    refused = box.bind()
    assert refused.returncode != 0 and "Its key is not the one that you know" in refused.stderr
    box.known.write_text(right)
    box.machine.run("mv /tmp/authorized /tmp/none")
    refused = box.bind()
    assert refused.returncode != 0 and "It does not let your key in" in refused.stderr
    box.machine.run("mv /tmp/none /tmp/authorized")
    assert box.renter.ask("GET", "/join-tokens")["items"] == [], "what was not used is revoked"

    done = box.bind()

    assert done.returncode == 0, done.stderr
    host = box.renter.ask("GET", "/resources/lab")["host"]
    ask = {"compute_preference": "on-premise", "requirements": {"gpu_count": 0}}
    assert "resource/lab" in {one["backend"] for one in box.renter.ask("POST", "/route", ask)["recommendations"]}
    wait_for(lambda: box.renter.ask("GET", f"/hosts/{host}")["listed_at"])
    cluster = box.renter.create("sleep", "600", host_id=host, runtime="process")
    assert status(box) == "busy"
    wait_for(lambda: "sleep 600" in box.machine.processes())
    box.renter.delete(cluster["id"])
    wait_for(lambda: status(box) == "available")
    asyncio.run(pasted(box))
    again = box.bind()
    assert again.returncode != 0 and "joined before" in again.stderr
    gone = box.machine.run("sh /opt/windrow-agent/install.sh uninstall --yes", 180)
    assert gone.returncode == 0, gone.stderr
    wait_for(lambda: status(box) == "unavailable")
