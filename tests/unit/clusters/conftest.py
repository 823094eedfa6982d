"""Fixtures that more than one of these files needs."""

from tests.unit.clusters.test_routes import site as site
