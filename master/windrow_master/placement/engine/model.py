"""The values that the placement engine takes in and gives out: hosts, deltas, requests, answers. Pure.

Units: processors and shares of a card in milli (1,000 = one processor, one card), memory in MiB, prices in microcents
an hour, reliability in permille. All of them are whole numbers.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

MILLI: Final = 1000
AMOUNT_MAX: Final = 1 << 40
"""The largest amount of anything: products of two amounts of a sane request stay in 64 bits."""
RECORD_BYTES_MAX: Final = 4096
"""A record of a decision is kept in a row for 30 days: 4 KiB at most."""


class NotFree(ValueError):
    """A take names cards, processors or memory that the host has not free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """The key of a class of hosts: all that a hard filter may ask about. Hosts of one class pass or fail together.

    isolation: the strongest way in which the host keeps shares of a card apart; empty: it gives whole cards only.
    network: hosts that see each other have the same; None: no other host sees them. driver: of the cards, as a number.
    """

    tier: str = ""
    model: str = ""
    region: str = ""
    runtimes: frozenset[str] = frozenset()
    isolation: str = ""
    verified: bool = True
    fenced: bool = True
    network: str | None = None
    simulated: bool = False
    driver: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """The hard filters of a request over classes of hosts. An empty set, None, False or 0 asks for nothing."""

    tiers: frozenset[str] = frozenset()
    models: frozenset[str] = frozenset()
    regions: frozenset[str] = frozenset()
    runtime: str | None = None
    isolations: frozenset[str] = frozenset()
    verified: bool = False
    fenced: bool = False
    network: str | None = None
    simulated: bool = False
    driver: int = 0
    _hash: int = field(init=False, compare=False, repr=False, default=0)

    def __post_init__(self) -> None:
        sets = (self.tiers, self.models, self.regions, self.isolations)
        rest = (self.runtime, self.verified, self.fenced, self.network, self.simulated, self.driver)
        object.__setattr__(self, "_hash", hash((sets, rest)))

    def __hash__(self) -> int:
        """Worked out once: a decision looks up what it knows of the same needs some six times."""
        return self._hash

    def obstacle(self, kind: Kind, is_own: bool = False) -> str | None:
        """The first reason why no host of this class will do; None if it passes. One's own host may be unverified."""
        checks = (
            (self.simulated == kind.simulated, "simulated"),
            (not self.tiers or kind.tier in self.tiers, "tier"),
            (not self.models or kind.model in self.models, "gpu_model"),
            (not self.regions or kind.region in self.regions, "region"),
            (self.runtime is None or self.runtime in kind.runtimes, "runtime"),
            (not self.isolations or kind.isolation in self.isolations, "isolation"),
            (is_own or kind.verified or not self.verified, "unverified"),
            (kind.fenced or not self.fenced, "unfenced"),
            (self.network is None or self.network == kind.network, "network"),
            (kind.driver >= self.driver, "driver"),
        )
        return next((reason for passes, reason in checks if not passes), None)


