"""Tunnels over HTTP with a scripted host: who gets a grant, what the host is told, and what ends it."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from tests.unit.clusters.test_routes import HOST, ScriptedStream
from tests.unit.master_api.described import assert_described
from tests.waiting import poll_async
from windrow_master.api import workload_routes
from windrow_master.network import tunnels as service
from windrow_master.network.nearest_access import LISTED_MAX, UNREACHED_KEPT_NS, Nearby, TunnelPlace
from windrow_master.network.tunnels import TunnelAddresses, TunnelService
from windrow_master.shares import ShareLimits
from windrow_proto.errors import BadProof, LinkClosed
from windrow_proto.messages import ChannelClose, ChannelData
from windrow_proto.model import ChannelPurpose
from windrow_proto.tunnels import HOST_NAME, TunnelSide, secret_digest
from windrow_proto.units import MILLISECOND, SECOND
from windrow_proto.wire_tunnel import read_grant


class HeldStream:
    """A channel that stays open: its host is ready, and answers a close with what it carried."""

    def __init__(self):
        self.arrived: asyncio.Queue[ChannelData | ChannelClose | Exception] = asyncio.Queue()
        self.arrived.put_nowait(ChannelData(b"the key of this tunnel"))
        self.closings = []

    async def receive(self):
        step = await self.arrived.get()
        if isinstance(step, Exception):
            raise step
        return step

    async def close(self, closing):
        self.closings.append(closing)
        self.arrived.put_nowait(ChannelClose(bytes_in=7, bytes_out=9))


PLACES = TunnelAddresses("out:1", "in:2")
OWN = TunnelPlace("access_own", "access_own/0", "out:1", "in:2")
OTHER = TunnelPlace("access_other", "access_other/3", "out:7", "in:8")
NEARBY = Nearby(OWN.access_id, (OTHER, OWN), {OWN.access_id: 40 * MILLISECOND, OTHER.access_id: 30 * MILLISECOND})
NEARER = [{"id": OWN.access_id, "rtt_ms": 80}, {"id": OTHER.access_id, "rtt_ms": 5}]


@asynccontextmanager
async def tunnelling(site, places=PLACES, nearby=NEARBY):
    """The service on the site's scripted broker, running."""
    services, authority = site.rooms.services, site.rooms.authority
    services.tunnels = TunnelService(
        site.rooms.store,
        site.rooms.clusters,
        site.broker,
        lambda host_id: places if host_id == HOST else None,
        authority.signing,
        authority.root_pem,
        site.clock,
        lambda host_id: nearby,
    )
    async with asyncio.TaskGroup() as group:
        running = group.create_task(services.tunnels.run())
        await asyncio.sleep(0)
        yield services.tunnels
        running.cancel()


async def ask(site, cluster_id, port=8888, wish=None, **more):
    body = {"port": port, **(wish or {})}
    return await site.client.post(f"/api/v1/clusters/{cluster_id}/tunnels", json=body, **more)


async def rows(site, action):
    return [row for row in (await site.get("/audit"))["items"] if row["action"] == action]


async def test_host_and_renter_get_a_grant_of_their_own_for_one_tunnel_and_it_is_written(site):
    cluster_id, spec = await site.running()
    site.broker.streams = [HeldStream()]
    async with tunnelling(site):
        answer = await ask(site, cluster_id)
        assert_described(answer, workload_routes.TunnelOut, 201)
        found = answer.json()
        ((host_id, opening),) = site.broker.opened
        (row,) = await rows(site, "tunnel.open")

    master = site.rooms.authority.signing.public
    now_ns = site.clock.wall_ns()
    renter, host = (read_grant(text, master, now_ns) for text in (found["grant"], opening.tunnel_grant))
    assert (host_id, opening.purpose, opening.port) == (HOST, ChannelPurpose.TUNNEL, 8888)
    assert (opening.workload_id, opening.tunnel_address) == (spec.workload_id, "in:2")
    assert (renter.side, host.side) == (TunnelSide.RENTER, TunnelSide.HOST)
    assert renter.tunnel_id == host.tunnel_id == found["id"] == opening.tunnel_id == row["subject"]
    assert (renter.host_id, renter.workload_id, renter.port) == (HOST, spec.workload_id, 8888)
    assert renter.not_after_ns == now_ns + 60 * SECOND
    assert (found["address"], found["server_name"]) == ("out:1", "access.windrow")
    assert found["ca_pem"].encode() == site.rooms.authority.root_pem
    assert (found["host_pem"], found["host_server_name"]) == ("the key of this tunnel", HOST_NAME)
    assert opening.tunnel_digest == secret_digest(bytes.fromhex(found["secret"]))
    assert row["fields"].items() >= {"cluster": cluster_id, "host": HOST, "port": "8888"}.items()
    assert answer.headers["cache-control"] == "no-store"
    assert (renter.worker, host.worker, found["access_id"]) == ("", "", OWN.access_id)
    assert found["accesses"] == [{"id": OWN.access_id, "address": "out:1"}, {"id": OTHER.access_id, "address": "out:7"}]
    with pytest.raises(BadProof):
        read_grant(found["grant"], b"\0" * 32, now_ns)


