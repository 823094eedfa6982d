"""The adapter of the cipher of stored objects: AES-256-GCM under data keys, and data keys sealed by a key above them.

A data key belongs to one owner of objects; every upload of an object is sealed with a key of its own, drawn from it.
"""

import os
from dataclasses import dataclass, field
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from windrow_proto.errors import BadProof, InvalidInput

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
TAG_BYTES: Final = 16
"""The bytes that GCM adds to a message (NIST SP 800-38D, the full tag)."""
WRAPPED_BYTES: Final = NONCE_BYTES + KEY_BYTES + TAG_BYTES


@dataclass(frozen=True, slots=True)
class ObjectCipher:
    """Seals the frames of one upload. Never seals two under one nonce: that is its caller's promise."""

    _cipher: AESGCM = field(repr=False)

    def seal(self, nonce: bytes, plain: bytes, associated: bytes) -> bytes:
        """The sealed bytes, TAG_BYTES longer."""
        return self._cipher.encrypt(nonce, plain, associated)

    def open(self, nonce: bytes, sealed: bytes, associated: bytes) -> bytes:
        """The plain bytes; raises BadProof if anything of nonce, bytes or associated data is not what was sealed."""
        try:
            return self._cipher.decrypt(nonce, sealed, associated)
        except InvalidTag as error:
            raise BadProof("A frame of the object is not what was sealed.") from error


@dataclass(frozen=True, slots=True)
class DataKey:
    """32 secret bytes; shown to nobody by accident."""

    raw: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.raw) != KEY_BYTES:
            raise InvalidInput(f"A data key has {KEY_BYTES} bytes.")

    @staticmethod
    def generate() -> "DataKey":
        """A new key from the system's randomness."""
        return DataKey(os.urandom(KEY_BYTES))

    def below(self, purpose: str) -> "DataKey":
        """The key that this one has for a purpose, such as an account; nobody finds this one from it."""
        return DataKey(_derived(self.raw, b"", b"windrow-data-key-1|" + purpose.encode()))

    def cipher(self, salt: bytes, purpose: bytes) -> ObjectCipher:
        """The cipher of one upload: its salt is new every time, so that no nonce is ever used twice under one key."""
        return ObjectCipher(AESGCM(_derived(self.raw, salt, purpose)))

    def wrap(self, key: "DataKey", context: str) -> bytes:
        """`key` sealed by this one for `context` (whose it is), WRAPPED_BYTES long."""
        nonce = os.urandom(NONCE_BYTES)
        return nonce + AESGCM(self.raw).encrypt(nonce, key.raw, b"windrow-wrap-1|" + context.encode())

    def unwrap(self, wrapped: bytes, context: str) -> "DataKey":
        """The key that was wrapped; raises BadProof for another context, another key above, or other bytes."""
        if len(wrapped) != WRAPPED_BYTES:
            raise BadProof("This is not a wrapped data key.")
        associated = b"windrow-wrap-1|" + context.encode()
        try:
            return DataKey(AESGCM(self.raw).decrypt(wrapped[:NONCE_BYTES], wrapped[NONCE_BYTES:], associated))
        except InvalidTag as error:
            raise BadProof("This data key was not wrapped by this key for this owner.") from error


def _derived(raw: bytes, salt: bytes, info: bytes) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=KEY_BYTES, salt=salt or None, info=info).derive(raw)
