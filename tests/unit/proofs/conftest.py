"""Fixtures that more than one of these files needs."""

from typing import Any

import pytest

from tests.unit.clusters.world import market_world
from tests.unit.proofs.world import Greeting, Inside, Tunnels
from windrow_master.acceptance import rental
from windrow_master.fleet.states import LinkEvent


@pytest.fixture
def m(tmp_path, monkeypatch):
    monkeypatch.setattr(rental, "RenterEnd", Greeting)
    made: Any
    with market_world(tmp_path) as made:
        made.fleet.start()
        made.link(LinkEvent.HEARD)  # a Master that has just begun knows of nobody's link
        made.fleet.is_connected = lambda host_id: True
        made.inside, made.tunnels = Inside(), Tunnels()
        yield made
