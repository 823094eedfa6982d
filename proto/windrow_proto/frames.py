"""Objects as sealed frames: what is encrypted before it leaves a process and what a cache on a disk consists of. Pure.

object = `WRF1`, salt (16 B), frame 0, frame 1, ..., the last frame
frame  = at most 8 MiB sealed by AES-256-GCM, with its tag (16 B)

Every frame but the last holds exactly 8 MiB; the last holds what is left, nothing where the object is empty. The nonce
is the frame's number and whether it is the last (the STREAM construction: Hoang, Reyhanitabar, Rogaway and Vizar,
"Online Authenticated-Encryption and its Nonce-Reuse Misuse-Resistance", 2015); the object's id, the number and the mark
are associated data. So frames that are cut off, added, swapped, repeated or of another object are refused.
"""

from typing import Final

from windrow_proto.data_keys import TAG_BYTES, DataKey, ObjectCipher
from windrow_proto.errors import BadProof
from windrow_proto.units import MIB

MAGIC: Final = b"WRF1"
SALT_BYTES: Final = 16
HEADER_BYTES: Final = len(MAGIC) + SALT_BYTES
FRAME_BYTES: Final = 8 * MIB
"""Plain bytes of a frame: large enough that the cipher's set-up does not count, small enough to hold in memory."""
SEALED_FRAME_BYTES: Final = FRAME_BYTES + TAG_BYTES


def sealed_size(plain_bytes: int, frame_bytes: int = FRAME_BYTES) -> int:
    """How many bytes an object of `plain_bytes` has when it is sealed; both >= 0."""
    frames = max(1, -(-plain_bytes // frame_bytes))
    return HEADER_BYTES + plain_bytes + frames * TAG_BYTES


def _cipher(key: DataKey, salt: bytes, object_id: str) -> ObjectCipher:
    return key.cipher(salt, b"windrow-frames-1|" + object_id.encode())


def _nonce(number: int, is_last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes((is_last,))


def _associated(object_id: str, number: int, is_last: bool) -> bytes:
    return b"windrow-frame-1|%b|%d|%d" % (object_id.encode(), number, is_last)


class Sealer:
    """Seals one object as its plain bytes come; holds at most one frame."""

    def __init__(self, key: DataKey, object_id: str, salt: bytes, frame_bytes: int = FRAME_BYTES) -> None:
        """salt: SALT_BYTES new random bytes for every upload. frame_bytes: smaller in tests only."""
        if len(salt) != SALT_BYTES:
            raise ValueError(f"a salt has {SALT_BYTES} bytes")
        self._cipher, self._object_id, self._frame_bytes = _cipher(key, salt, object_id), object_id, frame_bytes
        self._held, self._number = bytearray(), 0
        self._head = MAGIC + salt

    def feed(self, plain: bytes) -> bytes:
        """Returns the part of the sealed object that is ready, maybe nothing."""
        self._held += plain
        ready = [self._head]
        self._head = b""
        # A full frame is kept until something follows: only then is it known not to be the last.
        while len(self._held) > self._frame_bytes:
            ready.append(self._frame(bytes(self._held[: self._frame_bytes]), is_last=False))
            del self._held[: self._frame_bytes]
        return b"".join(ready)

    def finish(self) -> bytes:
        """The rest of the sealed object. Once, after everything was fed."""
        head, self._head = self._head, b""
        sealed = head + self._frame(bytes(self._held), is_last=True)
        self._held.clear()
        return sealed

    def _frame(self, plain: bytes, *, is_last: bool) -> bytes:
        number, self._number = self._number, self._number + 1
        return self._cipher.seal(_nonce(number, is_last), plain, _associated(self._object_id, number, is_last))


class Opener:
    """Opens one object as its sealed bytes come; holds at most one frame.

    What it gives is what was sealed, in order; that it is all of it is known only when `finish` has returned.
    """

    def __init__(self, key: DataKey, object_id: str, frame_bytes: int = FRAME_BYTES) -> None:
        self._key, self._object_id = key, object_id
        self._sealed_bytes = frame_bytes + TAG_BYTES
        self._held, self._number = bytearray(), 0
        self._cipher: ObjectCipher | None = None

    def feed(self, sealed: bytes) -> bytes:
        """Returns the part that could be opened, maybe nothing. Raises BadProof for what was not sealed so."""
        self._held += sealed
        if self._cipher is None:
            if len(self._held) < HEADER_BYTES:
                return b""
            if self._held[: len(MAGIC)] != MAGIC:
                raise BadProof("This object does not begin as a sealed one does.")
            self._cipher = _cipher(self._key, bytes(self._held[len(MAGIC) : HEADER_BYTES]), self._object_id)
            del self._held[:HEADER_BYTES]
        ready = []
        while len(self._held) > self._sealed_bytes:
            ready.append(self._frame(self._cipher, bytes(self._held[: self._sealed_bytes]), is_last=False))
            del self._held[: self._sealed_bytes]
        return b"".join(ready)

    def finish(self) -> bytes:
        """The last frame. Raises BadProof if the object was cut short."""
        if self._cipher is None or len(self._held) < TAG_BYTES:
            raise BadProof("The object was cut short.")
        plain = self._frame(self._cipher, bytes(self._held), is_last=True)
        self._held.clear()
        return plain

    def _frame(self, cipher: ObjectCipher, sealed: bytes, *, is_last: bool) -> bytes:
        number, self._number = self._number, self._number + 1
        return cipher.open(_nonce(number, is_last), sealed, _associated(self._object_id, number, is_last))


def seal(key: DataKey, object_id: str, salt: bytes, plain: bytes, frame_bytes: int = FRAME_BYTES) -> bytes:
    """A whole object at once."""
    sealer = Sealer(key, object_id, salt, frame_bytes)
    return sealer.feed(plain) + sealer.finish()


def open_sealed(key: DataKey, object_id: str, sealed: bytes, frame_bytes: int = FRAME_BYTES) -> bytes:
    """A whole object at once; raises BadProof for anything but what was sealed under this key and id."""
    opener = Opener(key, object_id, frame_bytes)
    return opener.feed(sealed) + opener.finish()
