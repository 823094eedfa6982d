"""Bought machines run their first script: one joins a market and is ended, one that hears no Master powers itself
off."""

import json
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests import services
from tests.support import clean_debian
from tests.support.backend_worlds import SshWorld, box_of, order
from tests.support.second_host import SecondHost, bridge, clean_host, need_namespaces, second_host
from tests.support.stack import Stack, stack, wait_for
from tests.waiting import poll, poll_async
from windrow_master.hybrid.backends.bootstrap import HEARD, user_data
from windrow_master.hybrid.backends.port import MachineState, PurchaseId, Wanted
from windrow_proto.clock import SystemClock
from windrow_proto.units import HOUR

pytestmark = [pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(400)]

JOINS = f"mkdir -p {Path(HEARD).parent}/identity"
"""What stands for the agent's installation."""


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[SecondHost]:
    need_namespaces()
    clean_debian.need_debian()
    root = clean_debian.make(tmp_path / "root", "curl", "openssl", "systemd", "dbus")
    with bridge() as (name, address), clean_host(name, address, root, has_systemd=True) as found:
        yield found


def is_on(machine: SecondHost) -> bool:
    stat = Path(f"/proc/{machine.holder}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.proves("a machine with systemd powers itself off without its Master")
def test_a_machine_that_hears_nothing_powers_itself_off_and_one_that_hears_goes_on(machine: SecondHost) -> None:
    ends_at_ns = SystemClock().wall_ns() + HOUR
    script = user_data(JOINS, PurchaseId("p"), ends_at_ns, 6)
    with machine.begun(f"mkdir -p {Path(HEARD).parent}; while touch {HEARD}; do sleep 0.5; done"):
        started = machine.run(f"printf %s {shlex.quote(script)} >/srv/first; sh /srv/first")
        assert started.returncode == 0, started.stderr
        poll(lambda: up_s(machine) > 10, what="longer than it may hear nothing")
        assert is_on(machine)

    poll(lambda: not is_on(machine), what="it switched itself off")


def up_s(machine: SecondHost) -> int:
    """Seconds since the dead man's first look."""
    said = machine.run("echo $(($(date +%s) - $(stat -c %Y /etc/systemd/system/windrow-dead-man.timer)))")
    return int(said.stdout or 0)


@pytest.mark.proves("a machine taken by SSH joins a real market by its first script, and its end leaves nothing")
async def test_a_machine_that_was_taken_joins_and_its_end_takes_the_agent_away(tmp_path: Path) -> None:
    need_namespaces()
    services.need("openssh")
    with (
        bridge() as (name, address),
        stack("--listen", "0.0.0.0", "--public", address) as running,
        second_host(name, address) as machine,
    ):
        wait_for(lambda: ask(running, "GET", "/me"))
        world = SshWorld(box_of(machine, tmp_path))
        backend, before = world.backend(), machine.processes()
        token = ask(running, "POST", "/join-tokens", {"role": "host"})
        asked = order(world, (await backend.offers(Wanted()))[0], "market")
        script = user_data(token["command"], asked.purchase_id, asked.ends_at_ns, 1800)

        bought = await backend.provision(replace(asked, user_data=script))

        host_id = await poll_async(lambda: joined_as(machine), 300, "it has joined")
        wait_for(lambda: ask(running, "GET", f"/hosts/{host_id}")["link_state"] == "online")
        assert not any(token["join_token"] in line for line in machine.processes())
        assert token["join_token"] not in await backend.console(bought.machine_id)

        await backend.terminate(bought.machine_id)

        async def has_ended() -> bool:
            return [one.state for one in await backend.describe("market")] == [MachineState.TERMINATED]

        await poll_async(has_ended, 120)
        await poll_async(lambda: machine.processes() == before)
        assert machine.run("ls /opt/windrow-agent").returncode != 0
        assert machine.run("ls /var/lib/windrow-agent").returncode != 0
        await backend.close()


def ask(market: Stack, method: str, path: str, body: Any = None) -> dict[str, Any]:
    """One call of a market's HTTP API."""
    with market.client() as api:
        answer: dict[str, Any] = api.request(method, path, body=body)
        return answer


def joined_as(machine: SecondHost) -> str:
    """The id of the host that joined from there; empty: it has not yet."""
    read = machine.run("cat /var/lib/windrow-agent/identity/identity.json")
    return str(json.loads(read.stdout)["id"]) if read.returncode == 0 and read.stdout else ""
