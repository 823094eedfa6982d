"""The fleet's values: hosts, slots, commands as the Master remembers them. Frozen; nothing here decides. Pure.

Wall times (`_ns` without another word) are nanoseconds since 1970 by the Master's clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from windrow_master.fleet.flaps import NEVER, SETTLED_NS, Flaps, settling_ns
from windrow_master.fleet.liveness import NOT_HEARD_YET
from windrow_master.fleet.reliability import Record
from windrow_master.fleet.states import (
    COMMAND_DONE,
    AdminState,
    CommandState,
    LinkEvent,
    LinkState,
    SlotState,
    VerifyOutcome,
    VerifyState,
    step_link,
)
from windrow_master.fleet.tiers import Bandwidth
from windrow_proto.conditions import ConditionCode, find
from windrow_proto.ids import AccountId, BootId, ClusterId, CommandId, GpuUuid, HostId, SlotId, WorkloadId
from windrow_proto.model import NO_GPU, Benchmark, CommandKind, GpuFacts, Inventory, Isolation, Kind, Lane, SlotGrant
from windrow_proto.units import Bytes

__all__ = [
    "AdminState",
    "Bandwidth",
    "Claim",
    "CommandRow",
    "CommandState",
    "Condition",
    "DesiredWorkload",
    "EvidenceRow",
    "Flaps",
    "GapRow",
    "Host",
    "HostFacts",
    "HostRecord",
    "LinkState",
    "Measurement",
    "Mishap",
    "ProofMark",
    "ProofOutcome",
    "Record",
    "Slot",
    "SlotState",
    "Verification",
    "VerifyOutcome",
    "VerifyState",
]

NO_BYTES: Final = Bytes(0)
CPU_KIND: Final = "cpu"
"""The kind of a slot that is a share of its host's processors."""


@dataclass(frozen=True, slots=True)
class HostFacts:
    """The facts by which the link believes a host: its Ed25519 key, the generation of its newest certificate,
    whether it is banned, the newest generation that it has come with, and whether it may come, once, with a newer
    certificate than is known of, since a restore has forgotten some."""

    public_key: bytes
    generation: int
    is_banned: bool
    used_generation: int = 0
    may_jump: bool = False


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing that is not as it should be on a host; `code` is stable, for example gpu.no_driver."""

    code: str
    detail: str
    since_ns: int


OWN_USERS: Final = "own"
HOSTS_USERS: Final = "host"
ABOUT_CONTAINERS: Final = {
    OWN_USERS: "its containers have users of their own (a user namespace)",
    HOSTS_USERS: "its containers share the host's users (no user namespace)",
}
"""How well a host's containers are kept apart from it: what placement says of it where it is about containers."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """A host's link as measured: the lower of the host's and a relay's counts, both signed; of several relays the
    median.

    access_id, region: of the last of them. relays: by whom within a round: (up, down, wall time) by their ids.
    """

    up_bps: int
    down_bps: int
    access_id: str
    region: str
    measured_at_ns: int
    relays: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many relays measured it."""
        return len(self.relays) or 1

    def bandwidth(self) -> Bandwidth:
        """Return the bandwidth that tiers look at."""
        return Bandwidth(self.up_bps, self.down_bps, self.access_id)


@dataclass(frozen=True, slots=True)
class MeasuredRound:
    """The measurement of a host by the relays of one region in one round, that is with one nonce; the median counts.

    at_ns: of the last of them, wall time. relays: by whom: (up, down) by their ids.
    """

    host_id: HostId
    nonce: str
    region: str
    at_ns: int
    up_bps: int
    down_bps: int
    relays: Mapping[str, tuple[int, int]]


class ProofOutcome(StrEnum):
    """The outcome of an acceptance test. UNFINISHED: it says nothing about the host; a renter came, or the Master
    could not."""

    PASSED = "passed"
    FAILED = "failed"
    UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True)
class ProofMark:
    """The newest acceptance test with a good or bad end, as the listing shows it: when, and one sentence."""

    at_ns: int
    outcome: ProofOutcome
    words: str


