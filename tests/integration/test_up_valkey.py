"""The shipped market on a real Valkey: a rental begins, Valkey is killed under it, and the rental ends as it should."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import services
from tests.support.rental import Renter
from tests.support.stack import stack
from tests.support.valkey import PASSWORD, Valkey, valkey
from tests.waiting import poll

pytestmark = [pytest.mark.timeout(240), pytest.mark.slow]


CONTAINER = Path(__file__).resolve().parents[2] / "deploy" / "container"


@dataclass
class Market:
    """A running market, the Valkey it is on, and where its state and logs are."""

    renter: Renter
    server: Valkey
    folder: Path

    def bus(self) -> dict[str, Any]:
        """Returns the Master's description of its bus."""
        found: dict[str, Any] = self.renter.ask("GET", "/operators/health")["master"]["bus"]
        return found


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Market]:
    services.need("valkey")
    folder = tmp_path_factory.mktemp("valkey")
    with valkey(folder / "valkey") as server:
        secret = folder / "redis_url"
        secret.write_text(server.url + "\n")
        with stack(folder=folder / "market", environment={"WINDROW_REDIS_URL_FILE": str(secret)}) as running:
            renter = Renter(running)
            renter.online()
            yield Market(renter, server, folder / "market")


def test_what_containers_run_serves_a_real_master(renter: Renter, tmp_path: Path) -> None:
    url = renter.stack.cli["url"]

    well = subprocess.run([sys.executable, CONTAINER / "health.py", f"{url}/healthz"], timeout=120)
    cli = renter.stack.data_dir / "cli.json"
    command = [sys.executable, str(CONTAINER / "enrol.py"), str(cli), str(tmp_path)]
    subprocess.run([*command, "access-a=access", "agent=host"], check=True, timeout=120)

    assert well.returncode == 0
    assert all((tmp_path / name).read_text().startswith("wj_") for name in ("access-a", "agent"))


@pytest.mark.proves("`windrow up` runs on Valkey, and a rental ends well when Valkey is killed under it")
@pytest.mark.long
def test_a_rental_goes_on_to_its_end_when_valkey_is_killed_under_it(market: Market) -> None:
    renter, server = market.renter, market.server
    poll(lambda: market.bus()["is_well"], what="the Master is on Valkey")
    assert market.bus()["kind"] == "redis"
    poll(lambda: [peer["role"] for peer in market.bus()["peers"]] == ["leader"], what="the Master has said who it is")
    poll(lambda: server.keys("windrow:*:present:*"), what="Valkey knows it")
    cluster = renter.create("sh", "-c", "echo began; sleep 3; echo done", until="Running")

    server.kill()

    with renter.stack.client() as api:
        said = b"".join(api.logs(cluster["id"], follow=True)).split()
    receipt = renter.delete(cluster["id"])
    assert said == [b"began", b"done"]
    assert float(receipt["running_seconds"]) >= 3.0
    assert renter.flaws(cluster["id"]) == []
    poll(lambda: not market.bus()["is_well"], what="health says that Valkey is away")
    server.start()
    poll(lambda: market.bus()["is_well"], what="the Master is on Valkey again")
    logs = "".join(path.read_text(errors="replace") for path in market.folder.rglob("*.log"))
    assert "bus_down" in logs and PASSWORD not in logs
