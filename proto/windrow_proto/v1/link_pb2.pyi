from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FrameClass(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FRAME_CLASS_EVIDENCE: _ClassVar[FrameClass]
    FRAME_CLASS_LIVE: _ClassVar[FrameClass]
    FRAME_CLASS_CHANNEL: _ClassVar[FrameClass]
    FRAME_CLASS_BACKLOG: _ClassVar[FrameClass]

class Lane(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LANE_CONTROL: _ClassVar[Lane]
    LANE_EVIDENCE: _ClassVar[Lane]
    LANE_TELEMETRY: _ClassVar[Lane]
    LANE_CHANNEL: _ClassVar[Lane]
    LANE_SECOND: _ClassVar[Lane]

class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    KIND_UNSPECIFIED: _ClassVar[Kind]
    KIND_HELLO: _ClassVar[Kind]
    KIND_HEARTBEAT: _ClassVar[Kind]
    KIND_INVENTORY: _ClassVar[Kind]
    KIND_COMMAND_STATUS: _ClassVar[Kind]
    KIND_RECEIPT: _ClassVar[Kind]
    KIND_EVENT: _ClassVar[Kind]
    KIND_OBSERVED: _ClassVar[Kind]
    KIND_BANDWIDTH: _ClassVar[Kind]
    KIND_TELEMETRY: _ClassVar[Kind]
    KIND_GAP: _ClassVar[Kind]
    KIND_CANARY: _ClassVar[Kind]
    KIND_RESUME: _ClassVar[Kind]
    KIND_WELCOME: _ClassVar[Kind]
    KIND_HEARTBEAT_REPLY: _ClassVar[Kind]
    KIND_ACK: _ClassVar[Kind]
    KIND_COMMAND: _ClassVar[Kind]
    KIND_SETTINGS: _ClassVar[Kind]
    KIND_REGION_MAP: _ClassVar[Kind]
    KIND_LEASES: _ClassVar[Kind]
    KIND_QUERY: _ClassVar[Kind]
    KIND_CANARY_REPLY: _ClassVar[Kind]
    KIND_CHANNEL: _ClassVar[Kind]

class ProofKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROOF_KIND_UNSPECIFIED: _ClassVar[ProofKind]
    PROOF_KIND_HMAC: _ClassVar[ProofKind]
    PROOF_KIND_ED25519: _ClassVar[ProofKind]

class TunnelSide(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TUNNEL_SIDE_UNSPECIFIED: _ClassVar[TunnelSide]
    TUNNEL_SIDE_RENTER: _ClassVar[TunnelSide]
    TUNNEL_SIDE_HOST: _ClassVar[TunnelSide]
FRAME_CLASS_EVIDENCE: FrameClass
FRAME_CLASS_LIVE: FrameClass
FRAME_CLASS_CHANNEL: FrameClass
FRAME_CLASS_BACKLOG: FrameClass
LANE_CONTROL: Lane
LANE_EVIDENCE: Lane
LANE_TELEMETRY: Lane
LANE_CHANNEL: Lane
LANE_SECOND: Lane
KIND_UNSPECIFIED: Kind
KIND_HELLO: Kind
KIND_HEARTBEAT: Kind
KIND_INVENTORY: Kind
KIND_COMMAND_STATUS: Kind
KIND_RECEIPT: Kind
KIND_EVENT: Kind
KIND_OBSERVED: Kind
KIND_BANDWIDTH: Kind
KIND_TELEMETRY: Kind
KIND_GAP: Kind
KIND_CANARY: Kind
KIND_RESUME: Kind
KIND_WELCOME: Kind
KIND_HEARTBEAT_REPLY: Kind
KIND_ACK: Kind
KIND_COMMAND: Kind
KIND_SETTINGS: Kind
KIND_REGION_MAP: Kind
KIND_LEASES: Kind
KIND_QUERY: Kind
KIND_CANARY_REPLY: Kind
KIND_CHANNEL: Kind
PROOF_KIND_UNSPECIFIED: ProofKind
PROOF_KIND_HMAC: ProofKind
PROOF_KIND_ED25519: ProofKind
TUNNEL_SIDE_UNSPECIFIED: TunnelSide
TUNNEL_SIDE_RENTER: TunnelSide
TUNNEL_SIDE_HOST: TunnelSide

class Frame(_message.Message):
    __slots__ = ("frame_class", "lane", "sequence", "sealed", "more")
    FRAME_CLASS_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SEALED_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    frame_class: FrameClass
    lane: Lane
    sequence: int
    sealed: bytes
    more: _containers.RepeatedCompositeFieldContainer[Frame]
    def __init__(self, frame_class: _Optional[_Union[FrameClass, str]] = ..., lane: _Optional[_Union[Lane, str]] = ..., sequence: _Optional[int] = ..., sealed: _Optional[bytes] = ..., more: _Optional[_Iterable[_Union[Frame, _Mapping]]] = ...) -> None: ...

class Sealed(_message.Message):
    __slots__ = ("signed", "proof", "proof_kind")
    SIGNED_FIELD_NUMBER: _ClassVar[int]
    PROOF_FIELD_NUMBER: _ClassVar[int]
    PROOF_KIND_FIELD_NUMBER: _ClassVar[int]
    signed: bytes
    proof: bytes
    proof_kind: ProofKind
    def __init__(self, signed: _Optional[bytes] = ..., proof: _Optional[bytes] = ..., proof_kind: _Optional[_Union[ProofKind, str]] = ...) -> None: ...

class Envelope(_message.Message):
    __slots__ = ("host_id", "boot_id", "epoch", "frame_class", "lane", "sequence", "kind", "not_after_ns", "body", "encrypted_body")
    HOST_ID_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    FRAME_CLASS_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    NOT_AFTER_NS_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_BODY_FIELD_NUMBER: _ClassVar[int]
    host_id: str
    boot_id: bytes
    epoch: int
    frame_class: FrameClass
    lane: Lane
    sequence: int
    kind: Kind
    not_after_ns: int
    body: bytes
    encrypted_body: bytes
    def __init__(self, host_id: _Optional[str] = ..., boot_id: _Optional[bytes] = ..., epoch: _Optional[int] = ..., frame_class: _Optional[_Union[FrameClass, str]] = ..., lane: _Optional[_Union[Lane, str]] = ..., sequence: _Optional[int] = ..., kind: _Optional[_Union[Kind, str]] = ..., not_after_ns: _Optional[int] = ..., body: _Optional[bytes] = ..., encrypted_body: _Optional[bytes] = ...) -> None: ...

class Record(_message.Message):
    __slots__ = ("origin_boot", "origin_sequence", "kind", "body")
    ORIGIN_BOOT_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    origin_boot: bytes
    origin_sequence: int
    kind: Kind
    body: bytes
    def __init__(self, origin_boot: _Optional[bytes] = ..., origin_sequence: _Optional[int] = ..., kind: _Optional[_Union[Kind, str]] = ..., body: _Optional[bytes] = ...) -> None: ...

class Range(_message.Message):
    __slots__ = ("first", "last")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    first: int
    last: int
    def __init__(self, first: _Optional[int] = ..., last: _Optional[int] = ...) -> None: ...

class LaneMarks(_message.Message):
    __slots__ = ("lane", "origin_boot", "ranges")
    LANE_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_BOOT_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    lane: Lane
    origin_boot: bytes
    ranges: _containers.RepeatedCompositeFieldContainer[Range]
    def __init__(self, lane: _Optional[_Union[Lane, str]] = ..., origin_boot: _Optional[bytes] = ..., ranges: _Optional[_Iterable[_Union[Range, _Mapping]]] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("protocol_version", "agent_version", "x25519_public", "generation", "wall_ns", "inventory_hash", "simulated", "unacked", "epoch_seen", "second", "encrypts")
    PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    AGENT_VERSION_FIELD_NUMBER: _ClassVar[int]
    X25519_PUBLIC_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    WALL_NS_FIELD_NUMBER: _ClassVar[int]
    INVENTORY_HASH_FIELD_NUMBER: _ClassVar[int]
    SIMULATED_FIELD_NUMBER: _ClassVar[int]
    UNACKED_FIELD_NUMBER: _ClassVar[int]
    EPOCH_SEEN_FIELD_NUMBER: _ClassVar[int]
    SECOND_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTS_FIELD_NUMBER: _ClassVar[int]
    protocol_version: int
    agent_version: str
    x25519_public: bytes
    generation: int
    wall_ns: int
    inventory_hash: str
    simulated: bool
    unacked: _containers.RepeatedCompositeFieldContainer[LaneMarks]
    epoch_seen: int
    second: bool
    encrypts: bool
    def __init__(self, protocol_version: _Optional[int] = ..., agent_version: _Optional[str] = ..., x25519_public: _Optional[bytes] = ..., generation: _Optional[int] = ..., wall_ns: _Optional[int] = ..., inventory_hash: _Optional[str] = ..., simulated: _Optional[bool] = ..., unacked: _Optional[_Iterable[_Union[LaneMarks, _Mapping]]] = ..., epoch_seen: _Optional[int] = ..., second: _Optional[bool] = ..., encrypts: _Optional[bool] = ...) -> None: ...

class Resume(_message.Message):
    __slots__ = ("unacked",)
    UNACKED_FIELD_NUMBER: _ClassVar[int]
    unacked: _containers.RepeatedCompositeFieldContainer[LaneMarks]
    def __init__(self, unacked: _Optional[_Iterable[_Union[LaneMarks, _Mapping]]] = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("protocol_version", "epoch", "x25519_public", "have", "settings", "wall_ns", "hello_digest", "inventory_wanted", "encrypts")
    PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    X25519_PUBLIC_FIELD_NUMBER: _ClassVar[int]
    HAVE_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    WALL_NS_FIELD_NUMBER: _ClassVar[int]
    HELLO_DIGEST_FIELD_NUMBER: _ClassVar[int]
    INVENTORY_WANTED_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTS_FIELD_NUMBER: _ClassVar[int]
    protocol_version: int
    epoch: int
    x25519_public: bytes
    have: _containers.RepeatedCompositeFieldContainer[LaneMarks]
    settings: Settings
    wall_ns: int
    hello_digest: bytes
    inventory_wanted: bool
    encrypts: bool
    def __init__(self, protocol_version: _Optional[int] = ..., epoch: _Optional[int] = ..., x25519_public: _Optional[bytes] = ..., have: _Optional[_Iterable[_Union[LaneMarks, _Mapping]]] = ..., settings: _Optional[_Union[Settings, _Mapping]] = ..., wall_ns: _Optional[int] = ..., hello_digest: _Optional[bytes] = ..., inventory_wanted: _Optional[bool] = ..., encrypts: _Optional[bool] = ...) -> None: ...

class Settings(_message.Message):
    __slots__ = ("telemetry_period_ns", "sample_period_ns", "heartbeat_interval_ns", "evidence_credits", "telemetry_credits", "channel_credit_bytes")
    TELEMETRY_PERIOD_NS_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_PERIOD_NS_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_INTERVAL_NS_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_CREDITS_FIELD_NUMBER: _ClassVar[int]
    TELEMETRY_CREDITS_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_CREDIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    telemetry_period_ns: int
    sample_period_ns: int
    heartbeat_interval_ns: int
    evidence_credits: int
    telemetry_credits: int
    channel_credit_bytes: int
    def __init__(self, telemetry_period_ns: _Optional[int] = ..., sample_period_ns: _Optional[int] = ..., heartbeat_interval_ns: _Optional[int] = ..., evidence_credits: _Optional[int] = ..., telemetry_credits: _Optional[int] = ..., channel_credit_bytes: _Optional[int] = ...) -> None: ...

class Ack(_message.Message):
    __slots__ = ("have", "missing", "epoch")
    HAVE_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    have: _containers.RepeatedCompositeFieldContainer[LaneMarks]
    missing: _containers.RepeatedCompositeFieldContainer[LaneMarks]
    epoch: int
    def __init__(self, have: _Optional[_Iterable[_Union[LaneMarks, _Mapping]]] = ..., missing: _Optional[_Iterable[_Union[LaneMarks, _Mapping]]] = ..., epoch: _Optional[int] = ...) -> None: ...

class Heartbeat(_message.Message):
    __slots__ = ("wall_ns", "uptime_ns", "inventory_hash", "observed_digest", "conditions", "sampling_age_ns", "access_id", "access_rtt_ns", "spool_bytes", "rtts")
    WALL_NS_FIELD_NUMBER: _ClassVar[int]
    UPTIME_NS_FIELD_NUMBER: _ClassVar[int]
    INVENTORY_HASH_FIELD_NUMBER: _ClassVar[int]
    OBSERVED_DIGEST_FIELD_NUMBER: _ClassVar[int]
    CONDITIONS_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_AGE_NS_FIELD_NUMBER: _ClassVar[int]
    ACCESS_ID_FIELD_NUMBER: _ClassVar[int]
    ACCESS_RTT_NS_FIELD_NUMBER: _ClassVar[int]
    SPOOL_BYTES_FIELD_NUMBER: _ClassVar[int]
    RTTS_FIELD_NUMBER: _ClassVar[int]
    wall_ns: int
    uptime_ns: int
    inventory_hash: str
    observed_digest: bytes
    conditions: _containers.RepeatedScalarFieldContainer[str]
    sampling_age_ns: int
    access_id: str
    access_rtt_ns: int
    spool_bytes: int
    rtts: _containers.RepeatedCompositeFieldContainer[AccessRtt]
    def __init__(self, wall_ns: _Optional[int] = ..., uptime_ns: _Optional[int] = ..., inventory_hash: _Optional[str] = ..., observed_digest: _Optional[bytes] = ..., conditions: _Optional[_Iterable[str]] = ..., sampling_age_ns: _Optional[int] = ..., access_id: _Optional[str] = ..., access_rtt_ns: _Optional[int] = ..., spool_bytes: _Optional[int] = ..., rtts: _Optional[_Iterable[_Union[AccessRtt, _Mapping]]] = ...) -> None: ...

class AccessRtt(_message.Message):
    __slots__ = ("access_id", "rtt_ns")
    ACCESS_ID_FIELD_NUMBER: _ClassVar[int]
    RTT_NS_FIELD_NUMBER: _ClassVar[int]
    access_id: str
    rtt_ns: int
    def __init__(self, access_id: _Optional[str] = ..., rtt_ns: _Optional[int] = ...) -> None: ...

class HeartbeatReply(_message.Message):
    __slots__ = ("epoch", "wall_ns", "inventory_wanted", "observed_wanted")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    WALL_NS_FIELD_NUMBER: _ClassVar[int]
    INVENTORY_WANTED_FIELD_NUMBER: _ClassVar[int]
    OBSERVED_WANTED_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    wall_ns: int
    inventory_wanted: bool
    observed_wanted: bool
    def __init__(self, epoch: _Optional[int] = ..., wall_ns: _Optional[int] = ..., inventory_wanted: _Optional[bool] = ..., observed_wanted: _Optional[bool] = ...) -> None: ...

class LaneTally(_message.Message):
    __slots__ = ("lane", "before", "last", "count")
    LANE_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    lane: Lane
    before: int
    last: int
    count: int
    def __init__(self, lane: _Optional[_Union[Lane, str]] = ..., before: _Optional[int] = ..., last: _Optional[int] = ..., count: _Optional[int] = ...) -> None: ...

class Canary(_message.Message):
    __slots__ = ("number", "answers", "sent", "heard", "samples")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    SENT_FIELD_NUMBER: _ClassVar[int]
    HEARD_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    number: int
    answers: int
    sent: _containers.RepeatedCompositeFieldContainer[LaneTally]
    heard: _containers.RepeatedCompositeFieldContainer[LaneTally]
    samples: int
    def __init__(self, number: _Optional[int] = ..., answers: _Optional[int] = ..., sent: _Optional[_Iterable[_Union[LaneTally, _Mapping]]] = ..., heard: _Optional[_Iterable[_Union[LaneTally, _Mapping]]] = ..., samples: _Optional[int] = ...) -> None: ...

class CanaryReply(_message.Message):
    __slots__ = ("number", "kept_up", "kept_down")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    KEPT_UP_FIELD_NUMBER: _ClassVar[int]
    KEPT_DOWN_FIELD_NUMBER: _ClassVar[int]
    number: int
    kept_up: int
    kept_down: int
    def __init__(self, number: _Optional[int] = ..., kept_up: _Optional[int] = ..., kept_down: _Optional[int] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("code", "at_wall_ns", "subject", "detail", "fields")
    class FieldsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CODE_FIELD_NUMBER: _ClassVar[int]
    AT_WALL_NS_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    code: str
    at_wall_ns: int
    subject: str
    detail: str
    fields: _containers.ScalarMap[str, str]
    def __init__(self, code: _Optional[str] = ..., at_wall_ns: _Optional[int] = ..., subject: _Optional[str] = ..., detail: _Optional[str] = ..., fields: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Gap(_message.Message):
    __slots__ = ("lane", "origin_boot", "ranges", "reason")
    LANE_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_BOOT_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    lane: Lane
    origin_boot: bytes
    ranges: _containers.RepeatedCompositeFieldContainer[Range]
    reason: str
    def __init__(self, lane: _Optional[_Union[Lane, str]] = ..., origin_boot: _Optional[bytes] = ..., ranges: _Optional[_Iterable[_Union[Range, _Mapping]]] = ..., reason: _Optional[str] = ...) -> None: ...

class Query(_message.Message):
    __slots__ = ("command_ids", "observed")
    COMMAND_IDS_FIELD_NUMBER: _ClassVar[int]
    OBSERVED_FIELD_NUMBER: _ClassVar[int]
    command_ids: _containers.RepeatedScalarFieldContainer[str]
    observed: bool
    def __init__(self, command_ids: _Optional[_Iterable[str]] = ..., observed: _Optional[bool] = ...) -> None: ...

class RegionMap(_message.Message):
    __slots__ = ("version", "points")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    version: int
    points: _containers.RepeatedCompositeFieldContainer[AccessPoint]
    def __init__(self, version: _Optional[int] = ..., points: _Optional[_Iterable[_Union[AccessPoint, _Mapping]]] = ...) -> None: ...

class AccessPoint(_message.Message):
    __slots__ = ("access_id", "region", "address", "load_permille", "draining")
    ACCESS_ID_FIELD_NUMBER: _ClassVar[int]
    REGION_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    LOAD_PERMILLE_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    access_id: str
    region: str
    address: str
    load_permille: int
    draining: bool
    def __init__(self, access_id: _Optional[str] = ..., region: _Optional[str] = ..., address: _Optional[str] = ..., load_permille: _Optional[int] = ..., draining: _Optional[bool] = ...) -> None: ...

class TunnelGrant(_message.Message):
    __slots__ = ("tunnel_id", "side", "host_id", "workload_id", "cluster_id", "port", "not_after_ns", "worker")
    TUNNEL_ID_FIELD_NUMBER: _ClassVar[int]
    SIDE_FIELD_NUMBER: _ClassVar[int]
    HOST_ID_FIELD_NUMBER: _ClassVar[int]
    WORKLOAD_ID_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    NOT_AFTER_NS_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    tunnel_id: str
    side: TunnelSide
    host_id: str
    workload_id: str
    cluster_id: str
    port: int
    not_after_ns: int
    worker: str
    def __init__(self, tunnel_id: _Optional[str] = ..., side: _Optional[_Union[TunnelSide, str]] = ..., host_id: _Optional[str] = ..., workload_id: _Optional[str] = ..., cluster_id: _Optional[str] = ..., port: _Optional[int] = ..., not_after_ns: _Optional[int] = ..., worker: _Optional[str] = ...) -> None: ...

class SignedTunnelGrant(_message.Message):
    __slots__ = ("grant", "signature")
    GRANT_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    grant: bytes
    signature: bytes
    def __init__(self, grant: _Optional[bytes] = ..., signature: _Optional[bytes] = ...) -> None: ...
