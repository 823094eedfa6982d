"""The values that placement decides over and answers with; it holds no rule and knows no other package. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from windrow_master.spec import Resources
from windrow_proto.ids import AccountId, GpuUuid, HostId, SlotId
from windrow_proto.model import Isolation
from windrow_proto.units import MINUTE, Bytes, Microcents


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
    a host to try it, verified or not; what runs is its own, so that plain processes will do.
    """

    account_id: AccountId
    tie_seed: str
    runtime: Runtime | None = None
    host_id: HostId | None = None
    wants_simulated: bool = False
    is_proof: bool = False
    hosts: int = 1


@dataclass(frozen=True, slots=True)
class SlotOffer:
    """One slot of a host as it stands: what it is, what it costs, and why it cannot be had, if so.

    taken: None when the slot can be granted, else the reason in words ("in use", "unavailable: MIG is on").
    is_back_soon: whether that passes by itself, in moments.
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

    @property
    def is_gpu(self) -> bool:
        return self.gpu_uuid is not None


@dataclass(frozen=True, slots=True)
class Candidate:
    """One host as placement sees it.

    cpus_free, memory_free_bytes: what the clusters already placed there have not asked for.
    default_image: what runs where a request names no image; None when its owner set none. network: hosts that see each
    other directly have the same; None: no other host sees this one. is_fenced: whether its containers are kept away
    from its own network. gives_containers_gpus: whether its container daemon can. about_processes: what there is to
    know before a process is run there, or why none is; about_containers: how its containers are kept apart from it.
    settling_ns: how long its link has to hold before it is settled. is_back_soon: whether it only was not heard yet
    since the Master started.
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
    """The record of one decision: enough to explain it and to take it again.

    candidates: the chosen host and the best losers as they were; verdicts: one for each of these, best first.
    unkept: how many further hosts were looked at, by what was said of them. others: where a request over several hosts
    runs beside the chosen one, best first.
    """

    request: Request
    weights: Weights
    verification_exists: bool
    candidates: tuple[Candidate, ...]
    verdicts: tuple[Verdict, ...]
    unkept: Mapping[str, int]
    chosen: Chosen | None
    others: tuple[Chosen, ...] = ()


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


@dataclass(frozen=True, slots=True)
class Refusal:
    """It does not fit now: one reason for each host, in words, worst fit last.

    is_soon: whether it would with the slots that are back in a moment. without_proofs: where it would run once the
    Master's own test rentals on `proofs_on` have ended, which they do for it.
    """

    reasons: tuple[Verdict, ...]
    decision: Decision
    is_soon: bool = False
    without_proofs: Placement | None = None
    proofs_on: tuple[HostId, ...] = ()
