"""Secrets for one host alone, and what they open for."""

import pytest

from windrow_proto.errors import BadProof, InvalidInput
from windrow_proto.keys import SigningKey
from windrow_proto.sealed import (
    LOGIN_MAX,
    SEALED_MAX,
    SEALED_VALUES_MAX,
    RegistryLogin,
    SealKey,
    seal,
    seal_login,
    seal_values,
)

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
    key = SealKey.of(SigningKey.generate())

    assert seal(key.public, b"word", WORKLOAD) != seal(key.public, b"word", WORKLOAD)
    assert key.seal_values({"A": "word"}, WORKLOAD) != key.seal_values({"A": "word"}, WORKLOAD)


def test_what_a_holder_seals_for_itself_opens_for_it_alone_for_its_purpose_and_whole() -> None:
    signing = SigningKey.generate()
    own, values = SealKey.of(signing), {"A": "a pass:word"}
    sealed = own.seal_values(values, WORKLOAD)

    assert SealKey.of(SigningKey.from_raw(signing.raw)).open_values(sealed, WORKLOAD) == values
    assert b"pass" not in sealed and len(sealed) <= SEALED_VALUES_MAX
    with pytest.raises(BadProof):
        SealKey.of(SigningKey.generate()).open(sealed, WORKLOAD)
    with pytest.raises(BadProof):
        own.open(sealed, "workload_2")
    for place in range(len(sealed)):
        with pytest.raises(BadProof):
            own.open(sealed[:place] + bytes([sealed[place] ^ 1]) + sealed[place + 1 :], WORKLOAD)
        with pytest.raises(BadProof):
            own.open(sealed[:place], WORKLOAD)


def test_values_sealed_with_a_key_pair_as_older_releases_did_open_for_their_holder() -> None:
    own = SealKey.of(SigningKey.generate())

    assert own.open_values(seal_values(own.public, {"A": "b"}, WORKLOAD), WORKLOAD) == {"A": "b"}


def test_nobody_is_told_a_secret_by_a_key_pair_that_is_none() -> None:
    with pytest.raises(InvalidInput):
        seal("00" * 32, b"word", WORKLOAD)


def test_a_key_that_is_none_and_a_login_without_end_are_refused() -> None:
    with pytest.raises(InvalidInput):
        seal("00" * 5, b"word", WORKLOAD)
    with pytest.raises(InvalidInput):
        seal("no hexadecimal", b"word", WORKLOAD)
    with pytest.raises(InvalidInput):
        seal_login(SealKey.of(SigningKey.generate()).public, RegistryLogin("a", "b" * LOGIN_MAX), WORKLOAD)
