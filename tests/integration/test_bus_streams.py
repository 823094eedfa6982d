"""Live streams of several API processes over one database and one real Valkey: nothing told is lost, whatever it does.

The second process reads what the first commits, as one beside a leading Master does; both have a bus of their own.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import httpx2
import pytest

from tests import services as outside
from tests.contract.test_bus import kept_up
from tests.support.valkey import PASSWORD, Valkey, valkey
from tests.waiting import PATIENCE_S, poll_async
from windrow_master.api import event_tail
from windrow_master.api.app import build_app
from windrow_master.api.deps import Services
from windrow_master.api.event_tail import EventTail
from windrow_master.api.rate_limits import Limits
from windrow_master.api.record_routes import _resumed
from windrow_master.api.sse import Broadcaster, Message
from windrow_master.app import wiring
from windrow_master.identity.model import Principal
from windrow_master.store.bus import Bus, Exchange, MemoryBus
from windrow_master.store.bus_redis import RedisBus
from windrow_proto.clock import SystemClock, SystemRng
from windrow_proto.disk_memory import MemoryDisk

pytestmark = pytest.mark.timeout(240)

SUBJECT = "host_1"


@dataclass
class Process:
    """One API process."""

    services: Services
    tail: EventTail
    client: httpx2.AsyncClient
    principal: Principal

    @property
    def bus(self) -> Bus:
        return self.services.bus

    async def note(self, kind: str) -> int:
        """Commit one event here."""
        await self.services.store.write(lambda uow: uow.event(kind, [SUBJECT], kind), name="note")
        return (await self.services.store.read(lambda uow: uow.events.newest(SUBJECT, limit=1)))[0].number


@dataclass
class Site:
    """The leader, another process, and the server between them, where there is one."""

    leader: Process
    other: Process
    server: Valkey | None


@asynccontextmanager
async def _process(services: Services, token: str, static: Path, is_writer: bool) -> AsyncIterator[Process]:
    app = build_app(services, static, limits=Limits())
    tail = EventTail(services.store, services.bus, services.broadcaster, is_writer=is_writer)
    transport = httpx2.ASGITransport(app)
    bearer = {"Authorization": f"Bearer {token}"}
    async with (
        kept_up(services.bus, tail),
        httpx2.AsyncClient(transport=transport, base_url="http://master", headers=bearer) as client,
    ):
        yield Process(services, tail, client, await services.identity.authenticate(token))


@asynccontextmanager
async def _site(folder: Path, buses: tuple[Bus, Bus], server: Valkey | None) -> AsyncIterator[Site]:
    (folder / "static").mkdir()
    opened = wiring.build(folder / "data", SystemClock(), SystemRng(), disk=MemoryDisk())
    with closing(opened):
        services = opened.services
        token = services.identity.local_token(services.identity.first_account(), None)
        services.bus = buses[0]
        health = replace(services.health, figures=[], conditions=[], problems=[])
        beside = replace(services, bus=buses[1], broadcaster=Broadcaster(), health=health)
        async with AsyncExitStack() as stack:
            leader = await stack.enter_async_context(_process(services, token, folder / "static", True))
            other = await stack.enter_async_context(_process(beside, token, folder / "static", False))
            await poll_async(lambda: all(bus.health.problem is None for bus in buses), what="both buses are up")
            yield Site(leader, other, server)


def _redis(server: Valkey, name: str) -> Bus:
    return RedisBus(server.url, name, SystemClock(), SystemRng())


@pytest.fixture(params=["memory", "valkey"])
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    if request.param == "memory":
        exchange = Exchange()
        one, two = (MemoryBus(name, SystemClock(), exchange) for name in ("one", "two"))
        async with _site(tmp_path, (one, two), None) as made:
            yield made
        return
    outside.need("valkey")
    with valkey(tmp_path / "valkey") as server:
        async with _site(tmp_path, (_redis(server, "one"), _redis(server, "two")), server) as made:
            yield made


@pytest.fixture
async def over_valkey(tmp_path: Path) -> AsyncIterator[Site]:
    outside.need("valkey")
    with valkey(tmp_path / "valkey") as server:
        async with _site(tmp_path, (_redis(server, "one"), _redis(server, "two")), server) as made:
            yield made


class Reader:
    """A client of one process' event stream that comes back with Last-Event-ID, as a browser does."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.numbers: list[int] = []
        self._seen: int | None = 0

    async def run(self) -> None:
        """Read until cancelled; begins with everything there is."""
        while True:
            messages = self._open()
            try:
                async for message in messages:
                    if message.id is not None:
                        self._seen = int(message.id)
                        self.numbers.append(self._seen)
                    if message.event == "resync":
                        break  # come back with the last id
            finally:
                await messages.aclose()

    def _open(self) -> AsyncGenerator[Message]:
        services = self.process.services
        listener = services.broadcaster.listen(f"events/{SUBJECT}")
        principal = self.process.principal
        return _resumed(services, listener=listener, seen=self._seen, subject=SUBJECT, principal=principal)


