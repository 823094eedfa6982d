"""The link's sessions: every (phase, kind) has an answer, and nothing replayed, misdirected, stale or late gets in."""

from dataclasses import replace

import pytest

from tests.unit.proto.values import BOOT, HOST, SETTINGS
from windrow_proto.errors import BadProof, Fenced, InvalidInput
from windrow_proto.ids import BootId, HostId
from windrow_proto.messages import Hello, Welcome
from windrow_proto.model import FrameClass, Kind, Lane
from windrow_proto.session import (
    EXPIRING_KINDS,
    LANES,
    Admitted,
    AgentSession,
    MasterSession,
    Reason,
    Refused,
    is_downward,
    is_upward,
)
from windrow_proto.wire import Envelope

DIGEST = bytes(32)
HELLO = Hello(1, "0.1.0", bytes(32), 3, 0, "", False, (), 0)
WELCOME = Welcome(1, 4, bytes(32), (), SETTINGS, 1_000, DIGEST, False)
KINDS = [kind for kind in Kind if kind is not Kind.UNSPECIFIED]

TABLE = """\
                  agent receives            master receives
kind              closed greeting open      closed greeted open
HELLO             wrong_direction wrong_direction wrong_direction | wrong_phase wrong_phase wrong_phase
HEARTBEAT         wrong_direction wrong_direction wrong_direction | wrong_phase wrong_phase ok
INVENTORY         wrong_direction wrong_direction wrong_direction | wrong_phase wrong_phase ok
COMMAND_STATUS    wrong_direction wrong_direction wrong_direction | wrong_phase wrong_phase ok
RECEIPT           wrong_direction wrong_direction wrong_direction | wrong_phase wrong_phase ok
EVENT             wrong_direction wrong_direction wrong_direction | wrong_phase wrong_phase ok
OBSERVED          wrong_direction wrong_direction wrong_direction | wrong_phase wrong_phase ok
BANDWIDTH         wrong_direction wrong_direction wrong_direction | wrong_phase wrong_phase ok
TELEMETRY         wrong_direction wrong_direction wrong_direction | wrong_phase wrong_phase ok
GAP               wrong_direction wrong_direction wrong_direction | wrong_phase wrong_phase ok
CANARY            wrong_direction wrong_direction wrong_direction | wrong_phase wrong_phase ok
RESUME            wrong_direction wrong_direction wrong_direction | wrong_phase wrong_phase ok
WELCOME           wrong_phase ok wrong_phase | wrong_direction wrong_direction wrong_direction
HEARTBEAT_REPLY   wrong_phase wrong_phase ok | wrong_direction wrong_direction wrong_direction
ACK               wrong_phase wrong_phase ok | wrong_direction wrong_direction wrong_direction
COMMAND           wrong_phase wrong_phase ok | wrong_direction wrong_direction wrong_direction
SETTINGS          wrong_phase wrong_phase ok | wrong_direction wrong_direction wrong_direction
REGION_MAP        wrong_phase wrong_phase ok | wrong_direction wrong_direction wrong_direction
LEASES            wrong_phase wrong_phase ok | wrong_direction wrong_direction wrong_direction
QUERY             wrong_phase wrong_phase ok | wrong_direction wrong_direction wrong_direction
CANARY_REPLY      wrong_phase wrong_phase ok | wrong_direction wrong_direction wrong_direction
CHANNEL           wrong_phase wrong_phase ok | wrong_phase wrong_phase ok
"""


def _agent(phase: str = "open") -> AgentSession:
    agent = AgentSession(HOST, BOOT, 4)
    if phase != "closed":
        agent.envelope(Kind.HELLO, Lane.CONTROL, FrameClass.EVIDENCE, b"")
    if phase == "open":
        agent.on_welcome(WELCOME, DIGEST)
    return agent


def _master(phase: str = "open") -> MasterSession:
    master = MasterSession(HOST, 4)
    if phase != "closed":
        assert isinstance(master.on_hello(_message(Kind.HELLO), HELLO, 3), Admitted)
    if phase == "open":
        master.envelope(Kind.WELCOME, Lane.CONTROL, FrameClass.EVIDENCE, b"")
    return master