@dataclass(frozen=True, slots=True)
class Host:
    """One machine. `settled_at_ns`: from then on it may be given work as far as its link goes, None while not Online.

    link_state is what was last written down, UNKNOWN from a start of the Master to the host's first word; live presence
    (last seen, round trip) is in the service's memory.
    version grows with every change of the row. verify_due_ns: when its cards are challenged next, None: as soon as it
    can be; verify_tries: challenges since one had a good end, None: none. listed_at_ns: when it could first be rented;
    proof, proof_due_ns, proof_tries: of the Master's own test rentals (acceptance/), likewise. country (ISO 3166-1),
    labels: as its owner says.
    """

    host_id: HostId
    name: str
    owner_account: AccountId
    simulated: bool
    created_at_ns: int
    admin_state: AdminState = AdminState.ENROLLED
    admin_reason: str = ""
    verify_state: VerifyState = VerifyState.UNVERIFIED
    link_state: LinkState = LinkState.UNSEEN
    link_since_ns: int = 0
    online_since_ns: int | None = None
    settled_at_ns: int | None = None
    last_seen_ns: int | None = None
    boot_id: BootId | None = None
    access_id: str = ""
    region: str = ""
    address: str = ""
    inventory: Inventory | None = None
    inventory_hash: str = ""
    conditions: tuple[Condition, ...] = ()
    tier: str = ""
    tier_reasons: tuple[str, ...] = ()
    bandwidth: Measurement | None = None
    measure_due_ns: int | None = None
    default_image: str | None = None
    verify_due_ns: int | None = None
    verify_tries: int | None = None
    listed_at_ns: int | None = None
    proof: ProofMark | None = None
    proof_due_ns: int | None = None
    proof_tries: int | None = None
    version: int = 1
    flaps: Flaps = NEVER
    country: str | None = None
    labels: tuple[str, ...] = ()

    def is_settled_once_heard(self, now_ns: int) -> bool:
        """Return whether its link allows new work, or will with its first word: only the Master was away."""
        is_link = self.link_state in (LinkState.ONLINE, LinkState.UNKNOWN)
        return is_link and self.settled_at_ns is not None and now_ns >= self.settled_at_ns

    def is_settled(self, now_ns: int) -> bool:
        """Return whether its link allows new work: Online, and for a minute or more after a Suspect (flaps.py)."""
        return self.link_state is LinkState.ONLINE and self.is_settled_once_heard(now_ns)

    @property
    def settling_ns(self) -> int:
        """For how long it has to be Online, since it is back, before it is settled."""
        if self.settled_at_ns is None or self.online_since_ns is None:
            return SETTLED_NS
        return self.settled_at_ns - self.online_since_ns

    @property
    def is_fenced(self) -> bool:
        """True if its containers are kept away from its own network."""
        return all(one.code != ConditionCode.DOCKER_UNFENCED for one in self.conditions)

    @property
    def gives_containers_gpus(self) -> bool:
        """True unless its container daemon cannot give GPUs to containers."""
        return all(one.code != ConditionCode.DOCKER_NO_GPUS for one in self.conditions)

    @property
    def is_unconfined(self) -> bool:
        """True if its process workloads run without a sandbox, in its own network."""
        return any(one.code == ConditionCode.PROCESS_UNCONFINED for one in self.conditions)

    @property
    def about_processes(self) -> str:
        """The warning about processes on this host; empty: there is none."""
        known = (find(one.code) for one in self.conditions)
        return next((code.note for code in known if code is not None and code.note), "")

    @property
    def about_containers(self) -> str:
        """How its containers are kept apart from it, or why it runs none now; empty: not known."""
        if any(one.code == ConditionCode.DOCKER_LOST for one in self.conditions):
            return f"its container daemon does not answer: {ConditionCode.DOCKER_LOST}; windrow-agent doctor says why"
        return ABOUT_CONTAINERS.get(self.container_users, "")

    @property
    def container_users(self) -> str:
        """The users that its containers run as, one of ABOUT_CONTAINERS; empty: not known."""
        is_own = self.inventory.more.get("container_own_users") if self.inventory is not None else None
        return "" if is_own is None else OWN_USERS if is_own else HOSTS_USERS

    def gpu(self, uuid: str) -> GpuFacts | None:
        """The facts of one of its GPUs."""
        found = (gpu for gpu in (self.inventory.gpus if self.inventory else ()) if gpu.uuid == uuid)
        return next(found, None)


FORGOTTEN_AT_START: Final = tuple(state for state in LinkState if step_link(state, LinkEvent.START).moved)
"""The link states, written down by an earlier Master, that a new Master does not believe."""


def link_words(link_state: str) -> str:
    """Return why a host that is not Online takes no work, in words."""
    return NOT_HEARD_YET if link_state == LinkState.UNKNOWN else f"its link is {link_state}"


def settled_at(before: Host, flaps: Flaps, now_ns: int) -> int:
    """From when a host that is Online now may be given work: at once when it is first heard, as before where only the
    Master was away, otherwise as its silences say. before: as it was written down last."""
    if before.link_state is LinkState.UNKNOWN and before.settled_at_ns is not None:
        return before.settled_at_ns
    return now_ns if before.link_state is LinkState.UNSEEN else now_ns + settling_ns(flaps, now_ns)


