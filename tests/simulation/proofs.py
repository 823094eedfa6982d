"""Signatures within one process: what a key of this history has signed is believed without the arithmetic.

Only the very bytes that a key has signed here, under that key's own public half, for that domain, and with that very
signature; anything else is checked as shipped. So the same is believed, and honest signatures cost no checking. What an
end has encrypted is remembered too, for the onlookers, who have no keys.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from windrow_proto import keys
from windrow_proto.bodies import BodyCipher
from windrow_proto.keys import SigningKey
from windrow_proto.model import Kind
from windrow_proto.v1 import link_pb2

KEPT_MAX = 10_000
"""Before all are forgotten: most are looked at within a second, and a later one is checked as shipped."""


_PLAIN: dict[bytes, bytes] = {}
"""Maps encrypted bytes of this history to the plain ones."""


def body_of(envelope: link_pb2.Envelope) -> bytes:
    """Returns the body of an envelope, encrypted or not."""
    return _PLAIN[envelope.encrypted_body] if envelope.encrypted_body else envelope.body


@contextmanager
def remembered() -> Iterator[None]:
    """While this is open."""
    made: dict[bytes, tuple[bytes, str, bytes]] = {}
    publics: dict[object, bytes] = {}
    sign, verify = SigningKey.sign, keys.verify_signature

    def signing(self: SigningKey, domain: str, data: bytes) -> bytes:
        signature = sign(self, domain, data)
        public = publics.get(self._key)
        if public is None:
            public = publics[self._key] = self.public
        if len(made) >= KEPT_MAX:
            made.clear()
        made[signature] = public, domain, data
        return signature

    def verifying(public: bytes, domain: str, data: bytes, signature: bytes) -> None:
        if made.get(signature) != (public, domain, data):
            verify(public, domain, data, signature)

    encrypt = BodyCipher.encrypt

    def encrypting(self: BodyCipher, kind: Kind, sequence: int, body: bytes) -> bytes:
        encrypted = encrypt(self, kind, sequence, body)
        _PLAIN[encrypted] = body
        return encrypted

    _PLAIN.clear()
    with (
        mock.patch.object(SigningKey, "sign", signing),
        mock.patch.object(keys, "verify_signature", verifying),
        mock.patch.object(BodyCipher, "encrypt", encrypting),
    ):
        yield
