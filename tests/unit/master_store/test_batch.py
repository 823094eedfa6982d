"""The batch of a write transaction: rows wait together, parts fail alone, and nothing that waits is missed."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import func, select

from tests.master_support import opened_store
from windrow_master.store import tables
from windrow_master.store.executors import InlineExecutor
from windrow_master.store.model import OperationState
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import NotFound
from windrow_proto.ids import AccountId

MINE = AccountId("account_1")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened_store(tmp_path, executor=InlineExecutor()) as opened:
        yield opened


def _begin(uow: UnitOfWork, subject: str) -> str:
    uow.audit("test", "begin", subject)
    return str(uow.operation("test", subject, MINE, "test").id)


def _subjects(store: Store) -> list[str]:
    return [one.subject for one in store.read_now(lambda uow: uow.audit_log.list()) if one.action == "begin"]


async def test_a_part_that_fails_takes_what_it_had_waiting_and_nothing_of_others(store: Store) -> None:
    def with_parts(uow: UnitOfWork) -> None:
        _begin(uow, "before")
        with pytest.raises(NotFound), uow.attempt():
            _begin(uow, "in vain")
            assert uow.operations.running("in vain", "test")  # which has what waits written
            assert uow.operations.running("before", "test")
            raise NotFound
        _begin(uow, "after")

    await store.write(with_parts, name="parts")

    assert _subjects(store) == ["before", "after"]
    assert store.read_now(lambda uow: uow.audit_log.first_broken()) is None
    running = store.read_now(lambda uow: [bool(uow.operations.running(one, "test")) for one in ("before", "in vain")])
    assert running == [True, False]


async def test_a_writer_that_fails_late_disturbs_none_that_share_its_commit(store: Store) -> None:
    def failing(uow: UnitOfWork) -> None:
        operation = uow.operation("test", "in vain", MINE, "test")
        assert uow.operations.get(operation.id)
        uow.operations.finish(operation.id, uow.now_wall_ns)
        raise NotFound

    asked = [store.write(lambda uow, one=one: _begin(uow, one), name="good") for one in ("a", "b")]  # type: ignore[misc]
    answers = await asyncio.gather(*asked, store.write(failing, name="bad"), return_exceptions=True)

    assert [type(one) for one in answers] == [str, str, NotFound]
    assert _subjects(store) == ["a", "b"]


async def test_a_row_that_the_database_refuses_fails_the_one_that_asked_for_it(store: Store) -> None:
    known = await store.write(lambda uow: uow.operation("test", "first", MINE, "test"), name="first")
    asked = [lambda uow: uow.operations.add(known), lambda uow: _begin(uow, "good")]

    answers = await asyncio.gather(*[store.write(one, name="one") for one in asked], return_exceptions=True)

    assert isinstance(answers[0], Exception)
    assert isinstance(answers[1], str)
    assert _subjects(store) == ["good"]


async def test_a_statement_that_is_not_made_ahead_finds_what_waits(store: Store) -> None:
    def counted(uow: UnitOfWork) -> int:
        _begin(uow, "one")
        return int(uow.connection.scalar(select(func.count()).select_from(tables.operations)) or 0)

    assert await store.write(counted, name="count") == 1


async def test_what_was_read_is_read_again_after_a_change_of_it_and_not_before(store: Store) -> None:
    def reading(uow: UnitOfWork) -> list[int]:
        operation = uow.operation("test", "one", MINE, "test")
        found = [len(uow.operations.running("one", "test")) for _ in range(3)]
        uow.operations.finish(operation.id, uow.now_wall_ns)
        ended = uow.operations.get(operation.id)
        assert ended is not None
        assert ended.state is OperationState.SUCCEEDED
        return [*found, len(uow.operations.running("one", "test"))]

    assert await store.write(reading, name="read") == [1, 1, 1, 0]
