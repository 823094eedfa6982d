"""NVIDIA's cards for workstations, Pascal to Blackwell. Pure data; `row` says how it is written."""

from typing import Final

from windrow_master.fleet.gpus.row import GpuModel, Segment, parse

RTX_PRO: Final = """
PCI ids  |class       |GiB    |MiB|CUDA     |W       |GB/s     |PCIe     |name
2bb1 PCIN|rtxpro6000  |96 HWCO| |12.0 CUDA|600 HWCO|1792 HWCO|         |RTX PRO 6000 Blackwell Workstation Edition
2bb4 PCIN|rtxpro6000-q|96 PURE| |12.0 CUDA|300 PURE|1792 PURE|5x16 TCIT|RTX PRO 6000 Blackwell Max-Q Workstation Edition
2bb3 PCIN|rtxpro5000  |48 PURE| |12.0 CUDA|        |1344 PURE|         |RTX PRO 5000 Blackwell
2bb3 PCIN|rtxpro5000-72|72 TCPR| |         |300 TCPR|1340 TCPR|5x16 TCPR|RTX PRO 5000 72GB Blackwell
2c31 PCIN|rtxpro4500  |32 TCPR| |12.0 CUDA|200 TCPR|896 TCPR |5x16 TCPR|RTX PRO 4500 Blackwell
2c34 PCIN|rtxpro4000  |24 CPTR| |12.0 CUDA|        |672 CPTR |5x16 CPTR|RTX PRO 4000 Blackwell
2d30 PCIN|rtxpro2000  |16 CPTR| |12.0 CUDA|        |288 CPTR |5x8 CPTR |RTX PRO 2000 Blackwell
"""

RTX_AND_QUADRO: Final = """
PCI ids  |class          |GiB    |MiB           |CUDA    |W              |GB/s    |PCIe     |name
26b1 PCI |rtx6000-ada    |48 A60 |49140 VLAD    |8.9 CUDA|300 OHDO       |960 A60 |         |RTX 6000 Ada Generation
26b2 NVDR|rtx5000-ada    |32 A50 |              |8.9 CUDA|               |576 A50 |         |RTX 5000 Ada Generation
27b2 NVDR|rtx4000-ada    |20 AKA |20475 THAM    |8.9 CUDA|130 [30-130] THAM|        |4x16 THAM|RTX 4000 Ada Generation
27b0 PCI |rtx4000-sff-ada|20 AKA |              |8.9 CUDA|70 TCIT        |        |4x16 TCIT|RTX 4000 SFF Ada Generation
28b0 NVDR|rtx2000-ada    |16 OHDO|16380 THAM    |8.9 CUDA|70 [30-70] THAM|        |4x8 THAM |RTX 2000 Ada Generation
2230 PCI |a6000          |48 AKA |46068 THAM, 49140 SMIA|8.6 CUDA|300 OHDO       |768 TBRI|4x16 LAMB|RTX A6000
2231 PCI |a5000          |24 AKA5|24564 AKA5    |8.6 CUDA|230 OHDO       |768 ALLA|4x16 MAND|RTX A5000
2232 PCI |a4500          |20 CPTA|              |8.6 FPSW|200 OHDO       |640 CPTA|4x16 CPTA|RTX A4500
24b0 PCI |a4000          |16 A40D|15352 LIUM, 16376 LIUM|8.6 CUDA|140 OHDO       |448 A40D|4x16 MAND|RTX A4000
2571 PCI |a2000-12       |12 PCI |              |8.6 CUDA|               |        |         |RTX A2000 12GB
2531 PCI |a2000          |6 AKA  |              |8.6 CUDA|               |        |         |RTX A2000
1e30 1e36 1e78 PCI|quadro-rtx6000 |24 SYSR|              |7.5 CUDC|260 SYSR       |672 SYSR|3x16 SYSR|Quadro RTX 6000
1e30 1e78 PCI|quadro-rtx8000 |48 AKA |              |7.5 CUDC|               |        |         |Quadro RTX 8000
1eb0 PCI |quadro-rtx5000 |16 GSMA|              |7.5 CUDC|230 GSMA       |448 GSMA|         |Quadro RTX 5000
1eb1 PCI |quadro-rtx4000 |8 AKA  |              |7.5 CUDC|               |        |         |Quadro RTX 4000
1b30 PCI |p6000          |24 AKA |              |6.1 CUDO|               |        |         |Quadro P6000
1bb0 PCI |p5000          |16 AKA |              |6.1 CUDO|180 QUAT       |        |         |Quadro P5000
1bb1 PCI |p4000          |8 AKA  |              |6.1 CUDO|               |        |         |Quadro P4000
"""

MODELS: Final[tuple[GpuModel, ...]] = (
    *parse("nvidia", Segment.WORKSTATION, RTX_PRO),
    *parse("nvidia", Segment.WORKSTATION, RTX_AND_QUADRO),
)
