"""The way in which members of a cluster over hosts meet: decided, remembered, told to them, and kept when one is
replaced."""

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from tests.unit.clusters.test_over_hosts import (
    ADDRESSES,
    THIRD,
    by_rank,
    gang,
    look,
    lose,
    m,
    met,
    running,
)
from tests.unit.clusters.test_routes import ScriptedStream
from tests.unit.clusters.world import HOST, OTHER, OWNER
from windrow_master.clusters.model import ClusterKind, Network, NetworkMode, Volume, WorkPhase
from windrow_master.clusters.service import LOOKS_MAX
from windrow_master.clusters.topology import PRIVATE_HOSTS_MAX, Found, KnownReachability, Meeting, decide, is_known
from windrow_master.fleet.repository import HostRepository
from windrow_master.network.overlay import pairs_of
from windrow_master.network.reachability import BLIND_KEPT_NS, ReachabilityService
from windrow_master.storage.volume_repository import VolumeRepository
from windrow_proto.errors import HostUnreachable, InvalidInput, NoCapacity, Unavailable
from windrow_proto.ids import HostId
from windrow_proto.messages import ChannelData
from windrow_proto.model import ChannelPurpose
from windrow_proto.reachability import Listening, Seen, decode_places, encode_listening, encode_seen
from windrow_proto.volumes import Mount

__all__ = ["m"]
A, B = Meeting(HOST, "a", "10.0.0.1", ""), Meeting(OTHER, "b", "10.0.0.2", "")
SEES, BLIND = Found(True), Found(False, "no answer within 3 s")
TUNNELS = Network(NetworkMode.TUNNELS, "a does not see b")


def known(forth=SEES, back=SEES, **cannot):
    why = {HostId(name): words for name, words in cannot.items()}
    return KnownReachability({(HOST, OTHER): forth, (OTHER, HOST): back}, {HOST: "", OTHER: "", **why})


# --- decided ---------------------------------------------------------------------------------------------------------


def test_hosts_that_all_see_each_other_meet_directly():
    assert decide((A, B), known()).mode is NetworkMode.DIRECT


@pytest.mark.parametrize(("forth", "back"), [(BLIND, SEES), (SEES, BLIND), (BLIND, BLIND)])
def test_one_that_is_not_seen_one_way_is_enough_for_a_private_network_and_is_named(forth, back):
    found = decide((A, B), known(forth, back))
    assert found.mode is NetworkMode.TUNNELS
    assert "does not see" in found.reason and "no answer" in found.reason


def test_hosts_behind_different_translators_need_not_look():
    far = replace(B, network="behind 1.2.3.4")
    known = KnownReachability({}, {HOST: "", OTHER: ""})
    assert is_known((A, far), known) and not is_known((A, B), known)
    assert decide((A, far), known) == Network(NetworkMode.TUNNELS, "a and b are in different networks")


def test_a_host_that_can_be_in_no_private_network_is_refused_with_the_reason():
    with pytest.raises(NoCapacity, match="b can be in no private network: there is no TUN"):
        decide((A, B), known(BLIND, host_b="there is no TUN"))
    assert decide((A, B), known(host_b="there is no TUN")).mode is NetworkMode.DIRECT


def test_a_private_network_has_a_limit_of_hosts():
    hosts = tuple(Meeting(HostId(f"host_{n}"), f"{n}", "10.0.0.9", f"behind {n}") for n in range(PRIVATE_HOSTS_MAX + 1))
    with pytest.raises(NoCapacity, match="at most 16 hosts"):
        decide(hosts, KnownReachability({}, {host.host_id: "" for host in hosts}))


# --- asked of the hosts ----------------------------------------------------------------------------------------------


