"""Public services: who is led to one without a token, what it counts, and what ends it: decisions, then the service."""

import asyncio
from dataclasses import replace

import pytest

from tests.unit.clusters.test_routes import HOST
from tests.unit.clusters.test_tunnels import HeldStream, rows, tunnelling
from tests.waiting import poll_async
from windrow_master.clusters.model import ClusterKind, ClusterPhase, Traffic, WorkPhase
from windrow_master.clusters.repository import ClusterRepository, TrafficRepository, WorkloadRepository
from windrow_master.clusters.views import public_ports
from windrow_master.network.public_ports import Tally, Unknown, judge
from windrow_master.network.tunnels import PAGE_NS
from windrow_master.shares import ShareLimits
from windrow_proto.errors import Conflict, HostUnreachable, NotFound, TooMany
from windrow_proto.ids import ClusterId, mint
from windrow_proto.messages import ChannelClose
from windrow_proto.tunnels import TunnelSide
from windrow_proto.units import SECOND
from windrow_proto.wire_tunnel import read_grant

SERVICE = {"kind": "service", "ports": [8080, 80]}
NOBODYS = ClusterId(mint("cluster", 1, bytes(10)))


@pytest.fixture
async def served(site):
    """A service that runs, and its cluster and workload as the store has them."""
    cluster_id, _ = await site.running(**SERVICE)
    site.cluster_id = ClusterId(cluster_id)

    def read(uow):
        (workload,) = uow[WorkloadRepository].of_cluster(site.cluster_id)
        return uow[ClusterRepository].get(site.cluster_id), workload

    site.cluster, site.workload = site.rooms.store.read_now(read)
    return site


async def refusal(tunnels, cluster_id, port):
    with pytest.raises((NotFound, Conflict, TooMany, HostUnreachable)) as refused:
        await tunnels.open_public(cluster_id, port)
    return type(refused.value)


# --- decisions --------------------------------------------------------------------------------------------------------


async def test_only_published_ports_of_a_service_that_lives_are_public(served):
    cluster, workload = served.cluster, served.workload
    assert public_ports(cluster) == (80, 8080)
    assert judge(cluster, [workload], 80) == (cluster, workload)
    box = replace(cluster, request=replace(cluster.request, kind=ClusterKind.BOX))
    for other, port in ((None, 80), (cluster, 81), (box, 80)):
        with pytest.raises(NotFound):
            judge(other, [workload], port)
    for phase in (ClusterPhase.DELETING, ClusterPhase.DELETED, ClusterPhase.FAILED):
        with pytest.raises(NotFound):
            judge(replace(cluster, phase=phase), [workload], 80)
    with pytest.raises(Conflict):
        judge(replace(cluster, phase=ClusterPhase.CREATING), [workload], 80)
    with pytest.raises(Conflict):
        judge(cluster, [replace(workload, phase=WorkPhase.EXITED)], 80)
    with pytest.raises(Conflict):
        judge(cluster, [replace(workload, delete_command="command_1")], 80)


def test_what_is_not_there_is_remembered_for_a_while_and_so_much_only():
    unknown = Unknown(kept_ns=5, most=2)
    for number in range(3):
        unknown.note(ClusterId(f"cluster_{number}"), 80, number)
    assert [unknown.holds(ClusterId(f"cluster_{number}"), 80, 3) for number in range(3)] == [False, True, True]
    assert not unknown.holds(ClusterId("cluster_1"), 81, 3)
    assert not unknown.holds(ClusterId("cluster_1"), 80, 6)
    assert len(unknown) == 2


def test_counts_are_taken_once():
    tally = Tally()
    tally.add(NOBODYS, Traffic(1, 2, 3))
    tally.add(NOBODYS, Traffic(0, 10, 10))
    assert tally.take() == {NOBODYS: Traffic(1, 12, 13)}
    assert tally.take() == {}


# --- the service ------------------------------------------------------------------------------------------------------


async def test_a_notebook_is_reached_as_long_as_whoever_opened_it_may(served, monkeypatch):
    stream = HeldStream()
    served.broker.streams = [stream, HeldStream()]
    monkeypatch.setattr(served.rooms.clusters, "notebook", lambda view: (8888, "https://p8888/?token=secret"))
    may = True

    async def allowed():
        return may

    principal = await served.rooms.services.identity.authenticate(served.client.headers["authorization"].split()[1])
    async with tunnelling(served) as tunnels:
        assert await refusal(tunnels, served.cluster_id, 8888) is NotFound
        opened = await tunnels.open_notebook(principal, served.cluster_id, allowed)
        assert opened.url == "https://p8888/?token=secret" and "secret" not in repr(opened)
        assert (await tunnels.open_public(served.cluster_id, 8888)).tunnel_id
        assert await refusal(tunnels, served.cluster_id, 8889) is NotFound
        may = False
        served.clock.advance(2 * SECOND)
        await poll_async(lambda: tunnels.count == 0, what="the open page ends with the right")
        assert await refusal(tunnels, served.cluster_id, 8888) is NotFound
        may = True
        await tunnels.open_notebook(principal, served.cluster_id, allowed)
        served.clock.advance(PAGE_NS)
        assert await refusal(tunnels, served.cluster_id, 8888) is NotFound
    assert len(await rows(served, "notebook.open")) == 2 and stream.closings


