"""Fixtures of tests with real processes."""

from tests.support.agent_world import world as world
