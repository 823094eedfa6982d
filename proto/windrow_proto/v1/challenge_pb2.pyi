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
