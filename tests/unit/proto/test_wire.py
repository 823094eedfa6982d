"""Values survive the wire, garbage does not get in, and a proof covers all that it must."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.proto import values
from windrow_proto import bodies, keys, model, wire, wire_command, wire_fields, wire_host, wire_link
from windrow_proto.errors import BadProof, InvalidInput, TooLarge, WindrowError
from windrow_proto.messages import Channel, ChannelData, Gap, LaneMarks, Record
from windrow_proto.model import FrameClass, Kind, Lane
from windrow_proto.v1 import host_pb2, link_pb2

MAC = bytes(32)
SIGNER = keys.SigningKey.from_raw(bytes(range(32)))
PROVER = keys.LinkProver(MAC, SIGNER, keys.DOMAIN_UP)
ENCRYPTING = keys.LinkProver(MAC, SIGNER, keys.DOMAIN_UP, encrypts=True)
VERIFIER = keys.LinkVerifier(MAC, SIGNER.public, keys.DOMAIN_UP)
DECODERS = sorted({decode for _, decode, _ in values.ROUND_TRIPS} | {wire.decode_record}, key=lambda d: d.__name__)


def _envelope(kind: Kind = Kind.HEARTBEAT, body: bytes = b"body") -> wire.Envelope:
    return wire.Envelope(values.HOST, values.BOOT, 4, FrameClass.EVIDENCE, Lane.CONTROL, 5, kind, body, 6)


@pytest.mark.parametrize(("encode", "decode", "value"), values.ROUND_TRIPS)
def test_a_value_survives_the_wire(encode, decode, value):
    assert decode(encode(value)) == value


def test_the_hash_of_an_inventory_survives_the_wire():
    again = wire_host.decode_inventory(wire_host.encode_inventory(values.INVENTORY))

    assert model.inventory_hash(again) == model.inventory_hash(values.INVENTORY)


def test_a_gpu_with_more_further_fields_than_there_can_be_is_refused():
    many = model.GpuFacts(values.GPU.uuid, 0, "nvidia", "x", more={f"field_{at}": at for at in range(257)})

    with pytest.raises(InvalidInput, match="257 further fields"):
        wire_host.decode_inventory(wire_host.encode_inventory(model.Inventory(gpus=(many,))))


@pytest.mark.parametrize("decode", DECODERS, ids=lambda d: d.__name__)
@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=200))
def test_garbage_is_refused_with_our_own_error_or_read_as_something(decode, data):
    try:
        decode(data)
    except WindrowError as error:
        assert isinstance(error, InvalidInput | TooLarge)


@pytest.mark.parametrize("kind", [k for k in Kind if k is not Kind.UNSPECIFIED], ids=lambda k: k.name)
def test_every_kind_can_be_sealed_and_opened_again(kind):
    frame = wire.seal(_envelope(kind), PROVER)

    assert wire.unseal(frame, VERIFIER) == _envelope(kind)
    assert wire.unseal_bytes(wire.sealed_bytes(frame), VERIFIER) == _envelope(kind)


@pytest.mark.parametrize("kind", [k for k in Kind if k is not Kind.UNSPECIFIED], ids=lambda k: k.name)
def test_what_is_encrypted_is_read_by_the_other_end_alone(kind):
    envelope = _envelope(kind, b"token=hunter2")
    frame = wire.seal(envelope, ENCRYPTING)

    assert (b"hunter2" in frame.SerializeToString()) is (kind not in bodies.ENCRYPTED_KINDS)
    assert wire.unseal(frame, VERIFIER) == envelope
    assert b"hunter2" in wire.seal(envelope, PROVER).SerializeToString()


def test_an_encrypted_body_opens_in_its_own_place_alone():
    encrypted = ENCRYPTING.encrypt(Kind.COMMAND, 5, b"body")
    assert VERIFIER.decrypt(Kind.COMMAND, 5, encrypted) == b"body"
    other_key = keys.LinkVerifier(bytes([1]) * 32, SIGNER.public, keys.DOMAIN_UP)
    other_way = keys.LinkVerifier(MAC, SIGNER.public, keys.DOMAIN_DOWN)
    greeting = keys.LinkVerifier(None, SIGNER.public, keys.DOMAIN_UP)
    changed = bytes([encrypted[0] ^ 1]) + encrypted[1:]
    for verifier, kind, sequence, data in (
        (VERIFIER, Kind.CHANNEL, 5, encrypted),
        (VERIFIER, Kind.COMMAND, 6, encrypted),
        (VERIFIER, Kind.COMMAND, 5, changed),
        (VERIFIER, Kind.COMMAND, 5, encrypted[:-1]),
        (VERIFIER, Kind.COMMAND, 5, b"short"),
        (other_key, Kind.COMMAND, 5, encrypted),
        (other_way, Kind.COMMAND, 5, encrypted),
        (greeting, Kind.COMMAND, 5, encrypted),
    ):
        with pytest.raises(BadProof):
            verifier.decrypt(kind, sequence, data)


def test_an_encrypted_body_may_be_as_large_as_another_and_no_larger():
    whole = _envelope(Kind.COMMAND, bytes(wire_fields.CONTROL_BYTES_MAX))
    assert wire.unseal(wire.seal(whole, ENCRYPTING), VERIFIER) == whole
    with pytest.raises(InvalidInput):
        wire.unseal(wire.seal(whole._replace(body=whole.body + b"x"), ENCRYPTING), VERIFIER)


@pytest.mark.parametrize("change", [{"frame_class": 3}, {"lane": 2}, {"sequence": 6}])
def test_a_relay_that_changes_what_it_may_read_is_noticed(change):
    frame = wire.seal(_envelope(), PROVER)
    for name, value in change.items():
        setattr(frame, name, value)

    with pytest.raises(BadProof):
        wire.unseal(frame, VERIFIER)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_a_changed_bit_under_the_proof_is_noticed(data):
    kind = data.draw(st.sampled_from([Kind.HEARTBEAT, Kind.RECEIPT]))
    sealed = link_pb2.Sealed.FromString(wire.seal(_envelope(kind), PROVER).sealed)
    name = data.draw(st.sampled_from(["signed", "proof"]))
    content = bytearray(getattr(sealed, name))
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    setattr(sealed, name, bytes(content))

    with pytest.raises(BadProof):
        wire.unseal_bytes(sealed.SerializeToString(), VERIFIER)


def test_an_hmac_is_not_enough_for_what_must_be_signed_and_a_signature_not_asked_for_the_rest():
    mac_only = wire.seal(_envelope(Kind.RECEIPT), keys.MacProver(MAC, keys.DOMAIN_UP))
    signed = wire.seal(_envelope(Kind.HEARTBEAT), keys.SignProver(SIGNER, keys.DOMAIN_UP))

    for frame in (mac_only, signed):
        with pytest.raises(BadProof, match="kind of proof"):
            wire.unseal(frame, VERIFIER)


def test_what_was_said_up_does_not_hold_down():
    frame = wire.seal(_envelope(Kind.CHANNEL), PROVER)

    with pytest.raises(BadProof):
        wire.unseal(frame, replace(VERIFIER, domain=keys.DOMAIN_DOWN))


def test_nothing_that_needs_the_shared_key_is_sent_or_believed_before_the_welcome():
    with pytest.raises(BadProof):
        wire.seal(_envelope(), replace(PROVER, mac_key=None))
    with pytest.raises(BadProof):
        wire.unseal(wire.seal(_envelope(), PROVER), replace(VERIFIER, mac_key=None))


def test_sizes_are_checked_before_anything_is_parsed():
    with pytest.raises(TooLarge):
        wire_fields.parse(link_pb2.Hello, bytes(wire_fields.CONTROL_BYTES_MAX + 1))
    with pytest.raises(InvalidInput):
        wire.unseal(
            wire.seal(_envelope(Kind.TELEMETRY, bytes(wire.body_bytes_max(Kind.TELEMETRY) + 1)), PROVER), VERIFIER
        )
    with pytest.raises(TooLarge):
        wire_link.encode_channel(Channel(1, ChannelData(bytes(65_537))))


def test_a_record_keeps_its_birth():
    record = Record(values.BOOT, 9, Kind.EVENT, b"x")

    assert wire.decode_record(wire.encode_record(record)) == record
    with pytest.raises(InvalidInput):
        wire.decode_record(wire.encode_record(replace(record, origin_sequence=0)))


def test_names_lose_their_control_and_direction_characters_and_arguments_keep_theirs():
    hostile = "a\x1b[31m\u202eb\n"
    event = wire_host.decode_event(wire_host.encode_event(model.Event("c", 1, hostile, hostile)))

    assert event.subject == "a\ufffd[31m\ufffdb\ufffd"
    assert event.detail == "a\ufffd[31m\ufffdb\n"
    assert wire_fields.arguments([hostile]) == (hostile,)
    assert wire_fields.clean_text("\udcff" + "x" * 200) == "\ufffd" + "x" * 127


@pytest.mark.parametrize(
    "bad",
    [
        host_pb2.Command(command_id="c", kind="COMMAND_KIND_CREATE"),
        host_pb2.Command(kind="COMMAND_KIND_BENCHMARK"),
        host_pb2.Command(command_id="c" * 129, kind="COMMAND_KIND_BENCHMARK"),
        host_pb2.Command(
            command_id="c", kind="COMMAND_KIND_CREATE", create=host_pb2.WorkloadSpec(workload_id="w", argv=["a\0"])
        ),
        host_pb2.Command(
            command_id="c", kind="COMMAND_KIND_CREATE", create=host_pb2.WorkloadSpec(workload_id="w", env={"A=": "b"})
        ),
        host_pb2.Command(
            command_id="c", kind="COMMAND_KIND_CREATE", create=host_pb2.WorkloadSpec(workload_id="w", ports=[70_000])
        ),
        host_pb2.Command(
            command_id="c", kind="COMMAND_KIND_CREATE", create=host_pb2.WorkloadSpec(workload_id="w", lease_ns=-1)
        ),
        host_pb2.Command(
            command_id="c",
            kind="COMMAND_KIND_CREATE",
            create=host_pb2.WorkloadSpec(workload_id="w", argv=["a" * 60_000] * 5),
        ),
        host_pb2.Command(
            command_id="c",
            kind="COMMAND_KIND_CREATE",
            create=host_pb2.WorkloadSpec(workload_id="w", registry_login=bytes(20_000)),
        ),
    ],
)
def test_a_malformed_command_is_refused(bad):
    with pytest.raises(InvalidInput):
        wire_command.decode_command(bad.SerializeToString())


def test_a_command_of_a_kind_we_do_not_know_can_still_be_answered():
    data = host_pb2.Command(command_id="c", kind=99).SerializeToString()  # type: ignore[arg-type]  # a newer Master

    assert wire_command.decode_command(data).kind is model.CommandKind.UNSPECIFIED


@pytest.mark.parametrize("ranges", [((0, 1),), ((2, 1),), ((1, 2), (3, 4)), ((5, 6), (1, 2))])
def test_ranges_that_are_not_in_order_are_refused(ranges):
    with pytest.raises(InvalidInput):
        wire_link.decode_gap(wire_link.encode_gap(Gap(Lane.EVIDENCE, values.BOOT, ranges, "spool_cap")))


def test_too_many_ranges_or_marks_are_refused():
    many = tuple((n, n) for n in range(1, 2 * 1025, 2))
    with pytest.raises(InvalidInput):
        wire_fields.to_marks(wire_fields.from_marks([LaneMarks(Lane.EVIDENCE, values.BOOT, many)]))
    with pytest.raises(InvalidInput):
        wire_fields.to_marks(wire_fields.from_marks([LaneMarks(Lane.EVIDENCE, values.BOOT, ())] * 257))
