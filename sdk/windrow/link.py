"""Parses sign-in links and invitations, and checks the authority of their Master against the hash that they carry."""

import hashlib
from dataclasses import dataclass
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from windrow.errors import InvalidInput, WindrowClientError

MARKS = {"#sign-in=": "wl_", "#invitation=": "wi_"}
"""What comes before the secret, and how that begins."""
INVITATION = MARKS["#invitation="]
HASH_HEX = 32
"""Half of a SHA-256: enough against a second preimage."""
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True, slots=True)
class SignInLink:
    """The address of a Master, the secret that opens an account there once or invites into one, and the hash of its
    authority's public key."""

    url: str
    secret: str
    ca_hash: str

    @property
    def is_invitation(self) -> bool:
        """True if it makes a new user."""
        return self.secret.startswith(INVITATION)

    def __repr__(self) -> str:
        return f"SignInLink(url={self.url!r}, secret='***')"


def is_link(text: str) -> bool:
    """True if this was meant as a link."""
    return any(mark in text for mark in MARKS)


def parse(text: str) -> SignInLink:
    """Read `https://HOST/#sign-in=wl_SECRET.HASH` or an invitation; raises InvalidInput for what is neither."""
    mark = next((one for one in MARKS if one in text), "")
    base, _, secret = text.strip().partition(mark or " ")
    try:
        where, ca_hash = urlsplit(base), secret.rpartition(".")[2]
    except ValueError:
        where, ca_hash = urlsplit(""), ""
    is_whole = (
        secret.startswith(MARKS.get(mark, "w"))
        and bool(mark)
        and len(ca_hash) == HASH_HEX
        and all(c in "0123456789abcdef" for c in ca_hash)
    )
    if where.scheme not in ("http", "https") or not where.hostname or not is_whole or len(secret) > 200:
        raise InvalidInput("This is not a whole link. Copy all of it, in quotes: windrow login 'LINK'")
    if where.scheme == "http" and where.hostname not in LOOPBACK:
        raise InvalidInput("This link would send its secret in clear. Ask for one that begins with https://.")
    return SignInLink(f"{where.scheme}://{where.netloc}", secret, ca_hash)


def check_authority(link: SignInLink, ca_pem: bytes) -> bytes:
    """The certificate if its key is the one that the link names; raises WindrowClientError for another."""
    try:
        public = x509.load_pem_x509_certificate(ca_pem).public_key()
    except ValueError:
        raise WindrowClientError(f"{link.url} answered with no certificate. Is a Master there?") from None
    found = hashlib.sha256(public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()
    if found[:HASH_HEX] != link.ca_hash:
        raise WindrowClientError(
            f"The server at {link.url} is not the Master that made this link. Nothing was sent to it."
        )
    return ca_pem
