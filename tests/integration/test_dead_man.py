"""A bought machine with systemd switches itself off when its agent hears nothing of any Master, and not before."""

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import clean_debian
from tests.support.second_host import SecondHost, bridge, clean_host, need_namespaces
from tests.waiting import poll
from windrow_master.hybrid.backends.bootstrap import HEARD, user_data
from windrow_master.hybrid.backends.port import PurchaseId
from windrow_proto.clock import SystemClock
from windrow_proto.units import HOUR

pytestmark = [pytest.mark.long, pytest.mark.slow]

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
