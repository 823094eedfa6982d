"""Hosts that are not ours, not any more, or lie: over real mTLS against the shipped daemons, and what is then held."""

import asyncio
import contextlib
import time
from datetime import datetime
from pathlib import Path

import pytest

from tests.support import truth
from tests.support.pki import issue, make_ca
from tests.support.raw_agent import (
    RawAgent,
    access_address,
    dialled,
    joined,
    new_token,
    real_authority,
    refusal,
    turned_away,
)
from tests.support.rental import Renter
from tests.waiting import poll_async
from windrow_proto.enrol import IdentityFolder, renew
from windrow_proto.errors import (
    BadProof,
    Banned,
    CertificateRefused,
    Expired,
    InvalidInput,
    JoinTokenRefused,
    LinkClosed,
    Unavailable,
)
from windrow_proto.keys import TlsIdentity, certificate_facts
from windrow_proto.messages import Gap
from windrow_proto.model import Event, FrameClass, Kind, Lane
from windrow_proto.v1 import link_pb2
from windrow_proto.wire_host import encode_event
from windrow_proto.wire_link import decode_ack, encode_gap

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture
async def agent(renter: Renter, tmp_path: Path) -> RawAgent:
    return RawAgent(await joined(renter, tmp_path / "identity"))


CERTIFICATE_S = 8
"""For a busy machine to open a stream with it; the test waits for the rest."""


# --- who gets in -----------------------------------------------------------------------------------------------------


async def _try(identity: TlsIdentity, renter: Renter) -> None:
    async with dialled(identity, access_address(renter)) as line:
        raise await line.end()


@pytest.mark.proves("certificates that are foreign, expired, of another role or banned open no stream")
async def test_a_certificate_of_a_foreign_authority_opens_no_stream(renter: Renter, agent: RawAgent) -> None:
    ours = agent.identity.tls
    foreign = issue(make_ca(), "host", agent.host_id)
    mixed = TlsIdentity(foreign.key_pem, foreign.certificate_pem, ours.ca_pem)

    error = await refusal(lambda: _try(mixed, renter))

    assert isinstance(error, LinkClosed | Unavailable | CertificateRefused), repr(error)


async def test_an_expired_certificate_opens_no_stream_and_renews_by_proof_of_the_hosts_key(
    renter: Renter, agent: RawAgent, tmp_path: Path
) -> None:
    expired = issue(real_authority(renter.stack.data_dir), "host", agent.host_id, lifetime_s=-60)

    error = await refusal(lambda: _try(expired, renter))
    renewed = await asyncio.to_thread(renew, IdentityFolder(tmp_path / "identity"), agent.clock.wall_ns())

    assert isinstance(error, LinkClosed | Unavailable | CertificateRefused), repr(error)
    assert renewed.generation == agent.identity.generation + 1
    again = RawAgent(renewed)
    async with dialled(renewed.tls, access_address(renter)) as line:
        assert (await again.greet_over(line)).epoch >= 1


async def test_a_stream_ends_with_its_certificate(renter: Renter, agent: RawAgent) -> None:
    short = issue(real_authority(renter.stack.data_dir), "host", agent.host_id, lifetime_s=CERTIFICATE_S)
    ends_at = certificate_facts(short.certificate_pem).not_after_ns

    async with dialled(short, access_address(renter)) as line:
        await agent.greet_over(line)
        error = await line.end()

    assert isinstance(error, Expired | CertificateRefused), repr(error)  # Access and Master both look
    assert agent.clock.wall_ns() >= ends_at


async def test_an_unknown_host_under_the_right_authority_is_turned_away(renter: Renter, agent: RawAgent) -> None:
    stranger = issue(real_authority(renter.stack.data_dir), "host", "host_" + "0" * 32)
    before = {host["id"] for host in renter.all("/hosts")}

    async with dialled(stranger, access_address(renter)) as line:
        agent.host_id = "host_" + "0" * 32
        agent.restart(b"x" * 16)
        error = await turned_away(agent, line)

    assert isinstance(error, Banned | BadProof | CertificateRefused | LinkClosed), repr(error)
    assert {host["id"] for host in renter.all("/hosts")} == before


async def test_a_hello_signed_by_another_key_is_turned_away(renter: Renter, agent: RawAgent, tmp_path: Path) -> None:
    other = RawAgent(await joined(renter, tmp_path / "other"))
    agent.signing = other.signing

    async with dialled(agent.identity.tls, access_address(renter)) as line:
        error = await turned_away(agent, line)

    assert isinstance(error, BadProof), repr(error)


