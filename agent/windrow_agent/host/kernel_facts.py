"""Further facts of this host from the kernel's files, by the names of proto's host_fields.py.

Every figure may be absent, and none costs more than a file; only the toolkit's version is a program's word, asked once.
"""

import ctypes
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from windrow_agent.core.inventory import clean_text
from windrow_agent.gpu.sysfs_files import entries, number, text

More = Mapping[str, int | str]

FLAGS: Final = ("avx", "avx2", "avx512f", "avx512_bf16", "avx512_vnni", "amx_tile", "amx_bf16", "aes", "sha_ni", "sve")
"""Instructions that images ask for."""
TRUSTED: Final = ("sev", "sev_es", "sev_snp", "sgx", "tdx_guest", "tdx_host_platform")
TRUSTED_DEVICES: Final = {"dev/sev-guest": "SEV guest", "dev/tdx_guest": "TDX guest", "dev/sev": "SEV host"}
CONTAINERS: Final = {".dockerenv": "a Docker container", "run/.containerenv": "a Podman container"}
TOOLKIT_S: Final = 5.0
KIB: Final = 1024
_ADJTIMEX_BYTES: Final = 208
_STA_UNSYNC: Final = 0x40
"""Of struct timex in linux/timex.h."""


def read(root: Path, data_dir: Path) -> dict[str, int | str]:
    """All of it. root: of the file system; data_dir: whose disk counts."""
    cpu = text(root / "proc/cpuinfo")
    flags = set(next((line.partition(":")[2].split() for line in cpu.splitlines() if line.startswith("flags")), []))
    found: dict[str, int | str | None] = {
        "boot_id": text(root / "proc/sys/kernel/random/boot_id"),
        "cpu_architecture": platform.machine(),
        "cpu_flags": " ".join(flag for flag in FLAGS if flag in flags),
        "confidential": ", ".join(_confidential(root, flags)),
        **_machine(root, "hypervisor" in flags),
        **_processors(root),
        **_memory(root),
        **_disk(root, data_dir),
        **_network(root),
        **_containers(root),
        **clock(),
    }
    return {name: said for name, said in found.items() if said not in (None, "")}


def _machine(root: Path, is_virtual: bool) -> dict[str, int | str | None]:
    dmi = root / "sys/class/dmi/id"
    model = " ".join(filter(None, (text(dmi / name) for name in ("sys_vendor", "product_name"))))
    inside = next((words for name, words in CONTAINERS.items() if (root / name).exists()), "")
    inside = inside or text(root / "run/host/container-manager") or ("a virtual machine" if is_virtual else "")
    groups = root / "sys/kernel/iommu_groups"
    secure = entries(root / "sys/firmware/efi/efivars", "SecureBoot-*")
    users = number(root / "proc/sys/user/max_user_namespaces")
    allowed = number(root / "proc/sys/kernel/unprivileged_userns_clone")
    return {
        "machine_model": model,
        "firmware_version": text(dmi / "bios_version"),
        "virtualization": inside or ("hardware" if model else ""),
        "iommu": int(bool(entries(groups, "*"))) if groups.is_dir() else None,
        "secure_boot": _last_byte(secure[0]) if secure else None,
        "user_namespaces": None if users is None else int(users > 0 and allowed != 0),
    }


def _last_byte(path: Path) -> int | None:
    """An EFI variable that is a switch: four bytes of attributes, then 0 or 1."""
    try:
        found = path.read_bytes()
        return found[4] if len(found) == 5 else None
    except OSError:
        return None


def _confidential(root: Path, flags: set[str]) -> list[str]:
    devices = [words for name, words in TRUSTED_DEVICES.items() if (root / name).exists()]
    return [*(flag for flag in TRUSTED if flag in flags), *devices]


