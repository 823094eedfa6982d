"""Errors of tunnels; each program turns them into its own."""

from typing import Any


class TunnelError(Exception):
    """A tunnel did not come about, or ended before its time."""


class Malformed(TunnelError):
    """The other side says what no side of a tunnel says."""


class Cut(TunnelError):
    """The other end of the tunnel, or the Access, has cut the connection."""


class LocalCut(TunnelError):
    """The connection at this end of the tunnel was cut."""


class Refused(TunnelError):
    """An Access does not join a tunnel. problem: its reason (RFC 9457); empty where it gave none."""

    def __init__(self, detail: str, problem: dict[str, Any]) -> None:
        super().__init__(detail)
        self.problem = problem
