"""Events that alerts are made of, at their source: relays that come and go, marks of budgets."""

from pathlib import Path

import pytest

from tests.master_support import ManualClock, opened_store
from windrow_master.accesses.news import GRACE_NS, AccessNews, AccessNewsWriter
from windrow_master.market.limits import mark_passed, month_ends_ns
from windrow_master.store.store import Store
from windrow_proto.units import Microcents, parse_time


def kinds(store: Store) -> list[str]:
    return [row.kind for row in store.read_now(lambda uow: uow.events.after(0))]


def news(*, is_attached: bool) -> AccessNews:
    return AccessNews("access_1", "north", is_attached=is_attached, is_drained=False, hosts=1_000)


async def test_a_relay_is_told_lost_once_and_back_once_whichever_master_sees_it(tmp_path: Path) -> None:
    clock = ManualClock()
    with opened_store(tmp_path, clock) as store:
        for _ in range(2):  # another Master leads, and sees the same
            writer = AccessNewsWriter(store, clock)
            for is_attached in (True, False):
                writer.note(news(is_attached=is_attached))
                await writer.turn()
                await writer.turn()
        assert kinds(store) == ["access.back", "access.lost"] * 2
        (row, *_) = store.read_now(lambda uow: uow.events.newest("access_1", limit=1))
        assert (row.text, row.fields["drained"]) == (
            "The relay north is gone: 1000 hosts were connected through it",
            "0",
        )


async def test_a_short_break_within_one_turn_is_no_news(tmp_path: Path) -> None:
    clock = ManualClock()
    with opened_store(tmp_path, clock) as store:
        writer = AccessNewsWriter(store, clock)
        writer.note(news(is_attached=True))
        await writer.turn()
        writer.note(news(is_attached=False))
        writer.note(news(is_attached=True))
        await writer.turn()
        clock.advance(GRACE_NS)
        await writer.turn()
        assert kinds(store) == ["access.back"]


@pytest.mark.parametrize(
    ("before", "after", "most", "mark"),
    [
        (0, 49, 100, None),
        (0, 50, 100, 50),
        (49, 81, 100, 80),
        (50, 79, 100, None),
        (94, 95, 100, 95),
        (95, 100, 100, None),
        (0, 100, 100, 95),
        (0, 2, 3, 50),
    ],
)
def test_a_mark_is_passed_once(before: int, after: int, most: int, mark: int | None) -> None:
    assert mark_passed(Microcents(before), Microcents(after), Microcents(most)) == mark


@pytest.mark.parametrize("day", ["2026-01-01", "2026-01-31", "2026-12-15", "2028-02-29"])
def test_a_month_ends_where_the_next_begins(day: str) -> None:
    ends = {"2026-01": "2026-02", "2026-12": "2027-01", "2028-02": "2028-03"}[day[:7]]
    assert month_ends_ns(parse_time(f"{day}T12:00:00Z")) == parse_time(f"{ends}-01T00:00:00Z")
