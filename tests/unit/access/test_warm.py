"""Connections kept warm at an Access: one for each host, bounded, and ended with whatever ends a host's streams."""

import asyncio

import pytest

from tests.unit.access.test_relay import HOST, Pipe, drain, expect, pair, peer, world
from tests.waiting import PATIENCE_S, poll_async
from windrow_access import warm
from windrow_proto.errors import CertificateRefused, DeadlineExceeded, Forbidden, LinkClosed, TooMany, Unavailable
from windrow_proto.v1 import services_pb2

OTHER = "host_" + "7" * 32


async def ping(agent: Pipe, nonce: bytes = b"n") -> services_pb2.PingReply:
    await agent.send(services_pb2.PingRequest(nonce=nonce))
    return await asyncio.wait_for(agent.receive(), PATIENCE_S)


async def test_pings_are_answered_and_say_when_the_access_drains() -> None:
    async with world() as w, asyncio.TaskGroup() as tasks:
        near, agent = pair()
        tasks.create_task(expect(LinkClosed, w.relay.warmed(peer(), near)))
        first = await ping(agent, b"one")
        assert (first.nonce, first.access_id, first.region, first.draining) == (b"one", "access_1", "local-a", False)
        await w.master.send(drain(True))
        await poll_async(lambda: w.relay._is_draining)
        assert (await ping(agent)).draining
        await agent.close()
    assert len(w.relay._warm) == 0


async def test_nobody_keeps_one_who_could_not_open_a_stream() -> None:
    async with world() as w:
        await expect(Forbidden, w.relay.warmed(peer(role="access"), pair()[0]))
        await expect(CertificateRefused, w.relay.warmed(peer(not_after_ns=1), pair()[0]))
        await w.master.close()
        await poll_async(lambda: not w.relay.attached.is_set())
        await expect(Unavailable, w.relay.warmed(peer(), pair()[0]))


async def test_a_host_has_one_and_the_access_so_many() -> None:
    async with world() as w, asyncio.TaskGroup() as tasks:
        w.relay._warm._max_count = 1
        (first, agent), (second, again) = pair(), pair()
        older = tasks.create_task(expect(LinkClosed, w.relay.warmed(peer(), first)))
        await ping(agent)
        newer = tasks.create_task(expect(LinkClosed, w.relay.warmed(peer(), second)))
        await asyncio.wait_for(older, PATIENCE_S)
        await ping(again)
        await expect(TooMany, w.relay.warmed(peer(host=OTHER), pair()[0]))
        await again.close()
        await asyncio.wait_for(newer, PATIENCE_S)
        third, other = pair()
        tasks.create_task(expect(LinkClosed, w.relay.warmed(peer(host=OTHER), third)))
        await ping(other)
        await other.close()


async def test_a_ban_and_the_end_of_the_certificate_end_it() -> None:
    async with world() as w, asyncio.TaskGroup() as tasks:
        (first, agent), (second, other) = pair(), pair()
        banned = tasks.create_task(expect(LinkClosed, w.relay.warmed(peer(), first)))
        short_lived = peer(host=OTHER, not_after_ns=2 * 10**18)
        expired = tasks.create_task(expect(LinkClosed, w.relay.warmed(short_lived, second)))
        await ping(agent)
        await ping(other)
        item = services_pb2.TrunkItem(bans=services_pb2.BanList(host_ids=[HOST]))
        await w.master.send(services_pb2.TrunkBatch(items=[item]))
        await asyncio.wait_for(banned, PATIENCE_S)
        await w.relay._warm.expire(2 * 10**18 - 1)
        await ping(other)
        await w.relay._warm.expire(2 * 10**18)
        await asyncio.wait_for(expired, PATIENCE_S)


async def test_a_host_that_falls_silent_loses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm, "SILENCE_NS_MAX", 0)
    async with world() as w:
        await expect(DeadlineExceeded, w.relay.warmed(peer(), pair()[0]))


async def test_who_pings_all_the_time_waits_for_himself() -> None:
    async with world() as w, asyncio.TaskGroup() as tasks:
        near, agent = pair()
        pauses: list[int] = []

        async def sleep_ns(duration_ns: int) -> None:
            pauses.append(duration_ns)
            await asyncio.Event().wait()

        clock = w.relay._warm._clock
        w.relay._warm._clock = type("Pausing", (), {"sleep_ns": staticmethod(sleep_ns), "wall_ns": clock.wall_ns})()
        serving = tasks.create_task(w.relay.warmed(peer(), near))
        for _ in range(100):
            await agent.send(services_pb2.PingRequest())
        await poll_async(lambda: pauses == [warm.PAUSE_NS])
        assert near.inbox.qsize() == 99
        serving.cancel()


async def test_a_letter_goes_to_the_master_and_its_answer_back() -> None:
    async with world() as w, asyncio.TaskGroup() as tasks:
        near, agent = pair()
        tasks.create_task(expect(LinkClosed, w.relay.warmed(peer(), near)))
        await agent.send(services_pb2.PingRequest(nonce=b"1", letter=b"sealed"))
        carried = (await w.next_item("letter")).letter
        assert (carried.host_id, carried.sealed) == (HOST, b"sealed")  # the name is the certificate's
        for host_id, answer in ((OTHER, b"another host's"), (HOST, b"answer"), (HOST, b"too late")):
            item = services_pb2.TrunkItem(letter=services_pb2.Letter(host_id=host_id, sealed=answer))
            await w.master.send(services_pb2.TrunkBatch(items=[item]))
        reply = await asyncio.wait_for(agent.receive(), PATIENCE_S)
        assert (reply.nonce, reply.letter) == (b"1", b"answer")
        assert (await ping(agent)).letter == b""
        await agent.close()


async def test_a_letter_that_is_too_long_or_not_answered_costs_no_more_than_the_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(warm, "LETTER_DEADLINE_S", 0.05)
    async with world() as w, asyncio.TaskGroup() as tasks:
        near, agent = pair()
        tasks.create_task(expect(LinkClosed, w.relay.warmed(peer(), near)))
        await agent.send(services_pb2.PingRequest(letter=b"x" * (warm.LETTER_BYTES_MAX + 1)))
        assert (await asyncio.wait_for(agent.receive(), PATIENCE_S)).letter == b""
        await agent.send(services_pb2.PingRequest(letter=b"sealed"))
        assert (await w.next_item("letter")).letter.sealed == b"sealed"  # the first was not carried
        assert (await asyncio.wait_for(agent.receive(), PATIENCE_S)).letter == b""
        assert w.relay._warm._awaited == {}
        await agent.close()
