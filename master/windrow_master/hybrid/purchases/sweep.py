"""Ends all that carries a market's tag at a provider and belongs to no living purchase; what carries another market's
tag, or none, is never touched."""

from collections.abc import Awaitable, Callable, Mapping

from windrow_master.hybrid.backends.port import Backend, Doubtful, MachineState, PurchaseId, Refused
from windrow_master.hybrid.purchases.model import Found, SweepResult

Living = Callable[[], Awaitable[Mapping[PurchaseId, str]]]
"""Reads the living purchases, each with the id of its machine; empty: that is not known yet."""


async def nothing_lives() -> Mapping[PurchaseId, str]:
    """For a market that is no more: all that it bought is to end."""
    return {}


async def sweep(backend: Backend, market_id: str, living: Living) -> SweepResult:
    """Look once, and ask for the end of what nobody has any more. Raises Refused, Doubtful where nothing can be seen.

    The living are read after the list: whatever is in it was written down before it was bought.
    """
    machines, leftovers = await backend.describe(market_id), await backend.leftovers(market_id)
    known = await living()
    ended, left, unknown = list[Found](), list[Found](), list[Found]()
    for machine in machines:
        words = f"{machine.offer_id} {machine.zone}: {machine.said}, bought in term {machine.epoch}"
        found = Found(machine.machine_id, machine.purchase_id, words)
        is_bought = known.get(machine.purchase_id) in ("", machine.machine_id)
        if is_bought or machine.market_id != market_id or machine.state is MachineState.TERMINATED:
            left.append(found)
        else:
            is_asked = await _try(backend.terminate(machine.machine_id))
            (ended if is_asked else unknown).append(found)
    for leftover in leftovers:
        found = Found(leftover.leftover_id, leftover.purchase_id, leftover.kind)
        if leftover.market_id != market_id or leftover.purchase_id in known:
            left.append(found)
        else:
            (ended if await _try(backend.remove(leftover)) else unknown).append(found)
    return SweepResult(tuple(ended), tuple(left), tuple(unknown))


async def _try(call: Awaitable[None]) -> bool:
    """True where the provider has taken it; else the next sweep asks again."""
    try:
        await call
    except (Refused, Doubtful):
        return False
    return True