async def test_a_banned_host_is_cut_and_neither_returns_nor_renews_until_it_is_pardoned(
    renter: Renter, agent: RawAgent, tmp_path: Path
) -> None:
    async with dialled(agent.identity.tls, access_address(renter)) as line:
        await agent.greet_over(line)
        await agent.beat()
        await asyncio.to_thread(renter.ask, "POST", f"/hosts/{agent.host_id}/quarantine", {"reason": "test"})
        error = await line.end()
    assert isinstance(error, Banned), repr(error)

    async with dialled(agent.identity.tls, access_address(renter)) as line:
        agent.restart(b"b" * 16)
        assert isinstance(await turned_away(agent, line, generation=agent.identity.generation), Banned)
    folder = IdentityFolder(tmp_path / "identity")
    with pytest.raises(Banned):
        await asyncio.to_thread(renew, folder, agent.clock.wall_ns())

    await asyncio.to_thread(renter.ask, "POST", f"/hosts/{agent.host_id}/activate", {"reason": "pardoned"})
    async with dialled(agent.identity.tls, access_address(renter)) as line:
        agent.restart(b"c" * 16)
        await agent.greet_over(line)


@pytest.mark.proves("a join token that is used, stale, revoked or made up lets nobody in")
async def test_a_join_token_works_once(renter: Renter, tmp_path: Path) -> None:
    token = str(new_token(renter)["join_token"])
    await joined(renter, tmp_path / "first", token=token)

    with pytest.raises(JoinTokenRefused):
        await joined(renter, tmp_path / "second", token=token)
    assert not (tmp_path / "second" / "identity.json").exists()


async def test_a_stale_a_revoked_and_a_made_up_join_token_are_refused(renter: Renter, tmp_path: Path) -> None:
    stale = new_token(renter, expires_in_s=1)
    revoked = new_token(renter)
    await asyncio.to_thread(renter.ask, "DELETE", f"/join-tokens/{revoked['id']}")
    secret, _, ca_hash = str(new_token(renter)["join_token"]).partition(".")
    made_up = f"{secret[:-4]}AAAA.{ca_hash}"

    def is_past() -> bool:
        found = {one["id"]: one for one in renter.all("/join-tokens")}
        return stale["id"] not in found or time.time_ns() // 10**9 > _seconds(found[stale["id"]]["expires_at"])

    await poll_async(is_past)
    for number, text in enumerate((stale["join_token"], revoked["join_token"], made_up)):
        with pytest.raises(JoinTokenRefused):
            await joined(renter, tmp_path / f"host-{number}", token=str(text))


async def test_a_lost_answer_to_joining_is_given_again(renter: Renter, tmp_path: Path) -> None:
    token = str(new_token(renter)["join_token"])

    first = await joined(renter, tmp_path / "same", token=token)
    again = await joined(renter, tmp_path / "same", token=token)

    assert (again.subject_id, again.generation) == (first.subject_id, first.generation)


async def test_a_copied_identity_puts_both_copies_out(renter: Renter, agent: RawAgent, tmp_path: Path) -> None:
    for path in (tmp_path / "identity").iterdir():
        (tmp_path / "copy").mkdir(exist_ok=True)
        (tmp_path / "copy" / path.name).write_bytes(path.read_bytes())
    await asyncio.to_thread(renew, IdentityFolder(tmp_path / "identity"), agent.clock.wall_ns())

    with pytest.raises((Banned, CertificateRefused)):
        await asyncio.to_thread(renew, IdentityFolder(tmp_path / "copy"), agent.clock.wall_ns())

    def state() -> str:
        return str(renter.ask("GET", f"/hosts/{agent.host_id}")["admin_state"])

    await poll_async(lambda: state() == "quarantined")


# --- what is believed ------------------------------------------------------------------------------------------------


@pytest.mark.proves("batches out of order, repeated or with a gap are each held once, and the gap is recorded")
async def test_batches_out_of_order_repeated_and_with_a_gap_are_held_once(renter: Renter, agent: RawAgent) -> None:
    async with dialled(agent.identity.tls, access_address(renter)) as line:
        await agent.greet_over(line)
        for sequence in (3, 1, 1, 2, 3, 6):
            await agent.telemetry(sequence)
        await agent.acked(Lane.TELEMETRY, 3)
        asked = await _missing(agent)
        gap = Gap(Lane.TELEMETRY, agent.boot, ((4, 5),), "spool_cap")
        await agent.record(Kind.GAP, encode_gap(gap), Lane.TELEMETRY, sequence=7, frame_class=FrameClass.BACKLOG)
        await agent.acked(Lane.TELEMETRY, 7)

    held = {key[2]: times for key, times in truth.stored(renter.stack.data_dir).items() if key[0] == agent.host_id}
    assert asked == ((4, 5),)
    assert held == {1: 1, 2: 1, 3: 1, 6: 1, 7: 1}
    kinds = {one.key[2]: one.kind for one in truth.log_records(renter.stack.data_dir) if one.key[0] == agent.host_id}
    assert kinds[7] == "KIND_GAP"


