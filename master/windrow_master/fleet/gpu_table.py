"""Our own table of GPU models: what a card of each model must look like, so that a claim can be compared. Pure data.

No figure stands here without the document it was read in: a figure that nobody has read yet is None, and what is None
is not compared with (`GpuModel.unread` names them). The kinds of figure:

- `pci`: device ids of PCI. Every id marked PCI_IDS is listed by that file under this model's name; NVIDIA's own list
  of supported GPUs has the same ids and names from Ampere on, except 0x20B1, and is the source for newer cards.
- `memory_gib`: nominal size. Makers write GB and mean 2**30 bytes, but for the H200, whose 141 GB are 140.4 GiB.
- `reported_mib`: totals that drivers were seen to report: what the window of a model is held against in the tests.
- `bandwidth_gb_s`: peak of the memory in 10**9 bytes/s, as printed on data sheets; measured figures stay below it.
- `capability`: CUDA compute capability; other makers have none.
- `model_class`: our own name for the market: cards that a renter would take for one another share it.

The PCI id does not tell the size where a maker sells two under one id (Arc A770: 8 and 16 GB): the row is the size
written in it, and a card of the other size falls out of the window.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Generic, TypeVar

CPU_CLASS: Final = "cpu"
UNLISTED_CLASS: Final = "unlisted"
"""The class of a card that this table does not hold: it can be offered, but is compared with nothing."""

MEMORY_LOW_PERCENT: Final = 90
"""Of the nominal size. The least reading below is 93.7 (RTX A4000 with ECC on: 15,352 of 16,384 MiB); the rest is room
for the driver's own share. LIUM draws its windows from 90 to 105."""
MEMORY_HIGH_PERCENT: Final = 105
"""No reading below exceeds 100; makers' sizes are further apart than this (11 and 12 GB: 9 percent)."""


class Source(StrEnum):
    """A document in which figures of this table were read; the maker's own begin with the maker's name."""

    PCI_IDS = "PCI ID Repository, pci.ids of 2023-04-10"
    NVIDIA_DRIVER = "NVIDIA/open-gpu-kernel-modules, README.md: compatible GPUs"
    NVIDIA_CUDA = "NVIDIA, CUDA GPU Compute Capability (developer.nvidia.com/cuda-gpus)"
    NVIDIA_CUDA_LEGACY = "NVIDIA, Legacy CUDA GPU Compute Capability (developer.nvidia.com/cuda-legacy-gpus)"
    NVIDIA_CUDA_2022 = "NVIDIA, CUDA GPUs, copied in 2022 (cnblogs.com/nightnine/p/16591404)"
    NVIDIA_DPDK = "NVIDIA, in DPDK: drivers/gpu/cuda/devices.h"
    NVIDIA_H100_BRIEF = "NVIDIA H100 PCIe GPU Product Brief PB-11133-001_v02"
    NVIDIA_T4_BRIEF = "NVIDIA T4 product brief, as PNY's manual (manualmachine.com/pny/tcst4mpb)"
    AMD_SPECS = "AMD, ROCm documentation: docs/reference/gpu-specs.rst"
    AMD_MI100 = "AMD, ROCm documentation: docs/conceptual/gpu-arch/mi100.md"
    AKASH = "akash-network/provider-configs, devices/pcie/gpus.json"
    AKASH_A5000 = "akash-network/provider-configs, pull request 83: nvidia-smi"
    ALLDBIN = "cpu-gpu.alldbin.com, Radeon RX 6900 XTX and RTX A5000"
    ANANDTECH = "AnandTech 17326, AMD Releases Instinct MI210 Accelerator"
    BASETEN = "Baseten, NVIDIA A10 vs A10G for ML model inference"
    BOTTLEROCKET = "bottlerocket-os/bottlerocket-core-kit, pull request 834: nvidia-smi"
    CUDA_BY_CHIP = "BBC-Esq/VectorDB-Plugin-for-LM-Studio, misc.md: compute capabilities"
    CUDA_GIST = "gist zachnicoll/f404a070611ccffda607bc65e4636d8f: compute capabilities"
    CLUB_3090 = "noonghunna/club-3090, issue 390: nvidia-smi"
    DETECT_GPU = "mayooot/detect-gpu, issue 3: totals of NVML"
    EC2 = "vantage-sh/ec2instances.info, issue 724"
    ECER_A4000 = "ecer.com, seller's copy of the RTX A4000 data sheet"
    GEERLING_3060 = "geerlingguy/raspberry-pi-pcie-devices, issue 790: nvidia-smi"
    GEFORCE_30_40 = "CYBIRD-D/How-to-Choose-your-LLM-Model-for-translation, Nvidia_GPU_Specification.md"
    GIST_BANDWIDTH = "gist vassvik/300a9b921f69a58ff2f422ae8f010c43: cards by bandwidth"
    GPU_SPECS = "winston-zhang-orz/gpu-specs, specs.md"
    GPU_SPECS_VD = "VladislavDuma/gpu_specs, README.md"
    GRAB_GPU = "godweiyang/GrabGPU, issue 5: nvidia-smi"
    K8S_VGPU = "4paradigm/k8s-vgpu-scheduler, issue 7: nvidia-smi"
    LIUM = "lium-io, gpu_spec_table.py"
    METERPRETER = "meterpreter.org, Intel confirms that Arc A770, A750 will be launched soon"
    MIG_PARTED = "NVIDIA/mig-parted, issue 31: nvidia-smi"
    MODAL = "modal-labs/modal-client, pull request 2797: totals of nvidia-smi"
    PRODUCTS = "stillwater-sc/kpu-sim, docs/design/nvidia-gpu-products.md"
    SHEETS = "astroC86/gpu-datasheet, README.md: figures with links to NVIDIA's data sheets"
    SVETHARDWARE = "svethardware.cz 58344, Intel's published specifications of Arc"
    TECHBRIEFLY = "techbriefly.com 14865, RTX A6000 and RTX A40"
    TECHWORM = "TechWorm, NVIDIA unveils its PCIe HBM2 GP100"
    THE_REGISTER = "The Register at Hot Chips 2022, Intel's Flex GPUs (strong.avance10.com)"


