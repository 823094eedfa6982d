"""The agent's few words of DNS, against the library that speaks all of them, and against what nobody should send."""

import struct

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow_agent.core.dns import (
    RECORDS_MAX,
    UDP_BYTES_MAX,
    Answer,
    Question,
    RecordType,
    Service,
    decode_answer,
    encode_question,
)
from windrow_proto.dns_names import check_name
from windrow_proto.errors import InvalidInput

ADDRESS = Question("acc.example.org", RecordType.A)
SERVICES = Question("_windrow-access._tcp.example.org", RecordType.SRV)


def _answer(question: Question, *sets: tuple[str, str, list[str]], code: int = 0, number: int = 7) -> bytes:
    made = dns.message.make_response(dns.message.from_wire(encode_question(number, question)))
    made.set_rcode(dns.rcode.Rcode(code))
    made.answer = [dns.rrset.from_text(f"{name}.", 60, "IN", kind, *texts) for name, kind, texts in sets]
    return made.to_wire(max_size=65_535)


@pytest.mark.parametrize("kind", list(RecordType))
def test_a_question_is_one_that_others_read(kind: RecordType):
    query = dns.message.from_wire(encode_question(513, Question("a-b.example.org", kind)))
    (asked,) = query.question
    assert (query.id, asked.name.to_text(), int(asked.rdtype)) == (513, "a-b.example.org.", int(kind))
    assert query.flags == dns.flags.RD and query.payload == UDP_BYTES_MAX


def test_addresses_and_services_are_read():
    both = _answer(ADDRESS, ("acc.example.org", "A", ["192.0.2.7", "192.0.2.8"]))
    assert set(decode_answer(both, 7, ADDRESS).addresses) == {"192.0.2.7", "192.0.2.8"}
    six = Question("acc.example.org", RecordType.AAAA)
    assert decode_answer(_answer(six, ("acc.example.org", "AAAA", ["2001:db8::7"])), 7, six).addresses == (
        "2001:db8::7",
    )
    said = _answer(SERVICES, (SERVICES.name, "SRV", ["10 5 7443 Acc.Example.ORG."]))
    assert decode_answer(said, 7, SERVICES) == Answer(services=(Service(10, 5, "acc.example.org", 7443),))


def test_a_name_may_stand_for_another_but_not_in_circles():
    chain = [("acc.example.org", "CNAME", ["b.example.net."]), ("b.example.net", "A", ["192.0.2.1"])]
    assert decode_answer(_answer(ADDRESS, *chain), 7, ADDRESS).addresses == ("192.0.2.1",)
    circle = [("acc.example.org", "CNAME", ["b.example.net."]), ("b.example.net", "CNAME", ["acc.example.org."])]
    assert decode_answer(_answer(ADDRESS, *circle), 7, ADDRESS) == Answer()


def test_what_is_said_of_another_name_is_not_believed():
    assert decode_answer(_answer(ADDRESS, ("evil.example.org", "A", ["192.0.2.9"])), 7, ADDRESS) == Answer()


def test_no_such_name_and_no_such_record_are_answers_and_a_failure_is_none():
    assert decode_answer(_answer(ADDRESS, code=dns.rcode.NXDOMAIN), 7, ADDRESS) == Answer()
    assert decode_answer(_answer(ADDRESS), 7, ADDRESS) == Answer()
    for code in (dns.rcode.SERVFAIL, dns.rcode.REFUSED, dns.rcode.FORMERR):
        with pytest.raises(InvalidInput):
            decode_answer(_answer(ADDRESS, code=code), 7, ADDRESS)


def test_an_answer_to_another_question_is_refused():
    good = _answer(ADDRESS, ("acc.example.org", "A", ["192.0.2.7"]))
    for number, question in (
        (8, ADDRESS),
        (7, Question("bcc.example.org", RecordType.A)),
        (7, Question("acc.example.org", RecordType.AAAA)),
    ):
        with pytest.raises(InvalidInput):
            decode_answer(good, number, question)
    with pytest.raises(InvalidInput):
        decode_answer(encode_question(7, ADDRESS), 7, ADDRESS)  # our own question, sent back


def test_of_a_huge_answer_only_so_much_is_read():
    texts = [f"10.0.{n // 250}.{n % 250 + 1}" for n in range(3000)]
    assert len(decode_answer(_answer(ADDRESS, ("acc.example.org", "A", texts)), 7, ADDRESS).addresses) == RECORDS_MAX


def _with_name(name: bytes) -> bytes:
    """An answer whose first record has this as its owner; the record's name begins at byte 33."""
    asked = encode_question(7, ADDRESS)
    head = struct.pack("!HHHHHH", 7, 0x8180, 1, 1, 0, 0)
    return head + asked[12:33] + name + struct.pack("!HHIH", 1, 1, 60, 4) + bytes(4)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(b"\xc0\x21", id="itself"),
        pytest.param(b"\xc0\x30", id="forwards"),
        pytest.param(b"\x01a\xc0\x21", id="a circle that grows"),
        pytest.param(b"\x3f" + b"a" * 63 + (b"\x3f" + b"a" * 63) * 4 + b"\0", id="more than 253 characters"),
        pytest.param(b"\x80abc\0", id="a label of no known kind"),
        pytest.param(b"\x01\xff\0", id="not ASCII"),
    ],
)
def test_names_that_lead_nowhere_are_refused(name: bytes):
    with pytest.raises(InvalidInput):
        decode_answer(_with_name(name), 7, ADDRESS)


@given(st.binary(max_size=200), st.booleans())
def test_whatever_comes_is_an_answer_or_is_refused(noise: bytes, is_headed: bool):
    good = _answer(SERVICES, (SERVICES.name, "SRV", ["10 5 7443 acc.example.org."]))
    for data in (good[: len(good) - len(noise)] + noise if is_headed else noise, good[: len(noise)]):
        try:
            decode_answer(data, 7, SERVICES)
        except InvalidInput:
            pass


@given(st.data())
def test_one_bent_byte_is_an_answer_or_is_refused(data: st.DataObject):
    good = bytearray(_answer(SERVICES, (SERVICES.name, "SRV", ["10 5 7443 acc.example.org."])))
    good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    try:
        decode_answer(bytes(good), 7, SERVICES)
    except InvalidInput:
        pass


def test_names_are_checked_before_they_are_asked_for():
    assert check_name("Acc-1.Example.org.") == "acc-1.example.org"
    for text in ("", ".", "a..b", "a b", "-a.org", "a" * 64, ".".join(["abcdefg"] * 40), "münchen.de", "a/b"):
        with pytest.raises(InvalidInput):
            check_name(text)
