"""Hosts as they say they are: honest ones of the model table and of reports that were read, and ones that lie.

The honest state only figures that have a source: the table's own, those of the agent's simulated cards, or the report
named beside them.
"""

from dataclasses import dataclass, replace

from windrow_agent.gpu.personas import HOSTS as SIMULATED
from windrow_agent.host.simulated import SimulatedHost
from windrow_master.fleet.gpus import MODELS, GpuModel
from windrow_proto.clock import SystemClock
from windrow_proto.ids import GpuUuid
from windrow_proto.model import GpuFacts, Inventory
from windrow_proto.units import MIB

DRIVER = "580.95.05"
VENDOR_IDS = {"nvidia": 0x10DE, "amd": 0x1002, "intel": 0x8086}


def uuid(number: int) -> GpuUuid:
    """A UUID of NVML's form."""
    return GpuUuid(f"GPU-{number:08x}-0000-4000-8000-{number:012x}")


def host(*gpus: GpuFacts, **facts: object) -> Inventory:
    """A host with these cards."""
    known = {"hostname": "box", "cpu_count": 8, "memory_bytes": 1 << 36, "driver_version": DRIVER}
    return Inventory(**{**known, "gpus": gpus, **facts})  # type: ignore[arg-type] # a test says the right types


def card(index: int = 0, **facts: object) -> GpuFacts:
    """An H100 as the agent reads one, or what is said of it instead."""
    known: dict[str, object] = {
        "uuid": uuid(index + 1),
        "index": index,
        "vendor": "nvidia",
        "name": "NVIDIA H100 80GB HBM3",
        "pci_bus_id": f"00000000:{0x18 + 8 * index:02X}:00.0",
        "pci_device_id": 0x233010DE,
        "pci_subsystem_id": 0x16C110DE,
        "memory_bytes": 81559 * MIB,
        "compute_capability_major": 9,
        "compute_capability_minor": 0,
        "serial": f"16500000000{index:02d}",
        "vbios": "96.00.89.00.01",
        "power_limit_mw": 700_000,
        "power_limit_max_mw": 700_000,
        "clock_sm_max_mhz": 1980,
        "clock_memory_max_mhz": 2619,
        "pcie_generation_max": 5,
        "pcie_width_max": 16,
        "core_count": 16896,
        "memory_bus_bits": 5120,
        "ecc_enabled": True,
        "mig_enabled": False,
        "numa_node": 0,
        "device_minor": index,
    }
    return GpuFacts(**{**known, **facts})  # type: ignore[arg-type] # a test says the right types


def geforce(index: int = 0, **facts: object) -> GpuFacts:
    """A GeForce RTX 4090 as the agent reads one, or what is said of it instead."""
    known: dict[str, object] = {
        "name": "NVIDIA GeForce RTX 4090",
        "pci_device_id": 0x268410DE,
        "pci_subsystem_id": 0x00011043,
        "memory_bytes": 24564 * MIB,
        "compute_capability_major": 8,
        "compute_capability_minor": 9,
        "serial": None,
        "vbios": "95.02.3C.00.01",
        "power_limit_mw": 450_000,
        "power_limit_max_mw": 450_000,
        "clock_sm_max_mhz": 2520,
        "clock_memory_max_mhz": 10501,
        "pcie_generation_max": 4,
        "core_count": 16384,
        "memory_bus_bits": 384,
        "ecc_enabled": False,
        "mig_enabled": None,
        "numa_node": None,
    }
    return card(index, **{**known, **facts})


def bare(name: str, pci_device_id: int, index: int = 0, **facts: object) -> GpuFacts:
    """A card that says little."""
    little = {"memory_bytes": None, "compute_capability_major": None, "compute_capability_minor": None, "serial": None}
    silent = dict.fromkeys(("vbios", "power_limit_mw", "power_limit_max_mw", "clock_sm_max_mhz", "core_count"))
    more = dict.fromkeys(("clock_memory_max_mhz", "memory_bus_bits", "ecc_enabled", "mig_enabled"))
    return card(index, **{**little, **silent, **more, "name": name, "pci_device_id": pci_device_id, **facts})


# --- honest ----------------------------------------------------------------------------------------------------------


def of_model(model: GpuModel, count: int, memory_mib: int | None, prefix: str) -> Inventory:
    """So many cards of a model, with the table's figures and nothing else."""
    capability = model.capability.value if model.capability else (None, None)
    gpus = tuple(
        GpuFacts(
            uuid(n + 1),
            n,
            model.vendor,
            prefix + model.name,
            pci_bus_id=f"0000{n:04x}:{n + 1:02x}:00.0",
            pci_device_id=model.pci.value[n % len(model.pci.value)] << 16 | VENDOR_IDS[model.vendor],
            memory_bytes=None if memory_mib is None else memory_mib * MIB,
            compute_capability_major=capability[0],
            compute_capability_minor=capability[1],
            device_minor=n,
        )
        for n in range(count)
    )
    return host(*gpus, driver_version=DRIVER if model.vendor == "nvidia" else "")


