"""Values of the audit log: its signed head, and what a verification found. Pure."""

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Head:
    """The last entry at some moment: whoever holds this notices when anything up to it was changed or cut off."""

    number: int
    chain: bytes
    at_ns: int

    @property
    def claim(self) -> bytes:
        """The bytes that are signed."""
        return json.dumps([self.number, self.chain.hex(), self.at_ns], separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of recomputing the whole chain. first_broken: the first entry that does not follow from those
    before."""

    entries: int
    first_broken: int | None
    problem: str | None
    head: Head | None
    anchor: Head | None

    @property
    def intact(self) -> bool:
        """True if nothing was found."""
        return self.problem is None


def seal(head: Head, signature: bytes) -> bytes:
    """The anchor's file: the head and the Master's signature over it."""
    record = {"number": head.number, "chain": head.chain.hex(), "at_ns": head.at_ns, "signature": signature.hex()}
    return json.dumps(record).encode() + b"\n"


def unseal(data: bytes) -> tuple[Head, bytes]:
    """The head and its signature, not yet checked; ValueError for anything that `seal` did not write."""
    try:
        record = json.loads(data)
        head = Head(int(record["number"]), bytes.fromhex(record["chain"]), int(record["at_ns"]))
        return head, bytes.fromhex(record["signature"])
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("this is no sealed head of an audit log") from error
