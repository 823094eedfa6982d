"""Hosts and requests of the benchmark of placement: made from a seed, of the kinds that production clusters have."""

import random
from collections.abc import Iterator

from windrow_master.placement.engine.model import Host, Kind, Needs, Request

KINDS = (
    # share of the hosts, cards, processors, memory in MiB, model, tier
    (45, 8, 96_000, 786_432, "h100", "h100/a"),
    (32, 2, 64_000, 262_144, "t4", "t4/b"),
    (11, 2, 64_000, 262_144, "p100", "p100/c"),
    (4, 8, 128_000, 1_048_576, "a100", "a100/a"),
    (3, 4, 32_000, 262_144, "v100", "v100/b"),
    (2, 8, 96_000, 393_216, "v100", "v100/b"),
    (2, 1, 16_000, 131_072, "rtx4090", "rtx4090/b"),
    (1, 4, 96_000, 524_288, "l40s", "l40s/a"),
)
REGIONS = ("eu-1", "eu-2", "us-1", "us-2", "ap-1")
"""With these, with verified and unverified hosts and with two ways to keep shares apart there are some 160 classes."""
SIZES = (
    # weight, GPUs, milli, processors
    (10, 0, 0, 4_000),
    (2, 0, 0, 16_000),
    (7, 1, 250, 2_000),
    (8, 1, 333, 3_000),
    (12, 1, 460, 4_000),
    (6, 1, 500, 4_000),
    (5, 1, 810, 7_000),
    (32, 1, 1000, 8_000),
    (6, 1, 1000, 14_000),
    (4, 2, 1000, 16_000),
    (3, 4, 1000, 32_000),
    (2, 8, 1000, 64_000),
)


def hosts(count: int, seed: int = 1) -> Iterator[Host]:
    """So many hosts; islands of 8, sites of 64."""
    chance = random.Random(seed)
    weights = [kind[0] for kind in KINDS]
    for at in range(count):
        _, cards, cpu, memory, model, tier = chance.choices(KINDS, weights)[0]
        region = REGIONS[at // 64 % len(REGIONS)]
        kind = Kind(
            tier=tier,
            model=model,
            region=region,
            runtimes=frozenset({"docker", "process"}),
            isolation=chance.choice(("mps", "mig")),
            verified=chance.random() < 0.9,
        )
        price = chance.randrange(20, 400) * 1_000_000
        reliability = chance.randrange(900, 1000)
        yield Host(
            host_id=f"host-{at}",
            kind=kind,
            cpu=cpu,
            memory=memory,
            cards=cards,
            owner=f"owner-{at // 20}",
            island=f"island-{at // 8}",
            site=f"site-{at // 64}",
            card_price=price,
            cpu_price=price // 50,
            reliability=reliability,
            watts=chance.choice((70, 300, 400, 700)),
        )


def requests(seed: int) -> Iterator[Request]:
    """Requests without end; one in four insists on a region, one in ten on a model, one in five has a ceiling."""
    chance = random.Random(seed)
    weights = [size[0] for size in SIZES]
    needs = [
        Needs(runtime="docker", regions=frozenset(regions), models=frozenset(models), verified=verified)
        for regions in ((), *((one,) for one in REGIONS))
        for models in ((), ("t4",), ("h100", "a100"), ("v100",))
        for verified in (False, True)
    ]
    while True:
        _, gpus, milli, cpu = chance.choices(SIZES, weights)[0]
        region = 1 + chance.randrange(len(REGIONS)) if chance.random() < 0.25 else 0
        model = 1 + chance.randrange(3) if chance.random() < 0.1 and gpus else 0
        yield Request(
            cpu=cpu,
            memory=2 * cpu,
            gpus=gpus,
            milli=milli or 1000,
            needs=needs[region * 8 + model * 2 + (chance.random() < 0.3)],
            account=f"owner-{chance.randrange(1 << 20)}",
            price_max=3_500_000_000 if chance.random() < 0.2 else None,
            reliability_min=910 if chance.random() < 0.2 else 0,
            near=frozenset({REGIONS[chance.randrange(len(REGIONS))]}),
            latency_ms=tuple((name, 20 + 40 * place) for place, name in enumerate(REGIONS)),
            seed=chance.getrandbits(48),
        )
