"""The adapter of `cryptography`: what Windrow signs, agrees on and proves with, and what it reads from certificates.

Ed25519 for what someone must prove later, X25519 and HMAC-SHA256 for the rest of a connection, P-256 for TLS. Every
signature and every HMAC is over `domain`, a zero byte and the data, so that nothing said one way or for one purpose
holds for another.
"""

import hashlib
import hmac
import os
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, x25519
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.x509.oid import NameOID

from windrow_proto.bodies import ENCRYPTED_KINDS, BodyCipher
from windrow_proto.errors import BadProof, CertificateRefused, InvalidInput
from windrow_proto.ids import BootId, HostId
from windrow_proto.model import Kind

DOMAIN_UP: Final = "windrow-up-1"
"""Agent to Master."""
DOMAIN_DOWN: Final = "windrow-down-1"
"""Master to agent."""
DOMAIN_CLAIM: Final = "windrow-claim-1"
"""A relay's count of a bandwidth measurement."""
DOMAIN_REGIONS: Final = "windrow-regions-1"
DOMAIN_JOIN: Final = "windrow-join-1"
DOMAIN_RENEW: Final = "windrow-renew-1"
DOMAIN_MANIFEST: Final = "windrow-manifest-1"
"""The list of files that a host installs the agent from."""
DOMAIN_SUMS: Final = "windrow-sums-1"
"""The list of packages, as sha256sum writes it, which a first install checks without any library."""
DOMAIN_TUNNEL: Final = "windrow-tunnel-1"
"""A grant by which an Access joins the two ends of a tunnel."""
DOMAIN_WIPE: Final = "windrow-wipe-1"
"""A host's word that the keys of a lease's cache are destroyed."""
DOMAIN_AUDIT: Final = "windrow-audit-1"
"""A head of the audit log."""

PROOF_HMAC: Final = 1
PROOF_ED25519: Final = 2
"""Numbers of link.proto's ProofKind."""

SIGNED_KINDS: Final = frozenset(
    {
        Kind.HELLO,
        Kind.WELCOME,
        Kind.INVENTORY,
        Kind.COMMAND_STATUS,
        Kind.RECEIPT,
        Kind.EVENT,
        Kind.OBSERVED,
        Kind.BANDWIDTH,
        Kind.COMMAND,
        Kind.LEASES,
        Kind.REGION_MAP,
    }
)
"""Signed with Ed25519, since someone must prove them later (or, hello and welcome, since no shared key exists yet).
Every other kind carries an HMAC: checking a signature costs as much as moving a batch."""

SUBJECT_ROLES: Final = ("host", "access", "master")
COMMON_NAME_BYTES_MAX: Final = 64
SERVER_NAMES: Final = {"access": "access.windrow", "master": "master.windrow"}
"""The DNS name that every certificate of a serving role carries beside its addresses, and that dialers check: an
address may change or be a stranger's name for us, the authority's word for the role may not."""


def _covered(domain: str, data: bytes) -> bytes:
    return domain.encode() + b"\0" + data


# --- signatures and shared keys -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SigningKey:
    """An Ed25519 private key."""

    _key: ed25519.Ed25519PrivateKey = field(repr=False)

    @staticmethod
    def generate() -> "SigningKey":
        """A new key from the system's randomness."""
        return SigningKey(ed25519.Ed25519PrivateKey.generate())

    @staticmethod
    def from_raw(raw: bytes) -> "SigningKey":
        """The key of these 32 secret bytes; raises InvalidInput for any other length."""
        try:
            return SigningKey(ed25519.Ed25519PrivateKey.from_private_bytes(raw))
        except ValueError as error:
            raise InvalidInput("A signing key is 32 bytes; this file holds something else.") from error

    @property
    def raw(self) -> bytes:
        """The 32 secret bytes, for `save_private` only."""
        return self._key.private_bytes_raw()

    @property
    def public(self) -> bytes:
        """The 32 public bytes."""
        return self._key.public_key().public_bytes_raw()

    def sign(self, domain: str, data: bytes) -> bytes:
        """64 bytes that only this key can make for this domain and data."""
        return self._key.sign(_covered(domain, data))


