"""The client's end of TLS 1.3 (RFC 8446) with a certificate of its own, for load generators: one suite, one curve.

OpenSSL under Python's ssl takes three times the processor time for a handshake, most of it in looking up its own parts.
What the other end sees is whole: it checks our certificate, our signature and our last word, and refuses us otherwise.
This end trusts whoever answers, since nothing here is secret; never use it for anything that is.
"""

import hashlib
import hmac
import os
import struct
from functools import cache

from cryptography import x509
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from windrow_proto.keys import TlsIdentity

HANDSHAKE, APPLICATION, CHANGE_CIPHER, ALERT = 22, 23, 20, 21
CLIENT_HELLO, SERVER_HELLO, CERTIFICATE, CERTIFICATE_REQUEST, CERTIFICATE_VERIFY, FINISHED = 1, 2, 11, 13, 15, 20
AES_128_GCM_SHA256 = 0x1301
P256, ECDSA_P256_SHA256, TLS_12, TLS_13 = 0x0017, 0x0403, 0x0303, 0x0304
SERVER_NAME, GROUPS, SIGNATURES, ALPN, VERSIONS, KEY_SHARE = 0, 10, 13, 16, 43, 51
HASH_BYTES, RECORD_HEAD, PLAIN_MAX = 32, 5, 1 << 14
CURVE = ec.SECP256R1()
SIGNED = b" " * 64 + b"TLS 1.3, client CertificateVerify\0"
NOTHING = hashlib.sha256().digest()


class TlsError(Exception):
    """The other end refused us, or speaks otherwise than this end can."""


def _u16(*values: int) -> bytes:
    return struct.pack(f">{len(values)}H", *values)


def _long(body: bytes, size: int = 2) -> bytes:
    """Its length before it."""
    return len(body).to_bytes(size, "big") + body


def _mac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")


def _expand(secret: bytes, label: str, context: bytes = b"", length: int = HASH_BYTES) -> bytes:
    """HKDF-Expand-Label, of one block."""
    return _mac(secret, _u16(length) + _long(b"tls13 " + label.encode(), 1) + _long(context, 1) + b"\1")[:length]


@cache
def _first_salt() -> bytes:
    return _expand(_mac(bytes(HASH_BYTES), bytes(HASH_BYTES)), "derived", NOTHING)