_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Read(Generic[_T]):
    """A figure and the document it was read in."""

    value: _T
    source: Source


@dataclass(frozen=True, slots=True)
class GpuModel:
    """One model; see the module's text for units. A figure that is None has been read nowhere."""

    name: str
    vendor: str
    model_class: str
    pci: Read[tuple[int, ...]]
    memory_gib: Read[int]
    bandwidth_gb_s: Read[float] | None
    capability: Read[tuple[int, int]] | None = None
    reported_mib: tuple[Read[int], ...] = ()

    @property
    def memory_window_bytes(self) -> tuple[int, int]:
        """The least and the most memory that a true card of this model reports; both rounded down."""
        nominal = self.memory_gib.value << 30
        return nominal * MEMORY_LOW_PERCENT // 100, nominal * MEMORY_HIGH_PERCENT // 100

    @property
    def unread(self) -> tuple[str, ...]:
        """The figures of this row for which no document was found: nothing is compared with them."""
        found = {
            "bandwidth_gb_s": self.bandwidth_gb_s is not None,
            "capability": self.capability is not None or self.vendor != "nvidia",
            "reported_mib": bool(self.reported_mib),
        }
        return tuple(name for name, is_read in found.items() if not is_read)


NVIDIA: Final = 0x10DE
AMD: Final = 0x1002
INTEL: Final = 0x8086
_VENDOR_IDS: Final = {NVIDIA: "nvidia", AMD: "amd", INTEL: "intel"}


def _nvidia(
    name: str,
    model_class: str,
    pci: tuple[int, ...],
    memory: tuple[int, Source],
    bandwidth: tuple[float, Source] | None,
    capability: tuple[int, int, Source],
    *reported: tuple[int, Source],
    listed: Source = Source.PCI_IDS,
) -> GpuModel:
    major, minor, source = capability
    return GpuModel(
        name,
        "nvidia",
        model_class,
        Read(pci, listed),
        Read(*memory),
        None if bandwidth is None else Read(*bandwidth),
        Read((major, minor), source),
        tuple(Read(*one) for one in reported),
    )


_S = Source
_HOPPER: Final = (9, 0, _S.NVIDIA_CUDA)
_ADA: Final = (8, 9, _S.NVIDIA_CUDA)
_AMPERE: Final = (8, 6, _S.NVIDIA_CUDA)
_GEFORCE_30: Final = (8, 6, _S.CUDA_BY_CHIP)
_A100: Final = (8, 0, _S.NVIDIA_CUDA_2022)
_VOLTA: Final = (7, 0, _S.NVIDIA_CUDA_LEGACY)

