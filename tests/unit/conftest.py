"""Shared parts of all unit tests: the schema of a store is migrated once in a process, not for each of hundreds."""

from collections.abc import Iterator
from unittest import mock

import pytest

from tests.support import schema


@pytest.fixture(autouse=True)
def migrated_once() -> Iterator[None]:
    """Stores open on the schema that the migrations made once; tests/contract runs them on every database."""
    with mock.patch("windrow_master.store.store.upgrade", schema.lay_down):
        yield
