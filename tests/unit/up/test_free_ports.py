"""Addresses and ports of this machine for `windrow up`."""

import pytest

from windrow_proto.errors import InvalidInput
from windrow_up.free_ports import at_hand, checked


@pytest.mark.parametrize(("given", "kept"), [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("[::1]", "::1")])
def test_an_address_of_this_machine_is_listened_on_with_or_without_brackets(given: str, kept: str) -> None:
    assert checked(given) == kept


@pytest.mark.parametrize("given", ["192.0.2.1", "2001:db8::1", "no such name", "["])
def test_an_address_of_no_interface_is_refused_before_anything_starts(given: str) -> None:
    with pytest.raises(InvalidInput, match="cannot listen there"):
        checked(given)


def test_what_listens_everywhere_is_found_at_loopback() -> None:
    assert [at_hand(one) for one in ("0.0.0.0", "::", "::1", "10.0.0.1")] == [
        "127.0.0.1",
        "127.0.0.1",
        "::1",
        "10.0.0.1",
    ]
