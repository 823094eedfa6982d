"""Rentals and receipts for the tests of the market."""

from windrow_master.market.model import Rental, RentalId, RentalLine, RentalState
from windrow_proto.ids import AccountId, ClusterId, HostId, SlotId, WorkloadId
from windrow_proto.model import Receipt, SlotGrant
from windrow_proto.units import HOUR, MICROCENTS_PER_UNIT, SECOND, Microcents

RENTER, PROVIDER = AccountId("account_renter"), AccountId("account_provider")
HOST, CLUSTER, WORKLOAD = HostId("host_a"), ClusterId("cluster_a"), WorkloadId("workload_a")
RENTAL = RentalId("rental_a")
GRANT = SlotGrant(SlotId("GPU-1"), 7)
START = 1_000 * HOUR
PRICE = Microcents(2 * MICROCENTS_PER_UNIT)


def rental(price: Microcents = PRICE, fee_permille: int = 0) -> Rental:
    return Rental(RENTAL, CLUSTER, "demo", RENTER, "h100/A", price, fee_permille, False, RentalState.OPEN, START)


def line(price: Microcents = PRICE, lease_ns: int = 10 * HOUR) -> RentalLine:
    return RentalLine(WORKLOAD, RENTAL, HOST, PROVIDER, price, (GRANT,), START, START + lease_ns, START)


def receipt(number: int = 1, running_ns: int = 10 * SECOND, final: bool = False, reason: str = "") -> Receipt:
    return Receipt(
        WORKLOAD, CLUSTER, (GRANT,), number, running_ns, START, START + running_ns, final, 0 if final else None, reason
    )
