"""A volume between hosts that have nothing in common: read beside its writer, and taken on when a host is killed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.mortal_hosts import Host, mortal_hosts
from tests.support.regions import RegionalMarket
from tests.support.rental import ENDED
from tests.support.stack import wait_for
from windrow.errors import ApiProblem

pytestmark = [pytest.mark.slow, pytest.mark.chaos, pytest.mark.timeout(300)]

JOIN_S = 120.0
WRITE = 'cd "$WINDROW_VOLUME_DATA" && echo first > f && touch begun && sleep 300'


@pytest.fixture
def market(tmp_path: Path) -> Iterator[tuple[RegionalMarket, dict[str, Host]]]:
    with mortal_hosts(tmp_path, ("h0", "h1"), "10.97.0") as made:
        yield made


def _where(cluster: dict[str, Any]) -> str:
    return str(cluster["workloads"][0]["host_id"])


@pytest.mark.long
@pytest.mark.proves(
    "a volume is read beside its writer, and after its host is killed its newest version runs elsewhere"
)
def test_a_volume_outlives_the_host_that_wrote_it(market: tuple[RegionalMarket, dict[str, Host]]) -> None:
    renter, hosts = market[0].renter, market[1]
    renter.ask("POST", "/volumes", {"name": "data"})
    first = renter.create("sh", "-c", WRITE, volumes=["data:/data"])
    begun = hosts[_where(first)].works / first["workloads"][0]["id"] / "volumes" / "data"
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
    hosts[_where(first)].lose()
    renter.phase(first["id"], "Degraded", "Failed")
    renter.ask("DELETE", f"/clusters/{first['id']}")
    second = renter.create("sh", "-c", 'cat "$WINDROW_VOLUME_DATA/f"; echo more > "$WINDROW_VOLUME_DATA/g"',
                           volumes=["data:/data"])  # fmt: skip
    assert _where(second) != _where(first)
    renter.exited(second["id"])
    assert renter.log(second["id"]) == b"first\n"

    hosts[_where(first)].start()  # what it still had of the volume is another's by now, and saved no more
    renter.delete(second["id"])
    wait_for(lambda: renter.ask("GET", f"/clusters/{first['id']}")["phase"] in ENDED, JOIN_S)
    kept = renter.ask("GET", "/volumes/data")
    assert (kept["version"], kept["files"], kept["used_by"]) == (2, 3, [])
