"""What every store of objects keeps: in a folder, and behind S3's protocol."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from windrow_master.clusters.artefacts.folder import FolderStore
from windrow_master.clusters.artefacts.model import SMALL_BYTES_MAX, ObjectKey, object_key
from windrow_master.clusters.artefacts.port import ObjectStore
from windrow_proto.errors import InvalidInput, NotFound, StorageFailed, TooLarge
from windrow_proto.units import MIB

KEY = object_key("ckpt/job_1/7")
MANY = b"0123456789abcdef" * (2 * MIB // 16) + b"the end"


@pytest.fixture(params=["folder"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ObjectStore]:
    made = FolderStore(tmp_path / "artefacts")
    yield made
    await made.close()


async def pieces(content: bytes, size: int = 100_000) -> AsyncIterator[bytes]:
    for start in range(0, len(content), size):
        yield content[start : start + size]


async def torn(content: bytes) -> AsyncIterator[bytes]:
    async for piece in pieces(content):
        yield piece
    raise ConnectionError("the sender is gone")


async def whole(store: ObjectStore, key: ObjectKey, offset: int = 0, length: int | None = None) -> bytes:
    return b"".join([piece async for piece in await store.get(key, offset, length)])


async def keys(store: ObjectStore, prefix: str = "") -> list[str]:
    return [one.key for one in (await store.list(prefix)).objects]


@pytest.mark.parametrize("content", [b"", b"x", MANY], ids=["empty", "one byte", "many blocks"])
async def test_what_is_put_is_got_and_its_size_is_told(store, content):
    put = await store.put(KEY, pieces(content), len(content))
    told = await store.stat(KEY)

    assert await whole(store, KEY) == content
    assert put.key == told.key == KEY
    assert put.size_bytes == told.size_bytes == len(content)
    assert told.modified_ns > 1_600_000_000 * 10**9


async def test_a_part_of_an_object_is_read_from_any_offset(store):
    await store.put(KEY, pieces(MANY), len(MANY))

    assert await whole(store, KEY, offset=len(MANY) - 7) == b"the end"
    assert await whole(store, KEY, offset=5, length=3) == b"567"
    assert await whole(store, KEY, offset=len(MANY) - 3, length=100) == b"end"


async def test_another_put_replaces_and_a_reader_of_the_old_one_is_not_mixed(store):
    await store.put(KEY, pieces(MANY), len(MANY))
    reader = await store.get(KEY)
    await store.put(KEY, pieces(b"new"), 3)

    assert await whole(store, KEY) == b"new"
    await reader.aclose()


async def test_more_than_the_cap_is_refused_and_nothing_is_changed(store):
    await store.put(KEY, pieces(b"old"), 3)

    with pytest.raises(TooLarge):
        await store.put(KEY, pieces(MANY), len(MANY) - 1)

    assert await whole(store, KEY) == b"old"


async def test_a_sender_that_breaks_off_leaves_nothing(store):
    with pytest.raises(ConnectionError):
        await store.put(KEY, torn(MANY), 2 * len(MANY))

    assert await store.stat(KEY) is None
    assert await keys(store) == []


async def test_a_put_that_is_cancelled_leaves_nothing(store):
    came = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        yield MANY
        came.set()
        await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(store.put(KEY, endless(), 10 * len(MANY)))
        await came.wait()
        task.cancel()

    assert await store.stat(KEY) is None


async def test_of_many_creators_one_succeeds_and_its_content_stays(store):
    contents = [f"manifest {number}".encode() for number in range(8)]
    created = await asyncio.gather(*(store.put_if_absent(KEY, content) for content in contents))

    assert sorted(created) == [False] * 7 + [True]
    assert await whole(store, KEY) == contents[created.index(True)]
    assert not await store.put_if_absent(KEY, b"late")


async def test_what_was_deleted_can_be_created_again(store):
    await store.put_if_absent(KEY, b"one")
    await store.delete(KEY)

    assert await store.put_if_absent(KEY, b"two")
    assert await whole(store, KEY) == b"two"


async def test_a_creation_in_one_piece_has_a_limit(store):
    with pytest.raises(TooLarge):
        await store.put_if_absent(KEY, bytes(SMALL_BYTES_MAX + 1))

    assert await store.stat(KEY) is None


async def test_what_is_not_there_is_said_to_be_missing_and_deleting_it_is_fine(store):
    assert await store.stat(KEY) is None
    with pytest.raises(NotFound):
        await store.get(KEY)
    await store.delete(KEY)


async def test_a_list_is_in_the_order_of_bytes_by_prefix_and_in_pages(store):
    # `-`, `.` and `/` stand around each other in ASCII: a walk by folders must not put `a/` before `a-` or `a.`.
    names = ["a", "a+b", "a-b", "a.b", "a/b", "a/b/c", "a/b0", "a0", "b/1", "b/10", "b/2"]
    for name in names:
        await store.put(object_key(name), pieces(b"x"), 1)

    assert await keys(store) == names
    assert await keys(store, "a/") == ["a/b", "a/b/c", "a/b0"]
    assert await keys(store, "b/1/") == []
    assert await keys(store, "none/") == []
    for size in (1, 2, 4, 100):
        found: list[str] = []
        after = None
        while True:
            page = await store.list("", after, size)
            found += [one.key for one in page.objects]
            assert len(page.objects) <= size
            if (after := page.after) is None:
                break
        assert found == names


async def test_an_object_and_a_folder_of_the_same_name_live_side_by_side(store):
    await store.put(object_key("a/b"), pieces(b"object"), 6)
    await store.put(object_key("a/b/c"), pieces(b"below"), 5)
    await store.delete(object_key("a/b"))

    assert await whole(store, object_key("a/b/c")) == b"below"
    assert await store.stat(object_key("a/b")) is None


NO_KEYS = (
    *("", "/", "/a", "a/", "a//b", "..", "../a", "a/../../b", ".", ".incoming/x", "a/.b"),
    *("a~", "a\0", "a\n", "ä", "a b", "a\\b", "x" * 129, "/".join(["x" * 100] * 6)),
)


@pytest.mark.parametrize("name", NO_KEYS)
async def test_a_name_that_is_no_key_is_refused_by_whoever_gets_it(store, name):
    with pytest.raises(InvalidInput):
        object_key(name)
    with pytest.raises(InvalidInput):
        await store.put(ObjectKey(name), pieces(b"x"), 1)
    for call in (store.get, store.stat, store.delete):
        with pytest.raises(InvalidInput):
            await call(ObjectKey(name))


@pytest.mark.parametrize("prefix", ["a", "../", "/", "a/../"])
async def test_a_prefix_that_is_no_folder_of_keys_is_refused(store, prefix):
    with pytest.raises(InvalidInput):
        await store.list(prefix)


async def test_puts_and_deletes_beside_each_other_lose_nothing(store):
    async def churn(number: int) -> None:
        for _ in range(10):
            await store.put(object_key(f"deep/er/{number}"), pieces(b"x"), 1)
            await store.delete(object_key(f"deep/er/{number}"))
        await store.put(object_key(f"deep/er/{number}"), pieces(b"x"), 1)

    await asyncio.gather(*(churn(number) for number in range(4)))

    assert await keys(store) == [f"deep/er/{number}" for number in range(4)]


# --- what only a folder can get wrong ---------------------------------------------------------------------------------


async def test_a_folder_keeps_no_file_beside_its_objects_and_takes_away_what_a_crash_left(tmp_path):
    root = tmp_path / "artefacts"
    store = FolderStore(root)
    with pytest.raises(ConnectionError):
        await store.put(KEY, torn(MANY), 2 * len(MANY))
    await store.put(KEY, pieces(b"x"), 1)
    await store.put_if_absent(object_key("m"), b"x")
    assert [path.name for path in sorted(root.rglob("*")) if path.is_file()] == ["7~", "m~"]

    (root / ".incoming" / "left").write_bytes(b"half")
    assert await store.sweep() == 1
    assert await keys(store) == ["ckpt/job_1/7", "m"]


async def test_a_folder_follows_no_link(tmp_path):
    (tmp_path / "secret").write_bytes(b"secret")
    root = tmp_path / "artefacts"
    root.mkdir()
    (root / "link~").symlink_to(tmp_path / "secret")
    (root / "away").symlink_to(tmp_path)
    store = FolderStore(root)

    with pytest.raises(StorageFailed):
        await store.get(object_key("link"))
    assert await keys(store) == []
