"""The payloads that an Access carries and must not read: secrets in commands, and what is typed, printed and copied.
Pure.

Everything of the link is proved from end to end, and what these kinds say is encrypted so, too. The rest the Access
could learn from its own work: who beats, how much is acknowledged, how warm a card is.
"""

from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from windrow_proto.errors import BadProof
from windrow_proto.model import Kind

ENCRYPTED_KINDS: Final = frozenset({Kind.COMMAND, Kind.CHANNEL})
ENCRYPTED_BESIDE_BYTES: Final = 16
"""More than the body."""
KEY_BYTES: Final = 64


class BodyCipher:
    """One direction's: AES-256-SIV (RFC 5297) by a key made of the one that both ends share.

    SIV needs no nonce: what differs in kind, number or content is encrypted differently. The cipher is made when it is
    first asked for, since most connections carry nothing of these kinds.
    """

    __slots__ = ("_cipher", "_domain", "_key")

    def __init__(self, key: bytes, domain: str) -> None:
        """key: the one that the ends share."""
        self._key, self._domain = key, domain
        self._cipher: AESSIV | None = None

    @staticmethod
    def made(key: bytes | None, domain: str) -> "BodyCipher | None":
        """The same, where there is a key already."""
        return None if key is None else BodyCipher(key, domain)

    def encrypt(self, kind: Kind, sequence: int, body: bytes) -> bytes:
        """The body as only the other end reads it, ENCRYPTED_BESIDE_BYTES longer."""
        return self._made().encrypt(body, [_place(kind, sequence)])

    def decrypt(self, kind: Kind, sequence: int, encrypted: bytes) -> bytes:
        """The body; raises BadProof for what was not encrypted so, or as something else."""
        try:
            return self._made().decrypt(encrypted, [_place(kind, sequence)])
        except (InvalidTag, ValueError) as error:
            raise BadProof(f"The body of this {kind.name} was not encrypted by the other end.") from error

    def _made(self) -> AESSIV:
        if self._cipher is None:
            info = b"windrow-link-bodies-1|" + self._domain.encode()
            self._cipher = AESSIV(
                HKDF(algorithm=hashes.SHA256(), length=KEY_BYTES, salt=None, info=info).derive(self._key)
            )
        return self._cipher


def _place(kind: Kind, sequence: int) -> bytes:
    return bytes((kind,)) + sequence.to_bytes(8, "big")