def _message(kind: Kind, sequence: int = 1, lane: Lane | None = None, epoch: int = 4) -> Envelope:
    chosen = min(LANES[kind]) if lane is None else lane
    not_after = 100 if kind in EXPIRING_KINDS else 0
    return Envelope(HOST, BOOT, epoch, FrameClass.EVIDENCE, chosen, sequence, kind, b"", not_after)


def _word(answer: Admitted | Refused) -> str:
    return "ok" if isinstance(answer, Admitted) else answer.reason


def test_every_phase_and_kind_has_an_answer():
    lines = ["                  agent receives            master receives"]
    lines.append("kind              closed greeting open      closed greeted open")
    for kind in KINDS:
        first = 1 if kind is Kind.CHANNEL else 9
        agent = [_word(_agent(phase).admit(_message(kind, first), 50)) for phase in ("closed", "greeting", "open")]
        message = _message(kind, first + 1)  # its hello had the first
        master = [_word(_master(phase).admit(message)) for phase in ("closed", "greeted", "open")]
        lines.append(f"{kind.name:17} {' '.join(agent)} | {' '.join(master)}")

    assert "\n".join(lines) + "\n" == TABLE


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.name)
def test_a_session_sends_only_its_own_kinds_in_their_lanes_and_phases(kind):
    for lane in Lane:
        for phase in ("closed", "greeting", "open"):
            if is_upward(kind) and lane in LANES[kind] and (phase == "open" or kind is Kind.HELLO):
                assert _agent(phase).envelope(kind, lane, FrameClass.EVIDENCE, b"").kind is kind
            else:
                with pytest.raises(ValueError, match=r"sen[dt]"):
                    _agent(phase).envelope(kind, lane, FrameClass.EVIDENCE, b"")
        for phase in ("closed", "greeted", "open"):
            wanted = "greeted" if kind is Kind.WELCOME else "open"
            if is_downward(kind) and lane in LANES[kind] and phase == wanted:
                assert _master(phase).envelope(kind, lane, FrameClass.EVIDENCE, b"", 5).kind is kind
            else:
                with pytest.raises(ValueError, match=r"sen[dt]"):
                    _master(phase).envelope(kind, lane, FrameClass.EVIDENCE, b"", 5)


CHANGES = [
    ({"host_id": HostId("host_x")}, Reason.WRONG_HOST),
    ({"boot_id": BootId(bytes(16))}, Reason.WRONG_BOOT),
    ({"lane": Lane.TELEMETRY}, Reason.WRONG_LANE),
    ({"epoch": 3}, Reason.FENCED),
]


@pytest.mark.parametrize(("change", "reason"), [*CHANGES, ({"epoch": 5}, Reason.FENCED)])
def test_the_agent_refuses_what_is_not_meant_for_this_connection(change, reason):
    assert _agent().admit(_message(Kind.ACK)._replace(**change), 50) == Refused(reason)


@pytest.mark.parametrize(("change", "reason"), [*CHANGES, ({"epoch": 5}, Reason.STALE_MASTER)])
def test_the_master_refuses_what_is_not_meant_for_this_connection(change, reason):
    assert _master().admit(_message(Kind.HEARTBEAT, 9)._replace(**change)) == Refused(reason)


def test_a_sequence_that_does_not_grow_within_its_lane_is_a_replay_on_both_ends():
    agent, master = _agent(), _master()

    assert _word(agent.admit(_message(Kind.ACK, 7), 0)) == "ok"
    assert _word(agent.admit(_message(Kind.ACK, 7), 0)) == Reason.REPLAYED
    assert _word(agent.admit(_message(Kind.COMMAND, 1, Lane.EVIDENCE), 0)) == "ok"
    assert _word(master.admit(_message(Kind.EVENT, 5))) == "ok"
    assert _word(master.admit(_message(Kind.EVENT, 4))) == Reason.REPLAYED
    assert _word(master.admit(_message(Kind.HEARTBEAT, 1))) == Reason.REPLAYED