@dataclass(frozen=True, slots=True)
class Slot:
    """A GPU, a slice of one, or a share of a host's processors: at most one holder, and a token that only grows.

    unavailable: why a Free slot is not offered, or a Faulted one is out of order; None: nothing stands against it.
    hold_expires_ns: of a reservation. gpu_uuid: what the runtime is given, a card or a slice; card: the card that it is
    or is a part of; profile: of a slice, else empty; share_milli: how much of its card it is, in thousandths.
    cpus, memory_bytes: of its host, that its holder has with it; of several slots the first says it for all.
    """

    slot_id: SlotId
    host_id: HostId
    kind: str
    gpu_uuid: GpuUuid | None
    state: SlotState = SlotState.FREE
    unavailable: str | None = None
    token: int = 0
    holder: ClusterId | None = None
    hold_expires_ns: int | None = None
    tier: str = ""
    tier_reasons: tuple[str, ...] = ()
    changed_at_ns: int = 0
    isolation: Isolation = Isolation.UNSPECIFIED
    card: GpuUuid | None = None
    profile: str = ""
    share_milli: int = 1000
    cpus: int = 0
    memory_bytes: Bytes = NO_BYTES

    @property
    def is_offered(self) -> bool:
        """True if it could be granted now, as far as the slot itself goes."""
        return self.state is SlotState.FREE and self.unavailable is None

    def as_grant(self) -> SlotGrant:
        """The slot with the token it holds now."""
        return SlotGrant(self.slot_id, self.token, self.gpu_uuid or NO_GPU, self.isolation)


@dataclass(frozen=True, slots=True)
class Claim:
    """That a host says it has a GPU, and since when without a break. serial: None where a second card may have it."""

    host_id: HostId
    uuid: GpuUuid
    serial: str | None
    since_ns: int


@dataclass(frozen=True, slots=True)
class CardBenchmark:
    """A figure of a card, and the test rental that measured it."""

    figure: Benchmark
    proof_id: str


@dataclass(frozen=True, slots=True)
class Mishap:
    """An event that may count against a host. actor: whose word it is, as in `EventRow`."""

    host_id: HostId
    kind: str
    actor: str
    fields: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class HostRecord:
    """The reliability record of a host. since_ns: when counting began; figure: as shown and graded by, None until
    there is enough evidence; event_number: events up to this one were counted."""

    host_id: HostId
    since_ns: int
    record: Record
    figure: float | None
    event_number: int


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of one challenge of one card. verification_id: shared by the cards that were challenged together.

    reasons: of a failure, the judge's codes; detail: the same in words; device: what its driver calls it; span_ns: from
    the challenge sent to the commitment in, by the Master's clock, None where none came; pace: what that says of the
    card; driver: of the host at that time; evidence: what was asked and answered, so that it can be looked at again.
    """

    verification_id: str
    host_id: HostId
    gpu_uuid: GpuUuid
    at_ns: int
    outcome: VerifyOutcome
    reasons: tuple[str, ...] = ()
    detail: str = ""
    device: str = ""
    driver: str = ""
    span_ns: int | None = None
    pace: str | None = None
    evidence: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Grant:
    """One time a slot was held: by whom, under which token, and until when (None: still)."""

    slot_id: SlotId
    token: int
    holder: ClusterId
    granted_at_ns: int
    ended_at_ns: int | None = None


@dataclass(frozen=True, slots=True)
class CommandRow:
    """One command and how far it is known to have come; the row is the outbox.

    body: the command as bytes (wire_host.encode_command); subject: the workload or what else it is about.
    not_after_ns: the agent refuses it later; deadline_ns: no word for that long makes its fate Unknown.
    """

    command_id: CommandId
    host_id: HostId
    kind: CommandKind
    body: bytes
    subject: str
    not_after_ns: int
    deadline_ns: int
    created_at_ns: int
    state: CommandState = CommandState.QUEUED
    step: str = ""
    progress_permille: int = 0
    error_code: str = ""
    error_detail: str = ""
    result: Mapping[str, str] = field(default_factory=dict)
    sent_at_ns: int | None = None
    heard_at_ns: int | None = None
    done_at_ns: int | None = None

    @property
    def is_done(self) -> bool:
        """True if its result is final."""
        return self.state in COMMAND_DONE


@dataclass(frozen=True, slots=True)
class DesiredWorkload:
    """The workload that clusters want on one host, with its slots; should_run False: it must end or has ended."""

    workload_id: WorkloadId
    slots: tuple[SlotGrant, ...]
    should_run: bool


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """A signed message kept as it came, so that it can be checked again by anyone who has the host's public key."""

    host_id: HostId
    origin_boot: BootId
    origin_sequence: int
    kind: Kind
    sealed: bytes
    at_ns: int


@dataclass(frozen=True, slots=True)
class GapRow:
    """Records that a host had to give up before they were acknowledged: loss is never silent."""

    host_id: HostId
    lane: Lane
    origin_boot: BootId
    ranges: tuple[tuple[int, int], ...]
    reason: str
    at_ns: int