def verify_signature(public: bytes, domain: str, data: bytes, signature: bytes) -> None:
    """Return if `public` (32 bytes) signed `data` for `domain`; raise BadProof otherwise."""
    try:
        ed25519.Ed25519PublicKey.from_public_bytes(public).verify(signature, _covered(domain, data))
    except (InvalidSignature, ValueError) as error:
        raise BadProof("The signature does not hold.") from error


@dataclass(frozen=True, slots=True)
class ExchangeKey:
    """An X25519 private key, used for one boot of an agent or one term of a Master."""

    _key: x25519.X25519PrivateKey = field(repr=False)

    @staticmethod
    def generate() -> "ExchangeKey":
        """A new key from the system's randomness."""
        return ExchangeKey(x25519.X25519PrivateKey.generate())

    @staticmethod
    def from_raw(raw: bytes) -> "ExchangeKey":
        """The key of these 32 secret bytes (simulation draws them from its seed)."""
        return ExchangeKey(x25519.X25519PrivateKey.from_private_bytes(raw))

    @property
    def public(self) -> bytes:
        """The 32 public bytes."""
        return self._key.public_key().public_bytes_raw()

    def derive(self, peer_public: bytes, host_id: HostId, boot_id: BootId, epoch: int) -> bytes:
        """The 32-byte MAC key of this boot and epoch, equal on both ends; raises BadProof for a bad peer key."""
        try:
            shared = self._key.exchange(x25519.X25519PublicKey.from_public_bytes(peer_public))
        except ValueError as error:
            raise BadProof("The peer's exchange key is not one.") from error
        info = b"windrow-link-1|" + host_id.encode() + b"|" + epoch.to_bytes(8, "big")
        return HKDF(algorithm=hashes.SHA256(), length=32, salt=bytes(boot_id), info=info).derive(shared)


# --- proofs of the link -------------------------------------------------------------------------------------------


MAC_KEY_BYTES_MAX: Final = 64


class Mac:
    """HMAC-SHA256 (RFC 2104) under one key, of messages of one domain.

    Key and domain are hashed once: half the time of hmac.digest for a batch of samples, and without its moments outside
    the interpreter's lock, after each of which the loop waits for whatever other thread took it.
    """

    __slots__ = ("_inner", "_outer")

    def __init__(self, key: bytes, domain: str) -> None:
        """key: of one block of SHA-256 (64 bytes) at most."""
        if len(key) > MAC_KEY_BYTES_MAX:
            raise ValueError(f"the key has more than {MAC_KEY_BYTES_MAX} bytes")
        block = key.ljust(MAC_KEY_BYTES_MAX, b"\0")
        self._inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block) + _covered(domain, b""))
        self._outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in block))

    @staticmethod
    def made(key: bytes | None, domain: str) -> "Mac | None":
        """The same, where there is a key already."""
        return None if key is None else Mac(key, domain)

    def of(self, data: bytes) -> bytes:
        """The 32 bytes that prove this message."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(data)
        outer.update(inner.digest())
        return outer.digest()


@dataclass(frozen=True, slots=True)
class MacProver:
    """Proves every kind by HMAC."""

    key: bytes = field(repr=False)
    domain: str

    def prove(self, kind: Kind, signed: bytes) -> tuple[int, bytes]:
        """The proof's kind and the proof."""
        return PROOF_HMAC, Mac(self.key, self.domain).of(signed)

    def encrypt(self, kind: Kind, sequence: int, body: bytes) -> bytes:
        """Nothing is."""
        return b""