class Hosts:
    """Hosts that say what a test lets them say of the others."""

    def __init__(self, **seen):
        self.seen, self.opened = seen, []

    async def open(self, host_id, opening):
        assert (opening.purpose, opening.workload_id) == (ChannelPurpose.SIGHT, "-")
        self.opened.append(host_id)
        said = self.seen[host_id]
        if isinstance(said, Exception):
            raise said
        listening = ChannelData(encode_listening(Listening(4000, f"token of {host_id}")))
        return ReportStream([listening, ChannelData(encode_seen([said]))])


class ReportStream(ScriptedStream):
    """Remembers at whom it was told to look."""

    async def send(self, data, stream=0):
        assert len(decode_places(data)) == 1


async def looked(clock, **seen):
    service = ReachabilityService(hosts := Hosts(**seen), clock)
    assert service.decide((A, B)) is None
    await service.look((A, B))
    return service, hosts


async def test_each_shows_the_other_its_token_and_both_are_remembered_for_a_while(m):
    service, _ = await looked(m.clock, host_a=Seen("token of host_b"), host_b=Seen("token of host_a"))
    assert service.decide((A, B)).mode is NetworkMode.DIRECT
    assert service.decide((A, replace(B, address="10.0.0.7"))) is None, "it is somewhere else now"
    m.clock.advance(BLIND_KEPT_NS + 1)
    assert service.decide((A, B)) is None


async def test_another_machine_at_the_address_is_not_the_host(m):
    service, _ = await looked(m.clock, host_a=Seen("token of nobody"), host_b=Seen("token of host_a"))
    assert "another machine is there" in service.decide((A, B)).reason


async def test_a_host_that_does_not_answer_is_not_seen(m):
    gone = HostUnreachable("It is not connected.")
    service, _ = await looked(m.clock, host_a=Seen("token of host_b"), host_b=gone)
    with pytest.raises(NoCapacity, match="It is not connected"):
        service.decide((A, B))


async def test_an_agent_of_an_older_release_is_taken_to_see_the_others_as_before(m):
    service, _ = await looked(m.clock, host_a=Seen("x"), host_b=InvalidInput("serves no channel for unspecified"))
    assert service.decide((A, B)).mode is NetworkMode.DIRECT


# --- told to the members ---------------------------------------------------------------------------------------------


class Said:
    """A reachability test that says one thing once somebody has looked."""

    def __init__(self, network):
        self.network, self.looks = network, 0

    def decide(self, hosts):
        return self.network if self.looks else None

    async def look(self, hosts):
        self.looks += 1


async def test_members_in_a_private_network_are_told_all_addresses_in_it(m):
    m.reachability.script = Said(TUNNELS)
    view = await gang(m, argv=("train",))
    specs = [m.spec(member.host_id) for _, member in sorted(by_rank(view).items())]
    told = [spec.address for spec in specs]
    assert m.reachability.script.looks == 1
    assert all(one.startswith("198.19.") for one in told) and told[0].rsplit(".", 1)[0] == told[1].rsplit(".", 1)[0]
    assert [spec.peers for spec in specs] == [(told[1],), (told[0],)]
    assert {spec.env["WINDROW_MEMBERS"] for spec in specs} == {",".join(told)}
    assert (view.cluster.network, view.cluster.network_reason) == (NetworkMode.TUNNELS, TUNNELS.reason)


async def test_members_that_meet_directly_have_no_private_network(m):
    m.reachability.script = Said(Network(NetworkMode.DIRECT, "every host sees every other"))
    view = await gang(m)
    specs = [m.spec(member.host_id) for member in by_rank(view).values()]
    assert [spec.peers for spec in specs] == [(), ()]
    assert {spec.address for spec in specs} <= set(ADDRESSES.values())


def translated(m, host_id, address):
    """It is seen at an address that is not its own."""

    def change(uow):
        host = uow[HostRepository].get(host_id)
        m.fleet.hosts.inventory(uow, host_id, replace(host.inventory, addresses=("192.168.0.2",)))

    m.write(change)
    met(m, host_id, address)