async def test_evidence_that_comes_again_over_another_connection_counts_once(renter: Renter, agent: RawAgent) -> None:
    body = encode_event(Event("agent.storage_damaged", agent.clock.wall_ns(), "", "said once"))
    for boot in (b"1" * 16, b"2" * 16):
        async with dialled(agent.identity.tls, access_address(renter)) as line:
            agent.restart(boot)
            await agent.greet_over(line)
            for _ in range(3):
                await agent.record(Kind.EVENT, body, sequence=1, boot=b"1" * 16)
            await agent.acked(Lane.EVIDENCE, 1, boot=b"1" * 16)

    texts = [event["text"] for event in renter.all("/events", subject=agent.host_id)]
    assert sum("said once" in text for text in texts) == 1


@pytest.mark.proves("a forged or replayed frame changes nothing, in its own connection or in another one")
async def test_a_replayed_frame_and_a_forged_one_change_nothing(renter: Renter, agent: RawAgent) -> None:
    async with dialled(agent.identity.tls, access_address(renter)) as line:
        await agent.greet_over(line)
        await agent.telemetry(1)
        good = agent.last_frame
        await agent.acked(Lane.TELEMETRY, 1)
        await agent.resend(good)
        await agent.resend(_forged(good))
        await agent.telemetry(2)
        await agent.acked(Lane.TELEMETRY, 2)

    async with dialled(agent.identity.tls, access_address(renter)) as line:
        await agent.greet_over(line)
        await agent.resend(good)
        await agent.telemetry(3)
        await agent.acked(Lane.TELEMETRY, 3)

    held = {key[2]: times for key, times in truth.stored(renter.stack.data_dir).items() if key[0] == agent.host_id}
    assert held == {1: 1, 2: 1, 3: 1}


async def test_a_frame_whose_outside_differs_from_what_was_sealed_is_not_believed(
    renter: Renter, agent: RawAgent
) -> None:
    async with dialled(agent.identity.tls, access_address(renter)) as line:
        await agent.greet_over(line)
        await agent.telemetry(1)
        await agent.acked(Lane.TELEMETRY, 1)
        body = encode_event(Event("host.note", agent.clock.wall_ns(), "", "pushed ahead"))
        line.link, real = _Deaf(), line.link  # type: ignore[assignment]
        await agent.record(Kind.EVENT, body)
        line.link = real
        frame = agent.last_frame
        frame.sequence += 5
        await agent.resend(frame)
        await agent.telemetry(2)
        await agent.acked(Lane.TELEMETRY, 2)

    assert not any("pushed ahead" in event["text"] for event in renter.all("/events", subject=agent.host_id))


async def test_bulk_that_pretends_to_be_evidence_ends_the_stream_at_the_access(renter: Renter, agent: RawAgent) -> None:
    async with dialled(agent.identity.tls, access_address(renter)) as line:
        await agent.greet_over(line)
        await agent.telemetry(1)
        frame = link_pb2.Frame.FromString(agent.last_frame.SerializeToString())
        frame.frame_class = "FRAME_CLASS_EVIDENCE"  # type: ignore[assignment]
        with contextlib.suppress(LinkClosed):  # the stream may have ended before its last word is known to be sent
            await agent.resend(frame)
        error = await line.end()

    assert isinstance(error, InvalidInput), repr(error)


async def test_another_hosts_records_are_never_taken_from_this_one(
    renter: Renter, agent: RawAgent, tmp_path: Path
) -> None:
    victim = RawAgent(await joined(renter, tmp_path / "victim"))
    async with dialled(agent.identity.tls, access_address(renter)) as line:
        agent.host_id = victim.host_id
        agent.restart(b"v" * 16)
        error = await turned_away(agent, line, generation=agent.identity.generation)

    assert isinstance(error, BadProof | InvalidInput), repr(error)
    host = await asyncio.to_thread(renter.ask, "GET", f"/hosts/{victim.host_id}")
    assert (host["link_state"], host["last_seen_at"]) == ("unseen", None)


class _Deaf:
    """Takes frames and sends none."""

    async def send(self, frame: link_pb2.Frame) -> None:
        return None


def _forged(frame: link_pb2.Frame) -> link_pb2.Frame:
    """The next sequence with a changed byte under the old proof."""
    sealed = link_pb2.Sealed.FromString(frame.sealed)
    signed = link_pb2.Envelope.FromString(sealed.signed)
    signed.sequence += 1000
    sealed.signed = signed.SerializeToString()
    copy = link_pb2.Frame.FromString(frame.SerializeToString())
    copy.sequence, copy.sealed = signed.sequence, sealed.SerializeToString()
    return copy


async def _missing(agent: RawAgent) -> tuple[tuple[int, int], ...]:
    """The ranges that the Master asks for again."""
    while True:
        ack = decode_ack((await agent.next(Kind.ACK)).body)
        for marks in ack.missing:
            return tuple(marks.ranges)


def _seconds(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) + 1
