"""Hosts in networks of their own that a test takes away whole: agent, shims and work in one moment, and starts again.

The Master is the shipped one with less patience (tests/support/hasty_master.py).
"""

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support import truth
from tests.support.namespaces import need_networks, switched
from tests.support.regions import RegionalMarket, regional_market
from tests.support.stack import wait_for

JOIN_S = 300.0


@dataclass(slots=True)
class Host:
    """One host, its agent, and whether it is there."""

    market: RegionalMarket
    name: str
    agent: "subprocess.Popen[bytes]"
    is_up: bool = True

    @property
    def works(self) -> Path:
        """The folders of its workloads."""
        return self.market.folder / f"host-{self.name}" / "process"

    @property
    def identity(self) -> tuple[str, Path]:
        """Its id, and where its keys are."""
        folder = self.market.folder / f"host-{self.name}" / "identity"
        return json.loads((folder / "identity.json").read_text())["id"], folder

    def lose(self) -> None:
        """SIGKILL to all that runs there: the agent, shims and everything below them, until nothing is left."""
        self.agent.kill()
        self.agent.wait()
        wait_for(lambda: not self._killed(), pause_s=0.01)

    def _killed(self) -> list[int]:
        running = {one.pid: one.parent for one in truth.processes()}
        found = {one.pid for one in truth.naming(f"{self.works}/")}
        while below := {pid for pid, parent in running.items() if parent in found} - found:
            found |= below
        for number in (signal.SIGSTOP, signal.SIGKILL):  # in one moment: nobody writes down how another has ended
            for pid in found:
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    continue
        return list(found)

    def start(self) -> None:
        """As after a start of its machine."""
        self.agent = self.market.run_host(self.name)
        self.is_up = True


@contextmanager
def mortal_hosts(folder: Path, names: Sequence[str], subnet: str) -> Iterator[tuple[RegionalMarket, dict[str, Host]]]:
    """A market with one Access, and these hosts of it by their ids, all listed. subnet: like 10.96.0."""
    need_networks()
    with ExitStack() as cleanup:
        places = ("master", "eu", *names)
        made = dict(zip(places, cleanup.enter_context(switched(len(places), subnet)), strict=True))
        networks = {name: one for name, (one, _) in made.items()}
        addresses = {name: address for name, (_, address) in made.items()}
        market = cleanup.enter_context(regional_market(folder, networks, addresses, "tests.support.hasty_master"))
        market.add_accesses("eu")
        hosts = [Host(market, name, market.add_host(name)) for name in names]

        def are_up() -> bool:
            found = market.renter.all("/hosts")
            told = (h["link_state"] == "online" and h["price_per_hour"] and h["cpu_count"] for h in found)
            return len(found) == len(names) and all(told)

        wait_for(are_up, JOIN_S)
        try:
            yield market, {host.identity[0]: host for host in hosts}
        finally:
            for host in hosts:
                host.lose()  # also what a failed test left running there
