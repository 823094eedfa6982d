"""Secrets for one host alone, and what they open for."""

import pytest

from windrow_proto.errors import BadProof, InvalidInput
from windrow_proto.keys import SigningKey
from windrow_proto.sealed import LOGIN_MAX, SEALED_MAX, RegistryLogin, SealKey, seal, seal_login

LOGIN = RegistryLogin("somebody", "a pass:word")
WORKLOAD = "workload_1"


def test_a_login_opens_on_its_host_for_its_workload_also_after_a_restart() -> None:
    signing = SigningKey.generate()
    sealed = seal_login(SealKey.of(signing).public, LOGIN, WORKLOAD)

    again = SealKey.of(SigningKey.from_raw(signing.raw))

    assert again.open_login(sealed, WORKLOAD) == LOGIN
    assert b"pass" not in sealed and "pass" not in repr(LOGIN)
    assert len(sealed) <= SEALED_MAX


def test_it_opens_nowhere_else_for_nothing_else_and_not_in_part() -> None:
    own, other = SealKey.of(SigningKey.generate()), SealKey.of(SigningKey.generate())
    sealed = seal_login(own.public, LOGIN, WORKLOAD)
    torn = sealed[:-1] + bytes([sealed[-1] ^ 1])

    for key, said, purpose in ((other, sealed, WORKLOAD), (own, sealed, "workload_2"), (own, torn, WORKLOAD)):
        with pytest.raises(BadProof):
            key.open_login(said, purpose)
    for short in (b"", sealed[:31], sealed[:40]):
        with pytest.raises(BadProof):
            own.open(short, WORKLOAD)


def test_the_same_secret_is_sealed_otherwise_each_time() -> None:
    public = SealKey.of(SigningKey.generate()).public

    assert seal(public, b"word", WORKLOAD) != seal(public, b"word", WORKLOAD)


def test_a_key_that_is_none_and_a_login_without_end_are_refused() -> None:
    with pytest.raises(InvalidInput):
        seal("00" * 5, b"word", WORKLOAD)
    with pytest.raises(InvalidInput):
        seal("no hexadecimal", b"word", WORKLOAD)
    with pytest.raises(InvalidInput):
        seal_login(SealKey.of(SigningKey.generate()).public, RegistryLogin("a", "b" * LOGIN_MAX), WORKLOAD)
