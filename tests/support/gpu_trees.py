"""Trees of files that stand for machines with cards of AMD, Intel and others, as their drivers lay them out in sysfs.

Made after the kernel's documents that gpu/amd.py and gpu/intel.py name, not recorded on a card.
"""

from dataclasses import dataclass, field
from pathlib import Path

DEVICES = "sys/bus/pci/devices"
ROOT_PORT = "sys/devices/pci0000:00/0000:00:01.1"
MI300X = {
    "vendor": "0x1002",
    "device": "0x74a1",
    "subsystem_vendor": "0x1002",
    "subsystem_device": "0x74a1",
    "class": "0x120000",
    "numa_node": "1",
    "local_cpulist": "48-95,144-191",
    "max_link_speed": "32.0 GT/s PCIe",
    "max_link_width": "16",
    "current_link_speed": "32.0 GT/s PCIe",
    "current_link_width": "16",
    "unique_id": "3b6f2c1d90a4e857",
    "product_name": "AMD Instinct MI300X OAM",
    "product_number": "102-G30211-00",
    "serial_number": "692251001234",
    "vbios_version": "113-M3000100-102",
    "mem_info_vram_total": "206141652992",
    "mem_info_vram_used": "297795584",
    "mem_info_vis_vram_total": "206141652992",
    "gpu_busy_percent": "87",
    "mem_busy_percent": "41",
    "pcie_replay_count": "3",
    "pp_dpm_sclk": "0: 132Mhz\n1: 1500Mhz *\n2: 2100Mhz",
    "pp_dpm_mclk": "0: 900Mhz\n1: 1300Mhz *",
    "hwmon/hwmon4/name": "amdgpu",
    "hwmon/hwmon4/temp2_input": "61000",
    "hwmon/hwmon4/temp2_crit": "100000",
    "hwmon/hwmon4/temp2_label": "junction",
    "hwmon/hwmon4/temp3_input": "48500",
    "hwmon/hwmon4/temp3_crit": "105000",
    "hwmon/hwmon4/temp3_label": "mem",
    "hwmon/hwmon4/power1_input": "612340000",
    "hwmon/hwmon4/power1_cap": "750000000",
    "hwmon/hwmon4/power1_cap_max": "750000000",
    "hwmon/hwmon4/power1_cap_min": "0",
    "hwmon/hwmon4/power1_cap_default": "750000000",
    "hwmon/hwmon4/freq1_input": "1987000000",
    "hwmon/hwmon4/freq2_input": "1300000000",
    "ras/umc_err_count": "ue: 0\nce: 7",
    "ras/gfx_err_count": "ue: 1\nce: 2",
    "ras/gpu_vram_bad_pages": "0x00000001 : 0x00001000 : R\n0x00000002 : 0x00001000 : R",
    "drm/renderD128/dev": "226:128",
}
"""A board of a server: no edge sensor, no fan, a display class of none."""
RX_7900_XTX = {
    "vendor": "0x1002",
    "device": "0x744c",
    "subsystem_vendor": "0x1da2",
    "subsystem_device": "0xe471",
    "class": "0x030000",
    "numa_node": "-1",
    "local_cpulist": "0-31",
    "max_link_speed": "16.0 GT/s PCIe",
    "max_link_width": "16",
    "current_link_speed": "16.0 GT/s PCIe",
    "current_link_width": "16",
    "unique_id": "a1b2c3d4e5f60718",
    "vbios_version": "113-4E4710U-T4Y",
    "mem_info_vram_total": "25753026560",
    "mem_info_vram_used": "27262976",
    "gpu_busy_percent": "0",
    "mem_busy_percent": "0",
    "pp_dpm_sclk": "0: 500Mhz *\n1: 2526Mhz",
    "pp_dpm_mclk": "0: 96Mhz *\n1: 1249Mhz",
    "hwmon/hwmon2/temp1_input": "38000",
    "hwmon/hwmon2/temp1_crit": "100000",
    "hwmon/hwmon2/temp1_label": "edge",
    "hwmon/hwmon2/temp2_input": "41000",
    "hwmon/hwmon2/temp2_crit": "110000",
    "hwmon/hwmon2/temp2_label": "junction",
    "hwmon/hwmon2/power1_average": "18000000",
    "hwmon/hwmon2/power1_cap": "339000000",
    "hwmon/hwmon2/power1_cap_max": "389000000",
    "hwmon/hwmon2/pwm1": "51",
    "drm/renderD129/dev": "226:129",
}
"""A card for a desktop, with a switch of its own between it and the slot."""
APU = {
    "vendor": "0x1002",
    "device": "0x164e",
    "class": "0x030000",
    "mem_info_vram_total": "536870912",
    "hwmon/hwmon0/temp1_input": "40000",
}
"""The graphics of a processor."""
ARC_A770 = {
    "vendor": "0x8086",
    "device": "0x56a0",
    "subsystem_vendor": "0x8086",
    "subsystem_device": "0x1020",
    "class": "0x030000",
    "numa_node": "-1",
    "max_link_speed": "2.5 GT/s PCIe",
    "max_link_width": "1",
    "current_link_speed": "2.5 GT/s PCIe",
    "current_link_width": "1",
    "tile0/physical_vram_size_bytes": "17079205888",
    "tile0/gt0/freq0/act_freq": "2100",
    "tile0/gt0/freq0/rp0_freq": "2400",
    "tile0/gt0/gtidle/idle_residency_ms": "1000",
    "tile0/gt0/freq0/throttle/status": "1",
    "tile0/gt0/freq0/throttle/reason_pl1": "1",
    "tile0/gt0/freq0/throttle/reason_thermal": "0",
    "tile0/gt0/freq0/throttle/reason_prochot": "0",
    "hwmon/hwmon3/energy1_input": "5000000",
    "hwmon/hwmon3/power1_max": "190000000",
    "hwmon/hwmon3/power1_rated_max": "225000000",
    "hwmon/hwmon3/temp2_input": "57400",
    "hwmon/hwmon3/temp3_input": "62000",
    "drm/card0/dev": "226:0",
    "drm/renderD130/dev": "226:130",
}
"""As the driver xe shows it; its endpoint tells the link behind the card's own switch."""
FLEX_170 = {
    "vendor": "0x8086",
    "device": "0x56c0",
    "class": "0x038000",
    "drm/card1/gt/gt0/rps_act_freq_mhz": "1950",
    "drm/card1/gt/gt0/rps_RP0_freq_mhz": "2050",
    "drm/card1/gt/gt0/rc6_residency_ms": "40000",
    "drm/card1/gt/gt0/throttle_reason_thermal": "1",
    "drm/card1/gt/gt0/throttle_reason_prochot": "1",
    "drm/card1/lmem_total_bytes": "16225243136",
    "drm/card1/lmem_avail_bytes": "14225243136",
    "hwmon/hwmon1/energy1_input": "900",
    "hwmon/hwmon1/temp1_input": "44000",
}
"""As Intel's own i915 shows it."""
UHD = {"vendor": "0x8086", "device": "0x46a6", "class": "0x030000"}
ASPEED = {"vendor": "0x1a03", "device": "0x2000", "class": "0x030000"}
GAUDI = {"vendor": "0x1da3", "device": "0x1020", "class": "0x120000", "subsystem_vendor": "0x1da3"}
H100 = {"vendor": "0x10de", "device": "0x2330", "class": "0x030200"}