async def test_a_renter_that_is_nearer_to_another_access_meets_the_host_there_by_grants_that_name_it(site):
    cluster_id, _ = await site.running()
    site.broker.streams = [HeldStream()]
    async with tunnelling(site):
        found = (await ask(site, cluster_id, wish={"measured": NEARER})).json()
        ((_, opening),) = site.broker.opened
        (row,) = await rows(site, "tunnel.open")

    master, now_ns = site.rooms.authority.signing.public, site.clock.wall_ns()
    named = [read_grant(text, master, now_ns).worker for text in (found["grant"], opening.tunnel_grant)]
    assert named == [OTHER.worker, OTHER.worker]
    assert (found["address"], opening.tunnel_address, found["access_id"]) == ("out:7", "in:8", OTHER.access_id)
    assert row["fields"]["access"] == OTHER.access_id


async def test_an_access_that_the_host_does_not_reach_is_passed_over_for_a_while(site):
    cluster_id, _ = await site.running()
    unreached = ScriptedStream([ChannelClose("unavailable", "The host does not reach its Access for tunnels at in:8.")])
    site.broker.streams = [unreached, HeldStream(), HeldStream(), HeldStream()]
    async with tunnelling(site) as tunnels:
        answers = [(await ask(site, cluster_id, wish={"measured": NEARER})).json() for _ in range(2)]
        assert [(one["access_id"], one["address"]) for one in answers] == [(OWN.access_id, "out:1")] * 2
        assert [opening.tunnel_address for _, opening in site.broker.opened] == ["in:8", "in:2", "in:2"]
        assert answers[0]["accesses"] and answers[1]["accesses"] == [] and tunnels.count == 2
        site.clock.advance(UNREACHED_KEPT_NS)
        assert (await ask(site, cluster_id, wish={"measured": NEARER})).json()["access_id"] == OTHER.access_id
    assert unreached.closings


async def test_an_access_that_did_not_answer_the_renter_is_left_out_where_there_is_another(site):
    cluster_id, _ = await site.running()
    unmeasured = Nearby(OWN.access_id, (OWN, OTHER))
    site.broker.streams = [HeldStream(), HeldStream()]
    async with tunnelling(site, nearby=unmeasured):
        found = (await ask(site, cluster_id, wish={"without": [OWN.access_id]})).json()
        neither = (await ask(site, cluster_id, wish={"without": [OWN.access_id, OTHER.access_id]})).json()
    assert (found["address"], neither["address"]) == ("out:7", "out:1")
    assert site.broker.opened[0][1].tunnel_address == "out:7", "an Access that it never measured is found from outside"


@pytest.mark.parametrize(
    "wish",
    [
        {"measured": [{"id": "a", "rtt_ms": -1}]},
        {"measured": [{"id": "a", "rtt_ms": 60_001}]},
        {"measured": [{"id": "a", "rtt_ms": 1}] * (LISTED_MAX + 1)},
        {"measured": [{"id": "a"}]},
        {"without": ["a"] * (LISTED_MAX + 1)},
        {"without": ["a" * 129]},
    ],
)
async def test_what_cannot_have_been_measured_is_refused(site, wish):
    cluster_id, _ = await site.running()
    async with tunnelling(site):
        assert (await ask(site, cluster_id, wish=wish)).status_code == 422


async def test_a_repeated_key_makes_another_grant_since_none_is_kept(site):
    cluster_id, _ = await site.running()
    site.broker.streams = [HeldStream(), HeldStream()]
    async with tunnelling(site):
        first, second = [(await ask(site, cluster_id, headers={"Idempotency-Key": "k"})).json() for _ in range(2)]

    assert first["id"] != second["id"]
    assert first["secret"] != second["secret"]


