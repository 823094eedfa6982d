"""AMD's cards: Instinct, Radeon PRO and Radeon. Pure data; `row` says how it is written.

AMD sells different cards under one PCI id, told apart by a revision that we do not collect: where the memory tells them
apart they have a row each, else one row for them all, whose figures are what they have in common. The MI250 and MI250X
are missing: each is two devices, and nobody has read what one of them reports.
"""

from typing import Final

from windrow_master.fleet.gpus.row import GpuModel, Segment, parse

INSTINCT: Final = """
PCI ids       |class  |GiB     |MiB|CUDA|W       |GB/s     |PCIe     |name
75a3 PCIN     |mi355x |288 AMDG|   |    |        |8000 BOST|         |Instinct MI355X
75a0 PCIN     |mi350x |288 AMDG|   |    |        |         |         |Instinct MI350X
74a5 PCIN     |mi325x |256 AMDG|   |    |        |6000 VULT|5x16 WIAI|Instinct MI325X
74a1 PCIN     |mi300x |192 AMDG|   |    |750 AMLP|5300 VULT|5x16 AMLP|Instinct MI300X
74a0 PCIN     |mi300a |128 AMDG|   |    |        |         |         |Instinct MI300A
740f PCI      |mi210  |64 AMDG |   |    |        |1600 ANAN|         |Instinct MI210
738c 738e PCI |mi100  |32 AMDG |   |    |300 HF  |1228 AM1 |         |Instinct MI100
66a1 PCI      |mi50-32|32 AMDG |   |    |300 HF  |1024 WIKI|         |Radeon Instinct MI50 32GB
6860 PCI      |mi25   |16 AMDG |   |    |300 WIKI|484 WIKI |         |Instinct MI25
7460 7461 PCIN|v710   |28 AMDG |   |    |        |         |         |Radeon PRO V710
73a1 PCI      |v620   |32 AMDG |   |    |        |         |         |Radeon Pro V620
"""

RADEON_PRO: Final = """
PCI ids  |class         |GiB    |MiB|CUDA|W       |GB/s    |PCIe|name
7551 PCIN|r9700         |32 AMDG|   |    |        |        |    |Radeon AI PRO R9700
7448 PCIN|w7900         |48 AMDG|   |    |295 ITCW|864 ITCW|    |Radeon Pro W7900
744a PCIN|w7900         |48 AMDG|   |    |        |        |    |Radeon Pro W7900 Dual Slot
7449 PCIN|w7800-48      |48 AMDG|   |    |        |        |    |Radeon Pro W7800 48GB
745e PCIN|w7800         |32 AMDG|   |    |        |        |    |Radeon Pro W7800
7470 PCIN|w7700         |16 AMDG|   |    |        |        |    |Radeon PRO W7700
73a3 PCI |w6800         |32 AMDG|   |    |250 HWLX|512 HWLX|    |Radeon PRO W6800
73e3 PCI |w6600         |8 AMDG |   |    |100 HWLX|224 HWLX|    |Radeon PRO W6600
66a1 PCI |radeon-pro-vii|16 AMDG|   |    |        |        |    |Radeon Pro VII
"""

RADEON: Final = """
PCI ids  |class     |GiB    |MiB|CUDA|W       |GB/s    |PCIe|name
7550 PCIN|rx9070    |16 AMDG|   |    |        |        |    |Radeon RX 9070/9070 XT/9070 GRE
7590 PCIN|rx9060xt  |16 AMDG|   |    |160 HF  |        |    |Radeon RX 9060 XT
744c PCI |rx7900xtx |24 AMDG|   |    |355 FPSA|960 FPSA|    |Radeon RX 7900 XTX
744c PCI |rx7900xt  |20 AMDG|   |    |315 HF  |800 GURU|    |Radeon RX 7900 XT
744c PCIN|rx7900gre |16 AMDG|   |    |        |        |    |Radeon RX 7900 GRE
747e PCIN|rx7800xt  |16 AMDG|   |    |263 ELEK|624 ELEK|    |Radeon RX 7800 XT
747e PCIN|rx7700xt  |12 AMDG|   |    |245 HF  |        |    |Radeon RX 7700 XT
7480 PCIN|rx7600    |8 AMDG |   |    |        |288 GURU|    |Radeon RX 7600
7480 PCIN|rx7600xt  |16 ITCR|   |    |190 ITCR|288 ITCR|    |Radeon RX 7600 XT
73a5 PCI |rx6950xt  |16 AMDG|   |    |        |        |    |Radeon RX 6950 XT
73af PCI |rx6900xt  |16 AMDG|   |    |300 TOMS|512 TOMS|    |Radeon RX 6900 XT
73bf PCI |rx6800    |16 AMDG|   |    |        |        |    |Radeon RX 6800/6800 XT/6900 XT
73df PCI |rx6700xt  |12 AMDG|   |    |        |        |    |Radeon RX 6700 XT/6750 XT
73df PCI |rx6700    |10 AMDG|   |    |        |        |    |Radeon RX 6700
73ef PCI |rx6650xt  |8 AMDG |   |    |        |        |    |Radeon RX 6650 XT
73ff PCI |rx6600    |8 AMDG |   |    |        |        |    |Radeon RX 6600/6600 XT
66af PCI |radeon-vii|16 FUWN|   |    |300 FUWN|        |    |Radeon VII
"""

MODELS: Final[tuple[GpuModel, ...]] = (
    *parse("amd", Segment.DATA_CENTRE, INSTINCT),
    *parse("amd", Segment.WORKSTATION, RADEON_PRO),
    *parse("amd", Segment.CONSUMER, RADEON),
)
