"""Packets of private networks: which of them are carried, and frames in any pieces."""

import struct
from ipaddress import IPv4Address
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow_proto.errors import InvalidInput
from windrow_proto.overlay_packets import HERE, FrameReader, ends, frame, is_private, opening, packed, private_address

ONE, OTHER = "198.19.7.1", "198.19.7.2"


def packet(flags=0x02, protocol=6, fragment=0, size=40, version=4, told=None):
    """From ONE, port 5, to OTHER, port 6; without options."""
    addresses = IPv4Address(ONE).packed + IPv4Address(OTHER).packed
    head = struct.pack("!BBHHHBBH", version << 4 | 5, 0, told or size, 0, fragment, 64, protocol, 0) + addresses
    return (head + struct.pack("!HHIIBBHHH", 5, 6, 0, 0, 80, flags, 0, 0, 0)).ljust(size, b"\0")[:size]


def test_a_whole_packet_of_tcp_or_icmp_says_between_whom_it_goes():
    assert ends(packet()) == ends(packet(protocol=1)) == (packed(ONE), packed(OTHER))


BAD = {
    "nothing": b"",
    "short": packet(size=19),
    "udp": packet(protocol=17),
    "the first of several parts": packet(fragment=0x2000),
    "a later part": packet(fragment=3),
    "another version": packet(version=6),
    "cut": packet(told=60),
    "too long": packet(told=30),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_what_is_no_whole_packet_of_these_goes_nowhere(bad):
    assert ends(bad) is None


def test_only_what_opens_a_connection_is_an_opening():
    assert opening(packet(0x02)) == opening(packet(0xC2)) == (5, 6)
    assert [opening(packet(flags)) for flags in (0x12, 0x10, 0x11, 0x04)] == [None] * 4
    assert opening(packet(protocol=1)) is None
    assert opening(packet(size=30)) is None


@given(st.lists(st.binary(min_size=1, max_size=300), max_size=6), st.lists(st.integers(0, 1500), max_size=8))
def test_frames_come_out_as_they_went_in_however_they_are_cut(packets, cuts):
    whole = b"".join(frame(one) + HERE for one in packets)
    places = sorted({0, len(whole), *(min(cut, len(whole)) for cut in cuts)})
    reader, found = FrameReader(), []
    for start, end in pairwise(places):
        found += [bytes(one) for one in reader.feed(whole[start:end])]
    assert found == packets


def test_addresses_of_a_private_network_are_of_its_own_range():
    assert (private_address(0, 0), private_address(189, 63)) == ("198.19.0.1", "198.19.189.64")
    assert is_private(ONE) and not any(map(is_private, ("198.18.0.1", "10.0.0.1", "::1", "", "x")))
    with pytest.raises(InvalidInput):
        packed("10.0.0.1")
