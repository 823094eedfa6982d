"""What the HTTP API answers about hosts, records and people, as models for its description (clusters: out_clusters.py;
readings and health: out_health.py).

They describe and never run: answers are written straight from the rooms' values, and a test checks that these models
read every one of them, without a field too few or too many.
"""

from typing import Annotated, Any, Final, Generic, Literal, TypeVar

from fastapi import Response
from pydantic import BaseModel, ConfigDict, Field

from windrow_master.identity.model import Role
from windrow_proto.conditions import Severity

T = TypeVar("T")


class Out(BaseModel):
    """An answer: all of its fields are always there, absent values are null."""

    model_config = ConfigDict(extra="forbid", json_schema_serialization_defaults_required=True)


Time = Annotated[str, Field(description="RFC 3339 in UTC, with milliseconds")]
Ratio = Annotated[float | None, Field(description="From 0 to 1; null where it was not read")]
Isolated = Annotated[
    str | None, Field(description="What keeps it apart from its neighbours: whole, mig, mps or shared")
]
VALUES: Final = "By name: a value where it is shown to its renter, null where it is not: elsewhere, and at its end"
Amount = Annotated[str | None, Field(description="A decimal amount of money")]
Money = Annotated[str, Field(description="A decimal amount of money")]
Chain = Annotated[str, Field(description="The hash of this entry and all before it, hexadecimal")]


class Page(Out, Generic[T]):
    """One page of a list."""

    items: list[T]
    next_cursor: Annotated[str | None, Field(description="Give it as `cursor` for what follows; null at the end")]


class ConditionOut(Out):
    """One thing that is not as it should be on a host or in the market itself."""

    code: Annotated[str, Field(description="Stable; with `:` and the id of a GPU where it is about one")]
    detail: str
    severity: Annotated[Severity, Field(description="`page`: look at once; `ticket`: within days; `info`: never")]
    remedy: Annotated[str, Field(description="What to run and where to look")]
    runbook: Annotated[str, Field(description="The page about it, in the source tree")]
    since: Time


class GpuLiveOut(Out):
    """What a GPU reads now."""

    utilization_ratio: Ratio
    memory_used_bytes: float | None
    temperature_celsius: float | None
    power_watts: float | None
    clock_sm_hertz: float | None
    at: Time


class GpuOut(Out):
    """A GPU of a host."""

    uuid: str
    index: int
    vendor: str
    name: str
    memory_bytes: int | None
    tier: str | None
    tier_reasons: list[str]
    pci_bus_id: str | None
    core_count: int | None
    slot_state: str | None
    unavailable_reason: Annotated[str | None, Field(description="Why its slot cannot be had, though it is free")]
    isolation: Isolated
    layout: Annotated[list[str], Field(description="Profiles that its owner lets it be cut into; none: it stays whole")]
    live: GpuLiveOut | None


class SlotOut(Out):
    """What one holder can rent: a GPU, or a host's processors."""

    id: str
    host_id: str
    gpu_uuid: str | None
    kind: str
    state: str
    unavailable: str | None
    token: Annotated[
        int | None,
        Field(description="Grows with every grant; a host refuses commands with a lower one. Shown as cluster_id is"),
    ]
    cluster_id: Annotated[
        str | None,
        Field(description="Who holds it; for the holder, the host's owner, operators and auditors"),
    ]
    isolation: Isolated
    card_uuid: Annotated[str | None, Field(description="The GPU that it is, or is a part of")]
    profile: Annotated[str | None, Field(description="Of a slice, such as 1g.10gb")]
    share_milli: Annotated[int | None, Field(description="How much of its GPU it is, in thousandths")]
    tier: str | None


class HostLiveOut(Out):
    """What a host reads now."""

    cpu_ratio: Ratio
    memory_used_bytes: float | None
    load1: float | None
    rx_bps: Annotated[float | None, Field(description="Bits a second received")]
    tx_bps: Annotated[float | None, Field(description="Bits a second sent")]
    disk_used_bytes: float | None
    at: Time


class BandwidthOut(Out):
    """What was measured between a host and one Access or several, the median of them, in bits a second."""

    up_bps: float | None
    down_bps: float | None
    measured_at: Time
    access_id: str | None
    relays: Annotated[int, Field(description="How many Accesses measured it")]


