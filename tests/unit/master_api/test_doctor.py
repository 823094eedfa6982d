"""`windrow doctor` against a Master in process: six ills are six lines with a repair, and none is none.

Health, the list of what needs attention, alerts and Prometheus say the same.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from typer.main import get_command

from tests.master_support import ManualClock, SeededRng
from tests.unit.master_api.test_overview import cards, host, slot
from windrow.cli import doctor, main
from windrow.client import Client
from windrow.config import Config
from windrow_master.api.app import build_app
from windrow_master.api.deps import Services
from windrow_master.app import wiring
from windrow_master.fleet.model import Condition, LinkState, SlotState
from windrow_master.link.accesses import Accesses
from windrow_master.link.wire import Trunk
from windrow_master.store.disk_space import DiskSpace
from windrow_master.store.executors import InlineExecutor
from windrow_master.watch.rules import RULES
from windrow_proto.conditions import ConditionCode
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.ids import GpuUuid, HostId
from windrow_proto.units import DAY, KIB
from windrow_proto.v1 import services_pb2

BALLAST, FLOOR, PIECE = 64 * KIB, 16 * KIB, 16 * KIB


@dataclass
class Market:
    """A Master with two relays and three hosts, and a client that is signed in."""

    services: Services
    client: httpx2.AsyncClient
    token: str
    clock: ManualClock
    disk: MemoryDisk
    space: DiskSpace
    relays: dict[str, Trunk]

    @property
    def accesses(self) -> Accesses:
        found = self.services.health.departed.__self__  # type: ignore[attr-defined]  # the bound method's
        assert isinstance(found, Accesses)
        return found

    def put(self, number: int, *, faulted: bool = False, **changes: Any) -> None:
        """A host with one GPU of its number."""
        made = host(host_id=HostId(f"host_{number}"), name=f"gpu-{number}", inventory=cards(number), **changes)
        state = SlotState.FAULTED if faulted else SlotState.FREE
        self.services.fleet.view.put(made, [slot(number, host_id=made.host_id, state=state)])

    async def get(self, path: str) -> Any:
        answer = await self.client.get(f"/api/v1{path}")
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.fixture
async def market(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Market]:
    clock, disk = ManualClock(), MemoryDisk(BALLAST + FLOOR)
    sizes = {"ballast_bytes": BALLAST, "floor_bytes": FLOOR, "piece_bytes": PIECE}
    space = DiskSpace(disk, ["/data"], clock, **sizes)
    settings = wiring.Settings(disk_space=space)
    opened = wiring.build(
        tmp_path / "data", clock, SeededRng(3), settings, disk=MemoryDisk(), make_executor=InlineExecutor
    )
    with closing(opened):
        services = opened.services
        token = services.identity.local_token(services.identity.first_account(), None)
        transport = httpx2.ASGITransport(build_app(services, tmp_path), raise_app_exceptions=False)
        signed = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(transport=transport, base_url="http://master", headers=signed) as client:
            made = Market(services, client, token, clock, disk, space, {})
            _let_doctor_ask(made, monkeypatch)
            space.look()
            for region in ("north", "south"):
                hello = services_pb2.TrunkHello(access_id=f"access_{region}", region=region, address=f"{region}:7443")
                no_link: Any = None
                made.relays[region] = trunk = Trunk(no_link, hello, "", clock.wall_ns())
                made.accesses.trunks[trunk] = None
                made.accesses.came(trunk)
            for number in range(3):
                made.put(number)
            yield made


def _let_doctor_ask(market: Market, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked = market.client.request(request.method, str(request.url))
        found = asyncio.run_coroutine_threadsafe(asked, loop).result(30)
        return httpx2.Response(found.status_code, content=found.content, headers={"Content-Type": "application/json"})

    config, transport = Config("http://master", market.token), httpx2.MockTransport(answer)
    monkeypatch.setattr(doctor, "find", lambda url, token: config)
    monkeypatch.setattr(doctor, "Client", lambda found: Client(found, transport=transport))


async def examined(capsys: pytest.CaptureFixture[str]) -> tuple[int, list[dict[str, Any]]]:
    """The exit code of `windrow doctor --json`, and the checks that failed; what the Master logs comes before."""
    run = get_command(main.app)
    code = await asyncio.to_thread(lambda: run(["doctor", "--json"], standalone_mode=False))
    return int(code or 0), [one for one in json.loads(capsys.readouterr().out.splitlines()[-1]) if not one["ok"]]


async def test_a_market_that_is_well_fails_nothing(market: Market, capsys: pytest.CaptureFixture[str]) -> None:
    assert await examined(capsys) == (0, [])
    health = await market.get("/operators/health")
    assert (health["master"]["conditions"], health["fleet"]["troubled"]) == ([], [])


async def test_six_ills_are_six_lines_with_a_repair(market: Market, capsys: pytest.CaptureFixture[str]) -> None:
    lost = Condition(f"{ConditionCode.GPU_LOST}:{GpuUuid('GPU-1')}", ConditionCode.GPU_LOST.words, 5)
    market.put(0, link_state=LinkState.LOST, last_seen_ns=7)
    market.put(1, conditions=(lost,), faulted=True)
    market.put(2, conditions=(Condition(ConditionCode.CLOCK_SKEW, ConditionCode.CLOCK_SKEW.words, 5),))
    south = market.relays["south"]
    del market.accesses.trunks[south]
    market.accesses.went(south)
    market.disk.append("/data/log", bytes(KIB))
    market.space.look()
    market.clock.advance(3 * DAY)

    code, failed = await examined(capsys)

    assert code == 1
    told = {one["check"]: one["detail"] for one in failed}
    repairs = {
        "1 host not answering": ("gpu-0", "systemctl status windrow-agent"),
        "1 GPU faulty": ("gpu-1 GPU 1", "Reboot the host"),
        "clock.skew": ("gpu-2", "timedatectl set-ntp true"),
        "1 relay down": ("south", "windrow-access run"),
        "master.disk_full": ("Master", "df -h"),
        "master.backup_old": ("Master", "windrow-master backup"),
    }
    assert told.keys() == repairs.keys() and len(failed) == len(repairs)
    for check, parts in repairs.items():
        assert all(part in told[check] for part in parts), told


async def test_health_attention_alerts_and_prometheus_say_the_same(market: Market) -> None:
    market.put(2, conditions=(Condition(ConditionCode.CLOCK_SKEW, ConditionCode.CLOCK_SKEW.words, 5),))
    market.clock.advance(3 * DAY)
    await market.services.alerts.look()

    health = await market.get("/operators/health")
    assert [one["code"] for one in health["master"]["conditions"]] == ["master.backup_old"]
    assert [(one["name"], one["headline"]) for one in health["fleet"]["troubled"]] == [("gpu-2", "idle")]
    kinds = {one["kind"] for one in (await market.get("/overview/attention"))["items"]}
    assert kinds == {"condition:clock.skew", "master:master.backup_old"}
    assert [one["rule"] for one in (await market.get("/alerts"))["items"]] == ["master.backup_old"]

    text = (await market.client.get("/metrics")).text
    lines = [line for line in text.splitlines() if line.startswith("windrow_alerts{")]
    assert all(any(f'rule="{code}"' in line for line in lines) for code in RULES)
    (own,) = [line for line in lines if 'rule="master.backup_old"' in line]
    assert 'state="firing"' in own and own.endswith(" 1.0"), own
