"""The live fleet names hosts on which the planner finds a place, and is what one made of the same hosts is."""

import random
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.placement.test_plan import OWNER, RENTER, cpu, gpu, host, request
from windrow_master.placement.fit import fit
from windrow_master.placement.live import NOMINATED_MAX, LiveFleet, parts
from windrow_master.placement.model import Candidate, Chosen, Placement, Request, Runtime, SlotOffer, Snapshot
from windrow_master.placement.plan import plan
from windrow_proto.ids import AccountId, HostId
from windrow_proto.model import Isolation
from windrow_proto.units import GIB, MICROCENTS_PER_UNIT, Bytes, Microcents

ACCOUNTS = (OWNER, RENTER, AccountId("account_other"))
MODELS = (("NVIDIA H100 PCIe", 80, "h100/A"), ("NVIDIA A100-SXM4-80GB", 80, "a100/B"), ("Tesla T4", 16, "t4/C"))


def live_of(*hosts: Candidate) -> LiveFleet:
    live = LiveFleet()
    for one in hosts:
        live.put(one)
    return live


def named(live: LiveFleet, asked: Request, **how: Any) -> tuple[HostId, ...]:
    found = live.nominate(asked, **how)
    return () if found is None else found.hosts


def random_slots(chance: random.Random, name: str) -> tuple[SlotOffer, ...]:
    slots = [cpu(name, chance.choice((1, 2)))] if chance.random() < 0.9 else []
    kinds = chance.choices(MODELS, k=2 if chance.random() < 0.1 else 1)
    for number in range(chance.choice((0, 1, 2, 4))):
        model, gib, tier = chance.choice(kinds)
        card = replace(gpu(number, name, model, gib), tier=tier)
        if chance.random() < 0.05:
            card = replace(card, isolation=Isolation.MIG, profile="1g.10gb")
        slots.append(card)
    return tuple(replace(slot, taken="in use" if chance.random() < 0.4 else None) for slot in slots)


def random_host(chance: random.Random, name: str, **other: Any) -> Candidate:
    """A host of any kind, in any state; most can take work."""
    mostly = lambda usual, *rare: usual if chance.random() < 0.85 else chance.choice(rare)  # noqa: E731
    return host(
        name,
        *random_slots(chance, name),
        owner_account=chance.choice(ACCOUNTS),
        admin_state=mostly("active", "draining", "enrolled"),
        verify_state=mostly("verified", "unverified", "failed"),
        link_state=mostly("online", "suspect", "unknown"),
        is_settled=mostly(True, False),
        is_known=mostly(True, False),
        is_fenced=mostly(True, False),
        gives_containers_gpus=mostly(True, False),
        runtimes=mostly(("docker", "process"), ("docker",), ("process",), ()),
        default_image=mostly(None, "ubuntu"),
        cpus=16,
        cpus_free=chance.choice((-1, 2, 16)),
        memory_bytes=Bytes(64 * GIB),
        memory_free_bytes=Bytes(chance.choice((4, 64)) * GIB),
        only_for=mostly(None, *ACCOUNTS),
        most_works=mostly(None, 0, 2),
        works=chance.choice((0, 2)),
        closes_at_ns=mostly(None, 1),
        **other,
    )