class Shown:
    """A host's key and certificate, read once."""

    __slots__ = ("certificate", "key")

    def __init__(self, identity: TlsIdentity) -> None:
        key = serialization.load_pem_private_key(identity.key_pem, None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        self.key = key
        certificate = x509.load_pem_x509_certificate(identity.certificate_pem)
        self.certificate = certificate.public_bytes(serialization.Encoding.DER)


class _Way:
    """Records of one direction under one secret."""

    __slots__ = ("_cipher", "_iv", "_sequence", "secret")

    def __init__(self, secret: bytes) -> None:
        self.secret = secret
        self._cipher = AESGCM(_expand(secret, "key", length=16))
        self._iv = int.from_bytes(_expand(secret, "iv", length=12), "big")
        self._sequence = 0

    def _nonce(self) -> bytes:
        self._sequence += 1
        return (self._iv ^ self._sequence - 1).to_bytes(12, "big")

    def seal(self, kind: int, plain: bytes) -> bytes:
        head = bytes((APPLICATION, 3, 3)) + _u16(len(plain) + 17)
        return head + self._cipher.encrypt(self._nonce(), plain + bytes((kind,)), head)

    def open(self, head: bytes, sealed: bytes) -> tuple[int, bytes]:
        try:
            plain = self._cipher.decrypt(self._nonce(), sealed, head).rstrip(b"\0")
        except InvalidTag:
            raise TlsError("a record is not what its key made") from None
        return plain[-1], plain[:-1]


class Tls:
    """One connection. What came goes into `feed`; `out` is what is to be sent, the first of it at once."""

    def __init__(self, shown: Shown, name: str, protocol: str) -> None:
        """name: of the server; protocol: of ALPN, without which there is no agreement."""
        self.out = bytearray()
        self.is_shaken = False
        self._shown, self._protocol = shown, protocol
        self._taken, self._said = bytearray(), bytearray()
        self._transcript = hashlib.sha256()
        self._own = ec.generate_private_key(CURVE)
        self._up: _Way | None = None
        self._down: _Way | None = None
        self._master = b""
        hello = self._hello(name)
        self.out += bytes((HANDSHAKE, 3, 1)) + _long(hello)

    def _note(self, kind: int, body: bytes) -> bytes:
        message = bytes((kind,)) + _long(body, 3)
        self._transcript.update(message)
        return message

    def _hello(self, name: str) -> bytes:
        point = self._own.public_key().public_bytes(
            serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
        )
        extensions = {
            SERVER_NAME: _long(b"\0" + _long(name.encode())),
            GROUPS: _long(_u16(P256)),
            SIGNATURES: _long(_u16(ECDSA_P256_SHA256)),
            ALPN: _long(_long(self._protocol.encode(), 1)),
            VERSIONS: _long(_u16(TLS_13), 1),
            KEY_SHARE: _long(_u16(P256) + _long(point)),
        }
        listed = b"".join(_u16(kind) + _long(body) for kind, body in extensions.items())
        suites = _long(_u16(AES_128_GCM_SHA256))
        return self._note(CLIENT_HELLO, _u16(TLS_12) + os.urandom(32) + b"\0" + suites + b"\1\0" + _long(listed))

    def seal(self, plain: bytes) -> None:
        """Have these bytes in `out`; after the handshake."""
        assert self._up is not None
        for at in range(0, len(plain), PLAIN_MAX):
            self.out += self._up.seal(APPLICATION, plain[at : at + PLAIN_MAX])

    def feed(self, came: bytes) -> bytes:
        """Returns the bytes of the other end, of all that came until now; raises TlsError."""
        self._taken += came
        plain = b""
        while len(self._taken) >= RECORD_HEAD:
            ends = RECORD_HEAD + int.from_bytes(self._taken[3:5], "big")
            if len(self._taken) < ends:
                break
            head, body = bytes(self._taken[:RECORD_HEAD]), bytes(self._taken[RECORD_HEAD:ends])
            del self._taken[:ends]
            kind = head[0]
            if kind == APPLICATION and self._down is not None:
                kind, body = self._down.open(head, body)
            if kind == APPLICATION and self.is_shaken:
                plain += body
            elif kind == HANDSHAKE and not self.is_shaken:  # after it: tickets
                self._said += body
                self._read_handshake()
            elif kind == ALERT:
                raise TlsError(f"alert {body.hex()}")
            elif kind not in (CHANGE_CIPHER, HANDSHAKE):
                raise TlsError(f"a record of kind {kind}")
        return plain

    def _read_handshake(self) -> None:
        while len(self._said) >= 4:
            ends = 4 + int.from_bytes(self._said[1:4], "big")
            if len(self._said) < ends:
                return
            kind, body = self._said[0], bytes(self._said[4:ends])
            del self._said[:ends]
            self._note(kind, body)
            if kind == SERVER_HELLO:
                self._agree(body)
            elif kind == FINISHED:
                self._finish()
                return

    def _agree(self, body: bytes) -> None:
        """The other end's share of the key, and what follows from it."""
        at = 2 + 32 + 1 + body[34]
        (suite,), at = struct.unpack_from(">H", body, at), at + 3 + 2
        shares = {}
        while at < len(body):
            kind, length = struct.unpack_from(">HH", body, at)
            shares[kind], at = body[at + 4 : at + 4 + length], at + 4 + length
        share = shares.get(KEY_SHARE, b"")
        if suite != AES_128_GCM_SHA256 or len(share) < 4 or int.from_bytes(share[:2], "big") != P256:
            raise TlsError("the other end wants another suite or curve")
        theirs = ec.EllipticCurvePublicKey.from_encoded_point(CURVE, share[4:])
        secret = _mac(_first_salt(), self._own.exchange(ec.ECDH(), theirs))
        heard = self._transcript.digest()
        self._up, self._down = (_Way(_expand(secret, f"{end} hs traffic", heard)) for end in ("c", "s"))
        self._master = _mac(_expand(secret, "derived", NOTHING), bytes(HASH_BYTES))

    def _finish(self) -> None:
        """Show the certificate, prove that its key is ours, and change to the keys of what is said from now on."""
        if self._up is None:
            raise TlsError("the end of a handshake without its beginning")
        heard = self._transcript.digest()
        said = self._note(CERTIFICATE, b"\0" + _long(_long(self._shown.certificate, 3) + b"\0\0", 3))
        signature = self._shown.key.sign(SIGNED + self._transcript.digest(), ec.ECDSA(hashes.SHA256()))
        said += self._note(CERTIFICATE_VERIFY, _u16(ECDSA_P256_SHA256) + _long(signature))
        said += self._note(FINISHED, _mac(_expand(self._up.secret, "finished"), self._transcript.digest()))
        self.out += self._up.seal(HANDSHAKE, said)
        self._up, self._down = (_Way(_expand(self._master, f"{end} ap traffic", heard)) for end in ("c", "s"))
        self.is_shaken = True