class ProofMarkOut(Out):
    """What the Master's newest test rental of a host came to."""

    at: Time
    outcome: Annotated[str, Field(description="passed or failed; a host that failed stays listed")]
    words: str


class HostSummaryOut(Out):
    """A host without its GPUs, as the fleet's stream tells it."""

    id: str
    name: str
    simulated: Annotated[bool, Field(description="It only plays a host")]
    owner_account: Annotated[str | None, Field(description="For the owner, operators and auditors")]
    admin_state: str
    verify_state: str
    link_state: str
    headline: Annotated[str, Field(description="The one word that says how it is")]
    headline_reason: str | None
    created_at: Time
    conditions: list[ConditionOut]
    tier: str | None
    tier_reasons: list[str]
    bandwidth: BandwidthOut | None
    listed_at: Annotated[Time | None, Field(description="When it could first be rented")]
    proof: ProofMarkOut | None
    price_per_hour: Amount
    os: str | None
    kernel: str | None
    cpu_model: str | None
    cpu_count: int | None
    memory_bytes: int | None
    disk_bytes: int | None
    driver_version: str | None
    cuda_version: str | None
    runtimes: list[str]
    container_users: Annotated[
        Literal["own", "host"] | None,
        Field(description="Whose users its containers have: their own, in a user namespace, or the host's"),
    ]
    default_image: Annotated[str | None, Field(description="Runs where a request names no image")]
    agent_version: str | None
    inventory_hash: str | None
    slots: list[SlotOut]
    live: HostLiveOut | None
    version: int
    last_seen_at: Time | None
    access_id: str | None
    region: str | None
    address: str | None
    rtt_ms: Annotated[float | None, Field(description="Between the host and its Access, in milliseconds")]


class HostOut(HostSummaryOut):
    """A host with its GPUs."""

    gpus: list[GpuOut]


class GpuRowOut(Out):
    """One GPU in the flat list of the whole fleet."""

    uuid: str
    host_id: str
    host_name: str
    region: str | None
    simulated: bool
    name: str
    tier: str | None
    memory_bytes: int | None
    link_state: str
    slot_state: str | None
    unavailable_reason: Annotated[str | None, Field(description="Why its slot cannot be had, though it is free")]
    price_per_hour: Amount
    cluster_id: str | None
    utilization_ratio: Ratio
    memory_used_bytes: float | None
    temperature_celsius: float | None
    power_watts: float | None
    at: Time | None


class GpusOut(Out):
    """Every GPU of the fleet."""

    items: list[GpuRowOut]
    version: Annotated[int, Field(description="Give it to `/fleet/stream` as `after`")]


class EventOut(Out):
    """What happened."""

    id: str
    number: Annotated[int, Field(description="Grows by one with each event")]
    at: Time
    kind: str
    subjects: Annotated[list[str], Field(description="The ids of what it is about")]
    text: str
    actor: str | None
    fields: dict[str, Any]


class CommandOut(Out):
    """A command to a host and what became of it."""

    id: str
    host_id: str
    kind: str
    subject: str | None
    state: str
    step: str | None
    progress: Annotated[float | None, Field(description="From 0 to 1")]
    error: str | None
    created_at: Time
    sent_at: Time | None
    done_at: Time | None
    result: dict[str, Any] | None


class OperationErrorOut(Out):
    """Why a long action failed."""

    code: str
    detail: str | None


class OperationOut(Out):
    """A long action and how far it has come."""

    id: str
    kind: str
    subject: str
    state: str
    error: OperationErrorOut | None
    created_at: Time
    done_at: Time | None


class MeasuringOut(Out):
    """A measurement of a host's bandwidth that has begun."""

    operation: OperationOut
    host_id: str


class AuditOut(Out):
    """Who did what to which subject and why."""

    number: int
    at: Time
    epoch: int
    actor: str
    action: str
    subject: str
    reason: str
    fields: dict[str, str]
    chain: Chain


class AuditHeadOut(Out):
    """The end of the audit log at some time."""

    number: int
    chain: Chain
    at: Time