async def test_hosts_behind_different_translators_are_put_together_where_they_were_looked_at(m):
    translated(m, OTHER, "93.184.216.34")
    translated(m, THIRD, "93.184.216.35")
    m.reachability.script = Said(TUNNELS)
    view = await gang(m, hosts=3)
    assert len({member.host_id for member in view.workloads}) == 3


async def test_hosts_that_change_with_every_look_are_given_up(m):
    m.reachability.script = Said(None)
    with pytest.raises(Unavailable, match="nothing was created"):
        await gang(m)
    assert all(set(m.slots(host).values()) == {"free"} for host in ADDRESSES)


async def test_a_request_that_needs_something_first_leaves_nothing_behind(m, tmp_path):
    m.write(lambda uow: uow[VolumeRepository].add(Volume("volume_data", OWNER, "data", 1000, uow.now_wall_ns)))
    before = rows(tmp_path)
    m.reachability.script = Said(None)
    with pytest.raises(Unavailable):
        await gang(m, argv=("train",), volumes=(Mount("data", "/data", read_only=True),))
    assert m.reachability.script.looks == LOOKS_MAX and rows(tmp_path) == before


def rows(directory):
    """All that the Master has written."""
    with closing(sqlite3.connect(directory / "master.sqlite3")) as connection:
        return list(connection.iterdump())


async def test_who_takes_the_place_of_a_lost_member_has_its_private_address(m):
    m.reachability.script = Said(TUNNELS)
    view = await running(m, kind=ClusterKind.DASK)
    before = by_rank(view)
    lose(m, before[1].host_id)
    for _ in range(2):
        await m.clusters.tick()
    now = by_rank(await look(m, view))
    assert now[1].host_id != before[1].host_id and now[1].address == before[1].address
    assert m.spec(now[1].host_id).peers == (before[0].address,)


class Walled:
    """Hosts of which one is seen by nobody, once they have looked."""

    def __init__(self, unseen):
        self.unseen, self.looked = unseen, []

    def decide(self, hosts):
        known = {host.host_id for host in hosts}
        if known not in self.looked:
            return None
        return TUNNELS if self.unseen in known else Network(NetworkMode.DIRECT, "every host sees every other")

    async def look(self, hosts):
        self.looked.append({host.host_id for host in hosts})


async def test_who_takes_the_place_of_a_lost_member_is_seen_by_those_that_are_there(m):
    m.reachability.script = walled = Walled(unseen=None)
    view = await running(m, kind=ClusterKind.DASK)
    (left,) = set(ADDRESSES) - {member.host_id for member in view.workloads}
    walled.unseen = left
    first, lost = (by_rank(view)[rank] for rank in (0, 1))
    lose(m, lost.host_id)
    for _ in range(4):
        await m.clusters.tick()
    assert walled.looked[-1] == {first.host_id, left}, "nobody has taken it for granted"
    assert set(by_rank(await look(m, view))) == {0}, "who is not seen is not taken"

    m.join(HostId("host_d"))
    met(m, "host_d", "10.0.0.4")
    for _ in range(2):
        await m.clusters.tick()
    now = by_rank(await look(m, view))
    assert walled.looked[-1] == {first.host_id, "host_d"}
    assert (now[1].host_id, now[1].address) == ("host_d", "10.0.0.4")


async def test_each_two_members_that_are_not_over_are_a_pair(m):
    m.reachability.script = Said(TUNNELS)
    view = await running(m, hosts=3)
    cluster, workloads = view.cluster, view.workloads
    assert len(pairs_of(cluster, workloads)) == 3
    assert all((pair.low.address or "") < (pair.high.address or "") for pair in pairs_of(cluster, workloads))
    ended = tuple(replace(one, phase=WorkPhase.EXITED) for one in workloads)
    assert len(pairs_of(cluster, ended)) == 3, "what they said last may be under way"
    failed = (replace(workloads[0], phase=WorkPhase.FAILED), *workloads[1:])
    assert len(pairs_of(cluster, failed)) == 1
    assert pairs_of(replace(cluster, network=NetworkMode.DIRECT), workloads) == ()
