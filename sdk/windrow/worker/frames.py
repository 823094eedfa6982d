"""The protocol between client and worker: frames of a length, a kind and a number, and how each knows the other.

The worker greets with its version and a nonce, the client with a nonce of its own. The worker's first frame proves that
it knows the secret, so that whoever took the port learns nothing; the client's next proves it back, and what it asks
for comes right behind it.
"""

import asyncio
import hmac
import json
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

GREETING: Final = b"windrow-worker/2\n"
NONCE_BYTES: Final = 32
SECRET_BYTES: Final = 32
FRAME_BYTES_MAX: Final = 1 << 20
PIECE_BYTES: Final = 256 * 1024
"""Of a long body, in one frame: small enough that others come between."""
BODY_BYTES_MAX: Final = 256 << 20
"""Of arguments, of a result, or of one file of the code."""
PING_S: Final = 10.0
SILENT_S: Final = 45.0
"""Without a frame for so long, the other side is gone: four pings were not answered."""
HELLO_S: Final = 15.0
_HEAD: Final = struct.Struct(">IBI")


class Kind(IntEnum):
    """DATA: a piece of the body of what has the same number; its last frame says what the body is."""

    HELLO = 1
    WELCOME = 2
    REFUSED = 3
    PING = 4
    PONG = 5
    DATA = 6
    TREE = 7
    NEED = 8
    FILE = 9
    CALL = 10
    ATTACH = 11
    CANCEL = 12
    OUTPUT = 13
    DONE = 14
    ENV = 15
    PROGRESS = 16
    BEGUN = 17
    PROOF = 18


class BadFrame(Exception):
    """Bytes came that are no frame of this protocol."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame. number: what of the client's it belongs to; 0 is the connection itself."""

    kind: Kind
    number: int
    payload: bytes

    def record(self) -> dict[str, Any]:
        """The payload as a JSON object; raises BadFrame."""
        try:
            found = json.loads(self.payload)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise BadFrame(f"A {self.kind.name} frame holds no JSON object.")
        return found


def encode(kind: Kind, number: int, payload: bytes = b"") -> bytes:
    """One frame as bytes."""
    return _HEAD.pack(len(payload), kind, number) + payload


def encode_record(kind: Kind, number: int, record: dict[str, Any]) -> bytes:
    """One frame that holds a JSON object."""
    return encode(kind, number, json.dumps(record, separators=(",", ":")).encode())


async def read_frame(reader: asyncio.StreamReader) -> Frame:
    """The next frame; raises BadFrame, asyncio.IncompleteReadError at the end, OSError."""
    length, kind, number = _HEAD.unpack(await reader.readexactly(_HEAD.size))
    if length > FRAME_BYTES_MAX:
        raise BadFrame(f"A frame of {length} bytes came; the limit is {FRAME_BYTES_MAX}.")
    try:
        known = Kind(kind)
    except ValueError:
        raise BadFrame(f"There is no kind of frame {kind}.") from None
    return Frame(known, number, await reader.readexactly(length))


def proof(secret: bytes, role: bytes, nonce: bytes) -> str:
    """That this role (b"client" or b"worker") knows the secret, for a nonce of the other's."""
    return hmac.digest(secret, role + b"\0" + nonce, "sha256").hex()


def is_proof(shown: object, secret: bytes, role: bytes, nonce: bytes) -> bool:
    """True if that is what was shown."""
    return isinstance(shown, str) and shown.isascii() and hmac.compare_digest(shown, proof(secret, role, nonce))
