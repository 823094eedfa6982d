"""Joining and renewal of a host or an Access: keys made here, certificate from the Master, trust pinned by the token.

Blocking, on the standard library's HTTP and TLS alone; callers with a loop run it in a thread. Private keys never
leave the folder.
"""

import base64
import hashlib
import http.client
import json
import os
import random
import ssl
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from windrow_proto import keys
from windrow_proto.errors import InvalidInput, JoinTokenRefused, StorageFailed, Unavailable, from_code

ANSWER_BYTES_MAX = 1 << 20
"""An answer of the Master to joining is a few kilobytes; more is not one."""
AGAIN_S, AGAIN_MAX_S = 0.1, 2.0
"""Pauses between tries of a connection that was cut before its handshake; each is twice the one before."""
TOKEN_HASH_HEX = 32
"""Half of a SHA-256, 128 bits: enough against a second preimage, short enough to paste."""


@dataclass(frozen=True, slots=True)
class JoinToken:
    """A parsed join token: the secret the Master knows the hash of, and the hash of its authority's public key."""

    text: str
    ca_hash: str

    @staticmethod
    def parse(text: str) -> "JoinToken":
        """Read `wj_<secret>.<32 hex digits>`; raises JoinTokenRefused on anything else."""
        cleaned = text.strip()
        secret, dot, ca_hash = cleaned.partition(".")
        well_formed = secret.startswith("wj_") and 20 <= len(secret) <= 128 and len(ca_hash) == TOKEN_HASH_HEX
        if not (dot and well_formed and all(c in "0123456789abcdef" for c in ca_hash)):
            raise JoinTokenRefused("This is not a join token (wj_....<hash>). Copy the whole line again.")
        return JoinToken(cleaned, ca_hash)


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """A joiner's description of itself. addresses: DNS names or IPs an Access will be dialled by."""

    role: str
    host_name: str
    simulated: bool = False
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of this process, and the authority that it trusts. is_bought: the market bought this machine at a
    provider."""

    subject_id: str
    generation: int
    tls: keys.TlsIdentity
    signing: keys.SigningKey
    master_public: bytes
    master_url: str
    not_after_ns: int
    region_map: bytes
    trunk_addresses: tuple[str, ...]
    is_bought: bool = False


class MasterConnection(http.client.HTTPSConnection):
    """HTTPS to a Master whose own authority the context trusts. Under its public name the Master may show a certificate
    that an operator has from elsewhere: it is asked for its own by another name then."""

    def __init__(self, host: str, port: int | None, *, timeout: float, context: ssl.SSLContext) -> None:
        super().__init__(host, port, timeout=timeout, context=context)
        self._trust, self._name = context, host

    def connect(self) -> None:
        """Open the connection. Raises ssl.SSLCertVerificationError where it shows neither name."""
        http.client.HTTPConnection.connect(self)
        try:
            self.sock = self._trust.wrap_socket(self.sock, server_hostname=self._name)
        except ssl.SSLCertVerificationError:
            self.close()
            if self._name == keys.SERVER_NAMES["master"]:
                raise
            self._name = keys.SERVER_NAMES["master"]
            self.connect()


class IdentityFolder:
    """The folder (0700) that holds one identity: two private keys (0600), certificates, and what the Master said."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def exists(self) -> bool:
        """True if joining has completed here."""
        return (self.path / "identity.json").exists()

    def signing_key(self) -> keys.SigningKey:
        """The Ed25519 key, made at first use."""
        path = self.path / "sign.key"
        if not path.exists():
            self._make_private(path, keys.SigningKey.generate().raw)
        return keys.SigningKey.from_raw(path.read_bytes())

    def tls_key(self, name: str = "tls.key") -> keys.TlsKey:
        """The P-256 key of the certificate, made at first use. A renewal keeps `next.key` until it is answered."""
        path = self.path / name
        if not path.exists():
            self._make_private(path, keys.TlsKey.generate().pem)
        return keys.TlsKey.from_pem(path.read_bytes())

    def _make_private(self, path: Path, data: bytes) -> None:
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        keys.save_private(path, data)

    def store(self, master_url: str, answer: dict[str, Any], ca_pem: bytes, tls_key: keys.TlsKey) -> None:
        """Write what the Master answered in one atomic file: a crash leaves either the old identity or the new one."""
        record = {
            "id": answer["id"],
            "generation": answer["generation"],
            "not_after": answer["not_after"],
            "master_public": answer["master_public"],
            "master_url": master_url,
            "regions": answer.get("regions"),
            "trunk_addresses": answer.get("trunk_addresses", []),
            "is_bought": answer.get("is_bought", False),
            "certificate_pem": answer["certificate_pem"],
            "ca_pem": ca_pem.decode(),
            "tls_key_pem": tls_key.pem.decode(),
        }
        self._make_private(self.path / "identity.json", json.dumps(record).encode())

    def follow(self, master_url: str, regions: dict[str, Any]) -> None:
        """Note where the Master is now, and its signed map of Accesses, for a process that starts on this identity
        later. Raises InvalidInput when the folder holds none."""
        try:
            record = json.loads((self.path / "identity.json").read_bytes())
            now = record | {"master_url": master_url, "regions": regions}
        except (OSError, ValueError, TypeError) as error:
            raise InvalidInput(f"The identity in {self.path} is missing or damaged.", subject=str(self.path)) from error
        if now != record:
            self._make_private(self.path / "identity.json", json.dumps(now).encode())

    def load(self) -> Identity:
        """Read the identity; raises InvalidInput when the folder holds none that is whole."""
        try:
            record = json.loads((self.path / "identity.json").read_bytes())
            tls = keys.TlsIdentity(
                key_pem=record["tls_key_pem"].encode(),
                certificate_pem=record["certificate_pem"].encode(),
                ca_pem=record["ca_pem"].encode(),
            )
            facts = keys.certificate_facts(tls.certificate_pem)
            regions = record.get("regions") or {}
            return Identity(
                subject_id=record["id"],
                generation=record["generation"],
                tls=tls,
                signing=self.signing_key(),
                master_public=base64.b64decode(record["master_public"]),
                master_url=record["master_url"],
                not_after_ns=facts.not_after_ns,
                region_map=_region_map(regions, base64.b64decode(record["master_public"])),
                trunk_addresses=tuple(record.get("trunk_addresses", ())),
                is_bought=bool(record.get("is_bought", False)),
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InvalidInput(
                f"The identity in {self.path} is missing or damaged. Join again with a new join token.",
                subject=str(self.path),
            ) from error


def _region_map(regions: dict[str, str], master_public: bytes) -> bytes:
    signed = base64.b64decode(regions.get("signed", ""))
    if signed:
        keys.verify_signature(master_public, keys.DOMAIN_REGIONS, signed, base64.b64decode(regions["signature"]))
    return signed


def fetch_authority(master_url: str, ca_hash: str, timeout_s: float) -> bytes:
    """The Master's authority certificate as PEM, fetched without trust and kept only if its key has the pinned hash."""
    # Not the default context: it would read every authority of the system, only for none of them to be asked.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    status, body = _call(master_url, "GET", "/api/v1/ca", None, context, timeout_s)
    if status != 200 or keys.public_key_sha256(body).hex()[:TOKEN_HASH_HEX] != ca_hash:
        raise JoinTokenRefused(
            f"{master_url} does not hold the key this join token names. Somebody may be in between; ask for a new one."
        )
    return body


def join(
    folder: IdentityFolder, master_url: str, token_text: str, request: JoinRequest, timeout_s: float = 15.0
) -> Identity:
    """Become a member: prove possession of both keys, get an id and a certificate. Safe to repeat after a lost answer.

    Raises JoinTokenRefused, Unavailable (retryable) or whatever the Master's problem names.
    """
    token = JoinToken.parse(token_text)
    ca_pem = fetch_authority(master_url, token.ca_hash, timeout_s)
    signing, tls_key = folder.signing_key(), folder.tls_key()
    csr = tls_key.csr_pem(request.host_name)
    digest = hashlib.sha256(token.text.encode()).digest()
    body = {
        "join_token": token.text,
        "tls_csr_pem": csr.decode(),
        "sign_public": base64.b64encode(signing.public).decode(),
        "proof": base64.b64encode(signing.sign(keys.DOMAIN_JOIN, digest + csr)).decode(),
        "host_name": request.host_name,
        "role": request.role,
        "simulated": request.simulated,
        "addresses": list(request.addresses),
    }
    answer = _post(master_url, "/api/v1/join", body, ca_pem, timeout_s)
    folder.store(master_url, answer, ca_pem, tls_key)
    return folder.load()


def renew(folder: IdentityFolder, wall_ns: int, timeout_s: float = 15.0) -> Identity:
    """Get the next certificate by proof of the Ed25519 key and generation, up to 30 days after the last one expired.

    The same request is sent again until it is answered: the next key stays on disk meanwhile, so that a lost answer
    does not look like a stolen identity. Raises Banned, CertificateRefused, Unavailable, StorageFailed where the folder
    takes nothing more.
    """
    try:
        return _renewed(folder, wall_ns, timeout_s)
    except OSError as error:
        raise StorageFailed(f"The identity in {folder.path} could not be written: {error}.") from error


def _renewed(folder: IdentityFolder, wall_ns: int, timeout_s: float) -> Identity:
    identity = folder.load()
    next_key = folder.tls_key("next.key")
    csr_path = folder.path / "next.csr"
    if not csr_path.exists():
        keys.save_private(csr_path, next_key.csr_pem(identity.subject_id))
    csr = csr_path.read_bytes()
    claim = f"{identity.subject_id}|{identity.generation}|{wall_ns}|".encode() + csr
    body = {
        "id": identity.subject_id,
        "generation": identity.generation,
        "tls_csr_pem": csr.decode(),
        "wall_ns": wall_ns,
        "proof": base64.b64encode(identity.signing.sign(keys.DOMAIN_RENEW, claim)).decode(),
    }
    answer = _post(identity.master_url, "/api/v1/renew", body, identity.tls.ca_pem, timeout_s)
    folder.store(identity.master_url, answer, identity.tls.ca_pem, next_key)
    csr_path.unlink(missing_ok=True)
    (folder.path / "next.key").unlink(missing_ok=True)
    return folder.load()


def fetch_regions(url: str, ca_pem: bytes, master_public: bytes, timeout_s: float = 15.0) -> bytes:
    """The map of Accesses that this Master signed, from the Master itself or from whoever keeps a copy under `url`.

    url: https://host:port asks a Master; with a path it is fetched as it is. The server needs a certificate of the
    Master's authority or of one that this system trusts, and is believed nothing but the signature. Raises
    Unavailable, BadProof, InvalidInput.
    """
    context = ssl.create_default_context()
    context.load_verify_locations(cadata=ca_pem.decode())
    path = urlsplit(url).path
    status, payload = _call(url, "GET", path if path not in ("", "/") else "/api/v1/regions", None, context, timeout_s)
    if status != 200:
        raise Unavailable(f"{url} answered {status} where the map of relays should be.")
    try:
        signed = _region_map(json.loads(payload), master_public)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InvalidInput(f"What {url} answered is no map of relays.") from error
    if not signed:
        raise InvalidInput(f"The map of relays under {url} is empty.")
    return signed


def _post(master_url: str, path: str, body: dict[str, Any], ca_pem: bytes, timeout_s: float) -> dict[str, Any]:
    context = ssl.create_default_context(cadata=ca_pem.decode())
    status, payload = _call(master_url, "POST", path, json.dumps(body).encode(), context, timeout_s)
    try:
        answer = json.loads(payload)
    except ValueError:
        raise Unavailable(f"{master_url} answered {status} with something that is not JSON.") from None
    if not isinstance(answer, dict):
        raise Unavailable(f"{master_url} answered {status} with something unexpected.")
    if status >= 300:
        raise from_code(str(answer.get("code", "internal")), str(answer.get("detail", ""))[:500])
    return answer


def _call(
    master_url: str, method: str, path: str, body: bytes | None, context: ssl.SSLContext, timeout_s: float
) -> tuple[int, bytes]:
    parts = urlsplit(master_url)
    if parts.scheme != "https" or not parts.hostname:
        raise InvalidInput(f"A Master is asked over HTTPS: {master_url!r} is not an https:// address.")
    connection = MasterConnection(parts.hostname, parts.port or 443, timeout=timeout_s, context=context)
    try:
        headers = {"Content-Type": "application/json"} if body is not None else {}
        _connect(connection, timeout_s)
        connection.request(method, path, body=body, headers=headers)
        answer = connection.getresponse()
        payload = answer.read(ANSWER_BYTES_MAX + 1)
    except (TimeoutError, OSError, http.client.HTTPException) as error:
        raise Unavailable(f"{master_url} could not be reached: {error}") from error
    finally:
        connection.close()
    if len(payload) > ANSWER_BYTES_MAX:
        raise Unavailable(f"{master_url} answered with more than {ANSWER_BYTES_MAX} bytes.")
    return answer.status, payload


def _connect(connection: http.client.HTTPSConnection, timeout_s: float) -> None:
    """Open a connection. A Master cuts the newest before their handshake where too many come from one network at once,
    as when hundreds of hosts behind one address join: those try again, for so long."""
    until, pause_s = time.monotonic() + timeout_s, AGAIN_S
    while True:
        try:
            connection.connect()
            return
        except (ConnectionResetError, ssl.SSLEOFError):
            connection.close()
            if time.monotonic() + pause_s > until:
                raise
        time.sleep(pause_s * random.uniform(0.5, 1.5))
        pause_s = min(2 * pause_s, AGAIN_MAX_S)


def host_name() -> str:
    """This machine's name as the kernel has it."""
    return os.uname().nodename