@dataclass(frozen=True, slots=True)
class SignProver:
    """Proves every kind by signature."""

    key: SigningKey
    domain: str

    def prove(self, kind: Kind, signed: bytes) -> tuple[int, bytes]:
        """The proof's kind and the proof."""
        return PROOF_ED25519, self.key.sign(self.domain, signed)

    def encrypt(self, kind: Kind, sequence: int, body: bytes) -> bytes:
        """Nothing is."""
        return b""


@dataclass(frozen=True, slots=True)
class LinkProver:
    """Proves each kind the way the link wants it; mac_key is None until hello and welcome have crossed.

    encrypts: bodies of ENCRYPTED_KINDS, which the peer has said that it can read.
    """

    mac_key: bytes | None = field(repr=False)
    key: SigningKey
    domain: str
    encrypts: bool = False
    _mac: Mac | None = field(init=False, repr=False, compare=False)
    _bodies: BodyCipher | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_mac", Mac.made(self.mac_key, self.domain))
        object.__setattr__(self, "_bodies", BodyCipher.made(self.mac_key if self.encrypts else None, self.domain))

    def prove(self, kind: Kind, signed: bytes) -> tuple[int, bytes]:
        """The proof's kind and the proof; raises BadProof for a kind that needs the shared key before there is one."""
        if kind in SIGNED_KINDS:
            return SignProver(self.key, self.domain).prove(kind, signed)
        if self._mac is None:
            raise BadProof(f"{kind.name} cannot be sent before the welcome: there is no shared key yet.")
        return PROOF_HMAC, self._mac.of(signed)

    def encrypt(self, kind: Kind, sequence: int, body: bytes) -> bytes:
        """The body as only the peer reads it; nothing where it goes as it is."""
        if self._bodies is None or kind not in ENCRYPTED_KINDS:
            return b""
        return self._bodies.encrypt(kind, sequence, body)


@dataclass(frozen=True, slots=True)
class LinkVerifier:
    """Checks what a peer proves; `public` is its Ed25519 key, `domain` the direction it sends in."""

    mac_key: bytes | None = field(repr=False)
    public: bytes
    domain: str
    _mac: Mac | None = field(init=False, repr=False, compare=False)
    _bodies: BodyCipher | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_mac", Mac.made(self.mac_key, self.domain))
        object.__setattr__(self, "_bodies", BodyCipher.made(self.mac_key, self.domain))

    def decrypt(self, kind: Kind, sequence: int, encrypted: bytes) -> bytes:
        """A body that the peer has encrypted; raises BadProof."""
        if self._bodies is None:
            raise BadProof(f"There is no key yet for the body of this {kind.name}.")
        return self._bodies.decrypt(kind, sequence, encrypted)

    def verify(self, proof_kind: int, signed: bytes, proof: bytes) -> None:
        """Return if the proof holds, raise BadProof otherwise; whether it is enough for the kind: `suffices`."""
        if proof_kind == PROOF_ED25519:
            verify_signature(self.public, self.domain, signed, proof)
        elif proof_kind != PROOF_HMAC or self._mac is None:
            raise BadProof("There is no key for this kind of proof.")
        elif not hmac.compare_digest(self._mac.of(signed), proof):
            raise BadProof("The HMAC does not hold.")

    @staticmethod
    def suffices(proof_kind: int, kind: Kind) -> bool:
        """True if this proof is the one that messages of `kind` must carry."""
        return proof_kind == (PROOF_ED25519 if kind in SIGNED_KINDS else PROOF_HMAC)


