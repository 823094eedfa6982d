"""Checkpoints of places without an agent: what they left plain is restored at a host, and what a host saved is laid out
plain for them."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.master_support import ManualClock
from tests.support.objects import MemoryStore
from tests.unit.artefacts.test_moving import OWNER, World, written
from windrow_master.storage import checkpoints
from windrow_master.storage.model import ObjectKey, object_key
from windrow_master.storage.plain_checkpoints import PlainCheckpoints
from windrow_proto.checkpoints import Piece, pieces_of
from windrow_proto.data_keys import DataKey
from windrow_proto.errors import InvalidInput, NotFound, TooLarge
from windrow_proto.ids import AccountId

ACCOUNT = AccountId("account_1")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with asyncio.TaskGroup() as group:
        yield World(MemoryStore(), group, tmp_path)


def plain_of(world: World) -> PlainCheckpoints:
    artefacts: Any = SimpleNamespace(objects=world.objects, account_key=lambda _account: DataKey(bytes(32)))
    return PlainCheckpoints(artefacts, ManualClock())


async def put(world: World, step: int) -> tuple[list[Piece], list[ObjectKey]]:
    """Store what a helper would have stored of a step."""
    files = written(step)
    pieces = list(pieces_of((name, len(content)) for name, content in files.items()))
    keys = [object_key(f"runs/run_1/out/{step}/{number:05d}") for number in range(len(pieces))]
    for key, piece in zip(keys, pieces, strict=True):
        await world.objects.put(key, once(files[piece.name]), piece.size_bytes)
    return pieces, keys


async def once(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def test_what_a_service_left_is_restored_at_a_host_and_lies_sealed(world: World) -> None:
    pieces, keys = await put(world, 7)

    assert await plain_of(world).take_in(ACCOUNT, OWNER, 7, pieces, keys)

    for key in keys:
        await world.objects.delete(key)
    assert not [held for held in world.objects.held.values() if b"weights" in held]
    outcome = await world.service.restore(ACCOUNT, OWNER, world.host("two"))
    assert (outcome.step, outcome.passed, world.content("two", 7)) == (7, (), written(7))


async def test_what_a_host_saved_is_laid_out_for_a_service(world: World) -> None:
    world.write("one", 3)
    await world.service.save(ACCOUNT, OWNER, world.host("one"))

    laid = await plain_of(world).lay_out(ACCOUNT, OWNER, "runs/run_1/in")

    assert laid is not None and laid[0] == 3
    found = {name: b"".join([piece async for piece in await world.objects.get(key)]) for key, name in laid[1].items()}
    assert found == written(3)


async def test_a_checkpoint_that_is_not_whole_is_passed_over_for_the_one_before(world: World) -> None:
    for step in (3, 4):
        world.write("one", step)
        await world.service.save(ACCOUNT, OWNER, world.host("one"))
    part = next(key for key in world.objects.held if f"parts/{4:020d}" in key)
    world.objects.held[part] = world.objects.held[part][:-1] + b"!"

    laid = await plain_of(world).lay_out(ACCOUNT, OWNER, "runs/run_1/in")

    assert laid is not None and laid[0] == 3


async def test_a_step_that_is_there_already_or_older_is_not_taken_in(world: World) -> None:
    service = plain_of(world)

    assert await service.take_in(ACCOUNT, OWNER, 5, *await put(world, 5))
    assert not await service.take_in(ACCOUNT, OWNER, 5, *await put(world, 5))
    assert not await service.take_in(ACCOUNT, OWNER, 4, *await put(world, 4))

    assert await checkpoints.steps(world.objects, OWNER) == (5,)


async def test_pieces_that_are_not_what_they_were_said_to_be_make_no_checkpoint(world: World) -> None:
    pieces, keys = await put(world, 7)
    smaller = [Piece(one.name, one.offset, max(0, one.size_bytes - 1)) for one in pieces]
    gaps = [Piece(one.name, one.offset + 1, one.size_bytes) for one in pieces]
    outside = [Piece("../" + one.name, one.offset, one.size_bytes) for one in pieces]

    for wrong, error in ((smaller, TooLarge), (gaps, InvalidInput), (outside, InvalidInput)):
        with pytest.raises(error):
            await plain_of(world).take_in(ACCOUNT, OWNER, 7, wrong, keys)
    await world.objects.delete(keys[0])
    with pytest.raises(NotFound):
        await plain_of(world).take_in(ACCOUNT, OWNER, 7, pieces, keys)

    assert await checkpoints.steps(world.objects, OWNER) == ()
    assert await plain_of(world).lay_out(ACCOUNT, OWNER, "runs/run_1/in") is None
