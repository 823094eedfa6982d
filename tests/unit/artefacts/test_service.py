"""Artefacts over HTTP: stored sealed, given back whole, counted, replaced, expired, and nobody else's."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass

import httpx2
import pytest

from tests.master_support import ManualClock, SeededRng
from tests.support.objects import MemoryStore
from tests.unit.master_api.described import assert_described
from tests.waiting import PATIENCE_S
from windrow_master.api.answers import Page
from windrow_master.api.app import build_app
from windrow_master.api.artefact_routes import ArtefactOut
from windrow_master.app import wiring
from windrow_master.storage import artefacts
from windrow_master.storage.artefacts import ArtefactService, root_key
from windrow_master.storage.model import ObjectKey
from windrow_master.storage.sealing import Tally, opened, sealed
from windrow_master.store.executors import InlineExecutor
from windrow_proto.data_keys import DataKey
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.errors import BadProof, StorageFailed, Unavailable
from windrow_proto.frames import FRAME_BYTES, SALT_BYTES, Sealer
from windrow_proto.units import DAY, HOUR

MARKER = b"a marker that nobody should find at rest"
CONTENT = MARKER * 40_000
"""Larger than a block, smaller than a frame."""


@dataclass
class Site:
    client: httpx2.AsyncClient
    service: ArtefactService
    objects: MemoryStore
    clock: ManualClock
    account: str

    def path(self, name: str) -> str:
        return f"/api/v1/artefacts/account/{self.account}/{name}"

    async def put(self, name: str, content: bytes = CONTENT, **params: int) -> httpx2.Response:
        return await self.client.put(self.path(name), content=content, params=params)

    async def names(self) -> list[str]:
        listed = (await self.client.get("/api/v1/artefacts")).json()
        return [one["name"] for one in listed["items"]]


@pytest.fixture
async def site(tmp_path) -> AsyncIterator[Site]:
    clock = ManualClock()
    opened = wiring.build(tmp_path, clock, SeededRng(3), disk=MemoryDisk(), make_executor=InlineExecutor)
    with closing(opened):
        owner = opened.services.identity.first_account()
        token = opened.services.identity.local_token(owner, None)
        objects = MemoryStore(now_ns=clock.wall_ns())
        service = opened.services.artefacts
        service.objects = objects
        transport = httpx2.ASGITransport(build_app(opened.services, tmp_path), raise_app_exceptions=False)
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(transport=transport, base_url="http://master", headers=headers) as client:
            yield Site(client, service, objects, clock, owner.id)


async def test_what_was_uploaded_comes_back_and_lies_sealed_in_the_store(site):
    made = await site.put("runs/model.bin")
    assert_described(made, ArtefactOut)
    got = await site.client.get(site.path("runs/model.bin"))
    listed = await site.client.get("/api/v1/artefacts", params={"owner_kind": "account", "owner_id": site.account})

    assert got.content == CONTENT
    assert got.headers["content-length"] == str(len(CONTENT))
    assert got.headers["x-artefact-sha256"] == hashlib.sha256(CONTENT).hexdigest() == made.json()["sha256"]
    assert_described(listed, Page[ArtefactOut])
    assert listed.json()["items"] == [made.json()]
    assert len(site.objects.held) == 1
    assert not [key for key, held in site.objects.held.items() if MARKER in held]


async def test_another_upload_of_a_name_replaces_the_first_and_leaves_no_object(site):
    await site.put("a", b"one")
    await site.put("a", b"two")

    assert (await site.client.get(site.path("a"))).content == b"two"
    assert len(site.objects.held) == 1


async def test_what_is_deleted_is_gone_and_deleting_it_again_is_not_found(site):
    await site.put("a", b"one")

    assert (await site.client.delete(site.path("a"))).status_code == 204
    assert (await site.client.delete(site.path("a"))).status_code == 404
    assert (await site.client.get(site.path("a"))).status_code == 404
    assert site.objects.held == {}
    assert await site.names() == []


async def test_the_quota_is_kept_and_what_does_not_fit_changes_nothing(site, monkeypatch):
    monkeypatch.setattr(artefacts, "QUOTA_BYTES", 100)
    await site.put("a", bytes(60))
    refused = await site.put("b", bytes(41))
    fits = await site.put("b", bytes(40))
    full = await site.put("c", b"")

    assert (refused.status_code, refused.json()["code"]) == (413, "too_large")
    assert (fits.status_code, full.status_code) == (200, 413)
    assert await site.names() == ["b", "a"]
    assert len(site.objects.held) == 2


async def test_a_store_that_gives_back_something_else_is_noticed(site):
    await site.put("a")
    (key,) = site.objects.held
    held = site.objects.held[key]
    site.objects.held[key] = held[:-100] + bytes([held[-100] ^ 1]) + held[-99:]

    got = await site.client.get(site.path("a"))
    assert len(got.content) < int(got.headers["content-length"])


async def test_a_store_that_is_down_is_said_so_and_nothing_is_listed(site):
    site.objects.cut_after = 0
    refused = await site.put("a")

    assert (refused.status_code, refused.json()["code"]) == (503, Unavailable.code)
    assert await site.names() == []


async def test_an_upload_whose_row_cannot_be_written_leaves_no_object(site, monkeypatch):
    async def fails(*_args: object, **_more: object) -> None:
        raise StorageFailed

    monkeypatch.setattr(site.service._store, "write", fails)
    refused = await site.put("a")

    assert refused.status_code == 503
    assert site.objects.held == {}


@pytest.mark.parametrize("name", ["../a", "a/%2e%2e/b", "a//b", "%2e%2e/a", "a%00b", "x" * 1025])
async def test_names_that_lead_elsewhere_are_refused(site, name):
    answer = await site.client.put(site.path(name), content=b"x")

    assert answer.status_code in {404, 405, 422}, answer.text
    assert site.objects.held == {}


async def test_the_artefacts_of_others_are_not_there(site):
    for path in ("account/account_other/a", "cluster/cluster_none/a"):
        assert (await site.client.put(f"/api/v1/artefacts/{path}", content=b"x")).status_code == 404
        assert (await site.client.get(f"/api/v1/artefacts/{path}")).status_code == 404
    assert (await site.client.put("/api/v1/artefacts/planet/x/a", content=b"x")).status_code == 422
    listed = await site.client.get("/api/v1/artefacts", params={"owner_kind": "account", "owner_id": "account_other"})
    assert listed.status_code == 404


async def test_an_artefact_goes_when_its_time_is_over_and_one_kept_for_ever_stays(site):
    await site.put("short", b"x", keep_days=1)
    ever = await site.put("ever", b"x", keep_days=0)
    assert ever.json()["expires_at"] is None

    site.clock.advance(DAY - HOUR)
    assert await site.service.sweep() == (0, 0)
    site.clock.advance(2 * HOUR)
    assert await site.service.sweep() == (1, 0)
    assert await site.names() == ["ever"]
    assert len(site.objects.held) == 1


async def test_an_object_without_a_row_is_swept_away_once_its_upload_cannot_be_under_way(site):
    await site.put("a", b"x", keep_days=0)
    site.objects._keep(ObjectKey("artefact/account_1/artefact_1"), b"left by a crash")

    assert await site.service.sweep() == (0, 0)
    site.clock.advance(artefacts.LOOSE_NS + HOUR)
    assert await site.service.sweep() == (0, 1)
    assert (await site.client.get(site.path("a"))).content == b"x"


async def test_a_sweep_that_meets_a_bug_ends_nothing_and_the_next_one_comes(site, monkeypatch):
    sweeps, is_swept = iter([ZeroDivisionError("of one row"), None]), asyncio.Event()

    async def sweep():
        if (error := next(sweeps, None)) is not None:
            raise error
        is_swept.set()

    monkeypatch.setattr(site.service, "sweep", sweep)
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        running = group.create_task(site.service.run())
        await is_swept.wait()
        running.cancel()


def test_the_key_above_all_is_made_once_and_nobody_else_reads_it(tmp_path):
    first = root_key(tmp_path / "identity")

    assert root_key(tmp_path / "identity") == first
    assert (tmp_path / "identity" / "artefacts.key").stat().st_mode & 0o777 == 0o600
    assert first.below("account/a") != first.below("account/b")


async def test_who_takes_the_first_block_only_leaves_nothing_that_waits(caplog):
    key = DataKey.generate()

    async def blocks(count):
        for number in range(count):
            yield bytes([number]) * FRAME_BYTES

    tally = Tally()
    kept = [one async for one in sealed(Sealer(key, "a", b"s" * SALT_BYTES), blocks(5), tally)]
    assert tally.size_bytes == 5 * FRAME_BYTES

    async def stored():
        for one in kept:
            yield one
        yield b"what was never stored"

    going = opened(key, "a", stored())
    first = await anext(going)
    assert set(first) == {0}
    await going.aclose()
    with pytest.raises(BadProof):
        async for _ in opened(key, "a", stored()):
            pass
    assert not caplog.records
