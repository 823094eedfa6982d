"""Reads a list of which only some rows are wanted, page by page, until enough of them are found. Pure."""

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def sift(
    read: Callable[[T | None, int], Sequence[T]], is_wanted: Callable[[T], bool], limit: int, looked_max: int | None
) -> tuple[list[T], T | None]:
    """At most `limit` rows that are wanted, and the row to go on after: None where nothing more is wanted.

    read: so many rows that follow this one; None: from the beginning. looked_max: rows to look at in about; whoever
    gets few of them goes on from the row that is returned. None: all that there are.
    """
    found: list[T] = []
    last: T | None = None
    size, looked = limit + 1, 0
    while True:
        rows = read(last, size)
        for row in rows:
            if is_wanted(row):
                if len(found) == limit:
                    return found, found[-1]
                found.append(row)
            last = row
        looked += len(rows)
        if len(rows) < size:
            return found, None
        if looked_max is not None and looked >= looked_max:
            return found, last
        size = max(size, min(4 * size, looked_max or 1_000))