async def test_a_host_that_names_no_key_has_no_tunnel(site):
    cluster_id, _ = await site.running()
    for said in (b"", b"\xff", b"a" * (service.HOST_PEM_MAX + 1)):
        site.broker.streams = [ScriptedStream([ChannelData(said)])]
        async with tunnelling(site) as tunnels:
            answer = await ask(site, cluster_id)
            assert (answer.status_code, tunnels.count) == (409, 0)


async def test_what_is_in_the_way_at_the_host_is_the_answer(site):
    cluster_id, _ = await site.running()
    stream = ScriptedStream([ChannelClose("conflict", "Nothing listens on port 22 of this workload.")])
    site.broker.streams = [stream]
    async with tunnelling(site) as tunnels:
        answer = await ask(site, cluster_id, 22)
        assert (answer.status_code, answer.json()["detail"]) == (409, "Nothing listens on port 22 of this workload.")
        assert tunnels.count == 0 and await rows(site, "tunnel.open") == []
    assert stream.closings


async def test_a_host_that_is_away_or_whose_access_has_no_tunnels_is_a_problem(site):
    cluster_id, _ = await site.running()
    async with tunnelling(site):
        assert (await ask(site, cluster_id)).json()["code"] == "host_unreachable"
    async with tunnelling(site, places=None):
        answer = await ask(site, cluster_id)
        assert (answer.status_code, answer.json()["code"]) == (503, "host_unreachable")
    assert len(site.broker.opened) == 1


async def test_nothing_of_a_cluster_that_does_not_run_is_reached(site):
    cluster_id, _ = await site.running()
    async with tunnelling(site):
        await site.client.delete(f"/api/v1/clusters/{cluster_id}")
        assert (await ask(site, cluster_id)).json()["code"] == "conflict"
        assert (await ask(site, "cluster_of_nobody")).status_code == 404
    assert site.broker.opened == []


async def test_a_delete_closes_the_tunnel_and_its_bytes_are_written(site):
    cluster_id, _ = await site.running()
    stream = HeldStream()
    site.broker.streams = [stream]
    async with tunnelling(site) as tunnels:
        tunnel_id = (await ask(site, cluster_id)).json()["id"]
        assert stream.closings == [] and tunnels.count == 1
        await site.client.delete(f"/api/v1/clusters/{cluster_id}")
        (row,) = await poll_async(lambda: rows(site, "tunnel.end"))
        assert stream.closings == [ChannelClose()] and tunnels.count == 0

    assert (row["subject"], row["actor"], row["reason"]) == (tunnel_id, f"host/{HOST}", "ended")
    assert {name: row["fields"][name] for name in ("bytes_in", "bytes_out", "cluster")} == {
        "bytes_in": "7",
        "bytes_out": "9",
        "cluster": cluster_id,
    }
    (event,) = [e for e in (await site.get("/events", subject=cluster_id))["items"] if e["kind"] == "tunnel.ended"]
    assert event["text"] == "A tunnel to port 8888 has ended: 7 bytes in, 9 bytes out"


async def test_a_host_that_goes_ends_its_tunnel_in_the_audit_log_too(site):
    cluster_id, _ = await site.running()
    stream = HeldStream()
    site.broker.streams = [stream]
    async with tunnelling(site) as tunnels:
        await ask(site, cluster_id)
        stream.arrived.put_nowait(LinkClosed())
        (row,) = await poll_async(lambda: rows(site, "tunnel.end"))
        assert tunnels.count == 0
    assert row["reason"] == "link_closed"


async def test_a_tunnel_ends_with_the_right_of_whoever_asked(site):
    cluster_id, _ = await site.running()
    made = (await site.client.post("/api/v1/tokens", json={"name": "short"})).json()
    stream = HeldStream()
    site.broker.streams = [stream]
    async with tunnelling(site):
        answer = await ask(site, cluster_id, headers={"Authorization": f"Bearer {made['token']}"})
        assert answer.status_code == 201
        await site.client.delete(f"/api/v1/tokens/{made['id']}")

        async def closed():
            site.clock.advance(SECOND)
            await asyncio.sleep(0)
            return stream.closings

        assert await poll_async(closed) == [ChannelClose()]


async def test_an_account_has_no_more_than_its_number(site):
    cluster_id, _ = await site.running()
    site.broker.streams = [HeldStream(), HeldStream()]
    async with tunnelling(site) as tunnels:
        tunnels.tunnels.limits = ShareLimits(1, 1, 0)
        assert (await ask(site, cluster_id)).status_code == 201
        refused = await ask(site, cluster_id)
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many")
    assert len(site.broker.opened) == 1


