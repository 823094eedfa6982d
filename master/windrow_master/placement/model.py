"""The values that placement decides over and answers with; it holds no rule and knows no other package. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Final

from windrow_master.spec import Resources
from windrow_proto.ids import AccountId, GpuUuid, HostId, SlotId
from windrow_proto.model import Isolation
from windrow_proto.units import MINUTE, Bytes, Microcents

NO_BYTES: Final = Bytes(0)


class Runtime(StrEnum):
    """A way in which a host can run work."""

    DOCKER = "docker"
    PROCESS = "process"
    SIMULATED = "simulated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Resources):
    """A request for a place, parsed and within its limits: the resources that it names, and what decides beside them.

    tie_seed: any text that is the same for a preview and the creation that follows it; orders equal hosts.
    hosts: on how many, each of which gives all that is asked for; they must see each other. is_proof: the Master rents
    a host to try it, verified or not; what runs is its own, so that plain processes will do. cpus_priced: the number of
    processors that the prices of processor slots are for; None: `cpus`. ends_at_ns: when it is over by its duration, in
    wall time, where any host closes; None: never.
    """

    account_id: AccountId
    tie_seed: str
    runtime: Runtime | None = None
    wants_simulated: bool = False
    is_proof: bool = False
    hosts: int = 1
    cpus_priced: int | None = None
    ends_at_ns: int | None = None


@dataclass(frozen=True, slots=True)
class SlotOffer:
    """One slot of a host as it stands: what it is, what it costs, and why it cannot be had, if so.

    taken: None when the slot can be granted, else the reason in words ("in use", "unavailable: MIG is on").
    is_back_soon: whether that passes by itself, in moments; cpus_back, memory_back_bytes: of its host, free with it.
    gpu_name: of the card; gpu_memory_bytes: of the slot itself; profile: of a slice of a card, else empty.
    """

    slot_id: SlotId
    tier: str
    price_per_hour: Microcents
    taken: str | None = None
    gpu_uuid: GpuUuid | None = None
    gpu_name: str = ""
    gpu_memory_bytes: Bytes | None = None
    isolation: Isolation = Isolation.UNSPECIFIED
    profile: str = ""
    is_back_soon: bool = False
    cpus_back: int = 0
    memory_back_bytes: Bytes = NO_BYTES

    @property
    def is_gpu(self) -> bool:
        return self.gpu_uuid is not None


@dataclass(frozen=True, slots=True)
class Candidate:
    """One host as placement sees it.

    cpus, memory_bytes: all that it has; cpus_free, memory_free_bytes: what the clusters already placed there have not
    asked for. default_image: what runs where a request names no image; None when its owner set none. network: hosts
    that see each other directly have the same; None: no other host sees this one. is_fenced: whether its containers
    are kept away from its own network. gives_containers_gpus: whether its container daemon can. about_processes: what
    there is to know before a process is run there, or why none is; about_containers: how its containers are kept
    apart from it, or why it runs none. settling_ns: how long its link has to hold before it is settled. is_back_soon:
    whether it only was not heard yet since the Master started. is_known: whether it has told what it has, which a new
    host does a moment after it came. most_works: how many workloads it takes at once, of which it has `works`; None:
    as its slots allow. only_for: the account that it is kept for; None: every account. kept_for: the entry of the
    queue that it is kept for; empty: none. closes_at_ns: the wall time at which it goes into maintenance; None: none
    is known. region: of its relay; country, labels: as its owner says; empty: not known. bandwidth_mbps: measured, in
    the slower direction. near_ms: the round trip to the region that a request names, 0 in it; reliability_percent:
    rounded down. None: not known, or nobody asks.
    """

    host_id: HostId
    host_name: str
    owner_account: AccountId
    simulated: bool
    admin_state: str
    verify_state: str
    link_state: str
    is_settled: bool
    runtimes: tuple[str, ...]
    cpus_free: int
    memory_free_bytes: Bytes
    slots: tuple[SlotOffer, ...]
    default_image: str | None = None
    is_fenced: bool = True
    gives_containers_gpus: bool = True
    about_processes: str = ""
    about_containers: str = ""
    network: str | None = ""
    settling_ns: int = MINUTE
    is_back_soon: bool = False
    is_known: bool = True
    cpus: int = 0
    memory_bytes: Bytes = NO_BYTES
    most_works: int | None = None
    works: int = 0
    only_for: AccountId | None = None
    kept_for: str = ""
    closes_at_ns: int | None = None
    region: str = ""
    country: str = ""
    labels: tuple[str, ...] = ()
    bandwidth_mbps: int | None = None
    near_ms: int | None = None
    reliability_percent: int | None = None

    def is_own_of(self, account_id: AccountId) -> bool:
        """True for the account that it belongs to, and for the only one that it works for."""
        return account_id in (self.owner_account, self.only_for)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The fleet at one moment.

    verification_exists: whether any verifier runs; without one Unverified is no obstacle.
    """

    candidates: tuple[Candidate, ...]
    verification_exists: bool = False


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each term of the score; the terms are 0 to 1000 (plan.py says what each means)."""

    cost: int = 4
    packing: int = 3
    trust: int = 2
    home: int = 1
    grade: int = 1


@dataclass(frozen=True, slots=True)
class Chosen:
    """The chosen place: the slots of one host, the runtime, the image and the price of it all. note: what there is
    to know of this way there."""

    host_id: HostId
    host_name: str
    slot_ids: tuple[SlotId, ...]
    runtime: Runtime
    image: str | None
    tier: str
    price_per_hour: Microcents
    note: str = ""


class Obstacle(StrEnum):
    """The kind of a reason against a host. Refusals name them in this order: first what passes or a little more money
    solves, then what another request solves, then what nothing solves."""

    PRICE = "price"
    BUSY = "busy"
    SETTLING = "settling"
    OFFLINE = "offline"
    CLOSED = "closed"
    TOO_FEW_HOSTS = "too_few_hosts"
    NEAR = "near"
    REGION = "region"
    COUNTRY = "country"
    PROVIDER = "provider"
    LABEL = "label"
    BANDWIDTH = "bandwidth"
    RELIABILITY = "reliability"
    CPUS = "cpus"
    MEMORY = "memory"
    GPUS = "gpus"
    GPU_MEMORY = "gpu_memory"
    TIER = "tier"
    GPU_MODEL = "gpu_model"
    SLICE = "slice"
    IMAGE = "image"
    RUNTIME = "runtime"
    ISOLATION = "isolation"
    UNVERIFIED = "unverified"
    NETWORK = "network"
    NO_SLOT = "no_slot"
    NOT_NAMED = "not_named"
    OTHER = "other"


Changes = Mapping[str, Any]
"""Fields of a request and their new values; None: the field is left out."""


@dataclass(frozen=True, slots=True)
class Miss:
    """The reason why one host does not take a request.

    label: in words that hold for every host with this obstacle; detail: of this one, may be empty. amount: how much it
    has of what is too little there, in any unit. kinds: what it has instead, where that is no amount. changes: of the
    request, with which this obstacle would be gone; empty: no change helps.
    """

    obstacle: Obstacle
    label: str
    detail: str = ""
    amount: int | None = None
    kinds: tuple[str, ...] = ()
    changes: Changes = field(default_factory=dict)

    @property
    def text(self) -> str:
        return f"{self.label} ({self.detail})" if self.detail else self.label


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason of a refusal, and the hosts that it holds for. reason: in words; hosts: some of them, the nearest to a
    fit first; is_own: they belong to the one who asks."""

    code: Obstacle
    reason: str
    count: int
    hosts: tuple[tuple[HostId, str], ...] = ()
    is_own: bool = False

    @property
    def text(self) -> str:
        """The same as a line: `12 hosts: no free GPU`."""
        if self.count == 1 and self.hosts:
            return f"{self.hosts[0][1]}: {self.reason}"
        return f"{self.count} {'of your ' if self.is_own else ''}hosts: {self.reason}"


