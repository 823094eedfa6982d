"""The port of a provider that sells machines: its offers, and the four verbs that buy, look and end. Pure.

    offers ─▶ provision ─▶ describe, again and again ─▶ terminate ─▶ describe says that it is gone ─▶ leftovers

Every call may fail in two ways: `Refused` means that nothing was bought or changed; `Doubtful` that nobody knows. All
that a provider's library raises becomes one of the two, and neither holds a secret.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Final, NewType, Protocol

from windrow_master.prices.offers import Kind
from windrow_proto.units import Bytes, Microcents

PurchaseId = NewType("PurchaseId", str)
TAG_MARKET: Final = "windrow-market"
TAG_PURCHASE: Final = "windrow-purchase"
TAG_EPOCH: Final = "windrow-epoch"
"""Names of the tags on all that is bought: the market it belongs to, the purchase, and the leader's term."""
USER_DATA_MAX: Final = 16 * 1024
"""Bytes of user data that EC2 takes, the least of all providers."""
NO_BYTES: Final = Bytes(0)


class RefusedFor(StrEnum):
    """The reason why a provider refuses."""

    CAPACITY = "capacity"
    """It has no such machine there now."""
    QUOTA = "quota"
    """The account may not have so many."""
    AUTH = "auth"
    """The credentials are wrong, over, or lack a permission."""
    PRICE = "price"
    """It costs more than was allowed."""
    LIMIT = "limit"
    """Too many calls, or a request that the provider's rules do not allow."""


class Refused(Exception):
    """The provider said no, and nothing was bought or changed."""

    def __init__(self, reason: RefusedFor, said: str) -> None:
        """said: the provider's words, without secrets."""
        super().__init__(said)
        self.reason, self.said = reason, said


class Doubtful(Exception):
    """No answer came, or none that can be read: what was asked may have happened, now or in a moment."""


class MachineState(StrEnum):
    """The state of a machine, by its provider."""

    PENDING = "pending"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    """It does not run, and its disk is still paid for."""
    TERMINATED = "terminated"
    """It is gone, and no longer paid for."""


@dataclass(frozen=True, slots=True)
class Billing:
    """How use is rounded: whole steps of granularity_s seconds, at least minimum_s."""

    granularity_s: int = 1
    minimum_s: int = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineOffer:
    """A machine that could be had now.

    offer_id: by which the provider's adapter knows it again, for example `g5.xlarge/eu-central-1a/spot`. gpu: its model
    class as in the price book; empty: it has none. price_per_hour: of `currency` (ISO 4217). country: ISO 3166-1
    alpha-2; empty: not known. priced_on: when the price was read. is_run: of a service that runs code itself: no
    machine, but one run of a job (hybrid/runs).
    """

    offer_id: str
    kind: Kind
    gpu: str
    gpu_count: int
    cpus: int
    memory_bytes: Bytes
    region: str
    zone: str = ""
    country: str = ""
    price_per_hour: Microcents
    currency: str
    priced_on: date
    billing: Billing = Billing()
    is_run: bool = False


def machine_of(offer: MachineOffer) -> str:
    """The type of an offer's machine, such as `g5.xlarge`; of a run what it has, such as `1 x A10`."""
    if offer.is_run:
        return f"{offer.gpu_count} x {offer.gpu.upper()}" if offer.gpu and offer.gpu_count else f"{offer.cpus} vCPUs"
    return offer.offer_id.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Wanted:
    """The offers that are asked for. gpu: its model class; empty: any, or none where gpus is 0. Regions, zones and
    kinds: of these alone; empty: any."""

    gpus: int = 0
    gpu: str = ""
    cpus: int = 0
    memory_bytes: Bytes = NO_BYTES
    regions: frozenset[str] = frozenset()
    zones: frozenset[str] = frozenset()
    kinds: frozenset[Kind] = frozenset()
    offer_id: str = ""

    def takes(self, offer: MachineOffer) -> bool:
        """True for an offer that is at least so large, and of these places and kinds."""
        return (
            offer.gpu_count >= self.gpus
            and self.gpu in ("", offer.gpu)
            and offer.cpus >= self.cpus
            and offer.memory_bytes >= self.memory_bytes
            and (not self.regions or offer.region in self.regions)
            and (not self.zones or offer.zone in self.zones)
            and (not self.kinds or offer.kind in self.kinds)
            and self.offer_id in ("", offer.offer_id)
        )


def in_order(wanted: Wanted, offers: Iterable[MachineOffer]) -> list[MachineOffer]:
    """The offers that are asked for, the cheapest first."""
    return sorted(filter(wanted.takes, offers), key=lambda offer: (offer.price_per_hour, offer.offer_id))


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One machine that is to be bought.

    epoch: the term of the leader that buys. user_data: the bootstrap, with its join token. dearest_per_hour: in the
    offer's currency; a higher price is refused. ends_at_ns: wall time at which the machine ends itself, if nobody has
    ended it before.
    """

    purchase_id: PurchaseId
    market_id: str
    epoch: int
    offer: MachineOffer
    user_data: str
    dearest_per_hour: Microcents
    ends_at_ns: int

    @property
    def tags(self) -> Mapping[str, str]:
        """The tags of the machine, and of all that is made for it."""
        return {TAG_MARKET: self.market_id, TAG_PURCHASE: self.purchase_id, TAG_EPOCH: str(self.epoch)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine as its provider shows it. said: the provider's own word for its state, and why it is so. purchase_id:
    of its tag; empty: it has none. launched_at_ns, ended_at_ns: wall times; None: not known, not ended."""

    machine_id: str
    state: MachineState
    said: str
    market_id: str
    purchase_id: PurchaseId
    epoch: int = 0
    offer_id: str = ""
    zone: str = ""
    launched_at_ns: int | None = None
    ended_at_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Leftover:
    """Something that was made for a machine, and is paid for or in the way after it: a volume, address, interface, key
    or template. kind: one of these words."""

    kind: str
    leftover_id: str
    market_id: str
    purchase_id: PurchaseId


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of `check`. what: credentials, permissions, quota, clock, image or reachability. way_out: what to do
    about it; empty: nothing is wrong."""

    what: str
    is_good: bool
    said: str
    way_out: str = ""


class Backend(Protocol):
    """A provider with the credentials of one account. Each call ends within its deadline, and raises `Refused` or
    `Doubtful`."""

    kind: str
    list_lag_ns: int
    """So long after it was made a machine may be missing from `describe`."""

    async def offers(self, wanted: Wanted) -> Sequence[MachineOffer]:
        """The offers that fit, the cheapest first."""

    async def provision(self, order: Order) -> Machine:
        """Buy a machine, at most one for a purchase. Asked again, its answer may be that of the first time: how the
        machine is now, `describe` says."""

    async def describe(self, market_id: str) -> Sequence[Machine]:
        """All machines with this market's tag, the terminated ones as long as the provider shows them."""

    async def terminate(self, machine_id: str) -> None:
        """Ask for its end. What is ending, gone or unknown is fine. That it is gone, `describe` says."""

    async def leftovers(self, market_id: str) -> Sequence[Leftover]:
        """All else with this market's tag."""

    async def remove(self, leftover: Leftover) -> None:
        """Delete it. What is gone or unknown is fine."""

    async def console(self, machine_id: str) -> str:
        """The last of what the machine wrote to its console; empty: nothing is known."""

    async def check(self) -> Sequence[Finding]:
        """Look at credentials, permissions, quota, clock and image, and buy nothing."""

    async def close(self) -> None:
        """Let go of connections and threads."""
