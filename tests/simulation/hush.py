"""Secrets of one history, each with looks of its own, and everything that the shells logged: what I11 is judged by."""

import base64
import hashlib
import re
from dataclasses import dataclass, field
from typing import Final

MARK: Final = "hush-"
"""How everything begins that renters keep in their clusters' environment."""
KEY: Final = b"hush key"
"""And every private key of a member, so that one look finds any of them."""
KEYS: Final = (KEY, KEY.hex().encode(), base64.b64encode(KEY[:6]))
"""As it is or as text prints it, in hexadecimal, in base 64."""
TOKEN: Final = re.compile(rb"wj_[A-Za-z0-9_-]{43}\.")


@dataclass
class Hush:
    """The secrets that must be told to nobody, and those that were told."""

    seed: int
    logged: list[str] = field(default_factory=list)
    """Every event of a log, as the shell gave it, before anything is taken out of it for printing."""

    def of(self, what: str) -> str:
        """A renter's secret for this."""
        return MARK + hashlib.sha256(f"{self.seed}|{what}".encode()).hexdigest()

    @staticmethod
    def key(chance: bytes) -> bytes:
        """A member's private key, of 32 bytes of chance."""
        return (KEY + chance)[: len(chance)]


def found_in(data: bytes) -> str:
    """Returns the secrets of a member that are in there, in words; empty: nothing."""
    if any(key in data for key in KEYS):
        return "the private key of a member"
    return "a token for joining" if TOKEN.search(data) else ""
