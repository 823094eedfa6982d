"""A volume between hosts that have nothing in common: read beside its writer, and taken on when a host is killed."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_job_kills import Host, World, _identity
from tests.support.namespaces import need_networks, switched
from tests.support.regions import regional_market
from tests.support.stack import wait_for
from windrow.errors import ApiProblem

pytestmark = [pytest.mark.slow, pytest.mark.chaos, pytest.mark.timeout(300)]

HOSTS = ("h0", "h1")
JOIN_S = 120.0
WRITE = 'cd "$WINDROW_VOLUME_DATA" && echo first > f && touch begun && sleep 300'


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    need_networks()
    with ExitStack() as cleanup:
        made = cleanup.enter_context(switched(2 + len(HOSTS), "10.97.0"))
        names = ("master", "eu", *HOSTS)
        networks = {name: one for name, (one, _) in zip(names, made, strict=True)}
        addresses = {name: address for name, (_, address) in zip(names, made, strict=True)}
        market = cleanup.enter_context(regional_market(tmp_path, networks, addresses, "tests.support.hasty_master"))
        market.add_accesses("eu")
        hosts = [Host(market, name, market.add_host(name)) for name in HOSTS]

        def are_up() -> bool:
            found = market.renter.all("/hosts")
            return len(found) == len(HOSTS) and all(h["link_state"] == "online" and h["price_per_hour"] for h in found)

        wait_for(are_up, JOIN_S)
        yield World(market, {_identity(host)[0]: host for host in hosts})
        for host in hosts:
            host.lose()


def _where(cluster: dict[str, Any]) -> str:
    return str(cluster["workloads"][0]["host_id"])


@pytest.mark.proves(
    "a volume is read beside its writer, and after its host is killed its newest version runs elsewhere"
)
def test_a_volume_outlives_the_host_that_wrote_it(world: World) -> None:
    renter = world.market.renter
    renter.ask("POST", "/volumes", {"name": "data"})
    first = renter.create("sh", "-c", WRITE, volumes=["data:/data"])
    begun = world.hosts[_where(first)].works / first["workloads"][0]["id"] / "volumes" / "data"
    wait_for(lambda: (begun / "begun").exists())
    (saved,) = renter.ask("POST", f"/clusters/{first['id']}/volumes/save", {})["volumes"]
    assert saved["version"] == 1
    with pytest.raises(ApiProblem, match="is written by"):
        renter.create("true", until="", volumes=["data:/data"])
    reader = renter.create("sh", "-c", 'cat "$WINDROW_VOLUME_DATA/f"', volumes=["data:/data:ro"])
    assert _where(reader) != _where(first)
    renter.exited(reader["id"])
    assert renter.log(reader["id"]) == b"first\n"
    renter.delete(reader["id"])

    (begun / "f").write_text("lost with its host\n")
    world.hosts[_where(first)].lose()
    renter.phase(first["id"], "Degraded", "Failed")
    renter.ask("DELETE", f"/clusters/{first['id']}")
    second = renter.create("sh", "-c", 'cat "$WINDROW_VOLUME_DATA/f"; echo more > "$WINDROW_VOLUME_DATA/g"',
                           volumes=["data:/data"])  # fmt: skip
    assert _where(second) != _where(first)
    renter.exited(second["id"])
    assert renter.log(second["id"]) == b"first\n"

    world.hosts[_where(first)].start()  # what it still had of the volume is another's by now, and saved no more
    renter.delete(second["id"])
    wait_for(lambda: renter.ask("GET", f"/clusters/{first['id']}")["phase"] in ("Deleted", "Failed"), JOIN_S)
    kept = renter.ask("GET", "/volumes/data")
    assert (kept["version"], kept["files"], kept["used_by"]) == (2, 3, [])