async def test_a_master_that_stops_tells_the_hosts(site):
    cluster_id, _ = await site.running()
    stream = HeldStream()
    site.broker.streams = [stream]
    async with tunnelling(site):
        await ask(site, cluster_id)
    assert stream.closings == [ChannelClose()]
    assert (await ask(site, cluster_id)).status_code == 503


class Beside(HeldStream):
    """While it is being closed, the other's host says that it is over; some turns of the loop pass meanwhile."""

    other: HeldStream

    def __init__(self, turns):
        super().__init__()
        self._turns = turns

    async def close(self, closing):
        await super().close(closing)
        self.other.arrived.put_nowait(ChannelClose())
        for _ in range(self._turns):
            await asyncio.sleep(0)


@pytest.mark.parametrize("turns", range(8))
async def test_a_tunnel_that_ends_in_the_moment_it_is_to_be_closed_takes_nothing_with_it(site, turns):
    cluster_id, _ = await site.running()
    streams = [Beside(turns), Beside(turns)]
    streams[0].other, streams[1].other = streams[1], streams[0]
    site.broker.streams = list(streams)
    async with tunnelling(site) as tunnels:
        assert [(await ask(site, cluster_id)).status_code for _ in streams] == [201, 201]
        await site.client.delete(f"/api/v1/clusters/{cluster_id}")
        assert await poll_async(lambda: _over(site, tunnels))


async def _over(site, tunnels):
    return tunnels.count == 0 and len(await rows(site, "tunnel.end")) == 2


async def test_a_host_that_is_gone_when_its_tunnel_is_closed_takes_nothing_with_it(site):
    class Gone(HeldStream):
        async def close(self, closing):
            self.arrived.put_nowait(LinkClosed())
            raise LinkClosed

    cluster_id, _ = await site.running()
    made = (await site.client.post("/api/v1/tokens", json={"name": "short"})).json()
    site.broker.streams = [Gone(), Gone()]
    async with tunnelling(site) as tunnels:
        for headers in ({}, {"Authorization": f"Bearer {made['token']}"}):
            assert (await ask(site, cluster_id, headers=headers)).status_code == 201
        await site.client.delete(f"/api/v1/tokens/{made['id']}")

        async def over(count):
            site.clock.advance(SECOND)
            await asyncio.sleep(0)
            return tunnels.count == count

        await poll_async(lambda: over(1))
        await site.client.delete(f"/api/v1/clusters/{cluster_id}")
        await poll_async(lambda: over(0))


async def test_a_tunnel_that_crashes_is_logged_and_the_others_go_on(site):
    cluster_id, _ = await site.running()
    broken, stream = HeldStream(), HeldStream()
    site.broker.streams = [broken, stream]
    async with tunnelling(site) as tunnels:
        for _ in range(2):
            assert (await ask(site, cluster_id)).status_code == 201
        broken.arrived.put_nowait(RuntimeError("of no kind that anybody expects"))
        (row,) = await poll_async(lambda: rows(site, "tunnel.end"))
        assert (row["reason"], tunnels.count) == ("internal", 1)
        assert (broken.closings, stream.closings) == ([ChannelClose()], [])


async def test_a_bug_in_writing_down_what_went_through_or_its_end_ends_no_master(site, monkeypatch):
    cluster_id, _ = await site.running()
    site.broker.streams = [first, second] = [HeldStream(), HeldStream()]
    bugs, noting = [ZeroDivisionError("of one row")] * 2, service._note_end
    is_written = asyncio.Event()

    def note_end(uow, live, end):
        if bugs:
            raise bugs.pop()
        noting(uow, live, end)

    async def write_down(tally, store, name):
        if bugs:
            raise bugs.pop()
        is_written.set()

    monkeypatch.setattr(service, "_note_end", note_end)
    async with tunnelling(site) as tunnels:
        for _ in range(2):
            assert (await ask(site, cluster_id)).status_code == 201
        await first.close(ChannelClose())

        async def over():
            return tunnels.count == 1 and len(bugs) == 1

        await poll_async(over)
        monkeypatch.setattr(service, "write_down", write_down)
        await is_written.wait()
        await second.close(ChannelClose())
        await poll_async(lambda: rows(site, "tunnel.end"))
