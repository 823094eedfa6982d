"""Reachability tests that hosts are told, and their answers."""

import json

import pytest

from windrow_proto.errors import InvalidInput
from windrow_proto.reachability import (
    PLACES_MAX,
    Listening,
    Place,
    Seen,
    decode_listening,
    decode_places,
    decode_seen,
    encode_listening,
    encode_places,
    encode_seen,
)


def test_every_message_comes_back_as_it_was():
    listening, places = Listening(5, "ab", "no TUN"), (Place("10.0.0.1", 5), Place("10.0.0.2", 65_535))
    seen = (Seen("ab"), Seen(why="no answer"))
    assert decode_listening(encode_listening(listening)) == listening
    assert decode_places(encode_places(places)) == places
    assert decode_seen(encode_seen(seen)) == seen


@pytest.mark.parametrize("bad", [b"", b"\xff", b"[" * 40_000, b"[" * 9_000, b"1", b'{"port": 0}', b'{"port": true}'])
def test_what_is_no_message_is_refused(bad):
    for decode in (decode_listening, decode_places, decode_seen):
        with pytest.raises(InvalidInput):
            decode(bad)


def test_a_look_has_a_limit_of_places():
    with pytest.raises(InvalidInput):
        decode_places(json.dumps([["10.0.0.1", 1]] * (PLACES_MAX + 1)).encode())
