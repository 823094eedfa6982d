"""A prover in numpy for tests, where a real one would be: `-m tests.support.cheating_prover WAY --gpu UUID --size N`.

WAY: honest; wrong (a tenth of each product); replay (an answer to another nonce); stall (never a commitment); crash;
turns (every card but the first commits later than it, as one card that answers for several does); small (half as much
memory as asked), aliased (the second half of its memory is the first once more), filling (ends while it fills).
"""

import argparse
import sys
import time
from dataclasses import replace

from tests.unit.challenge.reference import honest, prove, wrong_share
from windrow_agent.challenge.child import _hear, _tell
from windrow_proto.challenge import KEY_BYTES, Challenge
from windrow_proto.fill import LINE_BLOCKS, Filled, Values, block
from windrow_proto.wire_challenge import (
    decode_challenge,
    decode_fill,
    decode_probe,
    decode_selection,
    encode_answer,
    encode_commitment,
    encode_filled,
    encode_values,
)

WAYS = ("honest", "wrong", "replay", "stall", "crash", "turns", "small", "aliased", "filling")
FILLING = WAYS[-3:]
TURN_S = 3.0


def done(challenge: Challenge, way: str) -> Challenge:
    """The challenge that is worked at."""
    return replace(challenge, nonce=bytes(KEY_BYTES)) if way == "replay" else challenge


def fill(challenge: Challenge, way: str) -> None:
    """Answer for a memory that is not there."""
    asked, told = sys.stdin.buffer, sys.stdout.buffer
    wanted = decode_fill(_hear(asked))
    if way == "filling":
        return
    _tell(told, encode_filled(Filled(wanted.lines // 2 if way == "small" else wanted.lines)))
    half = wanted.lines * LINE_BLOCKS // 2
    numbers = decode_probe(_hear(asked)).blocks
    key = wanted.key(challenge.id)
    _tell(told, encode_values(Values(b"".join(block(key, number % half) for number in numbers))))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("way", choices=WAYS)
    parser.add_argument("--gpu")
    parser.add_argument("--size", type=int)
    arguments = parser.parse_args()
    asked, told = sys.stdin.buffer, sys.stdout.buffer
    _tell(told, b"a card of numpy" + (b"\n1073741824" if arguments.way in FILLING else b""))
    challenge = decode_challenge(_hear(asked))
    if arguments.way == "crash":
        return 1
    if arguments.way == "stall":
        time.sleep(600)
    if arguments.way == "turns":
        time.sleep(TURN_S * int(arguments.gpu.rpartition("-")[2]))
    worked = done(challenge, arguments.way)
    prover = prove(worked, wrong_share(0.1, 1) if arguments.way == "wrong" else honest)
    _tell(told, encode_commitment(prover.commitment))
    selection = decode_selection(_hear(asked))
    _tell(told, encode_answer(prover.answer(worked, selection)))
    if arguments.way in FILLING:
        fill(challenge, arguments.way)
    return 0


if __name__ == "__main__":
    sys.exit(main())
