"""The Master meets a bug of its own at one host's message: the others notice nothing."""

import pytest

from tests.trunk_support import FakeAgent
from tests.trunk_world import MASTER, running
from tests.waiting import poll_async
from windrow_proto.ids import HostId
from windrow_proto.model import Kind


@pytest.fixture
async def m(tmp_path):
    async with running(tmp_path) as master:
        yield master


def crash(*asked):
    raise ZeroDivisionError("what nobody has thought of")


@pytest.mark.parametrize("where", ["at a message", "at its hello"])
async def test_it_ends_the_route_of_that_host_and_no_other(m, monkeypatch, where):
    other = FakeAgent(m.clock, HostId("host_2"))
    await m.join(other)
    await other.greet(m.access, MASTER.public)
    if where == "at a message":
        await m.agent.greet(m.access, MASTER.public)
    with monkeypatch.context() as patched:
        if where == "at a message":
            patched.setattr(m.fleet.presence, "heard", crash)
            await m.agent.beat()
        else:
            patched.setattr(m.hub._certificates, "check", crash)
            await m.agent.connect(m.access, MASTER.public)
        await poll_async(lambda: m.access.closed.get(m.agent.number) == "unavailable")
    await other.beat()
    await other.next(Kind.HEARTBEAT_REPLY)
    assert other.number not in m.access.closed


async def test_what_is_written_down_for_one_host_and_sent_to_it_ends_nothing_else(m, monkeypatch):
    await m.agent.greet(m.access, MASTER.public)
    done = []

    async def crash_later():
        crash()

    async def note():
        done.append("noted")

    m.hub.down.later(crash_later)
    m.hub.down.later(note)
    await poll_async(lambda: done)
    with monkeypatch.context() as patched:
        patched.setattr(m.fleet, "outbox", crash)
        m.hub.down.wake(m.agent.host_id)
        await poll_async(lambda: m.agent.host_id not in m.hub.down._woken)
    await m.agent.beat()
    await m.agent.next(Kind.HEARTBEAT_REPLY)
    assert not any(task.done() for task in m.tasks)
