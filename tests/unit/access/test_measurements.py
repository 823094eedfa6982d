"""Of measurements of a host an Access refuses those that would take more than it gives."""

import asyncio
from typing import Any

import pytest

from tests.unit.access.test_relay import HOST, StepClock, TestRng, expect, pair
from tests.waiting import PATIENCE_S
from windrow_access import probes
from windrow_access.probes import Bandwidth
from windrow_proto import keys
from windrow_proto.errors import InvalidInput
from windrow_proto.ids import AccessId
from windrow_proto.v1 import services_pb2


@pytest.mark.parametrize(
    "asked",
    [
        {"duration_ns": probes.DURATION_NS_MAX + 1},
        {"duration_ns": 0},
        {"cap_bytes": probes.CAP_BYTES_MAX + 1},
        {"cap_bytes": 0},
        {"nonce": ""},
    ],
)
async def test_a_measurement_that_is_too_long_too_large_or_nameless_is_refused(asked: dict[str, Any]) -> None:
    near, agent = pair()
    bandwidth = Bandwidth(AccessId("access_1"), keys.SigningKey.generate(), StepClock(), TestRng())
    allowed: dict[str, Any] = {"nonce": "n1", "duration_ns": 10**9, "cap_bytes": 1000}
    await agent.send(services_pb2.BandwidthChunk(start=services_pb2.BandwidthStart(**(allowed | asked))))
    for _ in "up", "down":
        await agent.send(services_pb2.BandwidthChunk(direction_done=True))

    async with asyncio.timeout(PATIENCE_S):
        await expect(InvalidInput, bandwidth.serve(HOST, near))

    assert agent.inbox.empty()  # nothing was begun
