"""The one table of what a host says of itself beyond its first facts: name, heading, unit, and where it is read.

Pure. Names of OpenTelemetry are those of its resource conventions for hosts; None where there is none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class HostGroup(StrEnum):
    """The subject of a field; the headings of a host's page, in their order."""

    MACHINE = "Machine"
    PROCESSORS = "CPUs and memory"
    DISK = "Disk and network"
    CONTAINERS = "Containers"


@dataclass(frozen=True, slots=True)
class HostField:
    """One row. name: on the wire and in the API; unit: UCUM, empty for words, `bool` for yes or no."""

    name: str
    group: HostGroup
    label: str
    read: str
    unit: str = ""
    otel: str | None = None


_M, _P, _D, _C = HostGroup
CLOUD_PROVIDER: Final = "cloud_provider"
CLOUD_INSTANCE: Final = "cloud_instance"
"""Names of the two that a machine bought at a provider says."""

HOST_FIELDS: Final[tuple[HostField, ...]] = (
    HostField("boot_id", _M, "This start", "/proc/sys/kernel/random/boot_id"),
    HostField("machine_model", _M, "Model", "/sys/class/dmi/id"),
    HostField("firmware_version", _M, "Firmware", "/sys/class/dmi/id/bios_version"),
    HostField("virtualization", _M, "Runs in", "DMI, the processors' flags, /run/host/container-manager"),
    HostField(CLOUD_PROVIDER, _M, "Provider", "the provider's metadata service", otel="cloud.provider"),
    HostField(CLOUD_INSTANCE, _M, "Machine at the provider", "the provider's metadata service", otel="host.id"),
    HostField("iommu", _M, "IOMMU", "/sys/kernel/iommu_groups", "bool"),
    HostField("confidential", _M, "Confidential computing", "the processors' flags, /dev"),
    HostField("secure_boot", _M, "Secure boot", "EFI variable SecureBoot", "bool"),
    HostField("user_namespaces", _M, "User namespaces", "/proc/sys/user/max_user_namespaces", "bool"),
    HostField("clock_synchronised", _M, "Clock is set by NTP", "adjtimex(2)", "bool"),
    HostField("cpu_architecture", _P, "Architecture", "uname(2)", otel="host.arch"),
    HostField("cpu_sockets", _P, "Sockets", "/sys/devices/system/cpu", "1"),
    HostField("cpu_max_mhz", _P, "Highest clock", "cpufreq/cpuinfo_max_freq", "MHz"),
    HostField("cpu_flags", _P, "Instructions", "/proc/cpuinfo", otel="host.cpu.features"),
    HostField("numa_nodes", _P, "NUMA nodes", "/sys/devices/system/node", "1"),
    HostField("numa_cpus", _P, "CPUs of each", "/sys/devices/system/node/node*/cpulist"),
    HostField("swap_bytes", _P, "Swap", "/proc/meminfo", "By"),
    HostField("hugepages_bytes", _P, "Set aside as huge pages", "/proc/meminfo", "By"),
    HostField("disk_type", _D, "File system of the data", "/proc/self/mountinfo"),
    HostField("disk_device", _D, "Its device", "/proc/self/mountinfo"),
    HostField("disk_rotates", _D, "Its disk rotates", "queue/rotational", "bool"),
    HostField("nic", _D, "Interface to the internet", "/proc/net/route"),
    HostField("nic_mbps", _D, "Its speed", "/sys/class/net/*/speed", "Mbit/s"),
    HostField("nic_mtu", _D, "Its largest packet", "/sys/class/net/*/mtu", "By"),
    HostField("cgroup", _C, "Cgroups", "/sys/fs/cgroup"),
    HostField("container_own_users", _C, "Users of containers are their own", "GET /info of the daemon", "bool"),
    HostField("toolkit_version", _C, "NVIDIA Container Toolkit", "nvidia-ctk --version"),
    HostField("cdi_specs", _C, "CDI specifications", "/etc/cdi, /var/run/cdi"),
)

BY_NAME: Final[Mapping[str, HostField]] = {one.name: one for one in HOST_FIELDS}


def value(one: HostField, more: Mapping[str, int | str]) -> int | str | bool | None:
    """Returns a host's value of a field; None where it did not."""
    said = more.get(one.name)
    if said is None or said == "":
        return None
    return bool(said) if one.unit == "bool" else said
