from windrow_proto.v1 import link_pb2 as _link_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PingRequest(_message.Message):
    __slots__ = ("nonce", "letter")
    NONCE_FIELD_NUMBER: _ClassVar[int]
    LETTER_FIELD_NUMBER: _ClassVar[int]
    nonce: bytes
    letter: bytes
    def __init__(self, nonce: _Optional[bytes] = ..., letter: _Optional[bytes] = ...) -> None: ...

class PingReply(_message.Message):
    __slots__ = ("nonce", "access_id", "region", "load_permille", "draining", "letter", "seen")
    NONCE_FIELD_NUMBER: _ClassVar[int]
    ACCESS_ID_FIELD_NUMBER: _ClassVar[int]
    REGION_FIELD_NUMBER: _ClassVar[int]
    LOAD_PERMILLE_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    LETTER_FIELD_NUMBER: _ClassVar[int]
    SEEN_FIELD_NUMBER: _ClassVar[int]
    nonce: bytes
    access_id: str
    region: str
    load_permille: int
    draining: bool
    letter: bytes
    seen: str
    def __init__(self, nonce: _Optional[bytes] = ..., access_id: _Optional[str] = ..., region: _Optional[str] = ..., load_permille: _Optional[int] = ..., draining: _Optional[bool] = ..., letter: _Optional[bytes] = ..., seen: _Optional[str] = ...) -> None: ...

class BandwidthChunk(_message.Message):
    __slots__ = ("start", "payload", "direction_done", "claim", "claim_signature")
    START_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_DONE_FIELD_NUMBER: _ClassVar[int]
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    CLAIM_SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    start: BandwidthStart
    payload: bytes
    direction_done: bool
    claim: bytes
    claim_signature: bytes
    def __init__(self, start: _Optional[_Union[BandwidthStart, _Mapping]] = ..., payload: _Optional[bytes] = ..., direction_done: _Optional[bool] = ..., claim: _Optional[bytes] = ..., claim_signature: _Optional[bytes] = ...) -> None: ...

class BandwidthStart(_message.Message):
    __slots__ = ("nonce", "duration_ns", "cap_bytes")
    NONCE_FIELD_NUMBER: _ClassVar[int]
    DURATION_NS_FIELD_NUMBER: _ClassVar[int]
    CAP_BYTES_FIELD_NUMBER: _ClassVar[int]
    nonce: str
    duration_ns: int
    cap_bytes: int
    def __init__(self, nonce: _Optional[str] = ..., duration_ns: _Optional[int] = ..., cap_bytes: _Optional[int] = ...) -> None: ...

