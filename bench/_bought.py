"""A machine that is bought for one job, by the shipped decisions in virtual time: `burst` asks what its book says."""

import random
from dataclasses import replace
from typing import Final

from windrow_master.hybrid.backends.port import Machine, MachineOffer, MachineState, PurchaseId
from windrow_master.hybrid.purchases import costs
from windrow_master.hybrid.purchases.controller import LOOK_EVERY_NS
from windrow_master.hybrid.purchases.decide import Effect, Look, begun, decide, moved
from windrow_master.hybrid.purchases.model import NOTHING, Purchase, Rules
from windrow_master.hybrid.purchases.states import Event, State
from windrow_proto.ids import AccountId, HostId
from windrow_proto.units import HOUR, MINUTE, SECOND, Microcents

BEGINS_NS: Final = 1_790_000_000 * SECOND
LIST_LAG_NS: Final = 2 * MINUTE
SHUTS_DOWN_S: Final = 1, 60
"""From the call that ends a machine to its end, which is not billed; our judgement."""
TURNS_MAX: Final = 100_000


def cost_of_job(offer: MachineOffer, start_s: float, work_s: float, chance: random.Random) -> Microcents:
    """The entry of the book of costs: for a machine whose host joins after so long and then works so long."""
    rules, now = Rules(list_lag_ns=LIST_LAG_NS), BEGINS_NS
    joins_ns = now + int(start_s * SECOND)
    ends_ns = joins_ns + int(work_s * SECOND)
    ended_ns: int | None = None
    one = _bought(offer, now, ends_ns + 12 * HOUR)
    now += chance.randrange(LOOK_EVERY_NS)
    for _ in range(TURNS_MAX):
        if one.host_id is None and now >= joins_ns:
            one = replace(one, host_id=HostId("host"))
        machine = Machine(
            machine_id="m",
            state=MachineState.RUNNING if ended_ns is None else MachineState.TERMINATED,
            said="",
            market_id="market",
            purchase_id=one.purchase_id,
            launched_at_ns=BEGINS_NS,
            ended_at_ns=ended_ns,
        )
        decision = decide(one, Look(True, now, machine, joins_ns <= now < ends_ns), rules, now)
        one = decision.purchase
        if Effect.TERMINATE in decision.effects and ended_ns is None:
            ended_ns = now + chance.randrange(*SHUTS_DOWN_S) * SECOND
        if Effect.BOOK in decision.effects:
            return costs.entry(one, (), NOTHING, now).cost
        now += LOOK_EVERY_NS
    raise RuntimeError(f"a machine of {work_s:.0f} s of work is {one.state} and never gone")


def _bought(offer: MachineOffer, now: int, ends_at_ns: int) -> Purchase:
    dearest = costs.dearest(offer.price_per_hour)
    wanted = Purchase(
        purchase_id=PurchaseId("purchase"),
        backend="aws",
        account_id=AccountId("account"),
        bought_by="bench",
        offer=offer,
        state=State.WANTED,
        state_since_ns=now,
        created_at_ns=now,
        ends_at_ns=ends_at_ns,
        dearest_per_hour=dearest,
        reserved=costs.worst_case(offer, dearest, ends_at_ns - now),
    )
    asked = replace(begun(wanted, now, 1), machine_id="m", launched_at_ns=now)
    return moved(asked, Event.FOUND, now)
