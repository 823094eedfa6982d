"""Shared parts of all unit tests."""

from tests.support.schema import migrated_once as migrated_once
