"""NVIDIA's cards for data centres, Pascal to Blackwell. Pure data; `row` says how it is written."""

from typing import Final

from windrow_master.fleet.gpus.row import GpuModel, Segment, parse

TABLE: Final = """
PCI ids  |class            |GiB    |MiB    |CUDA     |W       |GB/s     |PCIe     |name
3182 PCIN|b300             |288 ACHO|       |10.3 CUDA|        |8000 ACHO|         |B300 SXM6 AC
2901 PCIN|b200             |180 NVML|183359 LIUM|10.0 CUDA|1000 NVML|8000 SHTS|5x16 NVML|B200
2335 NVDR|h200             |141 SHTS|143771 LIUM|9.0 CUDA |700 NVML|4800 SHTS|5x16 NVML|H200
2330 PCI |h100             |80 AKA |81559 LIUM|9.0 CUDA |700 HF  |3350 SHTS|5x16 NVML|H100 80GB HBM3
2331 PCI |h100-pcie        |80 AKA |81559 VLAD|9.0 CUDA |350 GSMA|2000 H100|         |H100 PCIe
2321 NVDR|h100-nvl         |94 ACHO|95830 THAM|9.0 CUDA |310 [200-400] THAM|3900 GRID|5x16 THAM|H100 NVL
2342 NVDR|gh200            |96 FRNK|97871 THAM|9.0 CUDA |900 [100-900] THAM|4000 FRNK|         |GH200 480GB
2329 NVDR|h20              |96 FRNK|       |         |400 FRNK|4000 FRNK|         |H20
2324 PCI |h800             |80 SHTS|       |         |700 FRNK|3350 SHTS|         |H800
2322 PCI |h800-pcie        |80 FRNK|       |         |350 FRNK|2000 FRNK|         |H800 PCIe
20b2 PCI |a100-80          |80 AKA |81920 MIGP|8.0 CUDC |400 GSMA|2039 GSMA|4x16 LAMB|A100-SXM4-80GB
20b5 PCI |a100-80-pcie     |80 AKA |       |8.0 CUDC |300 GSMA|1935 GSMA|         |A100 80GB PCIe
20b3 PCI |a100-64          |64 AKA |       |8.0 CUDC |        |         |         |A100-SXM-64GB
20b0 PCI |a100-40          |40 AKA |40960 BOTT|8.0 CUDC |400 GSMA|1555 GSMA|4x16 LAMB|A100-SXM4-40GB
20b1 20f1 PCI|a100-40          |40 AKA |       |8.0 CUDC |250 GSMA|1555 GSMA|4x16 LAMB|A100-PCIE-40GB
20f3 PCI |a800-80          |80 AKA |       |         |400 HF  |2039 FRNK|         |A800-SXM4-80GB
20f5 NVDR|a800-80-pcie     |80 FRNK|       |         |        |1935 FRNK|         |A800 80GB PCIe
20b7 PCI |a30              |24 DPDK|       |8.0 CUDC |165 HF  |         |         |A30
2bb5 PCIN|rtxpro6000-server|96 FERR|       |12.0 CUDA|600 TCSV|1792 FERR|5x16 TCSV|RTX PRO 6000 Blackwell Server Edition
26b9 NVDR|l40s             |48 GSMA|46068 MODA, 49140 LIUM|8.9 CUDA |350 [100-350] THAM|864 GSMA |4x16 THAM|L40S
26b5 PCI |l40              |48 PROD|       |8.9 CUDA |300 PROD|864 PROD |         |L40
26b8 PCI |l40g             |24 ALLL|       |8.9 ALLL |300 ALLL|864 ALLL |4x16 ALLL|L40G
26ba NVDR|l20              |48 HFJS|       |         |275 FRNK|864 FRNK |         |L20
27b8 PCI |l4               |24 GSMA|23034 MODA|8.9 CUDA |72 [40-72] THAM|300 GSMA |4x16 THAM|L4
2235 PCI |a40              |48 AKA |46068 THAM|8.6 CUDA |300 HF  |696 SHTS |4x16 LAMB|A40
25b6 PCI |a16              |16 HMC |       |8.6 CUDA |        |         |         |A16 / A2
2236 PCI |a10              |24 SHTS|23028 DETE|8.6 CUDA |150 [100-150] THAM|600 SHTS |4x16 THAM|A10
2237 PCI |a10g             |24 BASE|       |8.6 EC2  |150 GCAT|600 BASE |         |A10G
1eb8 PCI |t4               |16 T4  |15360 MODA|7.5 CUDC |70 GSMA |320 T4   |         |Tesla T4
1db8 PCI |v100-32          |32 AKA |       |7.0 CUDO |        |         |         |Tesla V100-SXM3-32GB
1db5 PCI |v100-32          |32 AKA |32480 GRAB|7.0 CUDO |300 GSMA|900 GSMA |         |Tesla V100-SXM2-32GB
1db1 PCI |v100-16          |16 AKA |16160 K8SV|7.0 CUDO |300 GSMA|900 GSMA |3x16 LAMB|Tesla V100-SXM2-16GB
1df6 PCI |v100s            |32 GSMA|       |7.0 GSMA |250 GSMA|1134 GSMA|3x16 LAMB|Tesla V100S-PCIE-32GB
1db6 PCI |v100-32          |32 PCI |       |7.0 CUDO |250 GSMA|900 GSMA |         |Tesla V100-PCIE-32GB
1db4 PCI |v100-16          |16 PCI |       |7.0 CUDO |250 GSMA|900 GSMA |         |Tesla V100-PCIE-16GB
15f9 PCI |p100-16          |16 PCI |       |6.0 CUDO |        |         |         |Tesla P100-SXM2-16GB
15f8 PCI |p100-16          |16 AKA |       |6.0 CUDO |        |732 TWOR |         |Tesla P100-PCIE-16GB
15f7 PCI |p100-12          |12 PCI |       |6.0 CUDO |        |         |         |Tesla P100-PCIE-12GB
1b38 PCI |p40              |24 AKA |       |6.1 CUDO |250 PROD|346 PROD |         |Tesla P40
1bb3 PCI |p4               |8 AKA  |       |6.1 CUDO |        |192 PROD |         |Tesla P4
"""

MODELS: Final[tuple[GpuModel, ...]] = parse("nvidia", Segment.DATA_CENTRE, TABLE)
