"""Which isolation is enough for whom. Pure.

A stranger on a host gets a whole card or a slice with memory and processors of its own in hardware (MIG). What only
software keeps apart (MPS, turns in time) is for the owner of the host, beside nobody but itself.
"""

from typing import Final

from windrow_proto.model import Isolation

FOR_STRANGERS: Final = frozenset({Isolation.WHOLE, Isolation.MIG})


def forbidden(isolation: Isolation, is_own: bool) -> str | None:
    """Why an account may not have a part of a card; None: it may. is_own: the host is the account's own."""
    if is_own or isolation in FOR_STRANGERS:
        return None
    return f"kept apart by {isolation.name.lower()} only, which is for its host's owner"
