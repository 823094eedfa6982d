"""The operator's certificate: wrong files are refused with a sentence, renewed ones taken up, broken ones not."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from tests.master_support import ManualClock
from tests.support.pki import issue, make_ca
from windrow_master.app.operator_certificate import OperatorCertificate, read_chain
from windrow_master.app.serving import pin_of
from windrow_proto.conditions import ConditionCode
from windrow_proto.errors import InvalidInput
from windrow_proto.keys import TlsIdentity
from windrow_proto.ports import Clock
from windrow_proto.units import DAY, HOUR

CA = make_ca()
NAME = "market.test"


def identity(*names: str, lifetime_s: float = 30 * 86_400) -> TlsIdentity:
    return issue(CA, "master", "shop", lifetime_s=lifetime_s, names=names or (NAME, "*.shop.test"))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(time.time_ns())


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    found = tmp_path / "chain.pem", tmp_path / "key.pem"
    put(found, identity())
    return found


def put(files: tuple[Path, Path], given: TlsIdentity) -> None:
    for path, content in zip(files, (given.certificate_pem + given.ca_pem, given.key_pem), strict=True):
        fresh = path.with_suffix(".new")
        fresh.write_bytes(content)
        fresh.chmod(0o640)
        fresh.replace(path)


def opened(files: tuple[Path, Path], clock: Clock) -> OperatorCertificate:
    return OperatorCertificate(*files, ("localhost", NAME), clock)


def test_it_is_shown_for_its_names_alone(files: tuple[Path, Path], clock: ManualClock) -> None:
    found = opened(files, clock)
    pin = pin_of(files[0].read_bytes())
    for name in (NAME, "MARKET.test.", "a.shop.test"):
        assert found.pin_for(name) == pin
    for name in ("shop.test", "a.b.shop.test", "other.test", "master.windrow", "127.0.0.1", ""):
        assert found.pin_for(name) is None
    assert list(found.conditions()) == []


def other_key(files: tuple[Path, Path]) -> None:
    files[1].write_bytes(identity().key_pem)


def expired(files: tuple[Path, Path]) -> None:
    put(files, identity(lifetime_s=-1))


def missing(files: tuple[Path, Path]) -> None:
    files[1].unlink()


def folder(files: tuple[Path, Path]) -> None:
    files[0].unlink()
    files[0].mkdir()


def no_certificate(files: tuple[Path, Path]) -> None:
    files[0].write_bytes(files[1].read_bytes())


def damaged(files: tuple[Path, Path]) -> None:
    files[0].write_bytes(files[0].read_bytes().replace(b"\nM", b"\n!", 3))


def empty(files: tuple[Path, Path]) -> None:
    files[0].write_bytes(b"")


def no_key(files: tuple[Path, Path]) -> None:
    files[1].write_bytes(files[0].read_bytes())


def with_password(files: tuple[Path, Path]) -> None:
    key = serialization.load_pem_private_key(files[1].read_bytes(), None)
    sealed = serialization.BestAvailableEncryption(b"secret")
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, sealed)
    files[1].write_bytes(pem)


def for_everybody(files: tuple[Path, Path]) -> None:
    files[1].chmod(0o644)


def turned_round(files: tuple[Path, Path]) -> None:
    given = identity()
    put(files, given)
    files[0].write_bytes(given.ca_pem + given.certificate_pem)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (other_key, "is not the key of the first certificate in"),
        (turned_round, "is not the key of the first certificate in"),
        (expired, "and not now: renew it"),
        (missing, "cannot be read by the Master's user: No such file"),
        (folder, "cannot be read by the Master's user: Is a directory"),
        (no_certificate, "is no certificate chain in PEM"),
        (damaged, "is no certificate chain in PEM"),
        (empty, "is no certificate chain in PEM"),
        (no_key, "is no private key in PEM"),
        (with_password, "has a password"),
        (for_everybody, "chmod o= "),
    ],
)
def test_files_that_are_wrong_are_refused_with_a_sentence(
    files: tuple[Path, Path], clock: ManualClock, spoil: Callable[[tuple[Path, Path]], None], said: str
) -> None:
    spoil(files)
    with pytest.raises(InvalidInput) as refused:
        opened(files, clock)
    assert said in refused.value.detail
    assert any(str(path) in refused.value.detail for path in files)


def test_a_certificate_for_names_of_others_is_refused(files: tuple[Path, Path], clock: ManualClock) -> None:
    with pytest.raises(InvalidInput, match=r"market.test.*answers as shop.example: give .* by --public"):
        OperatorCertificate(*files, ("shop.example",), clock)


async def test_renewed_files_are_taken_up_and_broken_ones_are_not(files: tuple[Path, Path], clock: ManualClock) -> None:
    found = opened(files, clock)
    await found.look()
    first = found.pin_for(NAME)
    renewed = identity()
    files[1].write_bytes(renewed.key_pem)  # the certificate comes later, as with a copy by hand
    await found.look()
    assert found.pin_for(NAME) == first
    ((code, said, since_ns),) = found.conditions()
    assert code is ConditionCode.MASTER_CERTIFICATE and since_ns == clock.wall_ns()
    assert "is not the key of" in said and said.endswith("The one before is still shown.")
    clock.advance(HOUR)
    await found.look()
    assert [one[2] for one in found.conditions()] == [since_ns]
    put(files, renewed)
    await found.look()
    assert (found.pin_for(NAME), list(found.conditions())) == (pin_of(renewed.certificate_pem), [])


async def test_a_renewal_that_only_its_rights_kept_back_is_taken_up_with_them(
    files: tuple[Path, Path], clock: ManualClock
) -> None:
    found = opened(files, clock)
    put(files, renewed := identity())
    os.chmod(files[1], 0o644)
    await found.look()
    assert len(list(found.conditions())) == 1
    os.chmod(files[1], 0o600)
    await found.look()
    assert (found.pin_for(NAME), list(found.conditions())) == (pin_of(renewed.certificate_pem), [])


def test_an_end_that_is_near_is_said(files: tuple[Path, Path], clock: ManualClock) -> None:
    found = opened(files, clock)
    clock.advance(25 * DAY)
    ((_, said, _),) = found.conditions()
    assert said.endswith("expires in 4 days.")
    clock.advance(6 * DAY)
    ((_, said, _),) = found.conditions()
    assert said.endswith("has expired.")


def test_a_certificate_without_dns_names_serves_no_browser(files: tuple[Path, Path], clock: ManualClock) -> None:
    put(files, issue(CA, "host", "host_1"))
    with pytest.raises(InvalidInput, match="for no DNS name"):
        read_chain(*files, clock.wall_ns())