def _honest() -> dict[str, Inventory]:
    found: dict[str, Inventory] = {}
    for at, model in enumerate(MODELS):
        prefix = {"nvidia": "NVIDIA ", "amd": "AMD ", "intel": "Intel "}[model.vendor]
        nominal = model.memory_gib.value << 10
        for memory in [nominal, *(reading.value for reading in model.reported_mib)]:
            found[f"{model.name}, {memory} MiB"] = of_model(model, (1, 2, 4, 8)[at % 4], memory, prefix)
        found[f"{model.name}, as older drivers name it"] = of_model(model, 1, None, "")
    for name in SIMULATED:
        gpus = SimulatedHost(7, 0, SystemClock(), name).gpus.inventory()
        found[f"simulated {name}"] = host(*gpus.gpus, driver_version=gpus.driver_version)
    return found


# NVML's answers as vsoch/watchme, docs of its gpu task, prints them.
V100 = GpuFacts(
    GpuUuid("GPU-be7b9ac8-f75e-1960-c52d-85429b4c86b1"),
    0,
    "nvidia",
    "Tesla V100-SXM2-32GB",
    pci_device_id=0x1DB510DE,
    memory_bytes=34058272768,
    serial="0323518083147",
    vbios="88.00.43.00.03",
    power_limit_mw=300_000,
    power_limit_max_mw=300_000,
    clock_memory_max_mhz=877,
    pcie_generation_max=3,
    pcie_width_max=16,
    ecc_enabled=True,
    device_minor=0,
)
# NVML's answers as Minyus/pipelinex, README, prints them (name, total, driver).
P100 = GpuFacts(uuid(1), 0, "nvidia", "Tesla P100-PCIE-16GB", pci_device_id=0x15F810DE, memory_bytes=17071734784)

HONEST: dict[str, Inventory] = {
    **_honest(),
    "8 H100": host(*map(card, range(8))),
    "4 RTX 4090": host(*map(geforce, range(4))),
    "a V100 as NVML told it": host(V100, driver_version="418.67"),
    "a P100 as NVML told it": host(P100, driver_version="418.67"),
    "no GPU": host(driver_version="", conditions=("gpu.none",)),
    "a driver that is away": host(card(), driver_version="", conditions=("gpu.no_driver",)),
    "an unlisted card": host(
        bare("NVIDIA TITAN Xp", 0x1B0210DE, compute_capability_major=6, compute_capability_minor=1)
    ),
    "a card lost at the start leaves a gap": host(card(0), card(2), card(5)),
    "capped by its owner": host(card(0, power_limit_mw=350_000), card(1)),
    "ECC off on one of two RTX A4000": host(
        *(
            bare("NVIDIA RTX A4000", 0x24B010DE, n, memory_bytes=mib * MIB, ecc_enabled=ecc, vbios="1")
            for n, mib, ecc in ((0, 15352, True), (1, 16376, False))
        )
    ),
    "boards of two makers": host(geforce(0), geforce(1, pci_subsystem_id=0x00021458, power_limit_max_mw=600_000)),
    "MIG on an H100": host(card(mig_enabled=True)),
    "ECC on an RTX 4090": host(geforce(ecc_enabled=True)),
    "the GPUs of one board share its serial": host(*(bare("NVIDIA A16", 0x25B610DE, n, serial="77") for n in range(4))),
}
"""At least fifty, none of which may be flagged."""

# --- dishonest -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Liar:
    """A host that claims what cannot be: the code that tells, and which cards it names, by place; () the host."""

    code: str
    inventory: Inventory
    cards: tuple[int, ...] = (0,)


def beside(*gpus: GpuFacts) -> Inventory:
    """These cards between honest ones, which stay on offer."""
    return host(*gpus, *(card(n) for n in range(len(gpus), 8)))


ARC = bare("NVIDIA H100 80GB HBM3", 0x56A08086, vendor="intel")
OLD_H100 = card(pci_device_id=0xFFFF10DE, compute_capability_major=7, compute_capability_minor=5)
NEXT_GEFORCE = bare(
    "NVIDIA GeForce", 0xFFFE10DE, mig_enabled=True, compute_capability_major=12, compute_capability_minor=0
)
GEFORCE_3090 = bare(
    "NVIDIA GeForce RTX 3090", 0x220410DE, ecc_enabled=True, compute_capability_major=8, compute_capability_minor=6
)

