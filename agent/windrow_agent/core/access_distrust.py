"""Remembers Accesses that kept messages back: for a while they are the last choice, and never out of question. Pure.

It may have been a fault; and a host that has no other goes on by such a one, which can only delay and drop. Else two of
them would keep a host away that both still serve.
"""

from typing import Final

from windrow_proto.units import MINUTE

DISTRUST_NS: Final = 10 * MINUTE


class Distrust:
    """Of which Accesses, by address, and until when. now_ns: of one monotonic clock."""

    def __init__(self) -> None:
        self._until_ns: dict[str, int] = {}

    def note(self, address: str, now_ns: int) -> None:
        """Notes that this Access has kept messages back."""
        self._until_ns = {one: until_ns for one, until_ns in self._until_ns.items() if until_ns > now_ns}
        self._until_ns[address] = now_ns + DISTRUST_NS

    def left_ns(self, address: str, now_ns: int) -> int:
        """For how long it goes on; 0: it is trusted. Whoever has least of it left is the better one of two."""
        return max(0, self._until_ns.get(address, 0) - now_ns)
