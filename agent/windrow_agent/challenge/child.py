"""The prover's process: `python -m windrow_agent.challenge.child --gpu UUID --size N`.

 stdout ◀ ready (the device's name, and how much of its memory can be filled)     compiled, with all it needs
 stdin  ▶ Challenge                     the work begins when this is read
 stdout ◀ Commitment
 stdin  ▶ Selection
 stdout ◀ Answer                        where the memory is to be filled, what was taken for this is given back
 stdin  ▶ Fill
 stdout ◀ Filled
 stdin  ▶ Probe
 stdout ◀ Values

It ends when stdin does, and after a failure, which it says in place of what was asked. A driver may hang, crash or
print: that is why it is a process of its own, at the lowest priority, whose real stdout no library can reach.
"""

import argparse
import os
import sys
from typing import BinaryIO, Final

from windrow_agent.challenge.memory import Memory
from windrow_agent.challenge.opencl import ComputeFailed, OpenCl
from windrow_agent.challenge.prover import Prover, choose, open_session
from windrow_agent.challenge.records import DONE, FAILED, FAILURE_MAX, HEAD, read_head, record
from windrow_proto.errors import WindrowError
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

NICENESS: Final = 19


def serve(gpu_uuid: str, size: int, asked: BinaryIO, told: BinaryIO) -> None:
    """One challenge from beginning to end; raises ComputeFailed or WindrowError, EOFError where stdin ends."""
    opencl = OpenCl()
    device = choose(opencl, gpu_uuid)
    with open_session(opencl, device) as session:
        prover = Prover(session, device, size)
        _tell(told, f"{device.name}\n{device.fill_bytes}".encode())
        challenge = decode_challenge(_hear(asked))
        _tell(told, encode_commitment(prover.commit(challenge)))
        selection = decode_selection(_hear(asked))
        _tell(told, encode_answer(prover.answer(challenge, selection)))
        fill = decode_fill(_hear(asked))
    with open_session(opencl, device) as session:
        memory = Memory(session)
        _tell(told, encode_filled(memory.fill(fill, challenge.id)))
        _tell(told, encode_values(memory.values(decode_probe(_hear(asked)))))


def _hear(asked: BinaryIO) -> bytes:
    head = asked.read(HEAD.size)
    if len(head) < HEAD.size:
        raise EOFError
    size, _ = read_head(head)
    body = asked.read(size)
    if len(body) < size:
        raise EOFError
    return body


def _tell(told: BinaryIO, body: bytes, mark: int = DONE) -> None:
    told.write(record(body, mark))
    told.flush()


def main() -> int:
    """Serve, and say what failed."""
    parser = argparse.ArgumentParser(description="Answer one compute challenge on one device.")
    parser.add_argument("--gpu", required=True)
    parser.add_argument("--size", type=int, required=True)
    arguments = parser.parse_args()
    os.nice(NICENESS)
    told = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a driver prints goes where errors go
    try:
        serve(arguments.gpu, arguments.size, sys.stdin.buffer, told)
    except EOFError:
        return 0
    except (ComputeFailed, WindrowError) as failure:
        _tell(told, str(failure)[:FAILURE_MAX].encode(), FAILED)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
