"""The link's own messages as values: hello, welcome, marks, acks, heartbeats, settings, the region map, channels. Pure.

Frozen and typed like model.py, from which they take the enums and ids. How they become bytes: wire_link.py.
"""

from dataclasses import dataclass, field

from windrow_proto.ids import BootId, CommandId, WorkloadId
from windrow_proto.model import ChannelPurpose, Kind, Lane

PROTOCOL_VERSION = 1
"""Grows when an older peer could not understand a newer one; hello and welcome carry it."""

CHANNEL_CHUNK_BYTES = 65_536
"""The largest ChannelData: small beside a lane's credit, so that channels take turns."""


@dataclass(frozen=True, slots=True)
class LaneMarks:
    """Sequences of one lane and one boot, as sorted inclusive ranges that do not touch."""

    lane: Lane
    origin_boot: BootId
    ranges: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Record:
    """One spooled message with the boot and sequence it was born with; `kind` names what `body` is."""

    origin_boot: BootId
    origin_sequence: int
    kind: Kind
    body: bytes


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings that the Master wants of an agent; credits are records (evidence, telemetry) or bytes per channel
    and way."""

    telemetry_period_ns: int
    sample_period_ns: int
    heartbeat_interval_ns: int
    evidence_credits: int
    telemetry_credits: int
    channel_credit_bytes: int


@dataclass(frozen=True, slots=True)
class Hello:
    """First words of a connection; `unacked` names what the spool still holds."""

    protocol_version: int
    agent_version: str
    x25519_public: bytes
    generation: int
    wall_ns: int
    inventory_hash: str
    simulated: bool
    unacked: tuple[LaneMarks, ...]
    epoch_seen: int
    second: bool = False
    """Keeps still until it is resumed, while another connection serves."""
    encrypts: bool = False
    """Reads encrypted bodies."""


@dataclass(frozen=True, slots=True)
class Welcome:
    """The answer; hello_digest is the SHA-256 of the hello's signed bytes."""

    protocol_version: int
    epoch: int
    x25519_public: bytes
    have: tuple[LaneMarks, ...]
    settings: Settings
    wall_ns: int
    hello_digest: bytes
    inventory_wanted: bool
    encrypts: bool = False
    """Reads encrypted bodies, too: from now on they are, both ways."""


@dataclass(frozen=True, slots=True)
class Ack:
    """The records that the Master has committed (cumulative for the boots named), and those that it asks for again."""

    have: tuple[LaneMarks, ...]
    missing: tuple[LaneMarks, ...]
    epoch: int


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The agent's loop is alive. -1 in sampling_age_ns and access_rtt_ns: there is none yet.

    rtts: the round trips to Accesses by their ids, all that are known, where they changed; else none.
    """

    wall_ns: int
    uptime_ns: int
    inventory_hash: str
    observed_digest: bytes
    conditions: tuple[str, ...] = ()
    sampling_age_ns: int = -1
    access_id: str = ""
    access_rtt_ns: int = -1
    spool_bytes: int = 0
    rtts: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class HeartbeatReply:
    """The Master's loop is alive, and what it would like to hear."""

    epoch: int
    wall_ns: int
    inventory_wanted: bool = False
    observed_wanted: bool = False


@dataclass(frozen=True, slots=True)
class Gap:
    """Sequences that will never come, and why: spool_cap or spool_corrupt."""

    lane: Lane
    origin_boot: BootId
    ranges: tuple[tuple[int, int], ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Query:
    """Say again what became of these commands, and (observed) what runs."""

    command_ids: tuple[CommandId, ...] = ()
    observed: bool = False


@dataclass(frozen=True, slots=True)
class AccessPoint:
    """One relay an agent may dial at `host:port`."""

    access_id: str
    region: str
    address: str
    load_permille: int = 0
    draining: bool = False


@dataclass(frozen=True, slots=True)
class RegionMap:
    """Every relay, signed by the Master; a higher version replaces a lower one."""

    version: int
    points: tuple[AccessPoint, ...]


@dataclass(frozen=True, slots=True)
class ChannelOpen:
    """Open a channel to a workload; what each field is for says its purpose (logs, exec, files, tunnel).

    tunnel_digest: SHA-256 of what the renter will say; the host answers with its certificate for this tunnel (PEM).
    cord_own, cord_peer: the addresses of both ends in their private network (overlay_packets.py).
    """

    workload_id: WorkloadId
    purpose: ChannelPurpose
    argv: tuple[str, ...] = ()
    offset: int = 0
    follow: bool = False
    changed_only: bool = False
    port: int = 0
    stdin: bool = False
    tunnel_id: str = ""
    tunnel_address: str = ""
    tunnel_grant: str = field(default="", repr=False)
    tunnel_digest: bytes = b""
    cord_own: str = ""
    cord_peer: str = ""


@dataclass(frozen=True, slots=True)
class ChannelData:
    """At most CHANNEL_CHUNK_BYTES. stream: 0 stdin or payload, 1 stdout, 2 stderr, 3 the size of a terminal
    (terminals.py)."""

    data: bytes
    stream: int = 0


@dataclass(frozen=True, slots=True)
class ChannelCredit:
    """So many more bytes may be sent to me."""

    credit_bytes: int


@dataclass(frozen=True, slots=True)
class ChannelClose:
    """The end; error_code empty: as intended. commit: all files came. truncated: a cap cut it. bytes_in, bytes_out:
    what a tunnel carried into the workload and out of it."""

    error_code: str = ""
    detail: str = ""
    exit_code: int | None = None
    commit: bool = False
    truncated: bool = False
    bytes_in: int = 0
    bytes_out: int = 0


@dataclass(frozen=True, slots=True)
class Channel:
    """One step of one channel; the Master chooses the ids, unique per boot."""

    channel_id: int
    step: ChannelOpen | ChannelData | ChannelCredit | ChannelClose
