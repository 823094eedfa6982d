from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Challenge(_message.Message):
    __slots__ = ("nonce", "host_key", "gpu_uuid", "size", "rounds")
    NONCE_FIELD_NUMBER: _ClassVar[int]
    HOST_KEY_FIELD_NUMBER: _ClassVar[int]
    GPU_UUID_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    ROUNDS_FIELD_NUMBER: _ClassVar[int]
    nonce: bytes
    host_key: bytes
    gpu_uuid: str
    size: int
    rounds: int
    def __init__(self, nonce: _Optional[bytes] = ..., host_key: _Optional[bytes] = ..., gpu_uuid: _Optional[str] = ..., size: _Optional[int] = ..., rounds: _Optional[int] = ...) -> None: ...

class ChallengeCommitment(_message.Message):
    __slots__ = ("challenge_id", "gpu_uuid", "roots")
    CHALLENGE_ID_FIELD_NUMBER: _ClassVar[int]
    GPU_UUID_FIELD_NUMBER: _ClassVar[int]
    ROOTS_FIELD_NUMBER: _ClassVar[int]
    challenge_id: bytes
    gpu_uuid: str
    roots: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, challenge_id: _Optional[bytes] = ..., gpu_uuid: _Optional[str] = ..., roots: _Optional[_Iterable[bytes]] = ...) -> None: ...

class ChallengePlace(_message.Message):
    __slots__ = ("round", "row", "column")
    ROUND_FIELD_NUMBER: _ClassVar[int]
    ROW_FIELD_NUMBER: _ClassVar[int]
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    round: int
    row: int
    column: int
    def __init__(self, round: _Optional[int] = ..., row: _Optional[int] = ..., column: _Optional[int] = ...) -> None: ...

class ChallengeSelection(_message.Message):
    __slots__ = ("challenge_id", "places")
    CHALLENGE_ID_FIELD_NUMBER: _ClassVar[int]
    PLACES_FIELD_NUMBER: _ClassVar[int]
    challenge_id: bytes
    places: _containers.RepeatedCompositeFieldContainer[ChallengePlace]
    def __init__(self, challenge_id: _Optional[bytes] = ..., places: _Optional[_Iterable[_Union[ChallengePlace, _Mapping]]] = ...) -> None: ...

class ChallengeOpening(_message.Message):
    __slots__ = ("leaf", "path")
    LEAF_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    leaf: bytes
    path: bytes
    def __init__(self, leaf: _Optional[bytes] = ..., path: _Optional[bytes] = ...) -> None: ...

class ChallengeAnswer(_message.Message):
    __slots__ = ("challenge_id", "openings")
    CHALLENGE_ID_FIELD_NUMBER: _ClassVar[int]
    OPENINGS_FIELD_NUMBER: _ClassVar[int]
    challenge_id: bytes
    openings: _containers.RepeatedCompositeFieldContainer[ChallengeOpening]
    def __init__(self, challenge_id: _Optional[bytes] = ..., openings: _Optional[_Iterable[_Union[ChallengeOpening, _Mapping]]] = ...) -> None: ...

class ChallengePlan(_message.Message):
    __slots__ = ("gpu_uuids", "size")
    GPU_UUIDS_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    gpu_uuids: _containers.RepeatedScalarFieldContainer[str]
    size: int
    def __init__(self, gpu_uuids: _Optional[_Iterable[str]] = ..., size: _Optional[int] = ...) -> None: ...

class ChallengeReady(_message.Message):
    __slots__ = ("device", "memory_bytes")
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    device: str
    memory_bytes: int
    def __init__(self, device: _Optional[str] = ..., memory_bytes: _Optional[int] = ...) -> None: ...

class ChallengeFailure(_message.Message):
    __slots__ = ("detail",)
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    detail: str
    def __init__(self, detail: _Optional[str] = ...) -> None: ...

class ChallengeFill(_message.Message):
    __slots__ = ("nonce", "lines")
    NONCE_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    nonce: bytes
    lines: int
    def __init__(self, nonce: _Optional[bytes] = ..., lines: _Optional[int] = ...) -> None: ...

class ChallengeFilled(_message.Message):
    __slots__ = ("lines",)
    LINES_FIELD_NUMBER: _ClassVar[int]
    lines: int
    def __init__(self, lines: _Optional[int] = ...) -> None: ...

class ChallengeProbe(_message.Message):
    __slots__ = ("blocks",)
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    blocks: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, blocks: _Optional[_Iterable[int]] = ...) -> None: ...

class ChallengeValues(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: bytes
    def __init__(self, values: _Optional[bytes] = ...) -> None: ...

class ChallengeStep(_message.Message):
    __slots__ = ("gpu_uuid", "plan", "ready", "failure", "challenge", "commitment", "selection", "answer", "fill", "filled", "probe", "values")
    GPU_UUID_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    CHALLENGE_FIELD_NUMBER: _ClassVar[int]
    COMMITMENT_FIELD_NUMBER: _ClassVar[int]
    SELECTION_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    FILL_FIELD_NUMBER: _ClassVar[int]
    FILLED_FIELD_NUMBER: _ClassVar[int]
    PROBE_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    gpu_uuid: str
    plan: ChallengePlan
    ready: ChallengeReady
    failure: ChallengeFailure
    challenge: Challenge
    commitment: ChallengeCommitment
    selection: ChallengeSelection
    answer: ChallengeAnswer
    fill: ChallengeFill
    filled: ChallengeFilled
    probe: ChallengeProbe
    values: ChallengeValues
    def __init__(self, gpu_uuid: _Optional[str] = ..., plan: _Optional[_Union[ChallengePlan, _Mapping]] = ..., ready: _Optional[_Union[ChallengeReady, _Mapping]] = ..., failure: _Optional[_Union[ChallengeFailure, _Mapping]] = ..., challenge: _Optional[_Union[Challenge, _Mapping]] = ..., commitment: _Optional[_Union[ChallengeCommitment, _Mapping]] = ..., selection: _Optional[_Union[ChallengeSelection, _Mapping]] = ..., answer: _Optional[_Union[ChallengeAnswer, _Mapping]] = ..., fill: _Optional[_Union[ChallengeFill, _Mapping]] = ..., filled: _Optional[_Union[ChallengeFilled, _Mapping]] = ..., probe: _Optional[_Union[ChallengeProbe, _Mapping]] = ..., values: _Optional[_Union[ChallengeValues, _Mapping]] = ...) -> None: ...
