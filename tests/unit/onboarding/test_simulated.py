"""Simulated hosts over HTTP: set where `windrow up` runs the market, within bounds, and recorded with who did it."""

from collections.abc import Mapping
from pathlib import Path

from tests.unit.identity.people_world import RENTER, ask, people_market
from windrow_master.app.wiring import Settings
from windrow_proto.ids import AccessId


class Up:
    """As `windrow up` answers a Master."""

    count = 3

    async def simulated(self) -> tuple[int, int]:
        return self.count, 100

    async def simulate(self, count: int) -> None:
        self.count = count

    async def accesses(self) -> Mapping[str, str]:
        return {}

    async def kill(self, access_id: AccessId) -> int:
        raise AssertionError(f"{access_id} is to live")


async def test_an_operator_sets_their_number_and_the_audit_log_says_so(tmp_path: Path) -> None:
    up = Up()
    async with people_market(tmp_path, Settings(supervisor=up)) as market:
        known = {"can_set": True, "wanted": 3, "at_most": 100}
        assert await ask(market.owner, "GET", "/simulated-hosts") == known
        assert await ask(market.owner, "PUT", "/simulated-hosts", count=50) == known | {"wanted": 50}
        for wrong in (True, "7"):
            await ask(market.owner, "PUT", "/simulated-hosts", 422, count=wrong)
        assert await ask(market.owner, "PUT", "/simulated-hosts", count=50.0) == known | {"wanted": 50}
        refused = await ask(market.owner, "PUT", "/simulated-hosts", 422, count=101)
        assert "0 to 100 simulated hosts, not 101" in refused["detail"]
        ada = await market.joined("ada@example.org", projects=RENTER)
        await ask(ada, "PUT", "/simulated-hosts", 403, count=1)
        assert up.count == 50
        rows = (await ask(market.owner, "GET", "/audit?action=simulated_hosts.set"))["items"]
        assert [row["fields"]["count"] for row in rows] == ["50", "50"]


async def test_where_nobody_runs_any_it_says_how_they_are_started(tmp_path: Path) -> None:
    async with people_market(tmp_path) as market:
        assert (await ask(market.owner, "GET", "/simulated-hosts"))["can_set"] is False
        refused = await ask(market.owner, "PUT", "/simulated-hosts", 409, count=1)
        assert "windrow-agent simulate" in refused["detail"]
