"""Fuzz of every parser: garbage comes out as a WindrowError, soon, and costs no more memory than it is long.

Short here; `make torture` gives each parser a million inputs (FUZZ=n for another number).
"""

import functools
import os
import random
import signal
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.torture.mutate import mutated
from tests.torture.parsers import Parser, all_parsers, outcome
from windrow_proto.errors import WindrowError
from windrow_proto.samples import VALUES_MAX, decode_batch, parse_batch
from windrow_proto.units import MIB
from windrow_proto.v1 import host_pb2, link_pb2
from windrow_proto.wire_fields import CONTROL_BYTES_MAX, TELEMETRY_BYTES_MAX

INPUTS = int(os.environ.get("FUZZ") or ("1000000" if os.environ.get("TORTURE") else "400"))
FIRST = int(os.environ.get("SEED") or "1")
HANG_S = 5.0
"""Of processor time for one input: a thousand times what the largest honest message takes."""
PARSERS = all_parsers()


class Hung(Exception):
    """One input took too long."""


@contextmanager
def deadline() -> Iterator[None]:
    def late(*_: object) -> None:
        raise Hung

    before = signal.signal(signal.SIGVTALRM, late)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_a_parser_refuses_garbage_in_our_own_words(parser: Parser) -> None:
    luck = random.Random(f"{FIRST} {parser.name}")
    for good in parser.seeds:
        assert outcome(parser, good) == ""
        parser.read(good)
    with deadline():
        for number in range(INPUTS):
            data = mutated(luck, parser.seeds)
            if number % 256 == 0:  # re-armed now and then: what hangs never gets there
                signal.setitimer(signal.ITIMER_VIRTUAL, HANG_S * 4)
            assert outcome(parser, data) == "", f"input {number}"


FOUND = (
    ("journal", b'["tombstone", "work_1", 1e999]'),
    ("store's answer", b'{"status": "success", "data": {"result": [1]}}'),
    ("store's answer", b'{"status": "success", "data": {"result": [{"values": [[1e999, "1"]]}]}}'),
    ("store's answer", b'{"status": "success", "data": {"result": {"metric": 5}}}'),
)
"""The inputs that the fuzz found once, each at its shortest."""


@pytest.mark.parametrize(("name", "data"), FOUND)
def test_what_was_found_once_stays_refused(name: str, data: bytes) -> None:
    parser = next(parser for parser in PARSERS if parser.name == name)
    assert outcome(parser, data) == ""


# --- bombs ------------------------------------------------------------------------------------------------------------


@functools.cache
def flood() -> bytes:
    """256 MiB of zeros, deflated."""
    squeezer = zlib.compressobj(level=9, wbits=-15)
    return b"".join(squeezer.compress(bytes(MIB)) for _ in range(256)) + squeezer.flush()


def batch(**fields: Any) -> bytes:
    """A batch of telemetry on the wire."""
    return host_pb2.TelemetryBatch(**fields).SerializeToString()


BOMBS: dict[str, Callable[[], bytes]] = {
    "deflated to 256 MiB": lambda: batch(deflated=flood()),
    "deflated twice": lambda: batch(deflated=batch(deflated=flood()[:1_000])),
    "more values than a batch has": lambda: batch(at_ms=[0], metric=[1], device=[0], values=[0] * 250_000),
    "counts that do not fit": lambda: batch(at_ms=range(4_096), metric=[1] * 4_096),
    "two million empty messages": lambda: b"\x12\x00" * (CONTROL_BYTES_MAX // 2),
    "half a million empty texts": lambda: b"\x2a\x00" * (TELEMETRY_BYTES_MAX // 2),
    "varints without end": lambda: b"\xff" * TELEMETRY_BYTES_MAX,
    "groups in groups": lambda: b"\x0b" * TELEMETRY_BYTES_MAX,
    "one byte too long": lambda: bytes(CONTROL_BYTES_MAX + 1),
}
"""Small on the wire, large in memory, if somebody let them; made only where they are tried."""


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_before_it_costs(name: str) -> None:
    data = BOMBS[name]()
    for read in [parser.read for parser in PARSERS if parser.name not in ("segment", "journal")]:
        tracemalloc.start()
        try:
            read(data)
        except WindrowError:
            pass
        finally:
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert peak <= 48 * MIB, f"{read} took {peak} bytes for {len(data)}"


def test_what_is_over_the_limit_is_not_parsed_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    over = bytes(TELEMETRY_BYTES_MAX + 1)
    for read in (decode_batch, parse_batch):
        with pytest.raises(WindrowError) as refused:
            read(over)
        assert refused.value.code == "too_large"


def test_a_batch_of_the_largest_size_is_read() -> None:
    full = host_pb2.TelemetryBatch(at_ms=[0], metric=[1] * VALUES_MAX, device=[0] * VALUES_MAX, values=[0] * VALUES_MAX)
    assert len(parse_batch(full.SerializeToString()).values) == VALUES_MAX


def test_the_fuzz_catches_a_parser_that_lets_something_else_out() -> None:
    def careless(data: bytes) -> object:
        return link_pb2.Frame.FromString(data)

    luck = random.Random(1)
    parser = Parser("careless", careless, (link_pb2.Frame(sequence=5, sealed=b"x" * 50).SerializeToString(),))
    assert any(outcome(parser, mutated(luck, parser.seeds)) for _ in range(200))