@pytest.mark.parametrize("missing", [0, 1, 3])
def test_a_frame_of_a_channel_that_never_came_is_seen_by_the_next_one_at_both_ends(missing):
    """From the first of each connection on, a resumed one too, which begins far above all others."""
    beside = AgentSession(HOST, BOOT, 4).second()
    for agent in (AgentSession(HOST, BOOT, 4), beside):
        hello = agent.envelope(Kind.HELLO, Lane.CONTROL, FrameClass.EVIDENCE, b"")
        master = MasterSession(HOST, 4, 7)
        assert isinstance(master.on_hello(hello, HELLO, 3), Admitted)
        welcome = master.envelope(Kind.WELCOME, Lane.CONTROL, FrameClass.EVIDENCE, b"")
        assert _word(agent.admit(welcome, 50)) == "ok"
        agent.on_welcome(WELCOME, DIGEST)

        for sender, hear in ((agent, master.admit), (master, lambda one, agent=agent: agent.admit(one, 50))):
            sent = [sender.envelope(Kind.CHANNEL, Lane.CHANNEL, FrameClass.CHANNEL, b"") for _ in range(6)]
            answers = [_word(hear(one)) for n, one in enumerate(sent) if n != missing]
            assert answers == ["ok"] * missing + [Reason.KEPT_BACK] * (5 - missing)


def test_the_agents_sequences_go_on_over_connections_and_the_masters_may_begin_again():
    agent = _agent()
    first = agent.envelope(Kind.EVENT, Lane.EVIDENCE, FrameClass.EVIDENCE, b"")
    assert _word(agent.admit(_message(Kind.ACK, 7), 0)) == "ok"
    agent.on_disconnect()
    hello = agent.envelope(Kind.HELLO, Lane.CONTROL, FrameClass.EVIDENCE, b"")
    agent.on_welcome(WELCOME, DIGEST)

    assert hello.sequence == 3  # above whatever was sent before, in every lane
    assert (
        agent.envelope(Kind.EVENT, Lane.EVIDENCE, FrameClass.EVIDENCE, b"").sequence > hello.sequence > first.sequence
    )
    assert _word(agent.admit(_message(Kind.ACK, 1), 0)) == "ok"


@pytest.mark.parametrize("kind", sorted(EXPIRING_KINDS))
def test_commands_and_leases_need_an_end_and_are_refused_after_it(kind):
    assert _agent().admit(_message(kind)._replace(not_after_ns=0), 50) == Refused(Reason.NO_NOT_AFTER)
    assert _agent().admit(_message(kind), 101) == Refused(Reason.EXPIRED)
    assert _word(_agent().admit(_message(kind), 100)) == "ok"
    with pytest.raises(ValueError, match="not-after"):
        _master().envelope(kind, Lane.CONTROL, FrameClass.EVIDENCE, b"")


def test_expiry_follows_the_masters_clock_carried_on_by_the_agents_monotonic_one():
    agent = _agent("greeting")
    agent.on_welcome(WELCOME, DIGEST, now_ns=77_000_000)

    assert _word(agent.admit(_message(Kind.COMMAND)._replace(not_after_ns=1_010), 77_000_010)) == "ok"
    assert agent.admit(_message(Kind.COMMAND, 2)._replace(not_after_ns=1_010), 77_000_011) == Refused(Reason.EXPIRED)


def test_a_welcome_must_answer_this_hello_in_this_protocol_and_of_no_older_master():
    for bad, error in [
        (replace(WELCOME, hello_digest=b"x" * 32), BadProof),
        (replace(WELCOME, epoch=3), Fenced),
        (replace(WELCOME, protocol_version=2), InvalidInput),
    ]:
        with pytest.raises(error):
            _agent("greeting").on_welcome(bad, DIGEST)
    with pytest.raises(BadProof):
        _agent("open").on_welcome(WELCOME, DIGEST)


