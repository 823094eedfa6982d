"""Intel's cards: Data Center GPU and Arc. Pure data; `row` says how it is written.

The Flex 140 is missing: it is two devices, and nobody has read what one of them reports.
"""

from typing import Final

from windrow_master.fleet.gpus.row import GpuModel, Segment, parse

DATA_CENTER_GPU: Final = """
PCI ids           |class  |GiB     |MiB|CUDA|W       |GB/s       |PCIe     |name
0bd5 0bd6 PCI     |max1550|128 GLEN|   |    |600 GLEN|3276.8 GLEN|5x16 GLEN|Data Center GPU Max 1550
0bd9 0bda 0bdb PCI|max1100|48 GEEK |   |    |300 GEEK|           |         |Data Center GPU Max 1100
56c0 PCI          |flex170|16 REGI |   |    |150 REGI|           |         |Data Center GPU Flex 170
"""

ARC_PRO: Final = """
PCI ids  |class      |GiB  |MiB|CUDA|W     |GB/s|PCIe|name
e223 PCIN|arc-pro-b70|32 HF|   |    |230 HF|    |    |Arc Pro B70
e212 PCIN|arc-pro-b50|16 HF|   |    |70 HF |    |    |Arc Pro B50
"""

ARC: Final = """
PCI ids  |class |GiB    |MiB|CUDA|W       |GB/s    |PCIe     |name
e20b PCIN|b580  |12 HF  |   |    |190 HF  |        |         |Arc B580
e20c PCIN|b570  |10 FPSA|   |    |150 FPSA|380 FPSA|         |Arc B570
56a0 PCI |a770  |16 METE|   |    |225 SVET|560 SVET|4x16 FPSI|Arc A770
56a0 PCI |a770-8|8 SVET |   |    |225 SVET|        |4x16 FPSI|Arc A770
56a1 PCI |a750  |8 SVET |   |    |225 SVET|512 SVET|         |Arc A750
56a2 PCI |a580  |8 SVET |   |    |        |512 SVET|         |Arc A580
56a5 PCI |a380  |6 SVET |   |    |        |186 SVET|         |Arc A380
"""

MODELS: Final[tuple[GpuModel, ...]] = (
    *parse("intel", Segment.DATA_CENTRE, DATA_CENTER_GPU),
    *parse("intel", Segment.WORKSTATION, ARC_PRO),
    *parse("intel", Segment.CONSUMER, ARC),
)
