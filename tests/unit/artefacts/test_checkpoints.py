"""A checkpoint exists when it is whole: uploads cut at every step, torn parts, stale manifests, several writers."""

import asyncio
import hashlib
import random
from collections.abc import AsyncIterator

import pytest

from tests.support.objects import BEGAN_NS, MemoryStore
from windrow_master.storage import checkpoints
from windrow_master.storage.model import Part, encode_manifest, parse_manifest
from windrow_proto.data_keys import DataKey
from windrow_proto.errors import InvalidInput, NotFound, Unavailable
from windrow_proto.frames import open_sealed, seal

OWNER = "job_1"
KEY = DataKey(bytes(range(32)))
FILES = {"model.bin": b"weights" * 100, "shard/0": b"a" * 50, "shard/1": b""}


def files_at(step: int) -> dict[str, bytes]:
    return {name: content + b"@%d" % step for name, content in FILES.items()}


async def once(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def save(store: MemoryStore, step: int, attempt: str = "a") -> bool:
    """Does what the Master does for one checkpoint, call by call."""
    parts = []
    for number, (name, plain) in enumerate(sorted(files_at(step).items())):
        key = checkpoints.part_key(OWNER, step, attempt, number)
        sealed = seal(KEY, key, bytes(16), plain)
        await store.put(key, once(sealed), len(sealed))
        await asyncio.sleep(0)
        parts.append(Part(name, 0, len(plain), key, len(sealed), hashlib.sha256(sealed).hexdigest()))
    return await checkpoints.commit(store, checkpoints.manifest_of(OWNER, step, attempt, 1, "wrapped", parts))


CALLS = 2 * len(FILES) + 1
"""Of one save: each part is stored and looked at again, then the manifest is created."""


async def restored(store: MemoryStore) -> tuple[int, dict[str, bytes]] | None:
    """Restore as a host does: what it opens must be what some step saved, or opening raises."""
    choice = await checkpoints.newest_whole(store, OWNER)
    if choice.manifest is None:
        return None
    parts = choice.manifest.parts
    return choice.manifest.step, {part.name: open_sealed(KEY, part.key, store.held[part.key]) for part in parts}


@pytest.mark.parametrize("cut", range(CALLS + 1))
async def test_an_upload_cut_at_any_step_is_restored_whole_or_as_the_one_before(cut):
    store = MemoryStore()
    await save(store, 1)
    store.cut_after = cut
    (ended,) = await asyncio.gather(save(store, 2), return_exceptions=True)
    store.cut_after = None

    step = 2 if ended is True else 1
    assert ended is True or isinstance(ended, Unavailable)
    assert (ended is True) == (cut == CALLS)
    assert await restored(store) == (step, files_at(step))


@pytest.mark.proves("200 uploads killed at random steps: each resumes from the newest whole checkpoint, none torn")
async def test_two_hundred_random_kills_and_torn_parts_never_restore_a_torn_checkpoint():
    resumed = []
    for seed in range(200):
        chance = random.Random(seed)
        store, whole = MemoryStore(), []
        for step in range(1, 6):
            store.cut_after = chance.choice([chance.randrange(CALLS), 1000])
            for ended in await asyncio.gather(save(store, step, f"try{seed}"), return_exceptions=True):
                whole += [step] * (ended is True)
            store.cut_after = None
        if whole and chance.random() < 0.5:
            store_rots(store, whole.pop(), chance)
        expected = (whole[-1], files_at(whole[-1])) if whole else None
        resumed.append(await restored(store) == expected)

    assert resumed == [True] * 200


def store_rots(store: MemoryStore, step: int, chance: random.Random) -> None:
    """One part of this step, or its manifest, is damaged in one of the ways that disks and people have."""
    of_step = [key for key in sorted(store.held) if f"/{step:020d}" in key]
    key = chance.choice(of_step)
    match chance.randrange(4):
        case 0:
            at = chance.randrange(len(store.held[key]))
            store.held[key] = flipped(store.held[key], at)
        case 1:
            store.held[key] = store.held[key][: chance.randrange(len(store.held[key]))]
        case 2:
            del store.held[key]
        case _:
            store.held[key] += b"\0"


def flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


async def test_a_checkpoint_without_a_manifest_does_not_exist():
    store = MemoryStore()
    store.cut_after = CALLS - 1
    with pytest.raises(Unavailable):
        await save(store, 1)
    store.cut_after = None

    assert await checkpoints.steps(store, OWNER) == ()
    assert await restored(store) is None


async def test_a_damaged_checkpoint_is_passed_over_with_the_reason():
    store = MemoryStore()
    await save(store, 1)
    await save(store, 2)
    key = checkpoints.part_key(OWNER, 2, "a", 1)
    store.held[key] = flipped(store.held[key], 30)

    choice = await checkpoints.newest_whole(store, OWNER)

    assert choice.manifest is not None and choice.manifest.step == 1
    assert [(one.step, one.reason) for one in choice.passed] == [(2, f"the part {key} is not what was stored")]


async def test_a_manifest_whose_parts_were_thrown_away_is_stale_and_passed_over():
    store = MemoryStore()
    await save(store, 1)
    await save(store, 2)
    for key in [key for key in store.held if f"/parts/{2:020d}/" in key]:
        del store.held[key]

    assert await restored(store) == (1, files_at(1))


async def test_a_manifest_that_was_put_under_another_step_is_refused():
    store = MemoryStore()
    await save(store, 1)
    store.held[checkpoints.manifest_key(OWNER, 9)] = store.held[checkpoints.manifest_key(OWNER, 1)]

    assert await restored(store) == (1, files_at(1))


@pytest.mark.parametrize("seed", range(20))
async def test_of_two_writers_of_one_step_one_wins_and_its_parts_are_the_ones_restored(seed):
    store, chance = MemoryStore(), random.Random(seed)

    async def late(attempt: str) -> bool:
        for _ in range(chance.randrange(12)):
            await asyncio.sleep(0)
        return await save(store, 1, attempt)

    won = await asyncio.gather(late("old-host"), late("new-host"))

    manifest = (await checkpoints.newest_whole(store, OWNER)).manifest
    assert sorted(won) == [False, True]
    assert manifest is not None and manifest.attempt == ("old-host", "new-host")[won.index(True)]
    assert await restored(store) == (1, files_at(1))


async def test_a_manifest_is_refused_while_one_of_its_parts_is_missing_or_short():
    store = MemoryStore()
    await save(store, 1)
    manifest = await checkpoints.read(store, OWNER, 1)
    await store.delete(checkpoints.manifest_key(OWNER, 1))
    key = manifest.parts[1].key
    store.held[key] = store.held[key][:-1]

    with pytest.raises(NotFound):
        await checkpoints.commit(store, manifest)
    assert await checkpoints.steps(store, OWNER) == ()


async def test_a_manifest_names_its_own_attempts_parts_alone():
    key = checkpoints.part_key("job_2", 1, "a", 0)
    foreign = Part("f", 0, 1, key, 1, "0" * 64)
    with pytest.raises(InvalidInput):
        checkpoints.manifest_of(OWNER, 1, "a", 1, "wrapped", [foreign])


async def test_tidying_keeps_the_newest_and_what_may_still_be_under_way():
    store = MemoryStore()
    for step in range(1, 6):
        await save(store, step)
    await save(store, 5, "loser")
    store.cut_after = 2
    with pytest.raises(Unavailable):
        await save(store, 6, "cut")
    store.cut_after = None

    assert await checkpoints.tidy(store, OWNER, BEGAN_NS + 1) == ()
    assert await checkpoints.steps(store, OWNER) == (5, 4, 3)
    assert not [key for key in store.held if f"/parts/{2:020d}/" in key]

    swept = await checkpoints.tidy(store, OWNER, BEGAN_NS + checkpoints.GARBAGE_AGE_NS)
    assert {key.split("/")[-2] for key in swept} == {"loser", "cut"}
    assert await restored(store) == (5, files_at(5))


@pytest.mark.parametrize("cut", range(12))
async def test_a_discard_cut_anywhere_leaves_no_torn_checkpoint_and_can_be_repeated(cut):
    store = MemoryStore()
    await save(store, 1)
    await save(store, 2)
    store.cut_after = cut
    await asyncio.gather(checkpoints.discard(store, OWNER, 2), return_exceptions=True)
    store.cut_after = None

    assert await restored(store) in [(1, files_at(1)), (2, files_at(2))]
    await checkpoints.discard(store, OWNER, 2)
    assert not [key for key in store.held if f"/{2:020d}" in key]


async def test_a_manifest_is_read_back_as_it_was_and_nothing_else_is_one():
    store = MemoryStore()
    await save(store, 1)
    content = store.held[checkpoints.manifest_key(OWNER, 1)]

    assert encode_manifest(parse_manifest(content)) == content
    for bad in (b"", b"{}", b"[]", content[:-1], content.replace(b"sealed_sha256", b"x"), b"\xff"):
        with pytest.raises(InvalidInput):
            parse_manifest(bad)