@pytest.mark.proves("an event committed by one API process reaches the streams of another")
async def test_an_event_committed_by_the_leader_reaches_the_streams_of_another_process(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers = [Reader(site.leader), Reader(site.other)]
    async with kept_up(*readers):
        numbers = [await site.leader.note(f"kind.{n}") for n in range(50)]

        await poll_async(lambda: all(reader.numbers == numbers for reader in readers))


async def test_a_change_of_a_cluster_wakes_its_streams_in_another_process(site: Site) -> None:
    with site.other.services.broadcaster.listen("cluster/cluster_1") as listener:
        site.leader.bus.publish(event_tail.CLUSTER, "cluster_1")

        message = await listener.next(PATIENCE_S)

    assert message is not None and message.event == "changed"


async def _loaded(
    site: Site, trouble: list[Callable[[], None]], count: int = 240
) -> tuple[list[int], list[Reader], list[int]]:
    """Commit, read and ask at once while things happen to the server; returns what was committed, the readers, and
    the statuses of all requests."""
    assert site.server is not None
    readers = [Reader(process) for process in (site.leader, site.other) for _ in range(3)]
    statuses: list[int] = []
    numbers: list[int] = []
    async with kept_up(*readers):
        for n in range(count):
            if n % (count // len(trouble)) == 0:
                trouble[n * len(trouble) // count]()
            numbers.append(await site.leader.note(f"kind.{n}"))
            for process in (site.leader, site.other):
                statuses.append((await process.client.get("/api/v1/me")).status_code)
        with suppress(AssertionError):
            await poll_async(lambda: all(reader.numbers == numbers for reader in readers))
    return numbers, readers, statuses


@pytest.mark.proves("no request fails and no event is lost while Valkey is killed, frozen or emptied under load")
@pytest.mark.parametrize("how", ["killed", "frozen", "emptied"])
async def test_no_request_fails_and_no_event_is_lost_whatever_the_server_does_under_load(
    over_valkey: Site, how: str
) -> None:
    server = over_valkey.server
    assert server is not None
    trouble = {
        "killed": [server.kill, server.start, server.kill, server.start, server.kill],
        "frozen": [server.freeze, server.thaw, server.freeze],
        "emptied": [server.flush] * 12,
    }[how]

    numbers, readers, statuses = await _loaded(over_valkey, trouble)

    assert set(statuses) == {200}
    assert [reader.numbers for reader in readers] == [numbers] * len(readers)


@pytest.mark.proves("no request fails and no event is lost while Valkey is killed, frozen or emptied under load")
async def test_without_the_server_another_process_finds_events_by_looking_and_its_health_says_so(
    over_valkey: Site,
) -> None:
    assert over_valkey.server is not None
    over_valkey.server.kill()
    await poll_async(lambda: over_valkey.other.bus.health.problem is not None)

    reader = Reader(over_valkey.other)
    async with kept_up(reader):
        numbers = [await over_valkey.leader.note(f"kind.{n}") for n in range(5)]
        await poll_async(lambda: reader.numbers == numbers)

    health = (await over_valkey.other.client.get("/api/v1/operators/health")).json()["master"]
    assert (health["bus"]["kind"], health["bus"]["is_well"]) == ("redis", False)
    assert [condition["code"] for condition in health["conditions"]] == ["bus_alone"]
    assert PASSWORD not in str(health) and health["conditions"][0]["since"]
    assert (await over_valkey.other.client.get("/healthz")).status_code == 200
    over_valkey.server.start()
    await poll_async(lambda: over_valkey.other.bus.health.problem is None)
    health = (await over_valkey.other.client.get("/api/v1/operators/health")).json()["master"]
    assert (health["conditions"], health["bus"]["is_well"]) == ([], True)


async def test_wake_ups_alone_make_no_event_known_so_that_whoever_writes_to_the_server_can_tell_no_lies(
    over_valkey: Site,
) -> None:
    number = await over_valkey.leader.note("true")
    reader = Reader(over_valkey.other)
    async with kept_up(reader):
        await poll_async(lambda: reader.numbers == [number])
        over_valkey.leader.bus.publish(event_tail.EVENT, "", str(number + 1_000))
        later = await over_valkey.leader.note("later")
        await poll_async(lambda: reader.numbers == [number, later])


async def test_the_control_a_process_that_hears_no_wake_up_and_never_looks_loses_events(
    over_valkey: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    tail = over_valkey.other.tail
    readers = [Reader(over_valkey.leader), Reader(over_valkey.other)]
    async with kept_up(*readers):
        numbers = [await over_valkey.leader.note("seen by both")]
        await poll_async(lambda: all(reader.numbers == numbers for reader in readers))

        async def blind() -> None:
            tail._wanted.clear()

        monkeypatch.setattr(tail, "_look", blind)
        await poll_async(lambda: not tail._is_reading)
        numbers += [await over_valkey.leader.note(f"kind.{n}") for n in range(10)]
        await poll_async(lambda: readers[0].numbers == numbers)

    assert readers[1].numbers == numbers[:1]
