"""A grant holds for what the Master signed and no longer than it said."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow_proto.errors import BadProof, Conflict, Expired, InvalidInput, LinkClosed
from windrow_proto.ids import ClusterId, HostId, WorkloadId
from windrow_proto.keys import DOMAIN_REGIONS, SigningKey
from windrow_proto.messages import Channel, ChannelClose, ChannelOpen
from windrow_proto.model import ChannelPurpose
from windrow_proto.tunnels import TunnelGrant, TunnelSide, market_error, problem
from windrow_proto.units import SECOND
from windrow_proto.v1 import link_pb2
from windrow_proto.wire_link import decode_channel, encode_channel
from windrow_proto.wire_tunnel import read_grant, sign_grant
from windrow_tunnel.errors import Malformed
from windrow_tunnel.wire import refusal

MASTER = SigningKey.from_raw(bytes(range(32)))
GRANT = TunnelGrant(
    "tunnel_" + "0" * 32,
    TunnelSide.RENTER,
    HostId("host_a"),
    WorkloadId("workload_a"),
    ClusterId("cluster_a"),
    8888,
    100 * SECOND,
)


def test_a_grant_is_read_as_it_was_signed_until_its_last_moment() -> None:
    text = sign_grant(GRANT, MASTER)

    assert read_grant(text, MASTER.public, 100 * SECOND - 1) == GRANT
    with pytest.raises(Expired):
        read_grant(text, MASTER.public, 100 * SECOND)


def test_a_grant_of_another_master_or_another_purpose_does_not_hold() -> None:
    stranger = SigningKey.generate()
    with pytest.raises(BadProof):
        read_grant(sign_grant(GRANT, stranger), MASTER.public, 0)

    class Confused:
        """Signs the same bytes for something else."""

        def sign(self, domain: str, data: bytes) -> bytes:
            return MASTER.sign(DOMAIN_REGIONS, data)

    with pytest.raises(BadProof):
        read_grant(sign_grant(GRANT, Confused()), MASTER.public, 0)  # type: ignore[arg-type]


@given(position=st.integers(0, 10_000), letter=st.sampled_from("ABCDwxyz0189-_"))
def test_a_grant_with_one_other_letter_is_another_or_the_same(position: int, letter: str) -> None:
    text = sign_grant(GRANT, MASTER)
    position %= len(text)
    changed = text[:position] + letter + text[position + 1 :]
    try:
        found = read_grant(changed, MASTER.public, 0)
    except (BadProof, InvalidInput):
        return
    assert found == GRANT


@pytest.mark.parametrize("text", ["", "!", "A", "AAAA", "é", "A" * 5_000, "a b"])
def test_what_is_no_grant_is_refused(text: str) -> None:
    with pytest.raises((InvalidInput, BadProof)):
        read_grant(text, MASTER.public, 0)


def test_a_grant_for_port_0_is_refused_whoever_signed_it() -> None:
    with pytest.raises(InvalidInput):
        read_grant(sign_grant(replace(GRANT, port=0), MASTER), MASTER.public, 0)


def test_the_domain_and_the_form_are_pinned() -> None:
    """Grants of one release are read by the Access of another."""
    import base64

    text = sign_grant(GRANT, MASTER)
    signed = link_pb2.SignedTunnelGrant.FromString(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    assert signed.signature == MASTER.sign("windrow-tunnel-1", signed.grant)
    assert len(text) < 400


def test_the_reason_of_an_access_is_raised_as_the_markets_own_error() -> None:
    refused = market_error(refusal(problem(Conflict("used before"))))
    assert (type(refused), refused.detail) == (Conflict, "used before")
    assert type(market_error(Malformed("no record"))) is InvalidInput
    for answer in (b"HTTP/1.1 502 Bad Gateway\r\n\r\n<html>", b"SSH-2.0-OpenSSH", b"HTTP/1.1 503 Busy\r\n\r\n[]", b""):
        assert type(market_error(refusal(answer))) is LinkClosed


def test_a_tunnels_channel_crosses_the_link_whole_and_its_grant_is_not_printed() -> None:
    opening = ChannelOpen(
        WorkloadId("w"), ChannelPurpose.TUNNEL, port=22, tunnel_id="t", tunnel_address="a:1", tunnel_grant="secret"
    )
    closing = ChannelClose(bytes_in=2**40, bytes_out=7)

    for step in (opening, closing):
        assert decode_channel(encode_channel(Channel(3, step))) == Channel(3, step)
    assert "secret" not in repr(opening)