LIARS: dict[str, Liar] = {
    "an H100 with the memory of a 4090": Liar("claim.memory", beside(card(memory_bytes=24564 * MIB))),
    "an H100 with 94 GB": Liar("claim.memory", beside(card(memory_bytes=94 << 30))),
    "a 4090 that was given 48 GB": Liar("claim.memory", host(geforce(memory_bytes=49140 * MIB))),
    "80 GB as a shop counts them": Liar("claim.memory_grain", host(card(memory_bytes=85_000_000_000))),
    "a 4090 that claims to be an H100": Liar("claim.name", host(geforce(name="NVIDIA H100 80GB HBM3"))),
    "an H100 by all but its PCI id": Liar("claim.name", beside(bare("NVIDIA H100 80GB HBM3", 0x268410DE))),
    "a 3090 that claims to be a 3090 Ti": Liar("claim.name", host(bare("NVIDIA GeForce RTX 3090 Ti", 0x220410DE))),
    "a T4 that says only what it is not": Liar("claim.name", host(bare("NVIDIA Graphics Device", 0x1EB810DE))),
    "an Intel card that claims to be an H100": Liar("claim.name", host(ARC)),
    "an H100 of AMD's": Liar("claim.vendor", beside(card(vendor="amd", pci_device_id=0x233010DE, uuid=uuid(1)))),
    "an H100 with a PCI id of nobody's": Liar("claim.vendor", beside(card(pci_device_id=0x23301AF4))),
    "an H100 that may draw seven kilowatts": Liar("claim.power_range", beside(card(power_limit_max_mw=7_000_000))),
    "an H100 of at most 50 W": Liar(
        "claim.power_range", beside(card(power_limit_max_mw=50_000, power_limit_mw=50_000))
    ),
    "an H100 that computes as a 4090": Liar("claim.capability", beside(card(compute_capability_major=8))),
    "an H100 of an unknown id that computes as a 2080": Liar("claim.capability", beside(OLD_H100)),
    "a power limit above the highest": Liar("claim.power", beside(card(power_limit_mw=900_000))),
    "a 4090 that may draw 6 kW": Liar("claim.power", host(geforce(power_limit_mw=6_000_000))),
    "a link of PCIe 9": Liar("claim.link", beside(card(pcie_generation_max=9))),
    "a link of 17 lanes": Liar("claim.link", beside(card(pcie_width_max=17))),
    "an SM clock of 9 GHz": Liar("claim.clocks", beside(card(clock_sm_max_mhz=9_000))),
    "a memory clock in kHz": Liar("claim.clocks", beside(card(clock_memory_max_mhz=2_619_000))),
    "a bus of 5,121 bits": Liar("claim.bus", beside(card(memory_bus_bits=5121))),
    "an H100 with the bus of a 4090": Liar("claim.bandwidth", beside(card(memory_bus_bits=384))),
    "an H100 with the memory clock of a 4090": Liar("claim.bandwidth", beside(card(clock_memory_max_mhz=10501))),
    "an H100 with a core too many": Liar("claim.cores", beside(card(core_count=16897))),
    "an H100 without cores": Liar("claim.cores", beside(card(core_count=0))),
    "MIG on a 4090": Liar("claim.mig", host(geforce(mig_enabled=True))),
    "MIG on a GeForce of the next architecture": Liar("claim.mig", host(NEXT_GEFORCE)),
    "ECC on a 3090": Liar("claim.ecc", host(GEFORCE_3090)),
    "a UUID that somebody typed": Liar("claim.uuid", beside(card(uuid=GpuUuid("GPU-1")))),
    "a UUID of a MIG slice": Liar("claim.uuid", beside(card(uuid=GpuUuid(uuid(1).replace("GPU", "MIG"))))),
    "one UUID twice": Liar("claim.uuid_twice", beside(card(0), card(1, uuid=uuid(1)))),
    "one serial number twice": Liar("claim.serial_twice", beside(card(0), card(1, serial=card(0).serial)), (0, 1)),
    "a PCI address of words": Liar("claim.pci_address", beside(card(pci_bus_id="slot-3"))),
    "a PCI device above 31": Liar("claim.pci_address", beside(card(pci_bus_id="00000000:18:20.0"))),
    "one PCI address twice": Liar(
        "claim.pci_address_twice", beside(card(0), card(1, pci_bus_id="0000:18:00.0")), (0, 1)
    ),
    "one index twice": Liar("claim.index_twice", beside(card(0), replace(card(1), index=0)), (0, 1)),
    "one device file twice": Liar("claim.minor_twice", beside(card(0), card(1, device_minor=0)), (0, 1)),
    "H100s without a driver": Liar("claim.driver", host(card(), driver_version=""), ()),
    "H100s with a driver of no form": Liar("claim.driver", host(card(), driver_version="latest"), ()),
    "eight H100, one with less memory": Liar("claim.memory_unlike", beside(card(memory_bytes=79 << 30))),
    "two H100 that differ in memory": Liar(
        "claim.memory_unlike", host(card(0), card(1, memory_bytes=79 << 30)), (0, 1)
    ),
    "eight H100, one with an edited limit": Liar(
        "claim.power_unlike", beside(card(power_limit_max_mw=750_000, power_limit_mw=750_000))
    ),
}
"""Each breaks one rule and no other, so that the rule cannot be taken out unseen."""