@dataclass(frozen=True, slots=True)
class Way:
    """A change of the request with which it would fit now, where, and for how much. text: the same in a sentence."""

    changes: Changes
    hosts: tuple[str, ...]
    price_per_hour: Microcents
    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The finding about one host: its score, or the reason it was refused; never both."""

    host_id: HostId
    host_name: str
    score: int | None = None
    terms: Mapping[str, int] = field(default_factory=dict)
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """The record of one decision: enough to explain it, and to weigh its terms otherwise.

    verdicts: of the chosen host and the best of the others, best first. unkept: how many further hosts were looked at,
    by what was said of them. others: where a request over several hosts runs beside the chosen one, best first.
    engine: the version of the rules.
    """

    request: Request
    weights: Weights
    verdicts: tuple[Verdict, ...]
    unkept: Mapping[str, int]
    chosen: Chosen | None
    others: tuple[Chosen, ...] = ()
    engine: int = 1


@dataclass(frozen=True, slots=True)
class Placement:
    """It fits: where, and why there. members: one place for each host that was asked for, best first."""

    members: tuple[Chosen, ...]
    decision: Decision

    @property
    def chosen(self) -> Chosen:
        """The best place, which is rank 0's."""
        return self.members[0]

    @property
    def price_per_hour(self) -> Microcents:
        """Of all of it."""
        return Microcents(sum(member.price_per_hour for member in self.members))


@dataclass(frozen=True)
class Refusal:
    """It does not fit now.

    detail: in a sentence. reasons: of all hosts, grouped, one's own first. find_ways: as `ways`. is_possible: whether
    waiting can help: the hosts have what is asked for, free or not. is_soon: whether it would fit with the slots that
    are back in a moment. without_proofs: where it would run once the Master's own test rentals on `proofs_on` have
    ended, which they do for it.
    """

    detail: str
    reasons: tuple[Reason, ...]
    find_ways: Callable[[], tuple[Way, ...]] = field(compare=False, repr=False)
    decision: Decision
    is_possible: bool = True
    is_soon: bool = False
    without_proofs: Placement | None = None
    proofs_on: tuple[HostId, ...] = ()

    @cached_property
    def ways(self) -> tuple[Way, ...]:
        """The smallest changes with which it would fit. They take as long as a few plans, so that they are looked for
        when somebody reads them."""
        return self.find_ways()
