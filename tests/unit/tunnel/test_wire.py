"""Messages of an end of a tunnel to an Access and to the other end: pinned bytes, and records in any pieces."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow_tunnel.errors import Malformed
from windrow_tunnel.wire import ACCEPTED, END, RECORD_BYTES_MAX, RecordReader, record, refusal, request


def test_the_bytes_are_pinned() -> None:
    """An end of one release meets an Access, and an end, of another."""
    assert request("GRANT", "access.windrow") == (
        b"GET /tunnel HTTP/1.1\r\nHost: access.windrow\r\nConnection: Upgrade\r\nUpgrade: windrow-tunnel/2\r\n"
        b"Authorization: Bearer GRANT\r\n\r\n"
    )
    assert ACCEPTED == (b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: windrow-tunnel/2\r\n\r\n")
    assert record(b"abc") + END == b"\0\0\0\3abc\0\0\0\0"


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=8), st.lists(st.integers(1, 9), min_size=1, max_size=60))
def test_records_come_whole_however_they_are_cut(sent: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(map(record, sent)) + END
    reader, found = RecordReader(), b""
    for cut in cuts:
        piece, stream = stream[:cut], stream[cut:]
        found += b"".join(reader.feed(piece))
    found += b"".join(reader.feed(stream))
    assert (found, reader.is_ended) == (b"".join(sent), True)


@pytest.mark.parametrize("head", [(RECORD_BYTES_MAX + 1).to_bytes(4, "big"), b"\xff" * 4])
def test_bytes_after_the_end_and_records_too_large_are_refused(head: bytes) -> None:
    reader = RecordReader()
    assert reader.feed(END) == [] and reader.is_ended
    with pytest.raises(Malformed):
        reader.feed(b"\0")
    with pytest.raises(Malformed):
        RecordReader().feed(head)


@pytest.mark.parametrize(
    ("answer", "words", "problem"),
    [
        (b'HTTP/1.1 409 Conflict\r\n\r\n{"code": "conflict"}', "409 Conflict", {"code": "conflict"}),
        (b"HTTP/1.1 502 Bad Gateway\r\n\r\n<html>", "502 Bad Gateway", {}),
        (b"HTTP/1.1 503 Busy\r\n\r\n" + json.dumps(["busy"]).encode(), "503 Busy", {}),
        (b"SSH-2.0-OpenSSH\r\n", "SSH-2.0-OpenSSH", {}),
        (b"", "no answer", {}),
    ],
)
def test_a_refusal_says_what_the_access_says(answer: bytes, words: str, problem: dict[str, str]) -> None:
    refused = refusal(answer)
    assert (str(refused), refused.problem) == (f"The relay refused the tunnel: {words}.", problem)
