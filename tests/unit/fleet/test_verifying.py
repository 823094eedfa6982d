"""The loop that challenges hosts: what an earlier Master left is given back before anything is begun."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.master_support import SeededRng
from tests.unit.fleet.world import GPU_1, HOST, OWNER, world
from tests.waiting import poll_async
from windrow_master.fleet.model import VerifyState
from windrow_master.fleet.repository import HostRepository
from windrow_master.verification.scheduler import VerificationService
from windrow_proto.errors import StorageFailed, Unavailable


@pytest.fixture
def w(tmp_path):
    made: Any
    with world(tmp_path) as made:
        made.join()
        made.equip(GPU_1)
        made.write(
            lambda uow: uow[HostRepository].save(
                replace(uow[HostRepository].get(HOST), verify_state=VerifyState.VERIFYING)
            )
        )
        made.fleet.start()
        made.fleet.is_connected = lambda host_id: True
        yield made


@pytest.mark.parametrize("error", [StorageFailed("for a moment"), ZeroDivisionError("of one row")])
async def test_what_stands_in_the_way_of_the_first_turn_is_met_again_by_the_next_and_ends_no_master(
    w, monkeypatch, error
):
    met, pick_up, is_over = asyncio.Event(), VerificationService._pick_up, False

    def meets(service, uow):
        if not is_over:
            w.loop.call_soon_threadsafe(met.set)
            raise error
        pick_up(service, uow)

    async def given_back():
        return w.read(lambda uow: uow[HostRepository].get(HOST)).verify_state is not VerifyState.VERIFYING

    monkeypatch.setattr(VerificationService, "_pick_up", meets)
    nobody: Any = None
    service = VerificationService(w.store, w.clock, SeededRng(), w.fleet, nobody, nobody, "test")
    w.loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(service.run())
        await met.wait()
        with pytest.raises(Unavailable, match="does not verify yet"):
            await service.ask(HOST, OWNER, "account/account_1")
        is_over = True
        await poll_async(given_back, what="a host that is given back")
        running.cancel()
