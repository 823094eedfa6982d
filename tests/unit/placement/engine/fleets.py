"""Fleets, random deltas and independent judges for the tests of the placement engine."""

import random
from collections.abc import Iterator
from typing import Any

from windrow_master.placement.engine.model import (
    Asked,
    Delta,
    Drain,
    GiveBack,
    Health,
    Host,
    Join,
    Kind,
    Leave,
    Needs,
    Placement,
    Price,
    Refusal,
    Request,
    Take,
)
from windrow_master.placement.engine.plan import Engine
from windrow_master.placement.engine.state import RATIO, SCOPES, STEP

MODELS = ("a100", "h100", "t4")
REGIONS = ("eu-1", "us-1")


def host(name: str = "h", **changes: Any) -> Host:
    """A host with 8 cards, 64 processors and 512 GiB."""
    fields: dict[str, Any] = {"cpu": 64_000, "memory": 524_288, "cards": 8}
    kind = changes.pop("kind", Kind(model=changes.pop("model", "h100"), region=changes.pop("region", "eu-1")))
    return Host(host_id=name, kind=kind, **fields | changes)


def engine_of(*hosts: Host, **options: Any) -> Engine:
    """An engine with these hosts."""
    engine = Engine(**options)
    for one in hosts:
        engine.apply(Join(one))
    return engine


def placed(engine: Engine, request: Request, lease: str) -> Placement | None:
    """Learn, decide and take, as the Master does; None for a refusal, which must be right."""
    engine.apply(Asked(request))
    answer = engine.plan(request)
    if isinstance(answer, Refusal):
        assert not fitting(engine, request), (request, fitting(engine, request))
        return None
    engine.apply(answer.take(lease))
    return answer


