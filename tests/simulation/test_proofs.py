"""A history believes the same signatures as the product does."""

from unittest import mock

import pytest

from tests.simulation.proofs import remembered
from windrow_proto import keys
from windrow_proto.errors import BadProof
from windrow_proto.keys import DOMAIN_DOWN, DOMAIN_UP, SigningKey

OURS, THEIRS = SigningKey.from_raw(b"a" * 32), SigningKey.from_raw(b"b" * 32)


def test_what_was_signed_is_believed_without_the_arithmetic() -> None:
    with mock.patch.object(keys, "verify_signature", side_effect=AssertionError) as shipped, remembered():
        keys.verify_signature(OURS.public, DOMAIN_UP, b"data", OURS.sign(DOMAIN_UP, b"data"))
    assert not shipped.called


@pytest.mark.parametrize(
    ("public", "domain", "data"),
    [(THEIRS.public, DOMAIN_UP, b"data"), (OURS.public, DOMAIN_DOWN, b"data"), (OURS.public, DOMAIN_UP, b"other")],
    ids=["another key", "another domain", "other data"],
)
def test_a_signature_holds_for_nothing_else(public: bytes, domain: str, data: bytes) -> None:
    with remembered():
        signature = OURS.sign(DOMAIN_UP, b"data")
        with pytest.raises(BadProof):
            keys.verify_signature(public, domain, data, signature)
        with pytest.raises(BadProof):
            keys.verify_signature(OURS.public, DOMAIN_UP, b"data", signature[:-1] + bytes([signature[-1] ^ 1]))


def test_what_was_signed_before_is_checked_as_shipped() -> None:
    signature = OURS.sign(DOMAIN_UP, b"data")
    with remembered():
        keys.verify_signature(OURS.public, DOMAIN_UP, b"data", signature)
        with pytest.raises(BadProof):
            keys.verify_signature(THEIRS.public, DOMAIN_UP, b"data", signature)
