"""NVIDIA's cards for players, GeForce and TITAN, Pascal to Blackwell. Pure data; `row` says how it is written."""

from typing import Final

from windrow_master.fleet.gpus.row import GpuModel, Segment, parse

TABLE: Final = """
PCI ids       |class         |GiB   |MiB       |CUDA     |W                 |GB/s    |PCIe    |name
2b85 PCIN     |rtx5090       |32 CYB|32607 VISI|12.0 CUDA|575 [400-575] THAM|1792 CYB|5x16 THAM|GeForce RTX 5090
2b87 PCIN     |rtx5090d      |32 HF |          |         |575 HF            |        |        |GeForce RTX 5090 D
2c02 PCIN     |rtx5080       |16 CYB|          |12.0 CUDA|360 HF            |960 CYB |        |GeForce RTX 5080
2c05 PCIN     |rtx5070ti     |16 CYB|          |12.0 CUDA|300 GPCA          |896 CYB |        |GeForce RTX 5070 Ti
2f04 PCIN     |rtx5070       |12 CYB|          |12.0 CUDA|250 GPCA          |672 CYB |        |GeForce RTX 5070
2d04 PCIN     |rtx5060ti-16  |16 CYB|          |12.0 CUDA|                  |448 CYB |        |GeForce RTX 5060 Ti
2d04 PCIN     |rtx5060ti-8   |8 CYB |          |12.0 CUDA|                  |448 CYB |        |GeForce RTX 5060 Ti
2d05 2f06 PCIN|rtx5060       |8 CYB |          |12.0 CUDA|                  |448 CYB |        |GeForce RTX 5060
2d83 PCIN     |rtx5050       |8 CYB |          |12.0 CUDA|                  |320 CYB |        |GeForce RTX 5050
2684 PCI      |rtx4090       |24 AKA|24564 LIUM|8.9 CUDA |450 [150-450] THAM|1008 CYB|4x16 THAM|GeForce RTX 4090
2685 NVDR     |rtx4090d      |24 CYB|          |         |                  |1008 CYB|        |GeForce RTX 4090 D
2702 NVDR     |rtx4080super  |16 CYB|16376 VLAD|8.9 CHIP |320 OHDO          |736 CYB |        |GeForce RTX 4080 SUPER
2704 PCI      |rtx4080       |16 AKA|          |8.9 CUDA |320 OHDO          |716.8 CYB|        |GeForce RTX 4080
2689 2705 NVDR|rtx4070tisuper|16 CYB|16376 VLAD|8.9 CHIP |                  |672 CYB |        |GeForce RTX 4070 Ti SUPER
2782 PCI      |rtx4070ti     |12 AKA|12282 VLAD|8.9 CUDA |285 OHDO          |504 CYB |        |GeForce RTX 4070 Ti
2783 NVDR     |rtx4070super  |12 CYB|          |8.9 CHIP |                  |504 CYB |        |GeForce RTX 4070 SUPER
2709 2786 NVDR|rtx4070       |12 CYB|          |8.9 CUDA |200 HF            |504 CYB |        |GeForce RTX 4070
2803 2805 NVDR|rtx4060ti-16  |16 CYB|16380 VLAD|8.9 CUDA |165 [100-165] THAM|288 CYB |4x8 THAM|GeForce RTX 4060 Ti
2803 2805 NVDR|rtx4060ti-8   |8 CYB |          |8.9 CUDA |                  |288 CYB |        |GeForce RTX 4060 Ti
2808 2882 NVDR|rtx4060       |8 CYB |          |8.9 CUDA |                  |272 CYB |        |GeForce RTX 4060
2203 PCI      |rtx3090ti     |24 AKA|          |8.6 CHIP |                  |1008 CYB|        |GeForce RTX 3090 Ti
2204 PCI      |rtx3090       |24 AKA|24576 CLUB|8.6 CHIP |350 [100-350] THAM|936 CYB |4x16 THAM|GeForce RTX 3090
2208 PCI      |rtx3080ti     |12 CYB|          |8.6 CHIP |                  |912 CYB |        |GeForce RTX 3080 Ti
220a PCI      |rtx3080-12    |12 CYB|          |8.6 CHIP |350 SE7E          |912 CYB |        |GeForce RTX 3080
2206 2216 PCI |rtx3080       |10 AKA|10240 THAM|8.6 CHIP |320 [100-350] THAM|760 CYB |4x16 THAM|GeForce RTX 3080
2207 2482 PCI |rtx3070ti     |8 CYB |          |8.6 CHIP |                  |608 CYB |        |GeForce RTX 3070 Ti
2484 2488 PCI |rtx3070       |8 AKA |8192 THAM |8.6 CHIP |220 [100-250] THAM|448 CYB |4x16 THAM|GeForce RTX 3070
2414 2486 2489 PCI|rtx3060ti     |8 AKA |          |8.6 CHIP |                  |448 CYB |        |GeForce RTX 3060 Ti
2487 2503 2504 PCI|rtx3060       |12 AKA|12288 GEER|8.6 CHIP |170 TOPC          |360 CYB |        |GeForce RTX 3060
2507 2582 PCI |rtx3050       |8 CYB |          |8.6 CHIP |                  |224 CYB |        |GeForce RTX 3050
1e02 PCI      |titan-rtx     |24 FUWN|          |7.5 CHIP |280 FUWN          |        |        |TITAN RTX
1e04 1e07 PCI |rtx2080ti     |11 AKA|          |7.5 GIST |260 FUWN          |616 TURI|        |GeForce RTX 2080 Ti
1e81 PCI      |rtx2080super  |8 AKA |          |7.5 CHIP |250 FUWN          |        |        |GeForce RTX 2080 SUPER
1e82 1e87 PCI |rtx2080       |8 AKA |          |7.5 CHIP |225 FUWN          |        |        |GeForce RTX 2080
1e84 PCI      |rtx2070super  |8 AKA |          |7.5 CHIP |215 FUWN          |        |        |GeForce RTX 2070 SUPER
1f02 1f07 PCI |rtx2070       |8 AKA |          |7.5 CHIP |185 FUWN          |        |        |GeForce RTX 2070
1f06 PCI      |rtx2060super  |8 AKA |          |7.5 CHIP |175 FUWN          |        |        |GeForce RTX 2060 SUPER
1e89 1f08 PCI |rtx2060       |6 AKA |          |7.5 CHIP |160 FPSM          |336 FPSM|        |GeForce RTX 2060
2182 PCI      |gtx1660ti     |6 AKA |          |7.5 CHIP |120 FUWN          |        |        |GeForce GTX 1660 Ti
1b00 PCI      |titan-x-pascal|12 FUWN|          |6.1 CHIP |250 FUWN          |        |        |TITAN X
1b06 PCI      |gtx1080ti     |11 AKA|          |6.1 CUDO |250 FUWN          |        |        |GeForce GTX 1080 Ti
1b80 PCI      |gtx1080       |8 AKA |          |6.1 CUDO |                  |        |        |GeForce GTX 1080
1b82 PCI      |gtx1070ti     |8 AKA |          |6.1 CUDO |180 FUWN          |        |        |GeForce GTX 1070 Ti
1b81 PCI      |gtx1070       |8 AKA |          |6.1 CUDO |                  |        |        |GeForce GTX 1070
"""

MODELS: Final[tuple[GpuModel, ...]] = parse("nvidia", Segment.CONSUMER, TABLE)
