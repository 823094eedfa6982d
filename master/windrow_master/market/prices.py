"""Suggests a price for an hour of a tier whose owner names none, from the price book.

Test money is counted in the same numbers as US dollars. Of several quotes the lower median is taken; grade A is
suggested at that price, B at 85 % and C at 70 % of it, rounded down to a hundredth of a cent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

from windrow_master.prices.offers import Kind, Offer
from windrow_master.prices.shipped import shipped
from windrow_proto.units import MICROCENTS_PER_UNIT, Microcents, money_text

CPU: Final = "cpu"

GRADE_PERCENT: Final = {"A": 100, "B": 85, "C": 70}
"""Our own steps: the grades begin at 90 % and 70 % of a class's speed."""
STEP: Final = MICROCENTS_PER_UNIT // 10_000
"""A suggestion is a whole number of hundredths of a cent."""
FLOOR: Final = Microcents(MICROCENTS_PER_UNIT // 10)
"""0.10 an hour for a card that no source prices: a beginning, to be set by its owner."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A price per hour and where it comes from, in words."""

    price_per_hour: Microcents
    reason: str


QUOTED: Final[dict[str, tuple[str, ...]]] = {
    "cpu": (
        "paperspace/C5/East Coast (NY2)",
        "paperspace/C6/East Coast (NY2)",
        "paperspace/C7/East Coast (NY2)",
        "paperspace/C8/East Coast (NY2)",
        "paperspace/C9/East Coast (NY2)",
        "lambda/cpu_4x_general/any",
    ),
    "h200": (
        "runpod/H200 SXM/any",
        "datacrunch/1x H200 SXM5/any",
        "vastai/H200 NVL/any",
        "modal/gpu=H200/us",
    ),
    "h100": (
        "runpod/H100 SXM/any",
        "datacrunch/1H100.80S.30V/any",
        "lambda/8x H100 SXM/any",
        "scaleway/H100-SXM/any",
        "vastai/H100 SXM/any",
    ),
    "h100-pcie": (
        "runpod/H100 PCIe/any",
        "lambda/1x H100 PCIe/any",
        "scaleway/H100-PCIe/any",
        "vastai/H100 PCIe/any",
    ),
    "a100-80": (
        "runpod/A100 SXM 80GB/any",
        "datacrunch/1x A100 SXM4 80GB/any",
        "lambda/8x A100 SXM 80GB/any",
    ),
    "a100-80-pcie": (
        "runpod/A100 PCIe 80GB/any",
        "modal/gpu=A100-80GB/us",
        "paperspace/A100-80G/East Coast (NY2)",
    ),
    "a100-40": (
        "lambda/1x A100 SXM 40GB/any",
        "datacrunch/1A100.40S.22V/any",
        "runpod/A100 SXM 40GB/any",
    ),
    "l40s": (
        "runpod/L40S/any",
        "datacrunch/1x L40S/any",
        "scaleway/L40S/any",
        "vultr/NVIDIA_L40S/any",
        "vastai/L40S/any",
    ),
    "l4": (
        "runpod/L4/any",
        "scaleway/L4/any",
        "aws/g6.xlarge/us-east-1",
        "vastai/L4/any",
    ),
    "a40": ("runpod/A40/any",),
    "a10": (
        "lambda/1x A10/any",
        "modal/gpu=A10/us",
        "vastai/A10/The Netherlands, NL",
    ),
    "a10g": ("aws/g5.xlarge/us-east-1",),
    "t4": (
        "aws/g4dn.xlarge/us-east-1",
        "modal/gpu=T4/us",
    ),
    "v100-32": (
        "paperspace/V100-32G/East Coast (NY2)",
        "ovhcloud/t2-45/BHS",
        "ovhcloud/t2-le-45/BHS",
    ),
    "v100-16": (
        "lambda/gpu_8x_v100/any",
        "ovhcloud/t1-45/BHS",
        "ovhcloud/t1-le-45/BHS",
        "aws/p3.2xlarge/us-east-1",
    ),
    "p100-16": ("scaleway/RENDER-S/fr-par-1",),
    "rtx6000-ada": (
        "datacrunch/1x RTX 6000 Ada/any",
        "runpod/RTX 6000 Ada/any",
        "vastai/RTX 6000 Ada/any",
    ),
    "a6000": (
        "lambda/1x A6000/any",
        "datacrunch/1x RTX A6000/any",
        "runpod/RTX A6000/any",
        "vastai/RTX A6000/any",
    ),
    "a4000": ("paperspace/A4000/East Coast (NY2)",),
    "rtx4090": (
        "runpod/RTX 4090/any",
        "vastai/RTX 4090/any",
    ),
    "rtx3090": (
        "runpod/RTX 3090/any",
        "vastai/RTX 3090/any",
    ),
}
"""The offers of the price book that a class is priced by, each as `provider/offer/place`: the usual one of a provider,
on demand where it sells so."""

LIKE: Final[dict[str, tuple[str, int]]] = {
    "b300": ("h200", 1000),
    "b200": ("h200", 1000),
    "h100-nvl": ("h100", 1000),
    "gh200": ("h100", 1000),
    "h20": ("h100", 1000),
    "h800": ("h100", 1000),
    "h800-pcie": ("h100-pcie", 1000),
    "a100-64": ("a100-80", 800),
    "a800-80": ("a100-80", 1000),
    "a800-80-pcie": ("a100-80-pcie", 1000),
    "a30": ("a10", 1000),
    "rtxpro6000-server": ("rtx6000-ada", 1000),
    "l40": ("l40s", 1000),
    "l40g": ("l40s", 500),
    "l20": ("l40s", 1000),
    "a16": ("t4", 1000),
    "v100s": ("v100-32", 1000),
    "p100-12": ("p100-16", 750),
    "p40": ("t4", 1000),
    "p4": ("t4", 500),
    "rtxpro6000": ("rtx6000-ada", 1000),
    "rtxpro6000-q": ("rtx6000-ada", 1000),
    "rtxpro5000": ("rtx6000-ada", 1000),
    "rtxpro5000-72": ("rtx6000-ada", 1000),
    "rtxpro4500": ("rtx6000-ada", 666),
    "rtxpro4000": ("rtx6000-ada", 500),
    "rtxpro2000": ("rtx6000-ada", 300),
    "rtx5000-ada": ("rtx6000-ada", 600),
    "rtx4000-ada": ("rtx6000-ada", 416),
    "rtx4000-sff-ada": ("rtx6000-ada", 416),
    "rtx2000-ada": ("rtx6000-ada", 333),
    "a5000": ("a6000", 500),
    "a4500": ("a6000", 416),
    "a2000-12": ("a6000", 250),
    "a2000": ("a6000", 125),
    "quadro-rtx6000": ("a6000", 500),
    "quadro-rtx8000": ("a6000", 1000),
    "quadro-rtx5000": ("a6000", 333),
    "quadro-rtx4000": ("a6000", 166),
    "p6000": ("a6000", 500),
    "p5000": ("a6000", 333),
    "p4000": ("a6000", 166),
    "rtx5090": ("rtx4090", 1000),
    "rtx5090d": ("rtx4090", 1000),
    "rtx5080": ("rtx4090", 666),
    "rtx5070ti": ("rtx4090", 666),
    "rtx5070": ("rtx4090", 500),
    "rtx5060ti-16": ("rtx4090", 444),
    "rtx5060ti-8": ("rtx4090", 333),
    "rtx5060": ("rtx4090", 333),
    "rtx5050": ("rtx4090", 317),
    "rtx4090d": ("rtx4090", 1000),
    "rtx4080super": ("rtx4090", 666),
    "rtx4080": ("rtx4090", 666),
    "rtx4070tisuper": ("rtx4090", 666),
    "rtx4070ti": ("rtx4090", 500),
    "rtx4070super": ("rtx4090", 500),
    "rtx4070": ("rtx4090", 500),
    "rtx4060ti-16": ("rtx4090", 285),
    "rtx4060ti-8": ("rtx4090", 285),
    "rtx4060": ("rtx4090", 269),
    "rtx3090ti": ("rtx3090", 1000),
    "rtx3080ti": ("rtx3090", 500),
    "rtx3080-12": ("rtx3090", 500),
    "rtx3080": ("rtx3090", 416),
    "rtx3070ti": ("rtx3090", 333),
    "rtx3070": ("rtx3090", 333),
    "rtx3060ti": ("rtx3090", 333),
    "rtx3060": ("rtx3090", 384),
    "rtx3050": ("rtx3090", 239),
    "titan-rtx": ("rtx3090", 1000),
    "rtx2080ti": ("rtx3090", 458),
    "rtx2080super": ("rtx3090", 333),
    "rtx2080": ("rtx3090", 333),
    "rtx2070super": ("rtx3090", 333),
    "rtx2070": ("rtx3090", 333),
    "rtx2060super": ("rtx3090", 333),
    "rtx2060": ("rtx3090", 250),
    "gtx1660ti": ("rtx3090", 250),
    "titan-x-pascal": ("rtx3090", 500),
    "gtx1080ti": ("rtx3090", 458),
    "gtx1080": ("rtx3090", 333),
    "gtx1070ti": ("rtx3090", 333),
    "gtx1070": ("rtx3090", 333),
    "mi355x": ("h200", 1000),
    "mi350x": ("h200", 1000),
    "mi325x": ("h200", 1000),
    "mi300x": ("h200", 1000),
    "mi300a": ("h100", 1000),
    "mi210": ("a100-80-pcie", 800),
    "mi100": ("v100-32", 1000),
    "mi50-32": ("v100-32", 1000),
    "mi25": ("v100-16", 537),
    "v710": ("a10", 1000),
    "v620": ("a10", 1000),
    "r9700": ("a6000", 666),
    "w7900": ("a6000", 1000),
    "w7800-48": ("a6000", 1000),
    "w7800": ("a6000", 666),
    "w7700": ("a6000", 333),
    "w6800": ("a6000", 666),
    "w6600": ("a6000", 166),
    "radeon-pro-vii": ("v100-16", 1000),
    "rx9070": ("rtx3090", 666),
    "rx9060xt": ("rtx3090", 666),
    "rx7900xtx": ("rtx3090", 1000),
    "rx7900xt": ("rtx3090", 833),
    "rx7900gre": ("rtx3090", 666),
    "rx7800xt": ("rtx3090", 666),
    "rx7700xt": ("rtx3090", 500),
    "rx7600": ("rtx3090", 307),
    "rx7600xt": ("rtx3090", 307),
    "rx6950xt": ("rtx3090", 666),
    "rx6900xt": ("rtx3090", 547),
    "rx6800": ("rtx3090", 666),
    "rx6700xt": ("rtx3090", 500),
    "rx6700": ("rtx3090", 416),
    "rx6650xt": ("rtx3090", 333),
    "rx6600": ("rtx3090", 333),
    "radeon-vii": ("rtx3090", 666),
    "max1550": ("a100-80", 1000),
    "max1100": ("a100-40", 1000),
    "flex170": ("t4", 1000),
    "arc-pro-b70": ("t4", 1000),
    "arc-pro-b50": ("t4", 1000),
    "b580": ("t4", 750),
    "b570": ("t4", 625),
    "a770": ("t4", 1000),
    "a770-8": ("t4", 500),
    "a750": ("t4", 500),
    "a580": ("t4", 500),
    "a380": ("t4", 375),
}
"""Classes without a usable quote: a priced class and the share of it, in permille, by the lower of the two ratios of
memory size and memory bandwidth (fleet/gpus; by size alone where nobody has read a bandwidth), at most the
whole."""


SUGGESTED_MAX: Final = 256
"""Tiers whose suggestion is remembered: it is asked for with each look at each slot."""


@cache
def quotes_by_class() -> Mapping[str, Sequence[Offer]]:
    """The offers that each class is priced by, the cheapest per GPU first."""
    found: dict[str, Offer] = {}
    for offer in shipped().offers:
        named = offer.key.rsplit("/", 2)[0]
        if named not in found or offer.kind is Kind.ON_DEMAND:
            found[named] = offer
    return {
        tier_class: sorted((found[name] for name in names), key=lambda one: (one.per_gpu_hour, one.provider.name))
        for tier_class, names in QUOTED.items()
    }


@lru_cache(SUGGESTED_MAX)
def suggest(tier: str) -> Suggestion:
    """A price for one hour of `tier` ("h100/A", "cpu/B"), with its reason; every tier gets one."""
    tier_class, _, grade = tier.partition("/")
    percent = GRADE_PERCENT.get(grade, GRADE_PERCENT["C"])
    graded = "" if percent == 100 else f", {percent} % of it for grade {grade or 'C'}"
    like, permille = LIKE.get(tier_class, (tier_class, 1000))
    quotes = quotes_by_class().get(like)
    if quotes is None:
        return Suggestion(_stepped(FLOOR, percent), f"no source prices this class: {money_text(FLOOR)}{graded}")
    quote = quotes[(len(quotes) - 1) // 2]
    base = Microcents(quote.per_gpu_hour * permille // 1000)
    place = f" in {quote.region}" if quote.region else ""
    said = f"{quote.provider.name} {quote.name}{place} ({quote.source.title}), the lower median of {len(quotes)}"
    if like != tier_class:
        said = f"{permille / 10:g} % of {like} by memory size and bandwidth; {said}"
    return Suggestion(_stepped(base, percent), said + graded)


def _stepped(base: Microcents, percent: int) -> Microcents:
    return Microcents(base * percent // 100 // STEP * STEP)
