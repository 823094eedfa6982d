"""The agent's end of a challenge: one at a time, and never with a card that is in use."""

import asyncio
import sys

import pytest

from tests.waiting import poll_async
from windrow_agent.challenge.service import ChallengeService
from windrow_proto.challenge import Plan
from windrow_proto.clock import SystemClock
from windrow_proto.errors import Conflict
from windrow_proto.ids import GpuUuid
from windrow_proto.wire_challenge import framed

HANGS = (sys.executable, "-c", "import time; time.sleep(600)")
PLAN = framed("", Plan((GpuUuid("GPU-1"),), 64))


def said(*pieces: bytes):
    rest = list(pieces)

    async def hear() -> bytes | None:
        await asyncio.sleep(0)
        return rest.pop(0) if rest else None

    return hear


async def nobody_hears(data: bytes) -> None:
    raise AssertionError(data)


async def test_of_two_challenges_that_begin_together_one_is_refused_and_the_other_goes_on() -> None:
    service = ChallengeService(SystemClock(), dict, HANGS)
    async with asyncio.TaskGroup() as group:
        first = group.create_task(service.serve(said(PLAN), nobody_hears))
        with pytest.raises(Conflict, match="under way"):
            await service.serve(said(b"", PLAN), nobody_hears)
        assert not first.done()
        assert service.held() == {"GPU-1": "challenge"}
        first.cancel()
    assert await poll_async(lambda: service.held() == {})


async def test_a_card_that_a_workload_holds_is_not_challenged() -> None:
    service = ChallengeService(SystemClock(), lambda: {"GPU-1": "workload_1"}, HANGS)
    with pytest.raises(Conflict, match="GPU-1 is in use"):
        await service.serve(said(PLAN), nobody_hears)
    assert service.held() == {"GPU-1": "workload_1"}