class AuditVerdictOut(Out):
    """Whether the audit log is whole."""

    intact: bool
    entries: int
    first_broken: int | None
    problem: str | None
    head: AuditHeadOut | None
    anchor: AuditHeadOut | None


class AccountOut(Out):
    """Who pays and is paid."""

    id: str
    name: str


class BalanceNowOut(Out):
    """What an account can spend."""

    amount: Money
    currency: str


class MyTokenOut(Out):
    """The token by which one asks."""

    id: str
    name: str
    expires_at: Time


class MySessionOut(Out):
    """The browser's session by which one asks."""

    id: str
    expires_at: Time


class MasterOut(Out):
    """Which Master answers."""

    version: str
    epoch: int
    currency_is_test: bool


class MeOut(Out):
    """Who asks, and whom."""

    account: AccountOut
    roles: list[Role]
    token: MyTokenOut
    session: MySessionOut | None
    balance: BalanceNowOut
    master: MasterOut


class SignedInOut(Out):
    """A browser that has just signed in."""

    account: AccountOut
    session: MySessionOut
    secret: Annotated[str, Field(description="What further requests of this browser carry as a bearer token")]


class SessionOut(Out):
    """A browser that is signed in."""

    id: str
    token_id: str
    token_name: str
    browser: str | None
    created_at: Time
    last_used_at: Time | None
    expires_at: Time
    current: Annotated[bool, Field(description="Whether it is the one that asks")]


class TokenOut(Out):
    """An API token, without its text."""

    id: str
    name: str
    roles: list[Role]
    created_at: Time
    expires_at: Time
    last_used_at: Time | None


class TokenMadeOut(TokenOut):
    """A new API token."""

    token: Annotated[str, Field(description="Its text, shown this once")]


class JoinTokenOut(Out):
    """A ticket for one host or Access, without its text."""

    id: str
    role: str
    created_at: Time
    expires_at: Time


class JoinTokenMadeOut(JoinTokenOut):
    """A new ticket."""

    join_token: Annotated[str, Field(description="Its text, shown this once")]
    command: Annotated[str | None, Field(description="The line that lets a host join; null for an Access")]


class SignedOut(Out):
    """Bytes and their Ed25519 signature, both in base64."""

    signed: str
    signature: str


class MemberOut(Out):
    """What a host or an Access gets when it joins or renews; keys in base64."""

    id: str
    generation: int
    certificate_pem: str
    ca_pem: str
    master_public: str
    regions: SignedOut
    not_after: Time
    trunk_addresses: list[str]


def described(model: Any, status: int = 200) -> dict[int | str, dict[str, Any]]:
    """`responses=` of a route that writes this answer itself."""
    return {status: {"model": model}}


def other(media_type: str, said: str, *, is_binary: bool = False) -> dict[str, Any]:
    """What a route takes after its path whose answer is no JSON document: `**other("text/plain", "The log.")`."""
    schema = {"type": "string", **({"format": "binary"} if is_binary else {})}
    answer = {"description": said, "content": {media_type: {"schema": schema}}}
    return {"response_class": Response, "responses": {200: answer}}


STREAM: Final = other("text/event-stream", "Server-sent events: named, each with one JSON document.")
HOSTS: Final = described(Page[HostOut])
HOST: Final = described(HostOut)
GPUS: Final = described(GpusOut)
EVENTS: Final = described(Page[EventOut])
COMMANDS: Final = described(Page[CommandOut])
COMMAND: Final = described(CommandOut)
OPERATIONS: Final = described(Page[OperationOut])
OPERATION: Final = described(OperationOut)
MEASURING: Final = described(MeasuringOut, 202)
AUDIT: Final = described(Page[AuditOut])
AUDIT_VERDICT: Final = described(AuditVerdictOut)
SESSIONS: Final = described(Page[SessionOut])
TOKENS: Final = described(Page[TokenOut])
JOIN_TOKENS: Final = described(Page[JoinTokenOut])
ME: Final = described(MeOut)
SIGNED_IN: Final = described(SignedInOut)
TOKEN_MADE: Final = described(TokenMadeOut, 201)
JOIN_TOKEN_MADE: Final = described(JoinTokenMadeOut, 201)
REGIONS: Final = described(SignedOut)
MEMBER: Final = described(MemberOut)
