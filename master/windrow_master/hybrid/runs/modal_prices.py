"""The offers of Modal with all that a sandbox is billed for, from the price book. Pure.

The list price is that of GPUs that Modal may take back; processors and memory are billed besides, for a sandbox at
three times what a function pays.
"""

from datetime import date
from typing import Final

from windrow_master.hybrid.backends.port import Billing, MachineOffer
from windrow_master.prices.book import PriceBook, State
from windrow_master.prices.offers import Kind
from windrow_proto.units import GIB, Bytes, Microcents, parse_money

PROVIDER: Final = "modal"
"""In the price book, and the kind of its backends."""
CORE_PER_HOUR: Final = parse_money("0.141912")
GIB_PER_HOUR: Final = parse_money("0.024192")
"""Of a sandbox: 0.00003942 USD a second for a core, which is two processors, and 0.00000672 for a GiB."""
PRICED_ON: Final = date(2026, 6, 27)
CPUS_OF_GPU, GIB_OF_GPU = 8, 32
"""Asked for beside each GPU."""
GPUS: Final = (1, 2, 4, 8)
SIZES: Final = ((2, 4), (4, 16), (8, 32), (16, 64))
"""Processors and GiB of memory without a GPU."""


def offers_of(book: PriceBook, today: date) -> list[MachineOffer]:
    """GPUs at the price book's current prices, and sizes without one; each with its processors and memory."""
    rows = [one.offer for one in book.find(today) if one.state is State.CURRENT]
    found = [_offer(f"cpu={cpus}", "", 0, cpus, gib, Microcents(0), PRICED_ON) for cpus, gib in SIZES]
    for row in (one for one in rows if one.provider.name == PROVIDER and one.gpu_count == 1):
        for count in GPUS:
            size = count * CPUS_OF_GPU, count * GIB_OF_GPU
            price = Microcents(count * row.per_hour)
            found.append(_offer(f"{row.name}:{count}", row.gpu, count, *size, price, row.source.read_on or PRICED_ON))
    return found


def _offer(name: str, gpu: str, gpus: int, cpus: int, gib: int, gpu_price: Microcents, read_on: date) -> MachineOffer:
    price = gpu_price + -(-CORE_PER_HOUR * cpus // 2) + GIB_PER_HOUR * gib
    return MachineOffer(
        offer_id=name,
        kind=Kind.SPOT if gpus else Kind.ON_DEMAND,
        gpu=gpu,
        gpu_count=gpus,
        cpus=cpus,
        memory_bytes=Bytes(gib * GIB),
        region="us",
        price_per_hour=Microcents(price),
        currency="USD",
        priced_on=read_on,
        billing=Billing(1, 1),
        is_run=True,
    )
