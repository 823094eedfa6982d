"""Keeps the tickets by which a browser opens a terminal: short, for one use and one cluster. Pure: times are values.

A WebSocket carries no header of its caller's choice, so who asked, and as which session, is in the ticket; only the
hash of its secret is kept.
"""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from windrow_master.identity.model import Principal
from windrow_proto.errors import TooMany, Unauthenticated
from windrow_proto.ids import ClusterId
from windrow_proto.units import SECOND

TICKET_LIFE_NS: Final = 30 * SECOND
"""A browser comes with it at once; a slow line needs some seconds for the handshake."""
TICKETS_MAX: Final = 1_024
TICKETS_OF_ACCOUNT: Final = 16
"""That wait to be used; the oldest makes way."""


@dataclass(frozen=True, slots=True)
class TerminalTicket:
    """One ticket. is_allowed: whether whoever asked for it might do so again now, by the same session or token."""

    principal: Principal
    cluster_id: ClusterId
    rank: int
    is_allowed: Callable[[], Awaitable[bool]]


class TerminalTickets:
    """All that wait to be used, by the hashes of their secrets; the oldest first."""

    def __init__(self) -> None:
        self._waiting: dict[bytes, tuple[int, TerminalTicket]] = {}

    def keep(self, secret: str, ticket: TerminalTicket, now_ns: int) -> None:
        """Let it be used within TICKET_LIFE_NS. Raises TooMany."""
        self._waiting = {key: held for key, held in self._waiting.items() if held[0] > now_ns}
        own = [key for key, (_, one) in self._waiting.items() if one.principal.holder == ticket.principal.holder]
        if len(own) >= TICKETS_OF_ACCOUNT:
            del self._waiting[own[0]]
        if len(self._waiting) >= TICKETS_MAX:
            raise TooMany("Too many terminals are being opened at once.", retry_after_ns=SECOND)
        self._waiting[_key(secret)] = now_ns + TICKET_LIFE_NS, ticket

    def take(self, secret: str, cluster_id: ClusterId, now_ns: int) -> TerminalTicket:
        """Use it, whatever comes of it. Raises Unauthenticated for one that is unknown, used, too old or another
        cluster's."""
        ends_ns, ticket = self._waiting.pop(_key(secret), (0, None))
        if ticket is None or ends_ns <= now_ns or ticket.cluster_id != cluster_id:
            raise Unauthenticated("This ticket for a terminal is not valid, or was used. Open the terminal again.")
        return ticket

    def __len__(self) -> int:
        return len(self._waiting)


def _key(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
