"""Facts of a host's machine, disk, network and containers, from trees of files; a fact without a file is absent."""

import hashlib
import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.support.gpu_trees import write
from windrow_agent.core.gpu_port import GpuInventory
from windrow_agent.core.inventory import HostFacts, build_inventory
from windrow_agent.host import kernel_facts
from windrow_proto.host_fields import BY_NAME, HOST_FIELDS, value
from windrow_proto.model import Inventory, inventory_hash
from windrow_proto.wire_host import decode_inventory, encode_inventory

SERVER = {
    "proc/sys/kernel/random/boot_id": "0f3c2a51-9a75-4b0e-8d1c-5e2f7a9b1c3d",
    "proc/cpuinfo": "processor : 0\nflags\t\t: fpu avx avx2 avx512f aes sev sev_snp ht\n",
    "proc/sys/user/max_user_namespaces": "250000",
    "proc/meminfo": "MemTotal: 131 kB\nSwapTotal:     4194304 kB\nHugePages_Total:  512\nHugepagesize:  2048 kB\n",
    "proc/net/route": "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\n"
    "eth1\t00000000\t0100000A\t0003\t0\t0\t200\t00000000\t0\t0\t0\n"
    "eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
    "eth0\t0000000A\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0",
    "sys/class/net/eth0/speed": "25000",
    "sys/class/net/eth0/mtu": "9000",
    "sys/class/dmi/id/sys_vendor": "Supermicro",
    "sys/class/dmi/id/product_name": "AS -8125GS-TNHR",
    "sys/class/dmi/id/bios_version": "1.7",
    "sys/kernel/iommu_groups/0/type": "DMA",
    "sys/devices/system/cpu/cpu0/topology/physical_package_id": "0",
    "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq": "3700000",
    "sys/devices/system/cpu/cpu1/topology/physical_package_id": "1",
    "sys/devices/system/cpu/cpu1/cpufreq/cpuinfo_max_freq": "3600000",
    "sys/devices/system/node/node0/cpulist": "0-95",
    "sys/devices/system/node/node1/cpulist": "96-191",
    "sys/fs/cgroup/cgroup.controllers": "cpu memory",
    "etc/cdi/nvidia.yaml": "cdiVersion: 0.6.0",
    "run/udev/data": "",
}
WANTED: dict[str, int | str] = {
    "boot_id": "0f3c2a51-9a75-4b0e-8d1c-5e2f7a9b1c3d",
    "cpu_flags": "avx avx2 avx512f aes",
    "confidential": "sev, sev_snp",
    "machine_model": "Supermicro AS -8125GS-TNHR",
    "firmware_version": "1.7",
    "virtualization": "hardware",
    "iommu": 1,
    "user_namespaces": 1,
    "cpu_sockets": 2,
    "cpu_max_mhz": 3700,
    "numa_nodes": 2,
    "numa_cpus": "0: 0-95; 1: 96-191",
    "swap_bytes": 4 << 30,
    "hugepages_bytes": 1 << 30,
    "nic": "eth0",
    "nic_mbps": 25_000,
    "nic_mtu": 9_000,
    "cgroup": "v2",
    "cdi_specs": "nvidia.yaml",
}
OF_THE_KERNEL_ITSELF = {"cpu_architecture", "clock_synchronised"}
"""Asked by a call, whatever the root."""


def said(root: Path) -> dict[str, int | str]:
    return {
        name: one for name, one in kernel_facts.read(root, root / "data").items() if name not in OF_THE_KERNEL_ITSELF
    }


def test_a_server_says_what_it_is(tmp_path: Path) -> None:
    write(tmp_path, SERVER)
    assert said(tmp_path) == WANTED


def test_a_machine_that_says_nothing_says_nothing(tmp_path: Path) -> None:
    assert said(tmp_path) == {}


@pytest.mark.parametrize(
    ("change", "name", "wanted"),
    [
        ({"proc/cpuinfo": "flags : hypervisor"}, "virtualization", "a virtual machine"),
        ({".dockerenv": ""}, "virtualization", "a Docker container"),
        ({"run/host/container-manager": "lxc"}, "virtualization", "lxc"),
        ({"dev/tdx_guest": ""}, "confidential", "sev, sev_snp, TDX guest"),
        ({"proc/sys/kernel/unprivileged_userns_clone": "0"}, "user_namespaces", 0),
        ({"sys/class/net/eth0/speed": "-1"}, "nic_mbps", None),
        ({"proc/net/route": "Iface"}, "nic", None),
    ],
)
def test_what_is_otherwise_is_said_otherwise(
    tmp_path: Path, change: dict[str, str], name: str, wanted: int | str | None
) -> None:
    write(tmp_path, {**SERVER, **change})
    assert said(tmp_path).get(name) == wanted


def test_the_disk_is_that_of_the_data_and_a_partition_is_asked_for_its_disk(tmp_path: Path) -> None:
    data = tmp_path / "data"
    above = os.path.realpath(tmp_path)
    own = (f"{above}/data", "8:17", "xfs", "/dev/sdb1")
    rows = (own, (above, "8:1", "ext4", "/dev/sda1"), ("/x", "0:1", "proc", "x"))
    table = "\n".join(f"1 2 {number} / {at} rw - {kind} {device} rw" for at, number, kind, device in rows)
    write(tmp_path, {"proc/self/mountinfo": table, "sys/block/sdb/queue/rotational": "0", "sys/block/sdb/sdb1/x": ""})
    (tmp_path / "sys/dev/block").mkdir(parents=True)
    (tmp_path / "sys/dev/block/8:17").symlink_to(tmp_path / "sys/block/sdb/sdb1")
    found = kernel_facts.read(tmp_path, data)
    assert (found["disk_type"], found["disk_device"], found["disk_rotates"]) == ("xfs", "/dev/sdb1", 0)


def test_this_machine_says_only_what_the_table_names() -> None:
    found = kernel_facts.read(Path("/"), Path("/tmp"))
    assert set(found) <= set(BY_NAME)
    assert found["cpu_architecture"] and found["boot_id"]


def test_absent_is_none_and_a_switch_is_yes_or_no_after_the_wire(tmp_path: Path) -> None:
    write(tmp_path, SERVER)
    host = HostFacts(hostname="box", more=said(tmp_path))
    sent = build_inventory(host, GpuInventory(), agent_version="1", simulated=False)
    came = decode_inventory(encode_inventory(sent))
    assert came == sent and inventory_hash(came) == inventory_hash(sent)
    rows = {one.name: value(one, came.more) for one in HOST_FIELDS}
    assert (rows["iommu"], rows["cpu_sockets"], rows["secure_boot"], rows["disk_type"]) == (True, 2, None, None)


def test_an_inventory_that_says_no_more_is_the_version_that_it_was() -> None:
    """A Master that knows the new fields and an agent that does not name the same version."""
    first = {name: one for name, one in asdict(Inventory(hostname="box")).items() if name not in {"addresses", "more"}}
    before = hashlib.sha256(json.dumps({**first, "gpus": []}, sort_keys=True).encode()).hexdigest()
    assert inventory_hash(Inventory(hostname="box")) == before
    assert inventory_hash(Inventory(hostname="box", more={"nic": "eth0"})) != before