_DATA_CENTRE: Final[tuple[GpuModel, ...]] = (
    _nvidia(
        "H200",
        "h200",
        (0x2335,),
        (141, _S.SHEETS),
        (4800, _S.SHEETS),
        _HOPPER,
        (143771, _S.LIUM),
        listed=_S.NVIDIA_DRIVER,
    ),
    _nvidia("H100 80GB HBM3", "h100", (0x2330,), (80, _S.AKASH), (3350, _S.SHEETS), _HOPPER, (81559, _S.LIUM)),
    # The brief says "greater than 2,000"; another list has 2,048. The lower can only be too kind to a card.
    _nvidia(
        "H100 PCIe",
        "h100-pcie",
        (0x2331,),
        (80, _S.AKASH),
        (2000, _S.NVIDIA_H100_BRIEF),
        _HOPPER,
        (81559, _S.GPU_SPECS_VD),
    ),
    _nvidia(
        "A100-SXM4-80GB", "a100-80", (0x20B2,), (80, _S.AKASH), (2039, _S.GPU_SPECS), _A100, (81920, _S.MIG_PARTED)
    ),
    _nvidia("A100 80GB PCIe", "a100-80-pcie", (0x20B5,), (80, _S.AKASH), (1935, _S.GPU_SPECS), _A100),
    _nvidia(
        "A100-SXM4-40GB", "a100-40", (0x20B0,), (40, _S.AKASH), (1555, _S.GPU_SPECS), _A100, (40960, _S.BOTTLEROCKET)
    ),
    _nvidia("A100-PCIE-40GB", "a100-40", (0x20B1, 0x20F1), (40, _S.AKASH), (1555, _S.GPU_SPECS), _A100),
    _nvidia("A30", "a30", (0x20B7,), (24, _S.NVIDIA_DPDK), None, _A100),
    _nvidia(
        "L40S",
        "l40s",
        (0x26B9,),
        (48, _S.GPU_SPECS),
        (864, _S.GPU_SPECS),
        _ADA,
        (46068, _S.MODAL),
        (49140, _S.LIUM),
        listed=_S.NVIDIA_DRIVER,
    ),
    _nvidia("L40", "l40", (0x26B5,), (48, _S.PRODUCTS), (864, _S.PRODUCTS), _ADA),
    _nvidia("L4", "l4", (0x27B8,), (24, _S.GPU_SPECS), (300, _S.GPU_SPECS), _ADA, (23034, _S.MODAL)),
    _nvidia("A40", "a40", (0x2235,), (48, _S.AKASH), (696, _S.SHEETS), _AMPERE),
    _nvidia("A10", "a10", (0x2236,), (24, _S.SHEETS), (600, _S.SHEETS), _AMPERE, (23028, _S.DETECT_GPU)),
    _nvidia("A10G", "a10g", (0x2237,), (24, _S.BASETEN), (600, _S.BASETEN), (8, 6, _S.EC2)),
    # Other lists have 300; the brief gives 320 with clock and width (5,001 MHz, 256 bits) that agree with it.
    _nvidia(
        "Tesla T4",
        "t4",
        (0x1EB8,),
        (16, _S.NVIDIA_T4_BRIEF),
        (320, _S.NVIDIA_T4_BRIEF),
        (7, 5, _S.NVIDIA_CUDA_2022),
        (15360, _S.MODAL),
    ),
    _nvidia(
        "Tesla V100-SXM2-32GB", "v100-32", (0x1DB5,), (32, _S.AKASH), (900, _S.GPU_SPECS), _VOLTA, (32480, _S.GRAB_GPU)
    ),
    _nvidia(
        "Tesla V100-SXM2-16GB", "v100-16", (0x1DB1,), (16, _S.AKASH), (900, _S.GPU_SPECS), _VOLTA, (16160, _S.K8S_VGPU)
    ),
    _nvidia("Tesla V100-PCIE-32GB", "v100-32", (0x1DB6,), (32, _S.PCI_IDS), (900, _S.GPU_SPECS), _VOLTA),
    _nvidia("Tesla V100-PCIE-16GB", "v100-16", (0x1DB4,), (16, _S.PCI_IDS), (900, _S.GPU_SPECS), _VOLTA),
    _nvidia(
        "Tesla P100-PCIE-16GB",
        "p100-16",
        (0x15F8,),
        (16, _S.AKASH),
        (732, _S.TECHWORM),
        (6, 0, _S.NVIDIA_CUDA_LEGACY),
    ),
    _nvidia("Tesla P40", "p40", (0x1B38,), (24, _S.AKASH), (346, _S.PRODUCTS), (6, 1, _S.NVIDIA_CUDA_LEGACY)),
)