def _processors(root: Path) -> dict[str, int | str | None]:
    cpus, nodes = root / "sys/devices/system/cpu", root / "sys/devices/system/node"
    packages = {number(one) for one in entries(cpus, "cpu[0-9]*/topology/physical_package_id")} - {None}
    clocks = [number(one) or 0 for one in entries(cpus, "cpu[0-9]*/cpufreq/cpuinfo_max_freq")]
    lists = {one.name.removeprefix("node"): text(one / "cpulist") for one in entries(nodes, "node[0-9]*")}
    return {
        "cpu_sockets": len(packages) or None,
        "cpu_max_mhz": max(clocks, default=0) // 1000 or None,
        "numa_nodes": len(lists) or None,
        "numa_cpus": "; ".join(f"{node}: {cpus}" for node, cpus in sorted(lists.items()) if cpus),
    }


def _memory(root: Path) -> dict[str, int | str | None]:
    said = dict(re.findall(r"(?m)^(\w+):\s+(\d+)", text(root / "proc/meminfo")))
    pages = int(said.get("HugePages_Total", 0)) * int(said.get("Hugepagesize", 0)) * KIB
    swap = said.get("SwapTotal")
    return {"swap_bytes": int(swap) * KIB if swap is not None else None, "hugepages_bytes": pages if said else None}


def _disk(root: Path, data_dir: Path) -> dict[str, int | str | None]:
    """Of the mount that the data are on: the longest of those that hold it, the last of those that are alike."""
    path, best = f"{os.path.realpath(data_dir)}/", ("", "", "", "")
    for line in text(root / "proc/self/mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        before, after = left.split(), right.split()
        if len(before) > 4 and len(after) > 1:
            place = before[4].rstrip("/") + "/"
            if path.startswith(place) and len(place) >= len(best[0]):
                best = (place, before[2], after[0], after[1])
    _, device, kind, name = best
    block = root / "sys/dev/block" / device
    of_partition = Path(os.path.realpath(block)).parent / "queue/rotational" if device else block
    rotates = number(block / "queue/rotational") if device else None
    rotates = rotates if rotates is not None or not device else number(of_partition)
    return {"disk_type": kind, "disk_device": clean_text(name), "disk_rotates": rotates}


def _network(root: Path) -> dict[str, int | str | None]:
    """Of the interface of the default route with the lowest metric."""
    rows = [line.split() for line in text(root / "proc/net/route").splitlines()[1:]]
    default = sorted((int(row[6]), row[0]) for row in rows if len(row) > 7 and row[1] == row[7] == "00000000")
    if not default:
        return {}
    name = default[0][1]
    card = root / "sys/class/net" / name
    return {"nic": name, "nic_mbps": number(card / "speed") or None, "nic_mtu": number(card / "mtu")}


def _containers(root: Path) -> dict[str, int | str | None]:
    specs = [one.name for folder in ("etc/cdi", "var/run/cdi") for one in entries(root / folder, "*.*")]
    found: dict[str, int | str | None] = {"cgroup": cgroup(root / "sys/fs/cgroup"), "cdi_specs": " ".join(specs)}
    return found | ({"toolkit_version": _toolkit()} if root == Path("/") else {})


def cgroup(folder: Path) -> str | None:
    """Which version of cgroups is mounted there."""
    if (folder / "cgroup.controllers").exists():
        return "v2"
    if not entries(folder, "*"):
        return None
    return "hybrid" if (folder / "unified").is_dir() else "v1"


@cache
def _toolkit() -> str:
    program = shutil.which("nvidia-ctk")
    if program is None:
        return ""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=TOOLKIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return ""
    found = re.search(r"version\s+v?([0-9][\w.~+-]*)", done.stdout)
    return found[1] if found else ""


def clock() -> dict[str, int | str | None]:
    """Reads from the kernel whether somebody sets its clock. The call needs no privilege."""
    buffer = ctypes.create_string_buffer(_ADJTIMEX_BYTES)
    try:
        state = ctypes.CDLL(None).adjtimex(buffer)
    except (OSError, AttributeError):
        return {}
    if state < 0 or ctypes.sizeof(ctypes.c_long) != 8:
        return {}
    status = int.from_bytes(buffer.raw[40:44], "little")
    return {"clock_synchronised": int(not status & _STA_UNSYNC)}