def test_a_later_master_is_followed_and_an_earlier_one_fenced_from_then_on():
    agent = _agent("greeting")
    agent.on_welcome(replace(WELCOME, epoch=6), DIGEST)

    assert agent.epoch == 6
    assert _word(agent.admit(_message(Kind.COMMAND, 1, epoch=4), 0)) == Reason.FENCED
    assert agent.envelope(Kind.HEARTBEAT, Lane.CONTROL, FrameClass.EVIDENCE, b"").epoch == 6


@pytest.mark.parametrize(
    ("hello", "envelope", "generation", "reason"),
    [
        (HELLO, _message(Kind.HELLO)._replace(host_id=HostId("host_x")), 3, Reason.WRONG_HOST),
        (HELLO, _message(Kind.HEARTBEAT), 3, Reason.WRONG_LANE),
        (HELLO, _message(Kind.HELLO), 2, Reason.WRONG_GENERATION),
        (replace(HELLO, protocol_version=2), _message(Kind.HELLO), 3, Reason.WRONG_VERSION),
        (replace(HELLO, epoch_seen=5), _message(Kind.HELLO), 3, Reason.STALE_MASTER),
    ],
)
def test_a_hello_that_does_not_fit_its_certificate_or_this_master_is_refused(hello, envelope, generation, reason):
    assert _master("closed").on_hello(envelope, hello, generation) == Refused(reason)


def test_one_connection_takes_one_hello():
    assert _master("greeted").on_hello(_message(Kind.HELLO, 2), HELLO, 3) == Refused(Reason.WRONG_PHASE)


def test_what_was_kept_of_an_older_connection_neither_passes_nor_hides_the_genuine():
    older, newer = MasterSession(HOST, 4, 1), MasterSession(HOST, 4, 2)
    for master in (older, newer):
        master.on_hello(_message(Kind.HELLO), HELLO, 3)
    kept = [older.envelope(Kind.WELCOME, Lane.CONTROL, FrameClass.EVIDENCE, b"")]
    kept += [older.envelope(Kind.COMMAND, Lane.EVIDENCE, FrameClass.EVIDENCE, b"", 100) for _ in range(9)]
    agent = _agent("greeting")
    welcome = newer.envelope(Kind.WELCOME, Lane.CONTROL, FrameClass.EVIDENCE, b"")
    assert _word(agent.admit(welcome, 50)) == "ok"
    agent.on_welcome(WELCOME, DIGEST)

    assert {_word(agent.admit(one, 50)) for one in kept[1:]} == {Reason.REPLAYED}
    genuine = newer.envelope(Kind.COMMAND, Lane.EVIDENCE, FrameClass.EVIDENCE, b"", 100)
    assert _word(agent.admit(genuine, 50)) == "ok"


def test_what_was_said_on_an_older_connection_is_old_on_the_next_in_every_lane():
    agent = _agent()
    kept = [agent.envelope(kind, lane, cls, b"") for kind, lane, cls in (
        (Kind.EVENT, Lane.EVIDENCE, FrameClass.EVIDENCE),
        (Kind.TELEMETRY, Lane.TELEMETRY, FrameClass.LIVE),
        (Kind.HEARTBEAT, Lane.CONTROL, FrameClass.EVIDENCE),
    )]  # fmt: skip
    agent.on_disconnect()
    hello = agent.envelope(Kind.HELLO, Lane.CONTROL, FrameClass.EVIDENCE, b"")
    agent.on_welcome(WELCOME, DIGEST)
    master = MasterSession(HOST, 4)
    assert isinstance(master.on_hello(hello, HELLO, HELLO.generation), Admitted)
    master.envelope(Kind.WELCOME, Lane.CONTROL, FrameClass.EVIDENCE, b"")

    assert [master.admit(one._replace(epoch=4)) for one in kept] == [Refused(Reason.REPLAYED)] * 3
    for kind, lane in ((Kind.EVENT, Lane.EVIDENCE), (Kind.HEARTBEAT, Lane.CONTROL)):
        assert isinstance(master.admit(agent.envelope(kind, lane, FrameClass.EVIDENCE, b"")), Admitted)
