"""Certificates for tests: an authority of a minute and what it issues, in the form that Windrow's own has."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from windrow_proto.keys import SERVER_NAMES, TlsIdentity, subject_uri


@dataclass(frozen=True, slots=True)
class TestAuthority:
    """A root of trust that lives as long as a test."""

    __test__ = False

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def certificate_pem(self) -> bytes:
        """The certificate that its members trust."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)


def make_ca() -> TestAuthority:
    """A new authority, unknown to every other."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    return TestAuthority(key, certificate)


def issue(
    ca: TestAuthority,
    role: str,
    subject_id: str,
    generation: int = 1,
    lifetime_s: float = 3600.0,
    names: tuple[str, ...] = (),
) -> TlsIdentity:
    """A key and certificate for `host`, `access` or `master`; valid from a few minutes ago until `lifetime_s` from now
    (negative: it has expired already). names: more of DNS, for those that serve."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    carried: list[x509.GeneralName] = [x509.UniformResourceIdentifier(subject_uri(role, subject_id, generation))]
    usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
    if role in SERVER_NAMES:
        known = SERVER_NAMES[role], "localhost", *names
        carried += [*map(x509.DNSName, known), x509.IPAddress(IPv4Address("127.0.0.1"))]
        usages.append(ExtendedKeyUsageOID.SERVER_AUTH)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject_id[:64])]))
        .issuer_name(ca.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(seconds=lifetime_s))
        .add_extension(x509.SubjectAlternativeName(carried), critical=False)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .sign(ca.key, hashes.SHA256())
    )
    key_pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return TlsIdentity(
        key_pem=key_pem,
        certificate_pem=certificate.public_bytes(serialization.Encoding.PEM),
        ca_pem=ca.certificate_pem,
    )
