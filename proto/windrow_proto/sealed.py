"""Secrets for one host alone: sealed to a key that only it has, so that whoever carries or keeps them reads nothing.

X25519 with a key that is drawn for each secret, HKDF-SHA256, AES-256-GCM. The host's key comes from its signing key,
and its public half stands in its signed inventory; what a secret is for is bound in, so that it opens for nothing else.
The Master has one as well: for what it holds until it is known which host is to have it. What the holder of a key seals
for itself needs no key pair: AES-256-GCM with a key that HKDF-SHA256 makes of a secret one and a salt drawn each time.
"""

import hmac
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import x25519
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from windrow_proto.data_keys import DataKey
from windrow_proto.errors import BadProof, InvalidInput
from windrow_proto.keys import SigningKey

SEAL_KEY: Final = "seal_key"
"""Under which name an inventory holds the public half, in hexadecimal."""
PUBLIC_BYTES: Final = 32
LOGIN_MAX: Final = 16_384
"""Of a name and a password together; tokens of clouds' registries take some thousand characters."""
SEALED_MAX: Final = LOGIN_MAX + 1_024
VALUES_MAX: Final = 262_144
"""Of the names and values of one environment together, as JSON in UTF-8: a quarter of a control message."""
SEALED_VALUES_MAX: Final = VALUES_MAX + 1_024
_NONCE: Final = bytes(12)
"""Each key seals once: it comes from a key pair, or a salt, drawn for this secret."""
_OWN: Final = bytes(PUBLIC_BYTES)
"""Begins what a holder has sealed for itself. No drawn key has this public half: whatever it is exchanged with gives
zeros, which RFC 7748 (section 6.1) has everybody refuse."""
_SALT_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class RegistryLogin:
    """The login that a registry of images is shown for one pull."""

    username: str = field(repr=False)
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SealKey:
    """The private half; whose it is makes it again from the signing key at each start."""

    _key: x25519.X25519PrivateKey = field(repr=False)
    public: str
    """The public half, as SEAL_KEY tells it."""
    _digest_key: bytes = field(repr=False)
    _own_key: bytes = field(repr=False)

    @staticmethod
    def of(signing: SigningKey) -> "SealKey":
        """The one of whoever has this signing key: a host, or the Master."""
        raw = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=b"windrow-seal-key-1").derive(signing.raw)
        key = x25519.X25519PrivateKey.from_private_bytes(raw)
        digest_key = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=b"windrow-digest-1").derive(raw)
        own_key = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=b"windrow-own-1").derive(raw)
        return SealKey(key, key.public_key().public_bytes_raw().hex(), digest_key, own_key)

    def seal_values(self, values: Mapping[str, str], purpose: str) -> bytes:
        """Values by name for the holder of this key, and for this purpose only. Raises InvalidInput."""
        salt = os.urandom(_SALT_BYTES)
        return _OWN + salt + _cipher(self._own_key, salt, _OWN).encrypt(_NONCE, _said(values), _for(purpose))

    def open(self, sealed: bytes, purpose: str) -> bytes:
        """The secret; raises BadProof where it was sealed for another host or purpose, or is not whole."""
        drawn, rest = sealed[:PUBLIC_BYTES], sealed[PUBLIC_BYTES:]
        try:
            if drawn == _OWN:
                salt = rest[:_SALT_BYTES]
                return _cipher(self._own_key, salt, _OWN).decrypt(_NONCE, rest[_SALT_BYTES:], _for(purpose))
            shared = self._key.exchange(x25519.X25519PublicKey.from_public_bytes(drawn))
            return _cipher(shared, drawn, bytes.fromhex(self.public)).decrypt(_NONCE, rest, _for(purpose))
        except (InvalidTag, ValueError) as error:
            raise BadProof("This secret was sealed for another host or purpose, or is not whole.") from error

    def open_login(self, sealed: bytes, purpose: str) -> RegistryLogin:
        """The login that was sealed for this workload, or jobs; raises BadProof."""
        found = json.loads(self.open(sealed, purpose))
        return RegistryLogin(str(found["username"]), str(found["password"]))

    def open_values(self, sealed: bytes, purpose: str) -> dict[str, str]:
        """The values by name that were sealed for this purpose; raises BadProof."""
        found = json.loads(self.open(sealed, purpose))
        return {str(name): str(value) for name, value in found.items()}

    def data_key(self, purpose: str) -> DataKey:
        """Returns the key above the data keys of a purpose; whoever has this one makes it again."""
        return DataKey(self._key.private_bytes_raw()).below(purpose)

    def digest(self, said: bytes) -> bytes:
        """Returns a digest that tells one text from another, and lets nobody without this key try what a text might
        be."""
        return hmac.digest(self._digest_key, said, "sha256")


def seal(public: str, secret: bytes, purpose: str) -> bytes:
    """`secret` for the host of this public half and for nothing but `purpose`; raises InvalidInput for a bad key."""
    own = x25519.X25519PrivateKey.generate()
    drawn = own.public_key().public_bytes_raw()
    try:
        peer = bytes.fromhex(public)
        shared = own.exchange(x25519.X25519PublicKey.from_public_bytes(peer))
    except ValueError as error:
        raise InvalidInput("The key that this host names for secrets is not one.") from error
    return drawn + _cipher(shared, drawn, peer).encrypt(_NONCE, secret, _for(purpose))


def seal_login(public: str, login: RegistryLogin, purpose: str) -> bytes:
    """The login for whoever has this public half, for the pull of a workload's image or for jobs until they are placed.
    Raises InvalidInput."""
    said = json.dumps({"username": login.username, "password": login.password}).encode()
    if len(said) > LOGIN_MAX:
        raise InvalidInput(f"A registry's name and password have at most {LOGIN_MAX} bytes together.")
    return seal(public, said, purpose)


def seal_values(public: str, values: Mapping[str, str], purpose: str) -> bytes:
    """Values by name for whoever has this public half, and for this purpose only. Raises InvalidInput."""
    return seal(public, _said(values), purpose)


def _said(values: Mapping[str, str]) -> bytes:
    said = json.dumps(dict(values)).encode()
    if len(said) > VALUES_MAX:
        raise InvalidInput(f"env must be at most {VALUES_MAX:,} bytes of names and values together.", subject="env")
    return said


def _cipher(shared: bytes, drawn: bytes, peer: bytes) -> AESGCM:
    info = b"windrow-seal-1|" + drawn + peer
    return AESGCM(HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=info).derive(shared))


def _for(purpose: str) -> bytes:
    return b"windrow-seal-1|" + purpose.encode()