_WORKSTATION: Final[tuple[GpuModel, ...]] = (
    _nvidia(
        "RTX 6000 Ada Generation",
        "rtx6000-ada",
        (0x26B1,),
        (48, _S.GPU_SPECS_VD),
        (960, _S.GPU_SPECS_VD),
        _ADA,
        (49140, _S.GPU_SPECS_VD),
    ),
    _nvidia("RTX A6000", "a6000", (0x2230,), (48, _S.AKASH), (768, _S.TECHBRIEFLY), _AMPERE),
    _nvidia("RTX A5000", "a5000", (0x2231,), (24, _S.AKASH_A5000), (768, _S.ALLDBIN), _AMPERE, (24564, _S.AKASH_A5000)),
    _nvidia(
        "RTX A4000",
        "a4000",
        (0x24B0,),
        (16, _S.ECER_A4000),
        (448, _S.ECER_A4000),
        _AMPERE,
        (15352, _S.LIUM),
        (16376, _S.LIUM),
    ),
)

_GEFORCE: Final[tuple[GpuModel, ...]] = (
    _nvidia("GeForce RTX 4090", "rtx4090", (0x2684,), (24, _S.AKASH), (1008, _S.GEFORCE_30_40), _ADA, (24564, _S.LIUM)),
    _nvidia("GeForce RTX 4080", "rtx4080", (0x2704,), (16, _S.AKASH), (716.8, _S.GEFORCE_30_40), _ADA),
    _nvidia(
        "GeForce RTX 4070 Ti",
        "rtx4070ti",
        (0x2782,),
        (12, _S.AKASH),
        (504, _S.GEFORCE_30_40),
        _ADA,
        (12282, _S.GPU_SPECS_VD),
    ),
    _nvidia("GeForce RTX 3090 Ti", "rtx3090ti", (0x2203,), (24, _S.AKASH), (1008, _S.GEFORCE_30_40), _GEFORCE_30),
    _nvidia(
        "GeForce RTX 3090",
        "rtx3090",
        (0x2204,),
        (24, _S.AKASH),
        (936, _S.GEFORCE_30_40),
        _GEFORCE_30,
        (24576, _S.CLUB_3090),
    ),
    _nvidia("GeForce RTX 3080", "rtx3080", (0x2206, 0x2216), (10, _S.AKASH), (760, _S.GEFORCE_30_40), _GEFORCE_30),
    _nvidia("GeForce RTX 3070", "rtx3070", (0x2484, 0x2488), (8, _S.AKASH), (448, _S.GEFORCE_30_40), _GEFORCE_30),
    _nvidia(
        "GeForce RTX 3060",
        "rtx3060",
        (0x2503, 0x2504),
        (12, _S.AKASH),
        (360, _S.GEFORCE_30_40),
        _GEFORCE_30,
        (12288, _S.GEERLING_3060),
    ),
    _nvidia(
        "GeForce RTX 2080 Ti",
        "rtx2080ti",
        (0x1E04, 0x1E07),
        (11, _S.AKASH),
        (616, _S.GIST_BANDWIDTH),
        (7, 5, _S.CUDA_GIST),
    ),
)

_OTHERS: Final[tuple[GpuModel, ...]] = (
    GpuModel(
        "Instinct MI210",
        "amd",
        "mi210",
        Read((0x740F,), _S.PCI_IDS),
        Read(64, _S.AMD_SPECS),
        Read(1600, _S.ANANDTECH),
    ),
    GpuModel(
        "Instinct MI100",
        "amd",
        "mi100",
        Read((0x738C,), _S.PCI_IDS),
        Read(32, _S.AMD_SPECS),
        Read(1228, _S.AMD_MI100),
    ),
    GpuModel(
        "Data Center GPU Flex 170",
        "intel",
        "flex170",
        Read((0x56C0,), _S.PCI_IDS),
        Read(16, _S.THE_REGISTER),
        None,
    ),
    GpuModel(
        "Arc A770",
        "intel",
        "a770",
        Read((0x56A0,), _S.PCI_IDS),
        Read(16, _S.METERPRETER),
        Read(560, _S.SVETHARDWARE),
    ),
)

MODELS: Final[tuple[GpuModel, ...]] = (*_DATA_CENTRE, *_WORKSTATION, *_GEFORCE, *_OTHERS)

BY_PCI: Final[dict[int, GpuModel]] = {
    device << 16 | next(number for number, vendor in _VENDOR_IDS.items() if vendor == model.vendor): model
    for model in MODELS
    for device in model.pci.value
}


def vendor_of(pci_device_id: int) -> str | None:
    """The maker by the vendor half of the id (device << 16 | vendor); None for one we do not know."""
    return _VENDOR_IDS.get(pci_device_id & 0xFFFF)


def find(pci_device_id: int) -> GpuModel | None:
    """The model of a PCI id (device << 16 | vendor, as NVML gives it); None if the table does not hold it."""
    return BY_PCI.get(pci_device_id)