ANY: Final = Needs()


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A host as it joins. cards: how many; works_max: how many workloads it takes at once, None: as many as fit.

    kept_for: the only account that may have it. island, site: hosts with the same share an NVLink island or a site.
    card_price, cpu_price: of a whole card and a whole processor. watts: of a card under load.
    """

    host_id: str
    kind: Kind = field(default_factory=Kind)
    cpu: int = 0
    memory: int = 0
    cards: int = 0
    works_max: int | None = None
    owner: str = ""
    kept_for: str = ""
    island: str | None = None
    site: str | None = None
    card_price: int = 0
    cpu_price: int = 0
    reliability: int = MILLI
    watts: int = 0


@dataclass(frozen=True, slots=True)
class Join:
    """A host joins, or tells anew what it has; leases that it carries stay."""

    host: Host


@dataclass(frozen=True, slots=True)
class Leave:
    """A host is gone for good, with its leases."""

    host_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Take:
    """A lease takes a part of a host: `milli` of each of `cards`. is_bound: the rows say so already, so that it counts
    even where the host has shrunk since."""

    host_id: str
    lease: str
    cpu: int = 0
    memory: int = 0
    cards: tuple[int, ...] = ()
    milli: int = 0
    is_bound: bool = False


@dataclass(frozen=True, slots=True)
class GiveBack:
    """A lease ends. Said late or twice, it changes nothing."""

    host_id: str
    lease: str


@dataclass(frozen=True, slots=True)
class Health:
    """Whether a host can take work, which of its cards cannot, and how reliable it is (None: as before)."""

    host_id: str
    is_usable: bool = True
    cards_out: frozenset[int] = frozenset()
    reliability: int | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """What a host asks from now on."""

    host_id: str
    card_price: int
    cpu_price: int = 0


@dataclass(frozen=True, slots=True)
class Drain:
    """A host takes nothing new, or does again."""

    host_id: str
    is_on: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request for a place on one host: `gpus` cards with `milli` of each, less than 1,000 of one card only.

    account: who asks; only_own: on hosts of that account alone. price_max: of all of it an hour. near: regions that it
    would rather run in; latency_ms: from the asker to regions, where it is known. seed: any number, the same for a
    preview and the creation that follows; it orders equal hosts. Raises ValueError for what cannot be meant.
    """

    cpu: int = 0
    memory: int = 0
    gpus: int = 0
    milli: int = MILLI
    needs: Needs = ANY
    account: str = ""
    only_own: bool = False
    price_max: int | None = None
    reliability_min: int = 0
    near: frozenset[str] = frozenset()
    latency_ms: tuple[tuple[str, int], ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        amounts = (self.cpu, self.memory, self.gpus, self.reliability_min, self.price_max or 0)
        if not 0 <= min(amounts) <= max(amounts) < AMOUNT_MAX:
            raise ValueError(f"each amount of a request is between 0 and {AMOUNT_MAX - 1}, these are {amounts}")
        if self.gpus and not 0 < self.milli <= MILLI:
            raise ValueError(f"the share of a card is between 1 and {MILLI} milli, not {self.milli}")
        if self.gpus > 1 and self.milli < MILLI:
            raise ValueError("a share is of one card: several cards are whole ones")
        if not (self.cpu or self.memory or self.gpus):
            raise ValueError("a request asks for processors, memory or cards")

    @property
    def is_share(self) -> bool:
        """Whether it asks for less than a whole card."""
        return self.gpus == 1 and self.milli < MILLI

    @property
    def gpu_milli(self) -> int:
        """Of all its cards."""
        return self.gpus * self.milli


@dataclass(frozen=True, slots=True)
class Asked:
    """A request arrived: the mix learns of it, whether or not it fits."""

    request: Request


Delta = Join | Leave | Take | GiveBack | Health | Price | Drain | Asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Weights of the terms of the score. The first five are in milli of a card; of the others, which are 0 to 1,000
    points each, a weight of 1 makes all points as much as one card. insist_percent: what a model costs for being
    insisted on before it is short."""

    fragmentation: int = 1
    worth: int = 10
    strand: int = 3
    shortage: int = 6
    insist_percent: int = 25
    tight: int = 10
    price: int = 0
    locality: int = 0
    latency: int = 0
    reliability: int = 0
    power: int = 0
    spread: int = 0
    home: int = 0

    @property
    def has_points(self) -> bool:
        """Whether any term beside the five counts."""
        return any((self.price, self.locality, self.latency, self.reliability, self.power, self.spread, self.home))


Terms = Mapping[str, int]
Scored = tuple[str, int, Terms]
"""A host, its score and the terms that it is the sum of."""


@dataclass(frozen=True, slots=True)
class Placement:
    """It fits: on these cards of this host, decided at that version of the fleet.

    looked_at: how many hosts were compared. scored: the chosen host and the best losers with their terms, worked out
    when somebody reads them.
    """

    host_id: str
    cards: tuple[int, ...]
    version: int
    tables: int
    price: int
    looked_at: int
    request: Request
    scored: Callable[[int], tuple[Scored, ...]] = field(compare=False, repr=False)

    def take(self, lease: str) -> Take:
        """The delta that carries it out."""
        asked = self.request
        milli = asked.milli if self.cards else 0
        return Take(
            host_id=self.host_id, lease=lease, cpu=asked.cpu, memory=asked.memory, cards=self.cards, milli=milli
        )

    def record(self, losers: int = 8) -> bytes:
        """The decision as JSON of at most 4 KiB: as many of the best losers as that holds."""
        asked = self.request
        head = {
            "cpu": asked.cpu,
            "memory": asked.memory,
            "gpus": asked.gpus,
            "milli": asked.milli,
            "cards": self.cards,
            "version": self.version,
            "tables": self.tables,
            "looked_at": self.looked_at,
        }
        scored = self.scored(1 + losers)
        for kept in range(len(scored), 0, -1):
            rows = [(host, total, {name: x for name, x in terms.items() if x}) for host, total, terms in scored[:kept]]
            found = json.dumps(head | {"scored": rows}, separators=(",", ":")).encode()
            if len(found) <= RECORD_BYTES_MAX:
                return found
        return json.dumps(head, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class Largest:
    """The largest request of its kind that some host could take when empty, a field at a time: the rest as asked."""

    gpus: int
    cpu: int
    memory: int


@dataclass(frozen=True)
class Refusal:
    """It does not fit at that version of the fleet.

    largest: where no host that it may have is large enough even when empty, the largest that does. find: for each class
    of hosts and each reason how many hosts it keeps from the request; counted when somebody reads it, of the fleet as
    it is then. more: reasons beside these, of no host alone.
    """

    version: int
    largest: Largest | None
    find: Callable[[], tuple[tuple[Kind, str, int], ...]] = field(compare=False, repr=False)
    more: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def by_class(self) -> tuple[tuple[Kind, str, int], ...]:
        """Each class of hosts, a reason, and how many of its hosts the reason keeps from it."""
        return self.find()

    @cached_property
    def reasons(self) -> Mapping[str, int]:
        """How many hosts each reason keeps from it."""
        found = dict(self.more)
        for _, reason, count in self.by_class:
            found[reason] = found.get(reason, 0) + count
        return found

    @property
    def is_possible(self) -> bool:
        """Whether waiting can help."""
        return self.largest is None


PASSING: Final = ("cpus", "memory", "gpus", "works", "closed")
"""Reasons that end by themselves: work ends, hosts come back."""
