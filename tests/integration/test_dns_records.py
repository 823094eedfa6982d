"""The records for hosts that reach no Access, served by a real PowerDNS and looked up by the agent's own resolver."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import dns.asyncquery
import dns.message
import pytest

from deploy.dns import records
from tests.support.ports import own_port
from tests.waiting import PATIENCE_S, poll
from windrow_agent.core.discovery import Seed
from windrow_agent.link.resolver import Resolver
from windrow_proto.clock import SystemRng
from windrow_proto.ids import HostId
from windrow_proto.messages import AccessPoint, RegionMap

PDNS = shutil.which("pdns_server")
GEOIP = next(Path("/usr/lib").glob("*/pdns/libgeoipbackend.so"), None)
pytestmark = pytest.mark.skipif(
    PDNS is None or GEOIP is None, reason="no PowerDNS: apt-get install pdns-server pdns-backend-geoip"
)

DOMAIN = "access.example.org"
NEAR_EU, NEAR_NA = "127.0.0.2", "127.0.0.3"
"""The address from which questions come."""
PLAN = records.Plan(DOMAIN, "ns1.example.org", 60, {}, {f"{NEAR_EU}/32": "eu", f"{NEAR_NA}/32": "na"})
MAP = RegionMap(
    1_795_000_000_000,
    (
        AccessPoint("acc_1", "eu-1", "127.0.0.11:7443", 200),
        AccessPoint("acc_2", "us-east", "127.0.0.12:7444", 0),
        AccessPoint("acc_3", "eu-1", "127.0.0.13:7445", 0, draining=True),
    ),
)


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """Of a PowerDNS on loopback that serves the records of MAP."""
    zones = tmp_path / "windrow.yaml"
    zones.write_text(records.geoip(MAP, PLAN))
    (tmp_path / "pdns.conf").write_text(f"launch=geoip\ngeoip-zones-file={zones}\ngeoip-database-files=\n")
    number = own_port()
    command = [
        *(str(PDNS), f"--config-dir={tmp_path}", f"--socket-dir={tmp_path}", f"--local-port={number}"),
        *("--local-address=127.0.0.1", "--daemon=no", "--guardian=no", "--disable-syslog", "--write-pid=no"),
    ]
    log = tmp_path / "pdns.log"
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as server:
        try:
            poll(lambda: server.poll() is not None or b"ready to distribute" in log.read_bytes())
            assert server.poll() is None, log.read_text()
            yield number
        finally:
            server.terminate()
            server.wait(PATIENCE_S)


async def _priorities(port: int, source: str) -> dict[str, int]:
    asked = dns.message.make_query(f"_windrow-access._tcp.{DOMAIN}", "SRV")
    answer = await dns.asyncquery.udp(asked, "127.0.0.1", timeout=PATIENCE_S, port=port, source=source)
    found = [record.to_text().split() for rrset in answer.answer for record in rrset]
    return {target.split(".")[0]: int(priority) for priority, _, _, target in found}


async def test_who_asks_from_a_network_gets_its_accesses_first(port: int):
    assert await _priorities(port, "127.0.0.1") == {"acc-1": 10, "acc-2": 10, "acc-3": 30}
    assert await _priorities(port, NEAR_EU) == {"acc-1": 10, "acc-2": 20, "acc-3": 30}
    assert await _priorities(port, NEAR_NA) == {"acc-1": 20, "acc-2": 10, "acc-3": 30}


async def test_an_agent_finds_every_access_in_them(port: int):
    resolver = Resolver(SystemRng(), [("127.0.0.1", port)])
    found = await resolver.look(HostId("host_1"), [Seed(DOMAIN)])
    assert set(found[:2]) == {"127.0.0.11:7443", "127.0.0.12:7444"}
    assert found[2:] == ("127.0.0.13:7445",)