def random_request(chance: random.Random) -> Request:
    gpus = chance.choice((0, 0, 1, 1, 2, 4))
    return request(
        account_id=chance.choice(ACCOUNTS),
        tie_seed=str(chance.random()),
        gpus=gpus,
        gpu_model=chance.choice((None, None, "h100", "a100", "L4")) if gpus else None,
        gpu_memory_bytes=chance.choice((None, Bytes(40 * GIB))) if gpus else None,
        tier=chance.choice((None, None, None, "h100", "a100/B", "cpu")),
        cpus=chance.choice((1, 2, 8)),
        memory_bytes=chance.choice((None, Bytes(GIB), Bytes(32 * GIB))),
        image=chance.choice((None, "busybox")),
        runtime=chance.choice((None, None, Runtime.DOCKER, Runtime.PROCESS)),
        max_price_per_hour=chance.choice((None, None, Microcents(MICROCENTS_PER_UNIT // 25))),
    )


def priced(one: Candidate, asked: Request) -> Candidate:
    """The host as the planner has it for this request: its processors cost what all that are asked for cost."""
    prices = {slot.slot_id: Microcents(slot.price_per_hour * (1 if slot.is_gpu else asked.cpus)) for slot in one.slots}
    return replace(one, slots=tuple(replace(slot, price_per_hour=prices[slot.slot_id]) for slot in one.slots))


def is_beyond(one: Candidate) -> bool:
    """True if the engine passes over places of this host that the planner may find."""
    kinds = {slot.gpu_name for slot in one.slots if slot.is_gpu}
    return one.closes_at_ns is not None or len(kinds) > 1


def histories(seeds: range, operations: int) -> int:
    """Hosts come, change and go, and requests come: returns how many were nominated a host."""
    count = 0
    for seed in seeds:
        chance, live, known = random.Random(seed), LiveFleet(), dict[HostId, Candidate]()
        for _ in range(operations):
            one = random_host(chance, str(chance.randrange(60)))
            if chance.random() < 0.1 and one.host_id in known:
                del known[one.host_id]
                assert live.drop(one.host_id)
            else:
                assert live.put(one) is (known.get(one.host_id) is None or parts(known[one.host_id]) != parts(one))
                known[one.host_id] = one
            asked = random_request(chance)
            fitting = {name for name, at in known.items() if isinstance(fit(asked, priced(at, asked), False), Chosen)}
            nominated = named(live, asked)
            assert set(nominated) <= fitting
            assert nominated or all(is_beyond(known[name]) for name in fitting)
            count += bool(nominated)
        assert live.differs(known.values()) == []
    return count


def test_hosts_that_are_named_fit_and_one_that_fits_is_found() -> None:
    assert histories(range(8), 100) > 100


@pytest.mark.long
@pytest.mark.timeout(900)
def test_hosts_that_are_named_fit_and_one_that_fits_is_found_in_long_histories() -> None:
    assert histories(range(100, 110), 2_000) > 1_500


def test_the_best_come_first_and_the_cheaper_of_equal_hosts() -> None:
    hosts = [host(str(number), gpu(0, str(number), cents=100 + 40 * number), cpus=16) for number in range(40)]
    assert named(live_of(*hosts), request(gpus=1)) == tuple(one.host_id for one in hosts[:NOMINATED_MAX])


def test_processors_beside_idle_cards_are_left_to_those_who_need_cards() -> None:
    hosts = [host(str(at), cpu(str(at)), *(gpu(n, str(at)) for n in range(4 * (at % 2))), cpus=16) for at in range(40)]
    chosen = named(live_of(*hosts), request(cpus=8))
    assert {int(name.removeprefix("host_")) % 2 for name in chosen} == {0}


def test_a_place_is_held_until_it_is_let_go_and_others_are_sent_elsewhere() -> None:
    hosts = [host(str(number), gpu(0, str(number)), cpus=16) for number in range(3)]
    live, found = live_of(*hosts), []
    for number in range(3):
        nominated = live.nominate(request(gpus=1, tie_seed=str(number)), holds=True)
        assert nominated is not None
        found.append(nominated)
    assert len({one.hosts[0] for one in found}) == 3
    assert named(live, request(gpus=1)) == ()
    for one in found:
        live.let_go(one)
        live.let_go(one)  # said twice
    assert len(named(live, request(gpus=1))) == 3
    assert live.differs(hosts) == []


def test_what_is_held_outlives_news_of_its_host_and_is_forgotten_with_all_hosts() -> None:
    one = host("a", gpu(0), gpu(1), cpus=16)
    live = live_of(one)
    held = live.nominate(request(gpus=2), holds=True)
    assert held is not None
    live.put(replace(one, cpus_free=8))
    assert named(live, request(gpus=1)) == ()
    live.clear()
    live.put(one)
    again = live.nominate(request(gpus=2), holds=True)
    live.let_go(held)  # of an engine that is no more
    assert named(live, request(gpus=1)) == ()
    assert again is not None
    live.let_go(again)
    assert named(live, request(gpus=1)) == (one.host_id,)


def test_a_named_host_is_looked_at_alone_and_others_that_were_tried_are_left_out() -> None:
    hosts = [host(str(number), gpu(0, str(number)), cpus=16) for number in range(9)]
    live = live_of(*hosts)
    assert named(live, request(gpus=1, host_id=HostId("host_3"))) == (HostId("host_3"),)
    assert named(live, request(gpus=1, host_id=HostId("host_gone"))) == ()
    first = named(live, request(gpus=1))
    second = named(live, request(gpus=1), but=first)
    assert len({*first, *second}) == 2 * NOMINATED_MAX


@pytest.mark.parametrize(
    "strange", [{"hosts": 2}, {"slice": "1g.10gb"}, {"gpus": 17}, {"is_proof": True}, {"gpu_model": "GB300"}]
)
def test_what_the_engine_does_not_know_it_is_not_asked(strange: dict[str, Any]) -> None:
    live = live_of(*(host(str(number), gpu(0, str(number)), cpus=16) for number in range(4)))
    assert live.nominate(request(**{"gpus": 1} | strange)) is None


def test_the_record_says_how_many_hosts_were_passed_over() -> None:
    hosts = [host(str(number), gpu(0, str(number)), cpus=16) for number in range(40)]
    nominated = live_of(*hosts).nominate(request(gpus=1))
    assert nominated is not None
    found = plan(request(gpus=1), Snapshot(tuple(one for one in hosts if one.host_id in nominated.hosts)))
    assert isinstance(found, Placement)
    decision = nominated.recorded(found).decision
    assert decision.unkept == {"passed over: the index compared 40 of 40 hosts and named 4": 36}
    assert len(decision.verdicts) == 4
