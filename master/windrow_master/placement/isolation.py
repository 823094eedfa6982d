"""Decides which isolation of a slot is enough for which renter. Pure.

A stranger on a host gets a whole card or a slice with memory and processors of its own in hardware (MIG). What only
software keeps apart (MPS, turns in time) is for the owner of the host, beside nobody but itself.
"""

from typing import Final

from windrow_master.placement.model import Runtime
from windrow_proto.model import Isolation

FOR_STRANGERS: Final = frozenset({Isolation.WHOLE, Isolation.MIG})


def forbidden(isolation: Isolation, is_own: bool, runtime: Runtime) -> str | None:
    """Return why an account may not have a part of a card; None: it may. is_own: the host is the account's own."""
    if not is_own and isolation not in FOR_STRANGERS:
        return f"kept apart by {isolation.name.lower()} only, which is for its host's owner"
    if isolation is Isolation.MPS and runtime is Runtime.DOCKER:
        return "kept apart by mps, which serves plain processes and no containers: name no image"
    return None
