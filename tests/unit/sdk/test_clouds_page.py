"""The commands of docs/clouds.md and docs/choosing.md, each run as printed against a cloud in memory."""

import asyncio
import shlex
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx2
import pytest
from typer.main import get_command

from tests.master_support import ManualClock, SeededRng
from tests.support.memory_backend import MemoryBackend, MemoryCloud, Planned, Terms, memory_offers
from tests.support.pages import steps
from tests.unit.hybrid.purchases.world import MARKET, RULES, AnyKind, Hosts
from windrow.cli.main import app
from windrow.client import Client
from windrow.config import Config
from windrow_master.api.app import build_app
from windrow_master.app import wiring
from windrow_master.hybrid.backends.port import Finding
from windrow_master.hybrid.purchases.backends import BackendService
from windrow_master.hybrid.purchases.service import PurchaseService
from windrow_master.store.executors import InlineExecutor
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.units import MINUTE

PAGE = "docs/clouds.md"
PROFILE = "[default]\naws_access_key_id = AKIAEXAMPLE\naws_secret_access_key = secret\n"


class Reader:
    """Somebody who types what the page says; time passes between two lines, and the Master looks at its purchases."""

    def __init__(self, opened: wiring.Master, clock: ManualClock, static: Path) -> None:
        self.services, self.clock = opened.services, clock
        self.cloud = MemoryCloud(clock.wall_ns, Planned(is_stale=False), Terms())
        self.services.backends = BackendService(
            *(self.services.store, clock, self.services.identity.seal_key, {"ec2": AnyKind()}),
            lambda *_: MemoryBackend(self.cloud, clock),
            lambda: Finding("reachability", True, "It listens for others."),
        )
        self.services.purchases = PurchaseService(
            self.services.store, clock, self.services.backends, Hosts(), MARKET, RULES
        )
        self.token = self.services.identity.local_token(self.services.identity.first_account(), None)
        self.inner = httpx2.ASGITransport(build_app(self.services, static))

    def client(self, _context: object) -> Client:
        """Reaches the Master in this process."""
        return Client(Config("http://master", self.token), httpx2.MockTransport(self._answer))

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        async def ask() -> httpx2.Response:
            async with httpx2.AsyncClient(transport=self.inner) as client:
                content, headers = request.content, request.headers
                answer = await client.request(request.method, request.url, content=content, headers=headers)
                return httpx2.Response(answer.status_code, headers=answer.headers, content=answer.content)

        return asyncio.run(ask())

    def type(self, line: str) -> None:
        """Run it. Raises what it fails with."""
        program, *words = shlex.split(line)
        assert program == "windrow"
        get_command(app)(words, standalone_mode=False)
        for _ in range(5):
            self.clock.advance(MINUTE)
            self.services.backends.queue.add("aws")
            asyncio.run(self.services.purchases.controller.turn())


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    clock, static = ManualClock(), tmp_path / "static"
    static.mkdir()
    (tmp_path / "aws.ini").write_text(PROFILE)
    monkeypatch.chdir(tmp_path)
    opened = wiring.build(tmp_path / "d", clock, SeededRng(3), disk=MemoryDisk(), make_executor=InlineExecutor)
    with closing(opened):
        made = Reader(opened, clock, static)
        for module in ("backends", "purchases", "hosts", "jobs", "routes"):
            monkeypatch.setattr(f"windrow.cli.{module}.client", made.client)
        yield made


@pytest.mark.proves("docs: every command of the page of clouds runs, and nothing that it bought is left")
def test_every_command_of_the_page_runs_and_leaves_nothing_that_is_paid_for(reader: Reader) -> None:
    lines = [step.text for step in steps(PAGE)]
    assert len(lines) > 10
    for line in lines:
        try:
            reader.type(line)
        except Exception as error:  # it is shown with the line
            pytest.fail(f"{line}: {type(error).__name__}: {error}")
    assert len(reader.cloud.all()) == 1 and reader.cloud.living() == []
    assert "g5.xlarge/eu-central-1a/spot" in {one.offer_id for one in memory_offers()}


def test_every_command_of_the_page_on_choosing_a_place_runs_for_a_project_that_may_buy(reader: Reader) -> None:
    reader.type("windrow backend add aws --kind ec2 --set region=eu-central-1 --per-day 40")
    reader.type("windrow backend allow aws default --per-day 20")
    lines = [step.text for step in steps("docs/choosing.md") if step.language == "sh"]
    assert len(lines) == 5
    for line in lines:
        try:
            reader.type(line)
        except Exception as error:  # it is shown with the line
            pytest.fail(f"{line}: {type(error).__name__}: {error}")
    assert reader.cloud.living() == []
