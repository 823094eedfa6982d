"""The built-in certificate authority: one root key on disk (0600), short certificates for members, one for the Master.

It issues what it is told to; whether to is decided in decide.py. It also holds the Master's Ed25519 key.
"""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from windrow_master.identity.model import MemberRole
from windrow_proto.errors import InvalidInput
from windrow_proto.keys import SERVER_NAMES, SigningKey, TlsIdentity, TlsKey, save_private, subject_uri
from windrow_proto.service_names import LOCAL_DOMAIN
from windrow_proto.units import DAY, HOUR, MINUTE, SECOND

MEMBER_LIFE_NS: Final = 24 * HOUR
MASTER_LIFE_NS: Final = 90 * DAY
"""The authority's key lies beside the Master's own, so a shorter life would protect nothing; renewed at each start."""
ROOT_LIFE_NS: Final = 3650 * DAY
SKEW_NS: Final = 5 * MINUTE
"""Certificates begin this much earlier: clocks of hosts are late by a little."""
CSR_BYTES_MAX: Final = 8 * 1024
ROOT_NAME: Final = "Windrow root"
KEYS: Final = ("ca.key", "ca.pem", "sign.key")


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate and the end of its life."""

    certificate_pem: str
    not_after_ns: int


class Authority:
    """Signs certificates and region maps; made by `open`."""

    def __init__(self, root_key: TlsKey, root_pem: bytes, signing: SigningKey) -> None:
        self.root_pem = root_pem
        self.signing = signing
        self._root = x509.load_pem_x509_certificate(root_pem)
        key = serialization.load_pem_private_key(root_key.pem, None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        self._root_key = key

    @classmethod
    def make(cls, directory: Path, now_ns: int) -> "Authority":
        """The keys of this folder (0700), made where there are none yet: for a market's first start alone."""
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        key_path, certificate_path, sign_path = (directory / name for name in KEYS)
        if not sign_path.exists():
            save_private(sign_path, SigningKey.generate().raw)
        if not key_path.exists():
            save_private(key_path, TlsKey.generate().pem)
        if not certificate_path.exists():
            save_private(certificate_path, _self_signed(TlsKey.from_pem(key_path.read_bytes()), now_ns))
        return cls.load(directory)

    @classmethod
    def load(cls, directory: Path) -> "Authority":
        """The keys of this folder. Raises FileNotFoundError where one is missing, InvalidInput where one is damaged, or
        not of the others' kind."""
        key_path, certificate_path, sign_path = (directory / name for name in KEYS)
        try:
            root_key, root_pem = TlsKey.from_pem(key_path.read_bytes()), certificate_path.read_bytes()
            made = cls(root_key, root_pem, SigningKey.from_raw(sign_path.read_bytes()))
        except ValueError as error:
            raise InvalidInput(f"A key in {directory} is damaged: {error}.", subject=str(directory)) from error
        if made._root.public_key() != made._root_key.public_key():
            raise InvalidInput(f"{key_path} is not the key of {certificate_path}.", subject=str(directory))
        return made

    def issue_member(
        self,
        role: MemberRole,
        subject_id: str,
        generation: int,
        csr_pem: bytes,
        addresses: Iterable[str],
        now_ns: int,
    ) -> Issued:
        """A certificate for the key of this request, every name in it ours. Raises InvalidInput for a bad request."""
        public = _csr_public_key(csr_pem)
        usage = [ExtendedKeyUsageOID.CLIENT_AUTH]
        names: list[x509.GeneralName] = []
        if role is MemberRole.ACCESS:
            usage.append(ExtendedKeyUsageOID.SERVER_AUTH)
            # Names under localhost are this machine's wherever they are asked for: they give nobody anything of others.
            own = SERVER_NAMES["access"], f"*.{LOCAL_DOMAIN}"
            names = [_general_name(address) for address in (*addresses, *own)]
        uri = subject_uri(role.value, subject_id, generation)
        return self._issue(public, subject_id, uri, names, usage, now_ns, MEMBER_LIFE_NS)

    def issue_master(self, key: TlsKey, addresses: Iterable[str], now_ns: int) -> TlsIdentity:
        """Issue the certificate that the Master shows on its HTTPS and trunk ports."""
        usage = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        names = [_general_name(address) for address in (*addresses, SERVER_NAMES["master"])]
        public = _csr_public_key(key.csr_pem("master"))
        issued = self._issue(public, "master", subject_uri("master", "master", 0), names, usage, now_ns, MASTER_LIFE_NS)
        return TlsIdentity(key.pem, issued.certificate_pem.encode() + self.root_pem, self.root_pem)

    def _issue(
        self,
        public: ec.EllipticCurvePublicKey,
        common_name: str,
        uri: str,
        names: list[x509.GeneralName],
        usage: list[x509.ObjectIdentifier],
        now_ns: int,
        life_ns: int,
    ) -> Issued:
        not_after = _moment(now_ns + life_ns)
        san = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(uri), *names])
        certificate = (
            x509.CertificateBuilder()
            .subject_name(_name(common_name))
            .issuer_name(self._root.subject)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(_moment(now_ns - SKEW_NS))
            .not_valid_after(not_after)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usage), critical=False)
            .add_extension(san, critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._root_key.public_key()), critical=False
            )
            .sign(self._root_key, hashes.SHA256())
        )
        pem = certificate.public_bytes(serialization.Encoding.PEM).decode()
        return Issued(pem, int(not_after.timestamp()) * SECOND)


def _csr_public_key(csr_pem: bytes) -> ec.EllipticCurvePublicKey:
    if len(csr_pem) > CSR_BYTES_MAX:
        raise InvalidInput(f"A certificate request is at most {CSR_BYTES_MAX} bytes.")
    try:
        request = x509.load_pem_x509_csr(csr_pem)
        is_signed = request.is_signature_valid
        key = request.public_key()
    except ValueError:
        raise InvalidInput("tls_csr_pem is not a certificate request in PEM.") from None
    if not is_signed:
        raise InvalidInput("The certificate request is not signed by its own key.")
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise InvalidInput("The certificate request's key must be P-256.")
    return key


def _self_signed(root_key: TlsKey, now_ns: int) -> bytes:
    key = serialization.load_pem_private_key(root_key.pem, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(_name(ROOT_NAME))
        .issuer_name(_name(ROOT_NAME))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_moment(now_ns - SKEW_NS))
        .not_valid_after(_moment(now_ns + ROOT_LIFE_NS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name[:64])])


def _general_name(address: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(address))
    except ValueError:
        return x509.DNSName(address)


def _moment(wall_ns: int) -> datetime:
    # Certificates know whole seconds; rounded down.
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=wall_ns // SECOND)
