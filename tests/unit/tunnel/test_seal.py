"""Sealed records between a renter and a host: only records that were sent so open, in their order."""

import contextlib
import random
import socket
from collections.abc import Iterator

import pytest

from windrow_tunnel.seal import HEAD_BYTES, PLAIN_BYTES, RECORDS_PER_KEY, SEED_BYTES, TAG_BYTES, SealedEnd

SEED = bytes(range(SEED_BYTES))
BESIDE_BYTES = HEAD_BYTES + TAG_BYTES


class Line:
    """Two ends, and somebody between them who has all that they seal."""

    def __init__(self, records_per_key: int = RECORDS_PER_KEY) -> None:
        self.sockets = *socket.socketpair(), *socket.socketpair()
        for one in self.sockets:
            one.setblocking(False)
        near, self._between_near, self._between_far, far = self.sockets
        self.renter = SealedEnd(near, SEED, is_host=False, records_per_key=records_per_key)
        self.host = SealedEnd(far, SEED, is_host=True, records_per_key=records_per_key)
        self.room = memoryview(bytearray(self.host.buffer_bytes))

    def said(self, data: bytes) -> bytes:
        """Returns the renter's message, sealed."""
        assert self.renter.write(memoryview(data))
        return self._between_near.recv(len(data) + BESIDE_BYTES)

    def answered(self, data: bytes) -> bytes:
        """Returns the host's message, sealed."""
        assert self.host.write(memoryview(data))
        return self._between_far.recv(len(data) + BESIDE_BYTES)

    def brought(self, data: bytes) -> bytes:
        """Returns what the host makes of this."""
        self._between_far.sendall(data)
        return bytes(self.room[: self.host.open_into(self.room)])

    def brought_back(self, data: bytes) -> bytes:
        """Returns what the renter makes of this."""
        self._between_near.sendall(data)
        return bytes(self.room[: self.renter.open_into(self.room)])

    def close(self) -> None:
        for one in self.sockets:
            one.close()


@pytest.fixture
def line() -> Iterator[Line]:
    """For one test."""
    with contextlib.closing(Line()) as found:
        yield found


def test_each_reads_what_the_other_has_sealed_and_nobody_else_does(line: Line) -> None:
    sealed = line.said(b"in the clear")
    assert len(sealed) == 12 + BESIDE_BYTES and b"clear" not in sealed
    assert line.brought(sealed) == b"in the clear"
    assert line.brought_back(line.answered(b"and back")) == b"and back"


@pytest.mark.parametrize(
    ("is_host", "per_key", "sealed"),
    [
        (False, 2, "0000000c3f1d5fd677f9e70b597d4b4b89b1d609b304ddf95b5e03f89a0a2884"
                   "00000008ad99fd0e3e8951d48a22eabb6f0daeb7c47e991fe0de9cd4"),
        (True, 2, "0000000cf38478863a5a35134c13254da3b1efbd8b713c2c4ed4b0000502f6d9"
                  "0000000895895cebf884c82b15bdcc3b9311b3b71ac83aeb4ea3c3dd"),
        (False, 1, "0000000c3f1d5fd677f9e70b597d4b4b89b1d609b304ddf95b5e03f89a0a2884"
                   "0000000855f831338bdacba8d335e402caa0d25a55dfaaaecad9895a"),
    ],
    ids=["renter", "host", "renewed key"],
)  # fmt: skip
def test_the_sealed_bytes_are_pinned(is_host: bool, per_key: int, sealed: str) -> None:
    """The two ends may be of different releases."""
    with contextlib.closing(Line(per_key)) as line:
        says = line.answered if is_host else line.said
        assert (says(b"in the clear") + says(b"and more")).hex() == sealed


def test_records_of_any_size_open_in_any_pieces(line: Line) -> None:
    drawn = random.Random(1)
    for _ in range(60):
        many = [drawn.randbytes(drawn.choice((1, 7, 300, 9_000, 30_000))) for _ in range(drawn.randint(1, 4))]
        sealed, came = b"".join(map(line.said, many)), b""
        while sealed:
            cut = drawn.choice((1, 3, 4, 5, 19, 2_000, 200_000))
            came, sealed = came + line.brought(sealed[:cut]), sealed[cut:]
        assert came == b"".join(many)


def test_the_largest_opens_and_no_larger_is_waited_for(line: Line) -> None:
    """On a socket that holds it whole."""
    for one in line.sockets:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * PLAIN_BYTES)
    much = random.Random(2).randbytes(PLAIN_BYTES)
    assert line.brought(line.said(much)) == much
    with pytest.raises(ConnectionAbortedError):
        line.brought((PLAIN_BYTES + 1).to_bytes(HEAD_BYTES, "big"))


@pytest.mark.parametrize("at", [*range(HEAD_BYTES), HEAD_BYTES, HEAD_BYTES + 5, -TAG_BYTES, -1])
def test_a_changed_byte_opens_nothing(line: Line, at: int) -> None:
    """Of its length, too: so a shorter one is no other record, and a longer one never whole."""
    changed = bytearray(line.said(b"as it was said"))
    changed[at] ^= 2
    try:
        assert line.brought(bytes(changed)) == b""
        assert line.brought(line.said(b"after it")) == b""
    except ConnectionAbortedError:
        pass


def test_a_repeated_record_does_not_open(line: Line) -> None:
    once = line.said(b"once")
    assert line.brought(once) == b"once"
    with pytest.raises(ConnectionAbortedError):
        line.brought(once)


def test_a_record_before_its_turn_does_not_open(line: Line) -> None:
    line.said(b"left out")
    with pytest.raises(ConnectionAbortedError):
        line.brought(line.said(b"after it"))


def test_what_one_has_said_does_not_open_for_itself(line: Line) -> None:
    with pytest.raises(ConnectionAbortedError):
        line.brought_back(line.said(b"mirrored"))


def test_another_seed_opens_nothing(line: Line) -> None:
    line.renter = SealedEnd(line.renter.raw, bytes(SEED_BYTES), is_host=False)
    with pytest.raises(ConnectionAbortedError):
        line.brought(line.said(b"of another tunnel"))


def test_no_record_is_empty(line: Line) -> None:
    with pytest.raises(ConnectionAbortedError):
        line.brought(bytes(BESIDE_BYTES))


def test_the_keys_are_renewed_by_both_alike() -> None:
    used = set()
    with contextlib.closing(Line(records_per_key=3)) as line:
        for number in range(10):
            assert line.brought(line.said(b"%d" % number)) == b"%d" % number
            used.add(line.host._other._cipher)
            kept = line.host._other._secret
        assert len(used) == 4 and kept != SEED


def test_a_key_that_one_end_alone_has_renewed_opens_nothing(line: Line) -> None:
    line.renter = SealedEnd(line.renter.raw, SEED, is_host=False, records_per_key=3)
    for number in range(3):
        line.brought(line.said(b"%d" % number))
    with pytest.raises(ConnectionAbortedError):
        line.brought(line.said(b"3"))


def test_what_has_come_with_the_greeting_is_the_first(line: Line) -> None:
    came = line.said(b"early") + line.said(b"later")
    line.host = SealedEnd(line.host.raw, SEED, came[:-1], is_host=True)
    assert bytes(line.room[: line.host.open_into(line.room)]) == b"early"
    assert line.brought(came[-1:]) == b"later"


def test_the_end_of_the_connection_is_told(line: Line) -> None:
    line._between_far.close()
    with pytest.raises(ConnectionResetError):
        line.host.open_into(line.room)