def fitting(engine: Engine, request: Request) -> list[str]:
    """The hosts that fit, found from hosts and leases alone: nothing of the index or of numpy is read."""
    found = []
    for name, at in engine.fleet.number.items():
        one = engine.fleet.hosts[at]
        assert one is not None
        used = list(engine.fleet.leases[at].values())
        left = cards_left(one, used, engine.fleet.out[at])
        is_own = request.account != "" and request.account in (one.owner, one.kept_for)
        price = -(-(request.gpu_milli * one.card_price + request.cpu * one.cpu_price) // 1000)
        if (
            engine.fleet.usable[at]
            and not engine.fleet.draining[at]
            and request.needs.obstacle(one.kind, is_own) is None
            and one.kept_for in ("", request.account)
            and (is_own or not request.only_own)
            and one.cpu - sum(take.cpu for take in used) >= request.cpu
            and one.memory - sum(take.memory for take in used) >= request.memory
            and (one.works_max is None or one.works_max > len(used))
            and sum(free >= request.milli for free in left) >= request.gpus
            and (request.price_max is None or price <= request.price_max)
            and one.reliability >= request.reliability_min
        ):
            found.append(name)
    return found


def cards_left(one: Host, takes: list[Take], out: frozenset[int]) -> list[int]:
    """Milli left of each card; -1 for one that cannot be used."""
    left = [1000] * one.cards
    for take in takes:
        for card in take.cards:
            if card < one.cards:
                left[card] -= take.milli
    return [-1 if card in out or free < 0 else free for card, free in enumerate(left)]


def rows(engine: Engine) -> dict[str, tuple[Any, ...]]:
    """What a database would hold of each host, by its id."""
    fleet = engine.fleet
    return {
        name: (
            fleet.hosts[at],
            dict(sorted(fleet.leases[at].items())),
            fleet.usable[at],
            fleet.out[at],
            fleet.draining[at],
        )
        for name, at in fleet.number.items()
    }


def rebuilt(engine: Engine, seed: int = 0) -> Engine:
    """Another engine made from those rows alone, in another order."""
    fresh, chance = Engine(engine.weights, engine.fleet.cards_max), random.Random(seed)
    found = list(rows(engine).items())
    chance.shuffle(found)
    for name, (one, leases, usable, out, draining) in found:
        fresh.apply(Join(one))
        fresh.apply(Health(name, usable, out))
        fresh.apply(Drain(name, draining))
        for take in leases.values():
            fresh.apply(take if take.is_bound else Take(**{**fields(take), "is_bound": True}))
    return fresh


def fields(take: Take) -> dict[str, Any]:
    """Its fields by name."""
    return {name: getattr(take, name) for name in ("host_id", "lease", "cpu", "memory", "cards", "milli", "is_bound")}


def seen(engine: Engine) -> dict[str, Any]:
    """All that decisions read, by names instead of numbers: equal for two engines of the same fleet."""
    fleet = engine.fleet
    found: dict[str, Any] = {}
    varying = ("cpu", "memory", "card_price", "cpu_price", "works_left", "whole", "roomiest", "reliability")
    accounts = {number: name for name, number in fleet.account_number.items()}
    for name, at in fleet.number.items():
        values = {one: int(fleet.columns[one][at]) for one in varying}
        kept_for = accounts[int(fleet.columns["kept_for"][at])]
        domains = [int(fleet.columns[f"{scope}_of"][at]) for scope in SCOPES]
        named = [fleet.domains[number] if number >= 0 else None for number in domains]
        row = fleet.rows[at].tolist()
        row[7:9] = []  # numbers of group and class
        lists = (fleet.cpu[at], fleet.memory[at], fleet.left[at], fleet.used[at], fleet.whole[at], fleet.idle[at])
        found[name] = (values, kept_for, named, row, bool(fleet.columns["is_open"][at]), fleet.pooled[at], lists)
    groups = zip(fleet.classes.groups, fleet.group_cards, fleet.group_idle, strict=True)
    found["groups"] = {name: (cards, idle) for name, cards, idle in groups if cards or idle}
    found["accounts"] = {name: sorted(host_name(engine, at) for at in held) for name, held in fleet.by_account.items()}
    return found


def host_name(engine: Engine, at: int) -> str:
    """The id of a number."""
    one = engine.fleet.hosts[at]
    assert one is not None
    return one.host_id


def check_index(engine: Engine) -> None:
    """Each host and card is in the one list that it belongs in, and masks and positions are true."""
    fleet, width = engine.fleet, engine.fleet.cards_max
    wanted: dict[str, dict[int, set[int]]] = {"shares": {}, "wholes": {}, "ratios": {}}
    for at in fleet.number.values():
        if not fleet.pooled[at]:
            continue
        of, idle = fleet.of_class[at].number, fleet.idle[at]
        ratio = RATIO if idle <= 0 else max(0, min(RATIO - 1, 2 * fleet.cpu[at] // idle))
        wanted["wholes"].setdefault(of * (width + 1) + fleet.left[at].count(1000), set()).add(at)
        wanted["ratios"].setdefault(of * (RATIO + 1) + ratio, set()).add(at)
        for card, free in enumerate(fleet.left[at]):
            if free >= 0:
                wanted["shares"].setdefault(of * (1000 // STEP + 1) + free // STEP, set()).add(at * width + card)
    for name, lists in wanted.items():
        pool = getattr(fleet, name)
        assert {key: set(members) for key, members in pool.lists.items()} == lists, name
        for members in pool.lists.values():
            assert [pool.position[member] for member in members] == list(range(len(members))), name
        filled = [0] * len(pool.filled)
        for key in lists:
            one = fleet.classes.all[key // pool.levels]
            filled[one.group * pool.levels + key % pool.levels] |= one.bit
        assert pool.filled == filled
        assert pool.live.tolist() == [bool(mask) for mask in filled]


def requests(seed: int) -> Iterator[Request]:
    """Random requests without end."""
    chance = random.Random(seed)
    while True:
        gpus = chance.choice((0, 1, 1, 1, 1, 2, 4, 8))
        milli = chance.choice((1000, 333, 510, 810, 190, 250)) if gpus == 1 else 1000
        needs = Needs(
            models=frozenset({chance.choice(MODELS)}) if chance.random() < 0.3 else frozenset(),
            regions=frozenset({chance.choice(REGIONS)}) if chance.random() < 0.2 else frozenset(),
            verified=chance.random() < 0.2,
        )
        yield Request(
            cpu=chance.randrange(1, 16) * 500 * max(1, gpus),
            memory=chance.randrange(1 << 14),
            gpus=gpus,
            milli=milli,
            needs=needs,
            account=f"account-{chance.randrange(4)}" if chance.random() < 0.3 else "",
            price_max=chance.randrange(1, 40) if chance.random() < 0.2 else None,
            reliability_min=chance.randrange(1000) if chance.random() < 0.1 else 0,
            seed=chance.getrandbits(48),
        )


def random_host(chance: random.Random, name: str) -> Host:
    """A host of some kind."""
    kind = Kind(model=chance.choice(MODELS), region=chance.choice(REGIONS), verified=chance.random() < 0.8)
    return Host(
        host_id=name,
        kind=kind,
        cpu=chance.choice((0, 16_000, 64_000)),
        memory=chance.choice((1 << 14, 1 << 18)),
        cards=chance.choice((0, 1, 2, 4, 8)),
        works_max=chance.choice((None, None, 3)),
        owner=chance.choice(("", "account-1", "account-2")),
        kept_for=chance.choice(("", "", "", "account-3")),
        island=chance.choice((None, "i-1", "i-2")),
        card_price=chance.randrange(20),
        reliability=chance.randrange(1001),
    )


def disturbance(chance: random.Random, names: list[str]) -> Delta:
    """One thing that befalls a host."""
    name = chance.choice(names)
    kind = chance.randrange(6)
    if kind == 0:
        return Join(random_host(chance, name))
    if kind == 1:
        return Leave(name)
    if kind == 2:
        return Drain(name, chance.random() < 0.3)
    if kind == 3:
        return Price(name, chance.randrange(20), chance.randrange(3))
    if kind == 4:
        return GiveBack(name, "never held")
    out = frozenset(chance.sample(range(8), chance.choice((0, 0, 0, 1, 2))))
    return Health(name, chance.random() < 0.8, out, chance.choice((None, chance.randrange(1001))))
