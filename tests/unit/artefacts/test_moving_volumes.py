"""Volumes between hosts and store: whole versions, a save that dies at any word, a claim that is lost meanwhile."""

import asyncio
import re
from secrets import token_hex
from urllib.parse import unquote, urlsplit

import pytest

from tests.support.s3 import bucket
from tests.unit.artefacts.test_moving import World
from tests.unit.artefacts.test_moving import world as world
from windrow_master.storage import checkpoints
from windrow_master.storage.s3_store import S3Store
from windrow_master.storage.transfer import Restoring, Saving
from windrow_proto.errors import Conflict, TooLarge, Unavailable, WindrowError
from windrow_proto.units import GIB, MIB

OWNER = "volume_1"


def folder(world, host):
    made = world.folder / host / "volumes" / "data"
    made.mkdir(parents=True, exist_ok=True)
    return made


async def save(world, host, base, seen="", **more):
    return await world.service.save_volume("account_1", OWNER, world.host(host), Saving(base, "data", seen, **more))


async def restore(world, host, told=None):
    async def progress(done, total):
        if told is not None:
            told.append((done, total))

    return await world.service.restore("account_1", OWNER, world.host(host), Restoring("data", progress))


async def test_a_version_goes_to_another_host_and_what_is_unchanged_is_no_version(world):
    one, two = folder(world, "one"), folder(world, "two")
    (one / "f").write_bytes(b"some weights")
    (one / "link").symlink_to("f")
    saved = await save(world, "one", 0)
    manifest, seen = saved.manifest, saved.seen
    assert manifest.step == 1 and await save(world, "one", 1, seen) is None
    told: list[tuple[int, int]] = []
    got = await restore(world, "two", told)
    assert (got.step, got.passed) == (1, ()) and told[-1][0] == told[-1][1] > 0
    assert (two / "link").read_bytes() == b"some weights"
    assert await save(world, "two", 1, got.seen) is None
    assert not [held for held in world.objects.held.values() if b"weights" in held]


async def test_of_a_sparse_file_only_its_data_is_sent_and_counted(world):
    one, two = folder(world, "one"), folder(world, "two")
    with (one / "f").open("wb") as file:
        file.seek(GIB // 2)
        file.write(b"some weights")
        file.truncate(GIB)
    saved = await save(world, "one", 0, room_bytes=MIB)
    assert sum(map(len, world.objects.held.values())) < MIB
    got = await restore(world, "two")
    assert (two / "f").stat().st_size == GIB and (two / "f").stat().st_blocks * 512 < MIB
    with (two / "f").open("rb") as file:
        assert file.seek(GIB // 2) and file.read(12) == b"some weights"
    assert await save(world, "one", 1, saved.seen) is None and await save(world, "two", 1, got.seen) is None


async def test_without_a_version_the_folder_stays_and_is_told(world):
    one = folder(world, "one")
    got = await restore(world, "one")
    assert got.step is None and got.passed == () and await save(world, "one", 0, got.seen) is None
    (one / "f").touch()
    assert (await save(world, "one", 0, got.seen)).manifest.step == 1


async def test_a_save_that_dies_at_any_word_leaves_the_version_before(world):
    one, two = folder(world, "one"), folder(world, "two")
    (one / "a").write_bytes(b"first")
    (one / "b").write_bytes(b"first")
    await save(world, "one", 0)
    words = len(world.said)
    (one / "a").write_bytes(b"second")
    (one / "b").write_bytes(b"second")
    for cut in range(words):
        world.cut = cut
        with pytest.raises(WindrowError):
            await save(world, "one", 1)
        assert await checkpoints.steps(world.objects, OWNER) == (1,)
    world.cut = None
    assert (await restore(world, "two")).step == 1
    assert {(two / name).read_bytes() for name in "ab"} == {b"first"}


async def test_who_is_not_the_writer_any_more_makes_no_version(world):
    (folder(world, "one") / "f").touch()

    async def begin(step):
        raise Conflict(f"another has version {step}")

    with pytest.raises(Conflict, match="another has version 1"):
        await save(world, "one", 0, begin=begin)
    assert await checkpoints.steps(world.objects, OWNER) == ()


async def test_more_than_is_allowed_is_not_sent(world):
    (folder(world, "one") / "f").write_bytes(b"x" * 1000)
    with pytest.raises(TooLarge):
        await save(world, "one", 0, room_bytes=999)
    assert world.objects.held == {}


async def test_the_two_newest_are_kept_and_a_damaged_one_is_passed_over(world):
    one, two = folder(world, "one"), folder(world, "two")
    for version in range(1, 4):
        (one / "f").write_bytes(b"%d" % version)
        await save(world, "one", version - 1, keep=2)
    assert await checkpoints.steps(world.objects, OWNER) == (3, 2)
    key = next(key for key in world.objects.held if f"/parts/{3:020d}/" in key)
    world.objects.held[key] = world.objects.held[key][:-1] + bytes([world.objects.held[key][-1] ^ 1])
    (two / "left").touch()
    got = await restore(world, "two")
    assert (got.step, [one.step for one in got.passed]) == (2, [3])
    assert (two / "f").read_bytes() == b"2" and not (two / "left").exists()


async def test_settling_is_answered(world):
    await world.service.settle("account_1", world.host("one"))
    assert (world.folder / "one" / "settled").exists()


async def test_through_a_bucket_the_host_gets_calls_for_one_object_each_and_never_its_key(moto_endpoint, tmp_path):
    settings = bucket(moto_endpoint[0], "access" + token_hex(16), token_hex(32))
    store = S3Store(settings)
    async with asyncio.TaskGroup() as group:
        world = World(store, group, tmp_path)
        one, two = folder(world, "one"), folder(world, "two")
        (one / "f").write_bytes(b"some weights" * 10_000)
        manifest = (await save(world, "one", 0)).manifest
        assert (await restore(world, "two")).step == 1
    await store.close()

    assert (two / "f").read_bytes() == b"some weights" * 10_000
    assert not [data for data in world.said if len(data) > 2000], "bytes of objects went to the store, not through us"
    heard = b"".join(world.heard)
    calls = [unquote(found.decode()) for found in re.findall(rb"http://[^ \"]*", heard)]
    assert [path for call in calls if (path := urlsplit(call).path)] == [
        f"/{settings.bucket}/{settings.prefix}{part.key}" for part in (*manifest.parts, *manifest.parts)
    ]
    assert all("X-Amz-Expires=3600" in call for call in calls)
    assert settings.secret_key.encode() not in heard


async def test_nothing_is_put_over_what_the_work_writes_once_its_volumes_are_in_place(world):
    one, two = folder(world, "one"), folder(world, "two")
    (one / "f").write_bytes(b"kept")
    await save(world, "one", 0)
    await restore(world, "two")
    await world.service.settle("account_1", world.host("two"))
    (two / "f").write_bytes(b"written since")
    with pytest.raises(Unavailable, match="in place"):
        await restore(world, "two")
    assert (two / "f").read_bytes() == b"written since"
