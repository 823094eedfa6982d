"""The caller as a trusted proxy reports it: tables of what is believed and what is not."""

import pytest

from windrow_master.proxies import client_of, is_among
from windrow_proto.errors import InvalidInput
from windrow_proto.networks import parse_networks

PROXIES = parse_networks(["10.0.0.0/24", "192.0.2.1", "fd00::/8"], "--trusted-proxy")


@pytest.mark.parametrize(
    ("peer", "reported", "client"),
    [
        ("203.0.113.9", "198.51.100.1", "203.0.113.9"),  # nobody's proxy
        ("10.0.0.5", "", "10.0.0.5"),
        ("10.0.0.5", "198.51.100.1", "198.51.100.1"),
        ("10.0.0.5", "1.1.1.1, 198.51.100.1", "198.51.100.1"),  # what the client wrote is left of it
        ("10.0.0.5", "198.51.100.1, 10.0.0.6, 192.0.2.1", "198.51.100.1"),
        ("10.0.0.5", "198.51.100.1:4711", "198.51.100.1"),
        ("fd00::1", "[2001:db8::7]:443", "2001:db8::7"),
        ("fd00::1", "2001:db8::7", "2001:db8::7"),
        ("::ffff:10.0.0.5", "::ffff:198.51.100.1", "198.51.100.1"),
        ("10.0.0.5", "198.51.100.1, unknown", "10.0.0.5"),
        ("10.0.0.5", "198.51.100.1,, 10.0.0.6", "10.0.0.6"),
        ("10.0.0.5", "10.0.0.9", "10.0.0.9"),  # a proxy that asks by itself
    ],
)
def test_the_first_that_is_no_proxy_asks(peer: str, reported: str, client: str) -> None:
    assert client_of(peer, reported, PROXIES) == client
    assert client_of(peer, reported, ()) == peer


@pytest.mark.parametrize("text", ["", "proxy.example", "10.0.0.5/24", "0.0.0.0/0", "::/0", "10.0.0.5/33", "\ud800"])
def test_what_is_no_address_or_would_be_everybody_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="--trusted-proxy"):
        parse_networks([text], "--trusted-proxy")


def test_what_is_no_address_is_among_nobody() -> None:
    assert not is_among("unix", PROXIES)
    assert is_among("fd00::1%eth0", PROXIES)