class TrunkBatch(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[TrunkItem]
    def __init__(self, items: _Optional[_Iterable[_Union[TrunkItem, _Mapping]]] = ...) -> None: ...

class TrunkItem(_message.Message):
    __slots__ = ("route", "frame", "opened", "closed", "hello", "welcome", "close", "load", "credit", "bans", "drain", "letter", "service_ask", "service_answer", "service_left")
    ROUTE_FIELD_NUMBER: _ClassVar[int]
    FRAME_FIELD_NUMBER: _ClassVar[int]
    OPENED_FIELD_NUMBER: _ClassVar[int]
    CLOSED_FIELD_NUMBER: _ClassVar[int]
    HELLO_FIELD_NUMBER: _ClassVar[int]
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    CLOSE_FIELD_NUMBER: _ClassVar[int]
    LOAD_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    BANS_FIELD_NUMBER: _ClassVar[int]
    DRAIN_FIELD_NUMBER: _ClassVar[int]
    LETTER_FIELD_NUMBER: _ClassVar[int]
    SERVICE_ASK_FIELD_NUMBER: _ClassVar[int]
    SERVICE_ANSWER_FIELD_NUMBER: _ClassVar[int]
    SERVICE_LEFT_FIELD_NUMBER: _ClassVar[int]
    route: int
    frame: _link_pb2.Frame
    opened: RouteOpened
    closed: RouteClosed
    hello: TrunkHello
    welcome: TrunkWelcome
    close: RouteClose
    load: LoadReport
    credit: RouteCredit
    bans: BanList
    drain: TrunkDrain
    letter: Letter
    service_ask: ServiceAsk
    service_answer: ServiceAnswer
    service_left: ServiceLeft
    def __init__(self, route: _Optional[int] = ..., frame: _Optional[_Union[_link_pb2.Frame, _Mapping]] = ..., opened: _Optional[_Union[RouteOpened, _Mapping]] = ..., closed: _Optional[_Union[RouteClosed, _Mapping]] = ..., hello: _Optional[_Union[TrunkHello, _Mapping]] = ..., welcome: _Optional[_Union[TrunkWelcome, _Mapping]] = ..., close: _Optional[_Union[RouteClose, _Mapping]] = ..., load: _Optional[_Union[LoadReport, _Mapping]] = ..., credit: _Optional[_Union[RouteCredit, _Mapping]] = ..., bans: _Optional[_Union[BanList, _Mapping]] = ..., drain: _Optional[_Union[TrunkDrain, _Mapping]] = ..., letter: _Optional[_Union[Letter, _Mapping]] = ..., service_ask: _Optional[_Union[ServiceAsk, _Mapping]] = ..., service_answer: _Optional[_Union[ServiceAnswer, _Mapping]] = ..., service_left: _Optional[_Union[ServiceLeft, _Mapping]] = ...) -> None: ...

class TrunkHello(_message.Message):
    __slots__ = ("access_id", "region", "worker", "address", "version", "signing_public", "tunnel_address", "tunnel_host_address", "service_address", "tunnels_of_others")
    ACCESS_ID_FIELD_NUMBER: _ClassVar[int]
    REGION_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SIGNING_PUBLIC_FIELD_NUMBER: _ClassVar[int]
    TUNNEL_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    TUNNEL_HOST_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    SERVICE_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    TUNNELS_OF_OTHERS_FIELD_NUMBER: _ClassVar[int]
    access_id: str
    region: str
    worker: int
    address: str
    version: str
    signing_public: bytes
    tunnel_address: str
    tunnel_host_address: str
    service_address: str
    tunnels_of_others: bool
    def __init__(self, access_id: _Optional[str] = ..., region: _Optional[str] = ..., worker: _Optional[int] = ..., address: _Optional[str] = ..., version: _Optional[str] = ..., signing_public: _Optional[bytes] = ..., tunnel_address: _Optional[str] = ..., tunnel_host_address: _Optional[str] = ..., service_address: _Optional[str] = ..., tunnels_of_others: _Optional[bool] = ...) -> None: ...

class TrunkWelcome(_message.Message):
    __slots__ = ("epoch", "frames_per_batch", "leader", "leader_address", "draining")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    FRAMES_PER_BATCH_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    LEADER_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    frames_per_batch: int
    leader: bool
    leader_address: str
    draining: bool
    def __init__(self, epoch: _Optional[int] = ..., frames_per_batch: _Optional[int] = ..., leader: _Optional[bool] = ..., leader_address: _Optional[str] = ..., draining: _Optional[bool] = ...) -> None: ...

class TrunkDrain(_message.Message):
    __slots__ = ("draining",)
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    draining: bool
    def __init__(self, draining: _Optional[bool] = ...) -> None: ...

class Letter(_message.Message):
    __slots__ = ("host_id", "sealed")
    HOST_ID_FIELD_NUMBER: _ClassVar[int]
    SEALED_FIELD_NUMBER: _ClassVar[int]
    host_id: str
    sealed: bytes
    def __init__(self, host_id: _Optional[str] = ..., sealed: _Optional[bytes] = ...) -> None: ...

class ServiceAsk(_message.Message):
    __slots__ = ("ask", "cluster_id", "port")
    ASK_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    ask: int
    cluster_id: str
    port: int
    def __init__(self, ask: _Optional[int] = ..., cluster_id: _Optional[str] = ..., port: _Optional[int] = ...) -> None: ...

class ServiceAnswer(_message.Message):
    __slots__ = ("ask", "code", "retry_after_ns", "tunnel_address", "grant", "host_pem", "secret")
    ASK_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_NS_FIELD_NUMBER: _ClassVar[int]
    TUNNEL_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    GRANT_FIELD_NUMBER: _ClassVar[int]
    HOST_PEM_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    ask: int
    code: str
    retry_after_ns: int
    tunnel_address: str
    grant: str
    host_pem: str
    secret: bytes
    def __init__(self, ask: _Optional[int] = ..., code: _Optional[str] = ..., retry_after_ns: _Optional[int] = ..., tunnel_address: _Optional[str] = ..., grant: _Optional[str] = ..., host_pem: _Optional[str] = ..., secret: _Optional[bytes] = ...) -> None: ...

class ServiceLeft(_message.Message):
    __slots__ = ("ask",)
    ASK_FIELD_NUMBER: _ClassVar[int]
    ask: int
    def __init__(self, ask: _Optional[int] = ...) -> None: ...

class RouteOpened(_message.Message):
    __slots__ = ("host_id", "generation", "not_after_ns", "peer", "certificate_sha256")
    HOST_ID_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    NOT_AFTER_NS_FIELD_NUMBER: _ClassVar[int]
    PEER_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_SHA256_FIELD_NUMBER: _ClassVar[int]
    host_id: str
    generation: int
    not_after_ns: int
    peer: str
    certificate_sha256: bytes
    def __init__(self, host_id: _Optional[str] = ..., generation: _Optional[int] = ..., not_after_ns: _Optional[int] = ..., peer: _Optional[str] = ..., certificate_sha256: _Optional[bytes] = ...) -> None: ...

class RouteClosed(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class RouteClose(_message.Message):
    __slots__ = ("code", "reason", "retry_after_ns")
    CODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_NS_FIELD_NUMBER: _ClassVar[int]
    code: str
    reason: str
    retry_after_ns: int
    def __init__(self, code: _Optional[str] = ..., reason: _Optional[str] = ..., retry_after_ns: _Optional[int] = ...) -> None: ...

class LoadReport(_message.Message):
    __slots__ = ("agents", "load_permille", "queued_bytes", "shed_frames", "bugs")
    AGENTS_FIELD_NUMBER: _ClassVar[int]
    LOAD_PERMILLE_FIELD_NUMBER: _ClassVar[int]
    QUEUED_BYTES_FIELD_NUMBER: _ClassVar[int]
    SHED_FRAMES_FIELD_NUMBER: _ClassVar[int]
    BUGS_FIELD_NUMBER: _ClassVar[int]
    agents: int
    load_permille: int
    queued_bytes: int
    shed_frames: int
    bugs: BugsMet
    def __init__(self, agents: _Optional[int] = ..., load_permille: _Optional[int] = ..., queued_bytes: _Optional[int] = ..., shed_frames: _Optional[int] = ..., bugs: _Optional[_Union[BugsMet, _Mapping]] = ...) -> None: ...

class BugsMet(_message.Message):
    __slots__ = ("count", "last", "last_ns")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    LAST_NS_FIELD_NUMBER: _ClassVar[int]
    count: int
    last: str
    last_ns: int
    def __init__(self, count: _Optional[int] = ..., last: _Optional[str] = ..., last_ns: _Optional[int] = ...) -> None: ...

class RouteCredit(_message.Message):
    __slots__ = ("bytes",)
    BYTES_FIELD_NUMBER: _ClassVar[int]
    bytes: int
    def __init__(self, bytes: _Optional[int] = ...) -> None: ...

class BanList(_message.Message):
    __slots__ = ("host_ids",)
    HOST_IDS_FIELD_NUMBER: _ClassVar[int]
    host_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, host_ids: _Optional[_Iterable[str]] = ...) -> None: ...
