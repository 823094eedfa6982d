"""Gangs: all members or none, in the smallest domain that holds them, and two gangs never wait for each other."""

from typing import Any

import pytest

from tests.unit.placement.engine.fleets import check_index, engine_of, host, seen
from windrow_master.placement.engine.gang import Gang, GangPlacement
from windrow_master.placement.engine.model import GiveBack, Host, Kind, Leave, Refusal, Request, Take
from windrow_master.placement.engine.plan import Engine

EIGHT = Request(cpu=8_000, gpus=8)


def of(number: int, per_island: int = 4, per_network: int = 8, per_site: int = 16, **changes: object) -> Host:
    """The n-th host of a fleet with islands, networks, sites and two regions."""
    network, region = f"net-{number // per_network}", "eu-1" if number < 32 else "us-1"
    return host(
        f"h{number}",
        kind=Kind(region=region, network=network),
        island=f"island-{number // per_island}",
        site=f"site-{number // per_site}",
        **changes,
    )


def fleet(count: int = 64) -> Engine:
    return engine_of(*(of(number) for number in range(count)))


def found(engine: Engine, gang: Gang) -> GangPlacement:
    answer = engine.plan_gang(gang)
    assert isinstance(answer, GangPlacement)
    return answer


@pytest.mark.parametrize(
    ("members", "domain"),
    [
        (1, "host"),
        (2, "island"),
        (4, "island"),
        (5, "network"),
        (8, "network"),
        (9, "site"),
        (17, "region"),
        (32, "region"),
    ],
)
def test_a_gang_gets_the_smallest_domain_that_holds_it(members: int, domain: str):
    engine = fleet()
    answer = found(engine, Gang(member=EIGHT, members=members))
    assert answer.domain == domain
    assert len({member.host_id for member in answer.members}) == members
    for take in answer.takes("gang"):
        assert engine.apply(take)
    check_index(engine)


def test_a_gang_takes_the_domain_with_the_least_room_to_spare():
    engine = fleet(16)
    engine.apply(Take(host_id="h5", lease="l", cards=(0,), milli=1_000))
    answer = found(engine, Gang(member=EIGHT, members=3))
    assert (answer.domain, answer.name) == ("island", "island-1")
    assert {member.island for member in answer.members} == {"island-1"}


def test_members_may_share_a_host_where_the_gang_allows_it():
    engine = fleet(8)
    two = Request(cpu=1_000, gpus=2)
    assert found(engine, Gang(member=two, members=4, is_apart=False)).domain == "host"
    answer = found(engine, Gang(member=two, members=6, is_apart=False))
    assert (answer.domain, len({member.host_id for member in answer.members})) == ("island", 2)
    cards = [(member.host_id, card) for member in answer.members for card in member.cards]
    assert len(set(cards)) == 12
    shares = found(engine, Gang(member=Request(gpus=1, milli=333), members=24, is_apart=False))
    assert shares.domain == "host"
    for take in shares.takes("gang"):
        assert engine.apply(take)


def test_the_launcher_is_told_the_domains_of_members_side_by_side():
    answer = found(fleet(), Gang(member=EIGHT, members=8))
    islands = [member.island or "" for member in answer.members]
    assert islands == sorted(islands)
    assert {member.network for member in answer.members} == {answer.name}


def test_a_gang_over_more_than_its_widest_domain_is_refused_with_the_reason():
    engine = fleet()
    told = engine.plan_gang(Gang(member=EIGHT, members=33))
    assert isinstance(told, Refusal)
    assert told.reasons == {"no_region": 33}
    assert found(engine, Gang(member=EIGHT, members=33, widest="anywhere")).domain == "anywhere"
    told = engine.plan_gang(Gang(member=EIGHT, members=5, widest="island"))
    assert isinstance(told, Refusal)
    larger = engine.plan_gang(Gang(member=EIGHT, members=100))
    assert isinstance(larger, Refusal)
    assert larger.reasons["gang"] == 36


def test_of_two_gangs_that_each_need_half_of_what_the_other_holds_neither_holds_more_than_it_has():
    engine = fleet(8)
    half = Gang(member=EIGHT, members=4)
    first, second = found(engine, half), None
    for take in first.takes("first"):
        engine.apply(take)
    second = found(engine, half)
    for take in second.takes("second"):
        engine.apply(take)
    held = seen(engine)
    for _ in range(3):
        for gang in (Gang(member=EIGHT, members=6), Gang(member=EIGHT, members=2)):
            assert isinstance(engine.plan_gang(gang), Refusal)
    assert seen(engine) == held
    for take in second.takes("second"):
        engine.apply(GiveBack(take.host_id, take.lease))
    assert found(engine, half).domain == "island"


def test_a_member_that_dies_between_reserve_and_commit_leaves_no_part_of_the_gang():
    engine = fleet(8)
    before = found(engine, Gang(member=EIGHT, members=4))
    takes = before.takes("gang")
    for take in takes:
        engine.apply(take)
    dead = takes[1].host_id
    engine.apply(Leave(dead))
    assert [engine.apply(GiveBack(take.host_id, take.lease)) for take in takes] == [True, False, True, True]
    assert seen(engine) == seen(engine_of(*(of(number) for number in range(8) if f"h{number}" != dead)))


def test_gangs_keep_to_processors_memory_works_and_closed_hosts():
    engine = engine_of(of(0, cpu=7_000), of(1, works_max=0), of(2, memory=1), of(3), of(4), of(5, kept_for="x"))
    member = Request(cpu=8_000, memory=2, gpus=8)
    answer = found(engine, Gang(member=member, members=2))
    assert {one.host_id for one in answer.members} == {"h3", "h4"}
    assert isinstance(engine.plan_gang(Gang(member=member, members=3)), Refusal)


@pytest.mark.parametrize("wrong", [{"members": 0}, {"members": 2, "widest": "galaxy"}])
def test_what_is_no_gang_is_refused_at_once(wrong: dict[str, Any]):
    with pytest.raises(ValueError):
        Gang(member=EIGHT, **wrong)
