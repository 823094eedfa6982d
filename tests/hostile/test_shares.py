"""Every thing that accounts share, at one account's limit: another one, and operators, are served as before."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import structlog

from tests.hostile.open_requests import Open, begin
from tests.hostile.two_renters import TwoRenters, two_renters
from tests.unit.clusters.world import principal
from tests.waiting import poll_async
from windrow_master.api import sharing
from windrow_master.clusters.model import WorkPhase
from windrow_master.identity.decide import SESSIONS_MAX, TOKENS_MAX
from windrow_master.identity.model import ALL_ROLES, Role
from windrow_master.network import workload_io
from windrow_master.network.workload_io import WorkAccess
from windrow_master.store.disk_space import DiskSpace
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.errors import TooMany
from windrow_proto.ids import AccountId, ClusterId, HostId
from windrow_proto.units import GIB, MIB

EVENTS = "/events/stream?subject={account}"


@pytest.fixture
async def market(tmp_path: Path) -> AsyncIterator[TwoRenters]:
    async with two_renters(tmp_path) as found:
        yield found


def artefact(who: Any, name: str) -> str:
    return f"/artefacts/account/{who.account_id}/{name}"


async def end_all(open_ones: list[Open]) -> None:
    for one in open_ones:
        one.closes.set()
        one.reads.set()
    await asyncio.gather(*(one.end() for one in open_ones))


# --- streams, uploads, downloads -------------------------------------------------------------------------------------


@pytest.mark.row("F20")
@pytest.mark.parametrize("path", ["/fleet/stream", "/events/stream?subject={account}"])
async def test_one_account_takes_its_streams_and_no_more(market: TwoRenters, path: str) -> None:
    def stream(who: Any) -> Open:
        return begin(market.app, "GET", path.format(account=who.account_id), who.token)

    held = [stream(market.noisy) for _ in range(sharing.STREAMS.per_account)]
    assert {await one.status for one in held} == {200}
    refused = await stream(market.noisy).refusal()
    assert (refused["status"], refused["code"]) == (429, "too_many")
    assert "100 of at most 100 live streams" in refused["detail"] and "Close one" in refused["detail"]
    others = [stream(market.quiet), begin(market.app, "GET", "/events/stream", operator_token(market))]
    assert [await one.status for one in others] == [200, 200]
    await end_all([*held, *others])
    assert market.services.shares.streams.taken == 0


@pytest.mark.row("F20")
async def test_operators_have_their_reserve_when_many_accounts_fill_the_rest(market: TwoRenters) -> None:
    streams = market.services.shares.streams
    for number in range(9):
        for _ in range(sharing.STREAMS.per_account):
            streams.take(f"account_{number}")
    refused = await begin(market.app, "GET", "/fleet/stream", market.quiet.token).refusal()
    assert refused["status"] == 429 and "kept for operators" in refused["detail"]
    operators = begin(market.app, "GET", "/fleet/stream", operator_token(market))
    assert await operators.status == 200
    await operators.end()


@pytest.mark.row("F14", "F20")
async def test_readers_that_stall_hold_their_accounts_downloads_to_the_last_byte(market: TwoRenters) -> None:
    for who in (market.noisy, market.quiet):
        assert (await who.client.put(artefact(who, "a"), content=b"x" * 100)).status_code == 200
    shares, path = market.services.shares, artefact(market.noisy, "a")
    held = [
        begin(market.app, "GET", path, market.noisy.token, is_reading=False)
        for _ in range(sharing.DOWNLOADS.per_account)
    ]
    assert {await one.status for one in held} == {200}
    assert (await begin(market.app, "GET", path, market.noisy.token).refusal())["status"] == 429
    answer = await market.quiet.client.get(artefact(market.quiet, "a"))
    assert answer.content == b"x" * 100
    held[0].reads.set()
    await held[0].task
    assert shares.downloads.of(market.noisy.account_id) == len(held) - 1
    await end_all(held)
    assert shares.downloads.taken == 0


@pytest.mark.row("F14")
async def test_a_download_ends_with_the_token_it_was_asked_with(market: TwoRenters) -> None:
    who = market.noisy
    await who.client.put(artefact(who, "a"), content=b"x" * 3 * MIB)
    with structlog.testing.capture_logs() as said:
        reading = begin(market.app, "GET", artefact(who, "a"), who.token, is_reading=False)
        assert await reading.status == 200
        tokens = (await who.client.get("/tokens")).json()["items"]
        for one in tokens:
            await who.client.delete(f"/tokens/{one['id']}")
        with pytest.raises(ConnectionAbortedError):
            await asyncio.wait_for(reading.task, 60)
    assert len(reading.body) < 3 * MIB
    assert not [one for one in said if "crashed" in one["event"]]


@pytest.mark.row("F15", "F20")
async def test_uploads_that_never_end_are_their_accounts_own_matter(market: TwoRenters) -> None:
    path = artefact(market.noisy, "never")
    held = [
        begin(market.app, "PUT", path, market.noisy.token, body=[b"x" * 1000], length=MIB)
        for _ in range(sharing.UPLOADS.per_account)
    ]
    uploads = market.services.artefacts.uploads
    await poll_async(lambda: uploads.coming_bytes(market.noisy.account_id) == len(held) * MIB)
    refused = await begin(market.app, "PUT", path, market.noisy.token, body=[b"x"], length=MIB).refusal()
    assert (refused["status"], refused["code"]) == (429, "too_many")
    assert (await market.quiet.client.put(artefact(market.quiet, "a"), content=b"x")).status_code == 200
    with structlog.testing.capture_logs() as said:
        await end_all(held)
    assert not [one for one in said if "crashed" in one["event"]]
    assert [one["event"] for one in said].count("request_broken_off") == len(held)
    assert uploads.coming_bytes(market.noisy.account_id) == 0
    assert (await market.noisy.client.get("/artefacts")).json()["items"] == []


@pytest.mark.row("F15")
@pytest.mark.parametrize("length", [60 * GIB, None])
async def test_what_is_on_its_way_counts_against_the_quota(market: TwoRenters, length: int | None) -> None:
    first = begin(market.app, "PUT", artefact(market.noisy, "a"), market.noisy.token, body=[b"x"], length=60 * GIB)
    uploads = market.services.artefacts.uploads
    await poll_async(lambda: uploads.coming_bytes(market.noisy.account_id) == 60 * GIB)
    second = begin(market.app, "PUT", artefact(market.noisy, "b"), market.noisy.token, body=[b"x"], length=length)
    if length is None:
        await poll_async(lambda: uploads.coming_bytes(market.noisy.account_id) > 60 * GIB)
        await second.end()
    else:
        refused = await second.refusal()
        assert (refused["status"], refused["code"]) == (413, "too_large") and "on their way" in refused["detail"]
    assert (await market.quiet.client.put(artefact(market.quiet, "a"), content=b"x")).status_code == 200
    await first.end()


@pytest.mark.row("F15")
async def test_uploads_stop_long_before_the_disk_refuses_rentals(tmp_path: Path) -> None:
    disk = MemoryDisk()
    floor = 64 * MIB
    disk.capacity_bytes = 1000 * MIB
    data = tmp_path / "data"
    data.mkdir()
    clock = SimpleNamespace(wall_ns=lambda: 0, monotonic_ns=lambda: 0)
    room = DiskSpace(disk, [str(data)], clock, ballast_bytes=0, floor_bytes=floor)
    async with two_renters(tmp_path, room) as market:
        who = market.noisy
        assert (await who.client.put(artefact(who, "a"), content=b"x" * 3 * MIB)).status_code == 200
        disk.capacity_bytes = 2 * floor + 4 * MIB + used(disk)
        announced = await who.client.put(artefact(who, "b"), content=b"x" * 5 * MIB)
        assert (announced.status_code, announced.json()["code"]) == (503, "disk_full")
        going = begin(market.app, "PUT", artefact(who, "c"), who.token, body=[b"x" * MIB])
        await poll_async(lambda: len(going.asked_for_body) == 2)  # the first piece is taken
        disk.capacity_bytes = 2 * floor - MIB + used(disk)
        going.pieces.put_nowait(b"x" * MIB)
        assert (await going.refusal())["code"] == "disk_full"
        room.look()
        assert room.has_room()
        job = await market.quiet.client.post("/jobs", json={"argv": ["true"]})
        assert job.status_code == 201
        assert [one["name"] for one in (await who.client.get("/artefacts")).json()["items"]] == ["a"]


def used(disk: MemoryDisk) -> int:
    """Returns the space that its files take."""
    capacity = disk.capacity_bytes
    disk.capacity_bytes = 1 << 40
    taken = (1 << 40) - disk.free_bytes("/")
    disk.capacity_bytes = capacity
    return taken


@pytest.mark.row("F13")
async def test_no_body_is_read_of_who_may_not_ask(market: TwoRenters) -> None:
    for path in ("/clusters", "/jobs", "/templates/a", "/artefacts/account/a/b"):
        method = "PUT" if path.startswith(("/templates", "/artefacts")) else "POST"
        for token in (None, "wt_nobody"):
            asked = begin(market.app, method, path, token, body=[b"{"], length=1000)
            assert (await asked.refusal())["status"] == 401
            assert asked.asked_for_body == []


@pytest.mark.row("F13", "F20")
async def test_bodies_that_drip_leave_others_their_requests(market: TwoRenters) -> None:
    most = sharing.REQUESTS.per_account
    held = [begin(market.app, "POST", "/jobs", market.noisy.token, body=[b"{"], length=1000) for _ in range(most)]
    await poll_async(lambda: market.services.shares.requests.of(market.noisy.account_id) == most)
    assert (await market.noisy.client.get("/me")).status_code == 429
    assert (await market.quiet.client.get("/me")).status_code == 200
    assert (await market.operator.get("/me")).status_code == 200
    await end_all(held)
    assert (await market.noisy.client.get("/me")).status_code == 200
    assert market.services.shares.requests.taken == 0


@pytest.mark.row("F20")
async def test_an_account_has_a_bounded_number_of_tokens_and_sessions(market: TwoRenters) -> None:
    async def filled(ask: Callable[[], Awaitable[Any]], most: int) -> Any:
        for _ in range(most + 1):
            if (answer := await ask()).status_code == 429:
                return answer.json()["detail"]
        return ""

    who = market.noisy
    token = {"name": "more", "roles": ["renter"]}
    assert "of at most 200. Revoke some" in await filled(lambda: who.client.post("/tokens", json=token), TOKENS_MAX)
    signs_in = partial(who.client.post, "/session", json={"token": who.token})
    assert "of at most 100. End some" in await filled(signs_in, SESSIONS_MAX)
    for other in (market.quiet.client, market.operator):
        assert (await other.post("/tokens", json=token)).status_code == 201


# --- channels into workloads -----------------------------------------------------------------------------------------


class Waiting:
    """A broker whose channels say nothing."""

    def __init__(self) -> None:
        self.opened: list[HostId] = []

    async def open(self, host_id: HostId, opening: object) -> Any:
        self.opened.append(host_id)
        return SimpleNamespace(receive=asyncio.Event().wait, send=asyncio.Event().wait, close=self._close)

    async def _close(self, closing: object) -> None:
        return None


def inside(hosts: int) -> WorkAccess:
    """The way into clusters of so many hosts."""
    workloads = [
        SimpleNamespace(
            workload_id=f"workload_{rank}",
            cluster_id="cluster_1",
            host_id=HostId(f"host_{rank}"),
            rank=rank,
            phase=WorkPhase.RUNNING,
            delete_command=None,
        )
        for rank in range(hosts)
    ]

    async def get_own(who: object, cluster_id: object) -> Any:
        return SimpleNamespace(workloads=workloads)

    uses = SimpleNamespace(inside=lambda cluster_id: nullcontext())
    clusters: Any = SimpleNamespace(get_own=get_own, lifecycle=SimpleNamespace(uses=uses))
    return WorkAccess(clusters, Waiting())


A, B = (principal(AccountId(f"account_{name}"), frozenset({Role.RENTER})) for name in "ab")
OPERATOR = principal(AccountId("account_o"), ALL_ROLES)
CLUSTER = ClusterId("cluster_1")


@pytest.mark.row("F20")
async def test_one_account_takes_its_channels_here_and_to_a_host_and_no_more() -> None:
    way = inside(hosts=8)
    async with AsyncExitStack() as held:

        async def follow(who: Any, rank: int) -> None:
            held.push_async_callback((await way.follow(who, CLUSTER, 0, rank)).aclose)

        for _ in range(workload_io.HOST_CHANNELS.per_account):
            await follow(A, 0)
        with pytest.raises(TooMany, match="24 of at most 24 channels to this host"):
            await follow(A, 0)
        await follow(B, 0)
        with pytest.raises(TooMany, match="channels into workloads"):
            for number in range(workload_io.CHANNELS.per_account):
                await follow(A, 1 + number % 7)
        await follow(B, 1)
        await follow(OPERATOR, 0)
    assert way.channels.taken == 0


def operator_token(market: TwoRenters) -> str:
    return str(market.operator.headers["authorization"]).removeprefix("Bearer ")