async def test_anybody_gets_a_renters_grant_and_only_a_count_is_written(served):
    stream = HeldStream()
    served.broker.streams = [stream]
    async with tunnelling(served) as tunnels:
        ticket = await tunnels.open_public(served.cluster_id, 8080)
        ((host_id, opening),) = served.broker.opened
        grant = read_grant(ticket.grant, served.rooms.authority.signing.public, served.clock.wall_ns())
        assert (host_id, opening.port, opening.tunnel_id) == (HOST, 8080, ticket.tunnel_id)
        assert (grant.side, grant.cluster_id, grant.port) == (TunnelSide.RENTER, served.cluster_id, 8080)
        stream.arrived.put_nowait(ChannelClose(bytes_in=7, bytes_out=9))
        await poll_async(lambda: tunnels.count == 0)

        async def written():
            served.clock.advance(SECOND)
            await asyncio.sleep(0)
            return (await served.get(f"/clusters/{served.cluster_id}"))["traffic"]["connections"]

        await poll_async(written)
        found = (await served.get(f"/clusters/{served.cluster_id}"))["traffic"]
        assert found == {"connections": 1, "bytes_in": 7, "bytes_out": 9}
    for action in ("tunnel.open", "tunnel.end"):
        assert await rows(served, action) == []
    events = (await served.get("/events", subject=served.cluster_id))["items"]
    assert "tunnel.ended" not in {event["kind"] for event in events}


async def test_what_was_counted_is_written_when_the_master_stops(served):
    served.broker.streams = [HeldStream()]
    async with tunnelling(served) as tunnels:
        await tunnels.open_public(served.cluster_id, 80)
    assert served.rooms.store.read_now(lambda uow: uow[TrafficRepository].get(served.cluster_id)).connections == 1


async def test_everything_that_is_not_a_published_port_is_not_there(served):
    async with tunnelling(served) as tunnels:
        for cluster_id, port in ((served.cluster_id, 22), (NOBODYS, 80), (ClusterId("rubbish"), 80)):
            assert await refusal(tunnels, cluster_id, port) is NotFound
    assert served.broker.opened == []


async def test_a_box_is_not_there(site):
    cluster_id, _ = await site.running(ports=[80])
    async with tunnelling(site) as tunnels:
        assert await refusal(tunnels, ClusterId(cluster_id), 80) is NotFound


async def test_a_flood_for_what_is_not_there_reads_the_store_once_in_a_while(served, monkeypatch):
    reads = []
    store = served.rooms.store
    plain = store.read
    async with tunnelling(served) as tunnels:

        def counted(fn, **more):
            reads.append(fn)
            return plain(fn, **more)

        monkeypatch.setattr(store, "read", counted)
        for _ in range(50):
            assert await refusal(tunnels, NOBODYS, 80) is NotFound
        assert len(reads) == 1
        served.clock.advance(5 * SECOND)
        assert await refusal(tunnels, NOBODYS, 80) is NotFound
        assert len(reads) == 2


async def test_a_delete_ends_what_the_public_has_open_and_the_address_is_gone(served):
    stream = HeldStream()
    served.broker.streams = [stream]
    async with tunnelling(served) as tunnels:
        await tunnels.open_public(served.cluster_id, 80)
        await served.client.delete(f"/api/v1/clusters/{served.cluster_id}")
        await poll_async(lambda: stream.closings)
        assert await refusal(tunnels, served.cluster_id, 80) is NotFound


@pytest.mark.parametrize("name", ["public", "host_public"])
@pytest.mark.parametrize("limits", [ShareLimits(1, 9, 0), ShareLimits(9, 1, 0)])
async def test_the_public_has_its_numbers_and_they_are_not_the_renters(served, name, limits):
    served.broker.streams = [HeldStream() for _ in range(3)]
    async with tunnelling(served) as tunnels:
        getattr(tunnels, name).limits = limits
        tunnels.tunnels.limits = ShareLimits(1, 1, 0)
        await tunnels.open_public(served.cluster_id, 80)
        assert await refusal(tunnels, served.cluster_id, 80) is TooMany
        own = await served.client.post(f"/api/v1/clusters/{served.cluster_id}/tunnels", json={"port": 80})
        assert own.status_code == 201
        assert await refusal(tunnels, served.cluster_id, 80) is TooMany
    assert len(served.broker.opened) == 2


async def test_addresses_are_of_the_access_that_is_nearest_and_of_a_service_only(served):
    places = {HOST: "svc.example.org:443"}
    served.rooms.clusters._service_place = lambda host_id: places.get(host_id, "")
    first = await served.client.get(f"/api/v1/clusters/{served.cluster_id}")
    digits = served.cluster_id.removeprefix("cluster_")
    assert first.json()["urls"] == {str(port): f"https://p{port}-{digits}.svc.example.org/" for port in (80, 8080)}
    places[HOST] = "svc.localhost:7743"
    second = await served.client.get(f"/api/v1/clusters/{served.cluster_id}")
    assert second.json()["urls"]["80"].endswith(".svc.localhost:7743/")
    assert first.headers["etag"] != second.headers["etag"]
    await served.client.delete(f"/api/v1/clusters/{served.cluster_id}")
    assert (await served.get(f"/clusters/{served.cluster_id}"))["urls"] == {}
