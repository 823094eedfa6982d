"""Promises of live streams: order, resumption, and what happens to a listener that is too slow."""

import asyncio

import pytest

from tests.unit.master_api.conftest import Api
from windrow_master.api import sse
from windrow_master.api.record_routes import _resumed, message_of, topics_of
from windrow_proto.errors import Unavailable


async def _note(api: Api, kind: str, subject: str = "host_1") -> int:
    await api.services.store.write(lambda uow: uow.event(kind, [subject], kind), name="note")
    return (await api.services.store.read(lambda uow: uow.events.newest(subject, limit=1)))[0].number


async def _take(messages, count: int) -> list[sse.Message]:
    async def take() -> list[sse.Message]:
        return [await anext(messages) for _ in range(count)]

    return await asyncio.wait_for(take(), 30)


async def test_a_returning_listener_gets_what_it_missed_then_what_comes_each_once(api: Api) -> None:
    first = await _note(api, "first")
    await _note(api, "missed")
    await _note(api, "other", "host_2")
    listener = api.services.broadcaster.listen("events/host_1")
    during = await _note(api, "during")
    messages = _resumed(api.services, listener, first, "host_1")

    replayed = await _take(messages, 2)
    await _note(api, "after")
    live = await _take(messages, 1)
    await messages.aclose()

    assert [message.data["kind"] for message in replayed + live] == ["missed", "during", "after"]
    assert replayed[1].id == str(during)
    assert api.services.broadcaster.listeners == 0


async def test_a_slow_listener_is_told_to_read_again_instead_of_growing(api: Api) -> None:
    broadcaster = api.services.broadcaster
    with broadcaster.listen("t") as listener:
        for number in range(sse.QUEUE_MAX + 3):
            broadcaster.publish(["t"], sse.Message("x", {"n": number}))
        got = [await listener.next(0.01) for _ in range(3)]

    assert [message.event for message in got if message] == ["resync", "x", "x"]
    assert broadcaster.resyncs == 1


async def test_a_message_on_two_topics_is_heard_once() -> None:
    broadcaster = sse.Broadcaster()
    with broadcaster.listen("a", "b") as listener:
        broadcaster.publish(["a", "b"], sse.Message("x", {}))

        assert await listener.next(0.01) is not None
        assert await listener.next(0.01) is None
    assert not broadcaster.has_listeners("a")


async def test_streams_end_with_the_master() -> None:
    broadcaster = sse.Broadcaster()
    with broadcaster.listen("a") as listener:
        broadcaster.close()
        with pytest.raises(Unavailable):
            broadcaster.listen("a")

        assert [message async for message in sse.follow(listener)] == []


def test_a_message_is_three_lines_whatever_its_text() -> None:
    encoded = sse.Message("event", {"text": "a\nb\r\n\n"}, "7").encode()

    assert encoded == b'id: 7\nevent: event\ndata: {"text":"a\\nb\\r\\n\\n"}\n\n'


async def test_events_are_told_to_the_pages_of_their_subjects(api: Api) -> None:
    with api.services.broadcaster.listen("events/host_1") as listener:
        await _note(api, "seen")
        message = await listener.next(1)

    row = (await api.services.store.read(lambda uow: uow.events.newest()))[0]
    assert topics_of(row) == ["events", "events/host_1"]
    assert message == message_of(row)
