"""A measurement of a host's line counts as the answer to a command and otherwise not at all, whoever signed it."""

import pytest
from sqlalchemy.exc import OperationalError

from tests.unit.fleet.world import BOOT, HOST, OTHER, World, world
from windrow_master.fleet.bandwidth import ANSWER_NS
from windrow_master.fleet.bandwidth_repository import BandwidthRepository
from windrow_master.fleet.bandwidth_schedule import MEASURE_LIFE_NS
from windrow_master.fleet.evidence_repository import EvidenceRepository
from windrow_master.fleet.intake import EvidenceIntake
from windrow_master.fleet.repository import CommandRepository
from windrow_master.store.prepared import say
from windrow_proto.bandwidth import BandwidthClaim, BandwidthResult
from windrow_proto.errors import StorageFailed
from windrow_proto.ids import BootId
from windrow_proto.keys import DOMAIN_CLAIM, SigningKey
from windrow_proto.model import Kind
from windrow_proto.units import HOUR
from windrow_proto.wire_command import decode_command
from windrow_proto.wire_host import encode_bandwidth, encode_claim

HOME, NORTH, SOUTH, ELSEWHERE = "acc_1", "acc_north", "acc_south", "acc_elsewhere"
KEY = SigningKey.generate()
AGAIN = BootId(b"c" * 16)


@pytest.fixture
def w(tmp_path):
    with world(tmp_path) as made:
        _open(made)
        yield made


class Everybodys(dict):
    """All Accesses have one key."""

    def get(self, access_id, default=None):
        return KEY.public


def _open(w):
    """Its host is connected by HOME, and all Accesses sign with one key."""
    w.keys.known = Everybodys()
    w.connect(access=HOME)


def asked(w, host_id=HOST):
    """Returns the Master's questions to a host now, of HOME and two others."""
    command_id = w.write(lambda uow: w.fleet.measures.ask(uow, host_id, "master", (NORTH, SOUTH)))
    return decode_command(w.read(lambda uow: uow[CommandRepository].get(command_id)).body).bandwidth


def signed(nonce, access_id=HOME, up_bps=900, moved=1, host_id=HOST, said=None):
    """Returns a result that a relay and a host signed; said: the nonce that the host names instead."""
    claim = encode_claim(BandwidthClaim(nonce, access_id, host_id, up_bps, 500, moved, 1, 1, 1))
    signature = KEY.sign(DOMAIN_CLAIM, claim)
    return encode_bandwidth(
        BandwidthResult(said or nonce, access_id, "local-a", up_bps, 500, moved, 1, 1, 1, claim, signature)
    )


def tell(w, body, **of):
    w.take(w.record(Kind.BANDWIDTH, body, **of))


def refused(w):
    """How often evidence was put aside, which the host's owner is told each time."""
    count = w.fleet.evidence.figures.dead_letters
    assert w.events().count("evidence.put_aside") == count == w.read(lambda uow: uow[EvidenceRepository].buried(HOST))
    return count


def counted(w):
    """By whom the host's line was measured, of all rounds that were kept."""
    return sorted(
        name for one in w.read(lambda uow: uow[BandwidthRepository].of_host(HOST, 100)) for name in one.relays
    )


def test_the_own_relay_and_those_that_a_command_names_count_once_each(w):
    spec = asked(w)
    for access_id in (HOME, NORTH, SOUTH):
        tell(w, signed(spec.nonce, access_id))
    assert (counted(w), w.host().bandwidth.count, refused(w)) == ([HOME, NORTH, SOUTH], 3, 0)


def test_where_the_database_goes_away_no_record_is_put_aside_for_it(w, monkeypatch):
    spec = asked(w)
    told = w.record(Kind.BANDWIDTH, signed(spec.nonce))

    def gone(self, uow, item):
        say(uow.connection, "ROLLBACK")
        raise OperationalError("SELECT 1", None, OSError("the server is gone"))

    monkeypatch.setattr(EvidenceIntake, "_apply", gone)
    with pytest.raises(StorageFailed):
        w.take(told)
    assert refused(w) == 0

    monkeypatch.undo()
    w.take(told)
    assert (counted(w), refused(w)) == ([HOME], 0)


def test_what_nobody_asked_for_is_put_aside_and_changes_nothing(w):
    before = w.host()
    tell(w, signed("its own idea"))
    assert (w.host(), counted(w), refused(w)) == (before, [], 1)
    assert "bandwidth.measured" not in w.events()
    told, *_ = w.read(lambda uow: uow.events.newest(HOST))
    assert "nobody asked for it" in told.fields["error"]


def test_a_command_to_another_host_is_no_command_to_this_one(w):
    w.join(OTHER)
    tell(w, signed(asked(w, OTHER).nonce))
    assert (counted(w), refused(w)) == ([], 1)


def test_beside_those_that_were_asked_one_access_counts_wherever_the_host_was_when_the_command_came(w):
    spec = asked(w)
    tell(w, signed(spec.nonce, ELSEWHERE))
    assert (counted(w), refused(w)) == ([ELSEWHERE], 0)
    tell(w, signed(spec.nonce, HOME))
    tell(w, signed(spec.nonce, NORTH))
    assert (counted(w), refused(w)) == ([ELSEWHERE, NORTH], 1)


def test_what_answered_one_command_answers_no_other(w):
    first, second = asked(w), asked(w)
    tell(w, signed(first.nonce))
    tell(w, signed(first.nonce, said=second.nonce))
    assert (counted(w), refused(w)) == ([HOME], 1)


def test_what_comes_too_late_does_not_count_and_until_then_it_does(w):
    first, second = asked(w), asked(w)
    w.clock.advance(MEASURE_LIFE_NS + ANSWER_NS)
    tell(w, signed(first.nonce))
    w.clock.advance(1)
    tell(w, signed(second.nonce))
    assert (counted(w), refused(w)) == ([HOME], 1)
    w.clock.advance(48 * HOUR)
    tell(w, signed(second.nonce))
    assert refused(w) == 2


def test_the_same_answer_twice_is_counted_once_and_another_one_by_the_same_access_is_refused(w):
    spec = asked(w)
    for boot in (BOOT, AGAIN):
        tell(w, signed(spec.nonce), boot=boot)
    assert (counted(w), w.events().count("bandwidth.measured"), refused(w)) == ([HOME], 1, 0)
    tell(w, signed(spec.nonce, up_bps=90_000))
    assert (w.host().bandwidth.up_bps, refused(w)) == (900, 1)


def test_more_bytes_than_were_asked_for_do_not_count(w):
    spec = asked(w)
    tell(w, signed(spec.nonce, moved=spec.cap_bytes + 1))
    assert (counted(w), refused(w)) == ([], 1)
    tell(w, signed(spec.nonce, moved=spec.cap_bytes))
    assert counted(w) == [HOME]


def test_what_was_asked_before_a_restart_of_the_master_is_answered_after_it(w):
    spec = asked(w)
    after = World(w.store, w.clock)
    after.keys.known = Everybodys()
    tell(after, signed(spec.nonce))
    assert (counted(after), refused(after)) == ([HOME], 0)
