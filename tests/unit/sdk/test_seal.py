"""Sealed records between a renter and a host: what was not sent so does not open, and nothing of it is given on."""

import random
import socket
from collections.abc import Iterator

import pytest

from windrow import seal
from windrow.seal import SealedHost
from windrow_tunnel import seal as tunnel_seal
from windrow_tunnel.seal import HEAD_BYTES, PLAIN_BYTES, SEED_BYTES, TAG_BYTES, SealedEnd

SEED = bytes(range(SEED_BYTES))
BESIDE_BYTES = HEAD_BYTES + TAG_BYTES


class Line:
    """Two ends, and what the one has sealed in the hands of whoever is between them."""

    def __init__(self) -> None:
        self.sockets = *socket.socketpair(), *socket.socketpair()
        for one in self.sockets:
            one.setblocking(False)
        near, self._between_near, self._between_far, far = self.sockets
        self.renter, self.host = SealedHost(near, SEED), SealedEnd(far, SEED, b"", is_host=True)
        self.room = memoryview(bytearray(self.host.room_bytes))

    def said(self, data: bytes) -> bytes:
        """What the renter says, sealed."""
        assert self.renter.write(memoryview(data))
        return self._between_near.recv(len(data) + BESIDE_BYTES)

    def answered(self, data: bytes) -> bytes:
        """What the host says, sealed."""
        assert self.host.write(memoryview(data))
        return self._between_far.recv(len(data) + BESIDE_BYTES)

    def brought(self, data: bytes) -> bytes:
        """What the host makes of this."""
        self._between_far.sendall(data)
        return bytes(self.room[: self.host.open_into(self.room)])

    def brought_back(self, data: bytes) -> bytes:
        """What the renter makes of this."""
        self._between_near.sendall(data)
        return bytes(self.room[: self.renter.open_into(self.room)])


@pytest.fixture
def line() -> Iterator[Line]:
    """For one test."""
    found = Line()
    yield found
    for one in found.sockets:
        one.close()


def test_each_reads_what_the_other_has_sealed_and_nobody_else_does(line: Line) -> None:
    sealed = line.said(b"in the clear")
    assert len(sealed) == 12 + BESIDE_BYTES and b"clear" not in sealed
    assert line.brought(sealed) == b"in the clear"
    assert line.brought_back(line.answered(b"and back")) == b"and back"


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
    line.renter = SealedHost(line.renter.raw, bytes(SEED_BYTES))
    with pytest.raises(ConnectionAbortedError):
        line.brought(line.said(b"of another tunnel"))


def test_no_record_is_empty(line: Line) -> None:
    with pytest.raises(ConnectionAbortedError):
        line.brought(bytes(BESIDE_BYTES))


def test_the_keys_are_renewed_by_both_alike(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (seal, tunnel_seal):
        monkeypatch.setattr(module, "RECORDS_PER_KEY", 3)
    used = set()
    for number in range(10):
        assert line.brought(line.said(b"%d" % number)) == b"%d" % number
        used.add(line.host._other._cipher)
        kept = line.host._other._secret
    assert len(used) > 1 and kept != SEED
    monkeypatch.setattr(seal, "RECORDS_PER_KEY", 1 << 20)
    with pytest.raises(ConnectionAbortedError):  # so they were different ones
        for number in range(3):
            line.brought(line.said(b"%d" % number))


def test_what_has_come_with_the_greeting_is_the_first(line: Line) -> None:
    came = line.said(b"early") + line.said(b"later")
    line.host = SealedEnd(line.host.raw, SEED, came[:-1], is_host=True)
    assert bytes(line.room[: line.host.open_into(line.room)]) == b"early"
    assert line.brought(came[-1:]) == b"later"


def test_the_end_of_the_connection_is_told(line: Line) -> None:
    line._between_far.close()
    with pytest.raises(ConnectionResetError):
        line.host.open_into(line.room)


def test_both_ends_say_the_same_of_their_records() -> None:
    names = [name for name in dir(seal) if name.isupper() and name != "AESGCM"]
    assert len(names) >= 8
    assert [getattr(seal, name) for name in names] == [getattr(tunnel_seal, name) for name in names]
