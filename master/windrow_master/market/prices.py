"""Suggests a price for an hour of a tier whose owner names none, from published prices with their sources. Pure.

The figures are facts of their date, in US dollars per GPU and hour (per processor and hour for `cpu`), on demand unless
said, and no live quotes. Test money is counted in the same numbers. Of several quotes the lower median is taken; grade
A is suggested at that price, B at 85 % and C at 70 % of it, rounded down to a hundredth of a cent.
"""

from dataclasses import dataclass
from typing import Final

from windrow_proto.units import MICROCENTS_PER_UNIT, Microcents, money_text

FEED: Final = "gpu-price-feed, 2026-08-23"
SKY: Final = "skypilot-catalog"
AWS: Final = "AWS us-east-1 by tsaol/aws-gpu, 2026-01-21"
MODAL: Final = "Modal's price page as quoted in April and August 2026 (preemptible)"
CPU: Final = "cpu"

GRADE_PERCENT: Final = {"A": 100, "B": 85, "C": 70}
"""Our own steps: the grades begin at 90 % and 70 % of a class's speed."""
STEP: Final = MICROCENTS_PER_UNIT // 10_000
"""A suggestion is a whole number of hundredths of a cent."""
FLOOR: Final = Microcents(MICROCENTS_PER_UNIT // 10)
"""0.10 an hour for a card that no source prices: a beginning, to be set by its owner."""


@dataclass(frozen=True, slots=True)
class Quote:
    """One published price, in ten-thousandths of a dollar per GPU (or processor) and hour."""

    provider: str
    offer: str
    usd_e4: int
    source: str


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A price per hour and where it comes from, in words."""

    price_per_hour: Microcents
    reason: str


def _quotes(*rows: tuple[str, str, int, str]) -> tuple[Quote, ...]:
    return tuple(Quote(*row) for row in rows)


QUOTES: Final[dict[str, tuple[Quote, ...]]] = {
    CPU: _quotes(
        ("paperspace", "C5: 4 vCPU at 0.08", 200, SKY),
        ("paperspace", "C6: 8 vCPU at 0.16", 200, SKY),
        ("paperspace", "C7: 12 vCPU at 0.30", 250, SKY),
        ("paperspace", "C8: 16 vCPU at 0.60", 375, SKY),
        ("paperspace", "C9: 24 vCPU at 0.90", 375, SKY),
        ("lambda", "cpu_4x_general: 4 vCPU at 0.20", 500, SKY),
    ),
    "h200": _quotes(
        ("runpod", "H200 SXM", 35_900, FEED),
        ("datacrunch", "1x H200 SXM5", 40_000, FEED),
        ("vastai", "H200 NVL", 34_900, FEED),
        ("modal", "H200", 45_396, MODAL),
    ),
    "h100": _quotes(
        ("runpod", "H100 SXM", 26_900, FEED),
        ("datacrunch", "1H100.80S.30V", 32_500, FEED),
        ("lambda", "8x H100 SXM at 31.92", 39_900, FEED),
        ("scaleway", "H100-SXM, 2 at 7.74", 38_700, FEED),
        ("vastai", "H100 SXM", 17_400, FEED),
    ),
    "h100-pcie": _quotes(
        ("runpod", "H100 PCIe", 19_900, FEED),
        ("lambda", "1x H100 PCIe", 32_900, FEED),
        ("scaleway", "H100-PCIe", 33_500, FEED),
        ("vastai", "H100 PCIe", 21_400, FEED),
    ),
    "a100-80": _quotes(
        ("runpod", "A100 SXM 80GB", 13_900, FEED),
        ("datacrunch", "1x A100 SXM4 80GB", 17_900, FEED),
        ("lambda", "8x A100 SXM 80GB at 22.32", 27_900, FEED),
    ),
    "a100-80-pcie": _quotes(
        ("runpod", "A100 PCIe 80GB", 11_900, FEED),
        ("modal", "A100-80GB", 24_984, MODAL),
        ("paperspace", "A100-80G", 31_800, SKY),
    ),
    "a100-40": _quotes(
        ("lambda", "1x A100 SXM 40GB", 19_900, FEED),
        ("datacrunch", "1A100.40S.22V", 12_900, FEED),
        ("runpod", "A100 SXM 40GB", 10_000, FEED),
    ),
    "l40s": _quotes(
        ("runpod", "L40S", 7_900, FEED),
        ("datacrunch", "1x L40S", 13_700, FEED),
        ("scaleway", "L40S", 17_200, FEED),
        ("vultr", "NVIDIA_L40S", 16_700, FEED),
        ("vastai", "L40S", 6_020, FEED),
    ),
    "l4": _quotes(
        ("runpod", "L4", 4_900, FEED),
        ("scaleway", "L4", 9_210, FEED),
        ("aws", "g6.xlarge", 8_048, AWS),
        ("vastai", "L4", 3_120, FEED),
    ),
    "a40": _quotes(("runpod", "A40", 4_400, FEED)),
    "a10": _quotes(
        ("lambda", "1x A10", 12_900, FEED), ("modal", "A10", 11_016, MODAL), ("vastai", "A10, NL", 2_427, FEED)
    ),
    "a10g": _quotes(("aws", "g5.xlarge", 10_060, AWS)),
    "t4": _quotes(("aws", "g4dn.xlarge", 5_260, AWS), ("modal", "T4", 5_904, MODAL)),
    "v100-32": _quotes(
        ("paperspace", "V100-32G", 23_000, SKY),
        ("ovhcloud", "t2-45", 21_900, SKY),
        ("ovhcloud", "t2-le-45", 8_800, SKY),
    ),
    "v100-16": _quotes(
        ("lambda", "gpu_8x_v100 at 6.32", 7_900, SKY),
        ("ovhcloud", "t1-45", 19_700, SKY),
        ("ovhcloud", "t1-le-45", 7_700, SKY),
        ("aws", "p3.2xlarge", 30_600, AWS),
    ),
    "p100-16": _quotes(("scaleway", "RENDER-S", 12_426, SKY)),
    "rtx6000-ada": _quotes(
        ("datacrunch", "1x RTX 6000 Ada", 10_400, FEED),
        ("runpod", "RTX 6000 Ada", 7_400, FEED),
        ("vastai", "RTX 6000 Ada", 5_410, FEED),
    ),
    "a6000": _quotes(
        ("lambda", "1x A6000", 10_900, FEED),
        ("datacrunch", "1x RTX A6000", 6_100, FEED),
        ("runpod", "RTX A6000", 3_300, FEED),
        ("vastai", "RTX A6000", 4_030, FEED),
    ),
    "a4000": _quotes(("paperspace", "A4000", 7_600, SKY)),
    "rtx4090": _quotes(("runpod", "RTX 4090", 3_400, FEED), ("vastai", "RTX 4090", 3_090, FEED)),
    "rtx3090": _quotes(("runpod", "RTX 3090", 2_200, FEED), ("vastai", "RTX 3090", 1_280, FEED)),
}

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


def suggest(tier: str) -> Suggestion:
    """A price for one hour of `tier` ("h100/A", "cpu/B"), with its reason; every tier gets one."""
    tier_class, _, grade = tier.partition("/")
    percent = GRADE_PERCENT.get(grade, GRADE_PERCENT["C"])
    graded = "" if percent == 100 else f", {percent} % of it for grade {grade or 'C'}"
    like, permille = LIKE.get(tier_class, (tier_class, 1000))
    quotes = QUOTES.get(like)
    if quotes is None:
        return Suggestion(_stepped(FLOOR, percent), f"no source prices this class: {money_text(FLOOR)}{graded}")
    quote = sorted(quotes, key=lambda each: (each.usd_e4, each.provider))[(len(quotes) - 1) // 2]
    base = Microcents(quote.usd_e4 * (MICROCENTS_PER_UNIT // 10_000) * permille // 1000)
    said = f"{quote.provider} {quote.offer} ({quote.source}), the lower median of {len(quotes)}"
    if like != tier_class:
        said = f"{permille / 10:g} % of {like} by memory size and bandwidth; {said}"
    return Suggestion(_stepped(base, percent), said + graded)


def _stepped(base: Microcents, percent: int) -> Microcents:
    return Microcents(base * percent // 100 // STEP * STEP)
