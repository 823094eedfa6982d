"""Keys: both ends agree, nobody else does, and files of secrets are private."""

import hmac

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from tests.support.pki import issue, make_ca
from tests.unit.proto.values import BOOT, HOST
from windrow_proto import keys
from windrow_proto.errors import BadProof, CertificateRefused, InvalidInput
from windrow_proto.ids import BootId
from windrow_proto.units import SECOND


def test_both_ends_derive_one_key_for_this_boot_and_epoch_only():
    agent, master = keys.ExchangeKey.generate(), keys.ExchangeKey.generate()

    ours = agent.derive(master.public, HOST, BOOT, 3)

    assert ours == master.derive(agent.public, HOST, BOOT, 3)
    assert len(ours) == 32
    assert ours != agent.derive(master.public, HOST, BOOT, 4)
    assert ours != agent.derive(master.public, HOST, BootId(bytes(16)), 3)


@pytest.mark.parametrize("public", [bytes(32), b"short"])
def test_an_exchange_key_that_is_none_is_refused(public):
    with pytest.raises(BadProof):
        keys.ExchangeKey.generate().derive(public, HOST, BOOT, 1)


def test_a_signature_holds_for_its_key_domain_and_data_only():
    key = keys.SigningKey.generate()
    signature = key.sign(keys.DOMAIN_UP, b"data")

    keys.verify_signature(key.public, keys.DOMAIN_UP, b"data", signature)
    for public, domain, data in [
        (keys.SigningKey.generate().public, keys.DOMAIN_UP, b"data"),
        (key.public, keys.DOMAIN_DOWN, b"data"),
        (key.public, keys.DOMAIN_UP, b"dat"),
        (b"no key", keys.DOMAIN_UP, b"data"),
    ]:
        with pytest.raises(BadProof):
            keys.verify_signature(public, domain, data, signature)


def test_a_key_comes_back_from_what_was_saved_and_the_file_is_private(tmp_path):
    key, tls = keys.SigningKey.generate(), keys.TlsKey.generate()
    keys.save_private(tmp_path / "key", b"old")
    keys.save_private(tmp_path / "key", key.raw)

    assert keys.SigningKey.from_raw((tmp_path / "key").read_bytes()).public == key.public
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["key"]
    assert keys.TlsKey.from_pem(tls.pem).pem == tls.pem
    assert tls.csr_pem("x").startswith(b"-----BEGIN CERTIFICATE REQUEST")


@pytest.mark.parametrize("name", ["", "x" * 200, "ö" * 60, "x" + "€" * 60, "\udcff"])
def test_a_certificate_is_asked_for_under_any_name_that_a_machine_may_have(name):
    request = x509.load_pem_x509_csr(keys.TlsKey.generate().csr_pem(name))
    (found,) = request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    assert found.value == "windrow" or (found.value and name.startswith(found.value))


def test_secrets_do_not_show_when_printed():
    key = keys.SigningKey.generate()

    assert "key" not in repr(keys.MacProver(b"key", "d")).replace("keys.", "")
    assert key.raw.hex() not in repr(key)


def test_what_is_no_key_is_refused_in_words():
    for bad in (lambda: keys.SigningKey.from_raw(b"x"), lambda: keys.TlsKey.from_pem(b"x")):
        with pytest.raises(InvalidInput):
            bad()


def test_a_certificate_says_who_holds_it():
    ca = make_ca()
    identity = issue(ca, "host", HOST, generation=4, lifetime_s=60)

    facts = keys.certificate_facts(identity.certificate_pem)

    assert (facts.role, facts.subject_id, facts.generation) == ("host", HOST, 4)
    assert 60 * SECOND <= facts.not_after_ns - facts.not_before_ns <= 400 * SECOND
    assert len(facts.sha256) == len(keys.public_key_sha256(identity.certificate_pem)) == 32


def test_a_certificate_that_does_not_say_it_is_refused():
    with pytest.raises(CertificateRefused):
        keys.certificate_facts(make_ca().certificate_pem)
    with pytest.raises(CertificateRefused):
        keys.certificate_facts(b"no pem")
    with pytest.raises(CertificateRefused):
        keys.certificate_facts(issue(make_ca(), "king", "x").certificate_pem)


@pytest.mark.parametrize("key", [b"", b"k" * 32, b"k" * 64], ids=len)
@pytest.mark.parametrize("data", [b"", b"signed", bytes(100_000)], ids=len)
def test_a_mac_is_the_hmac_of_the_standard_library(key: bytes, data: bytes) -> None:
    mac = keys.Mac(key, keys.DOMAIN_UP)
    wanted = hmac.digest(key, keys.DOMAIN_UP.encode() + b"\0" + data, "sha256")
    assert (mac.of(data), mac.of(data)) == (wanted, wanted), "a second one is not changed by the first"


def test_a_mac_refuses_a_key_that_would_have_to_be_hashed() -> None:
    with pytest.raises(ValueError, match="64"):
        keys.Mac(b"k" * 65, keys.DOMAIN_UP)