# --- TLS ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TlsKey:
    """A P-256 private key for TLS: gRPC's TLS refuses Ed25519 certificates."""

    _key: ec.EllipticCurvePrivateKey = field(repr=False)

    @staticmethod
    def generate() -> "TlsKey":
        """A new key from the system's randomness."""
        return TlsKey(ec.generate_private_key(ec.SECP256R1()))

    @staticmethod
    def from_pem(pem: bytes) -> "TlsKey":
        """Read an unencrypted PEM; raises InvalidInput if it is not a P-256 key."""
        try:
            key = serialization.load_pem_private_key(pem, None)
        except (ValueError, TypeError) as error:
            raise InvalidInput("This is not a private key in PEM.") from error
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise InvalidInput("A TLS key of Windrow is P-256; this is another kind.")
        return TlsKey(key)

    @property
    def pem(self) -> bytes:
        """The private key as unencrypted PKCS#8, for `save_private` and TLS only."""
        return self._key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    def csr_pem(self, common_name: str) -> bytes:
        """A request for a certificate, signed with this key; the Master decides every name but the key."""
        cut = common_name.encode(errors="ignore")[:COMMON_NAME_BYTES_MAX].decode(errors="ignore")
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, cut or "windrow")])
        request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(self._key, hashes.SHA256())
        return request.public_bytes(serialization.Encoding.PEM)


@dataclass(frozen=True, slots=True)
class TlsIdentity:
    """The certificate that one end of mTLS shows and the authorities that it trusts, all PEM."""

    key_pem: bytes = field(repr=False)
    certificate_pem: bytes
    ca_pem: bytes


def lone_identity(name: str) -> TlsIdentity:
    """A new key and a certificate that nobody but itself vouches for, naming `name`: for whoever was told of it.

    It has no end and no beginning, so that nobody's clock matters: 99991231235959Z is what RFC 5280 (4.1.2.5) has for
    that. Who drops the key ends it.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime(1970, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    return TlsIdentity(TlsKey(key).pem, pem, pem)


@dataclass(frozen=True, slots=True)
class CertificateFacts:
    """The contents of a certificate of ours; sha256 is over its DER bytes."""

    role: str
    subject_id: str
    generation: int
    not_before_ns: int
    not_after_ns: int
    sha256: bytes


def subject_uri(role: str, subject_id: str, generation: int) -> str:
    """The URI in the subject alternative names by which a certificate says who holds it."""
    return f"windrow://{role}/{subject_id}?generation={generation}"


def certificate_facts(pem: bytes) -> CertificateFacts:
    """Read the first certificate of a PEM; raises CertificateRefused if it is not one that Windrow issues."""
    try:
        certificate = x509.load_pem_x509_certificate(pem)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        (uri,) = names.get_values_for_type(x509.UniformResourceIdentifier)
        parts = urlsplit(uri)
        generation = int(parse_qs(parts.query).get("generation", ["0"])[0])
    except (ValueError, x509.ExtensionNotFound) as error:
        raise CertificateRefused("The certificate does not say who holds it (one windrow:// name).") from error
    subject_id = parts.path.lstrip("/")
    if parts.scheme != "windrow" or parts.netloc not in SUBJECT_ROLES or not subject_id or generation < 0:
        raise CertificateRefused(f"The certificate's name is not one of ours: {uri[:128]!r}")
    return CertificateFacts(
        role=parts.netloc,
        subject_id=subject_id,
        generation=generation,
        not_before_ns=_wall_ns(certificate.not_valid_before_utc),
        not_after_ns=_wall_ns(certificate.not_valid_after_utc),
        sha256=certificate.fingerprint(hashes.SHA256()),
    )


def public_key_sha256(certificate_pem: bytes) -> bytes:
    """SHA-256 of a certificate's public key (SubjectPublicKeyInfo, DER), by which tokens and curl pin it."""
    try:
        public = x509.load_pem_x509_certificate(certificate_pem).public_key()
    except ValueError as error:
        raise CertificateRefused("This is not a certificate in PEM.") from error
    der = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(der).digest()


def _wall_ns(moment: datetime) -> int:
    # Certificates know whole seconds, so nothing is lost on the way through a float-free difference.
    return int((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()) * 1_000_000_000


def save_private(path: str | Path, data: bytes) -> None:
    """Write a secret file (0600) whole or not at all, durable on return."""
    target = Path(path)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, target)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