@dataclass
class Machine:
    """A tree below `root`; cards can be put in, changed and pulled while it is read."""

    root: Path
    folders: dict[str, Path] = field(default_factory=dict)

    def card(
        self, address: str, files: dict[str, str], driver: str = "", bridges: tuple[dict[str, str], ...] = ()
    ) -> Path:
        """A card at this address; bridges: the files of those between the processor's port and it, outermost first."""
        above = self.root / ROOT_PORT
        write(above, {"vendor": "0x1022", "class": "0x060400"})
        for number, bridge in enumerate(bridges, 1):
            above = above / f"0000:{number:02x}:00.0"
            write(above, {"class": "0x060400", **bridge})
        folder = above / address
        write(folder, files)
        (folder / "config").write_bytes(bytes.fromhex("02107448"))
        if driver:
            (self.root / "sys/bus/pci/drivers" / driver).mkdir(parents=True, exist_ok=True)
            (folder / "driver").symlink_to(self.root / "sys/bus/pci/drivers" / driver)
        link = self.root / DEVICES / address
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(folder)
        self.folders[address] = folder
        return folder

    def compute_node(self, number: int, address: str, holders: dict[int, int]) -> None:
        """A card as the compute driver KFD lists it. holders: pid to the bytes that it holds there."""
        bus, rest = address.split(":")[1:]
        device, function = rest.split(".")
        location = int(bus, 16) << 8 | int(device, 16) << 3 | int(function)
        node = self.root / f"sys/class/kfd/kfd/topology/nodes/{number}"
        write(
            node, {"gpu_id": str(1000 + number), "properties": f"cpu_cores_count 0\nlocation_id {location}\ndomain 0"}
        )
        for pid, held in holders.items():
            write(self.root / f"sys/class/kfd/kfd/proc/{pid}", {f"vram_{1000 + number}": str(held)})


def write(folder: Path, files: dict[str, str]) -> None:
    """These files below a folder, each with the newline that the kernel ends it by."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")


def machine(root: Path) -> Machine:
    """A machine without cards."""
    write(root, {"etc/machine-id": "0123456789abcdef0123456789abcdef", "proc/sys/kernel/osrelease": "6.12.9-amd64"})
    (root / DEVICES).mkdir(parents=True, exist_ok=True)
    return Machine(root)
