"""One NVIDIA card behind NVML: its facts, one sweep of it, and the figures that it does not have.

The library comes in as a value; only gpu/nvml.py imports it.
"""

import ctypes
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from windrow_agent.core.gpu_port import PROCESSES, GpuHealth, GpuLook
from windrow_agent.core.inventory import clean_id, clean_text
from windrow_agent.core.scaling import deciwatts, joules, kibibytes, mebibytes, whole
from windrow_agent.gpu import nvml_details, nvml_mig
from windrow_agent.gpu.nvml_codes import (
    BREAKING,
    BUSY_PERCENT,
    CLOCK_MEMORY,
    CLOCK_SM,
    FIELD_ENERGY,
    FIELD_HELD_BY_HEAT,
    FIELD_HELD_BY_POWER,
    FIELD_MEMORY_TEMPERATURE,
    FIELD_NVLINK_RECEIVED,
    FIELD_NVLINK_SENT,
    FIELD_PCIE_RECEIVED,
    FIELD_PCIE_REPLAYS,
    FIELD_PCIE_SENT,
    FIELD_POWER_INSTANT,
    FIELD_REMAP_FAILED,
    FIELD_REMAP_PENDING,
    FIELDS,
    GPU_IS_LOST,
    MOVED_BYTES,
    NEVER,
    NVLINK,
    RESET_REQUIRED,
    SLOW_FIELDS,
    TEMPERATURE_HIGH,
    TEMPERATURE_LOW,
    U32_MAX,
)
from windrow_agent.gpu.nvml_gpm import Gpm
from windrow_proto.ids import GpuUuid
from windrow_proto.model import GpuFacts
from windrow_proto.units import MILLISECOND

LASTING_FOR: Final = 60
"""Readings of the facts, a minute apart, until what hardly ever changes is read anew, too."""


class LostError(Exception):
    """This card no longer answers."""


class BrokenError(Exception):
    """The library no longer answers for any card."""

    def __init__(self, code: int, call: str) -> None:
        self.code, self.call = code, call
        super().__init__(f"NVML {code} from {call}")


class Card:
    """One card as we last knew it. `unsupported` holds the calls that are useless until its facts are read anew."""

    def __init__(self, nvml: Any, index: int, handle: Any, raw_uuid: str, pci_devices: Path) -> None:
        self.index = index
        self.raw_uuid = raw_uuid
        self.uuid = GpuUuid(clean_id(raw_uuid))
        self.facts = GpuFacts(uuid=self.uuid, index=index, vendor="nvidia", name="")
        self.lost = False
        self.reset_required = False
        self.differences: tuple[str, ...] = ()
        self.instances: nvml_mig.Instances = {}
        self._nvml = nvml
        self._pci_devices = pci_devices
        self._unsupported: set[tuple[object, ...]] = set()
        self._slowdown: int | None = None
        self._reserved: int | None = None
        self._links = 0
        self._neighbours: nvml_details.More | None = None
        self._at_work: nvml_details.More = {}
        self._lasting: nvml_details.More = {}
        self._lasting_for = 0
        self._lasting_at: tuple[object, ...] = ()
        self._has_utilization = False
        self._has_remap_fields = False
        self._gpm = Gpm(nvml, self.ask)
        self.forget()
        self.found(handle)

    def found(self, handle: Any) -> None:
        """The card answers (again) under this handle."""
        self.handle, self.address, self.lost = handle, address(handle), False
        self._unsupported.clear()
        self._lasting_for = 0

    def close(self) -> None:
        """Let go of what the library keeps for this card."""
        self._gpm.close()

    def forget(self) -> None:
        """Nothing read before holds any more."""
        self._gpm.forget()
        self._temperature: int | None = None
        self._memory_used: int | None = None
        self._memory_at_list: int | None = None
        self._load: int | None = None
        self._busy: int | None = None
        self._processes: int | None = None
        self._compute_processes: int | None = None
        self._is_list_doubted = False
        self._remap: tuple[bool | None, bool | None] = (None, None)
        self._slowed_by: int | None = None
        self._ecc_uncorrected: int | None = None
        self._mig: tuple[bool | None, bool | None] = (None, None)

    def ask(self, name: str, *arguments: object, of: Any = None, **named: object) -> Any:
        """The answer of one call, or None; `of`: the handle of a part of this card. Raises LostError and BrokenError
        only."""
        key = (name, *map(_key, arguments), *named.items(), _key(of))
        if key in self._unsupported:
            return None
        nvml = self._nvml
        try:
            return getattr(nvml, name)(self.handle if of is None else of, *arguments, **named)
        except nvml.NVMLLibraryMismatchError:  # not a subclass of NVMLError
            self._unsupported.add(key)
        except nvml.NVMLError as error:
            self._on_error(key, int(error.value))
        except (AttributeError, UnicodeDecodeError):  # older bindings; a name that is no text
            self._unsupported.add(key)
        return None

    def _on_error(self, key: tuple[object, ...], code: int) -> None:
        if code == GPU_IS_LOST:
            raise LostError
        if code in BREAKING:
            raise BrokenError(code, str(key[0]))
        if code == RESET_REQUIRED:
            self.reset_required = True
        if code in NEVER:
            self._unsupported.add(key)

    # --- facts -----------------------------------------------------------------------------------

    def refresh(self, others: Mapping[int, Any], system: nvml_details.More) -> None:
        """Read the facts anew; modes may have changed, so everything is asked again. others: the handles of the host's
        other cards by index; system: what is the same for all cards."""
        self._unsupported.clear()
        self.reset_required = False
        self.facts = self._read_facts()
        if self._neighbours is None:
            self._neighbours = nvml_details.neighbours(self.ask, others)
        changing = nvml_details.read(self._nvml, self.ask)
        links, slicing = changing.get("nvlink_active"), self._mig[0]
        if not self._lasting_for or (links, slicing) != self._lasting_at:  # both change what else there is
            self._lasting_at = links, slicing
            self._lasting, self._lasting_for = nvml_details.lasting(self.ask, links), LASTING_FOR
        self._lasting_for -= 1
        more = {**system, **self._lasting, **changing, **self._neighbours, **self._at_work}
        if self._mig[1] is not None:
            more["mig_pending"] = int(self._mig[1])
        self._slowdown = whole(more.get("temperature_slowdown"))
        if self._reserved is not None:
            more["memory_reserved_bytes"] = self._reserved
        self._links = int(more.get("nvlink_count", 0))
        slices = nvml_mig.slices(self.ask) if self._mig[0] else ()
        self.instances = nvml_mig.instances(self.ask) if slices else {}
        self.facts = replace(self.facts, more=more, slices=slices)
        self._has_utilization = False

    def _read_facts(self) -> GpuFacts:
        ask, number = self.ask, self._number
        pci = ask("nvmlDeviceGetPciInfo")
        bus_id = clean_id(_text(pci.busId)) if pci else ""
        memory = self._memory()
        self._reserved = whole(int(memory.reserved), 0) if hasattr(memory, "reserved") else None
        capability = ask("nvmlDeviceGetCudaComputeCapability") or (None, None)
        ecc = ask("nvmlDeviceGetEccMode")
        self.read_mig()
        limits = ask("nvmlDeviceGetPowerManagementLimitConstraints")
        serial, vbios = ask("nvmlDeviceGetSerial"), ask("nvmlDeviceGetVbiosVersion")
        return GpuFacts(
            uuid=self.uuid,
            index=self.index,
            vendor="nvidia",
            name=clean_text(str(ask("nvmlDeviceGetName") or "")),
            pci_bus_id=bus_id,
            pci_device_id=int(pci.pciDeviceId) if pci else 0,
            pci_subsystem_id=int(pci.pciSubSystemId) if pci else 0,
            memory_bytes=whole(int(memory.total), 1) if memory else None,
            compute_capability_major=whole(capability[0], 0, 1000),
            compute_capability_minor=whole(capability[1], 0, 1000),
            serial=clean_text(serial) if serial else None,
            vbios=clean_text(vbios) if vbios else None,
            power_limit_mw=number("nvmlDeviceGetEnforcedPowerLimit"),
            power_limit_max_mw=whole(limits[1], 0, U32_MAX) if limits else None,
            clock_sm_max_mhz=number("nvmlDeviceGetMaxClockInfo", CLOCK_SM),
            clock_memory_max_mhz=number("nvmlDeviceGetMaxClockInfo", CLOCK_MEMORY),
            pcie_generation_max=number("nvmlDeviceGetMaxPcieLinkGeneration"),
            pcie_width_max=number("nvmlDeviceGetMaxPcieLinkWidth"),
            core_count=number("nvmlDeviceGetNumGpuCores"),
            memory_bus_bits=number("nvmlDeviceGetMemoryBusWidth"),
            ecc_enabled=bool(ecc[0]) if ecc else None,
            mig_enabled=self._mig[0],
            numa_node=self._numa_node(bus_id),
            device_minor=number("nvmlDeviceGetMinorNumber"),
        )

    def _number(self, name: str, *arguments: object) -> int | None:
        return whole(self.ask(name, *arguments), 0, U32_MAX)

    def _memory(self, of: Any = None) -> Any:
        """Version 2 tells what the driver keeps for itself apart; version 1 counts it as used."""
        second = getattr(self._nvml, "nvmlMemory_v2", None)
        answer = self.ask("nvmlDeviceGetMemoryInfo", of=of, version=second) if second else None
        return answer if answer is not None else self.ask("nvmlDeviceGetMemoryInfo", of=of)

    def _numa_node(self, bus_id: str) -> int | None:
        node = whole(self.ask("nvmlDeviceGetNumaNodeId"), 0, 4096)
        if node is None and len(bus_id) == 16:  # NVML writes an eight-digit domain, sysfs a four-digit one
            text = read_text(self._pci_devices / bus_id[4:].lower() / "numa_node")
            node = int(text) if text.isdigit() else None
        return node

    # --- one sweep -------------------------------------------------------------------------------

    def read(self, is_leased: bool) -> dict[int, int | None]:
        """Every metric of this card, as the wire's integers. is_leased: its processes are ours, and expected."""
        ask, number = self.ask, self._number
        load, memory = ask("nvmlDeviceGetUtilizationRates"), self._memory()
        fields = nvml_details.field_values(ask, FIELDS)
        if self._has_utilization and load is None:
            self.read_mig()  # a card says so no more when it is cut into slices
        self._has_utilization = load is not None
        self._temperature = _degrees(ask("nvmlDeviceGetTemperature", 0))
        self._memory_used = whole(int(memory.used), 0, int(memory.total)) if memory else None
        power, energy = fields.get(FIELD_POWER_INSTANT), fields.get(FIELD_ENERGY)
        replays = fields.get(FIELD_PCIE_REPLAYS)
        pending, failed = fields.get(FIELD_REMAP_PENDING), fields.get(FIELD_REMAP_FAILED)
        if pending is not None:
            self._has_remap_fields, self._remap = True, (pending > 0, None if failed is None else failed > 0)
        busy = whole(int(load.gpu), 0, 100) if load else None
        if not is_leased:
            self._look_for_others(busy)
        self._busy = busy
        reasons = ask("nvmlDeviceGetCurrentClocksEventReasons")
        if reasons is None:
            reasons = ask("nvmlDeviceGetCurrentClocksThrottleReasons")  # its name before R535
        self._slowed_by = whole(reasons)
        self._ecc_uncorrected = whole(ask("nvmlDeviceGetTotalEccErrors", 1, 0))  # since the driver was loaded
        return {
            1: busy,
            2: whole(int(load.memory), 0, 100) if load else None,
            3: mebibytes(self._memory_used),
            4: self._temperature,
            5: _degrees(fields.get(FIELD_MEMORY_TEMPERATURE)),
            6: deciwatts(power if power is not None else number("nvmlDeviceGetPowerUsage")),
            7: joules(energy if energy is not None else whole(ask("nvmlDeviceGetTotalEnergyConsumption"))),
            8: number("nvmlDeviceGetClockInfo", CLOCK_SM),
            9: number("nvmlDeviceGetClockInfo", CLOCK_MEMORY),
            10: self._slowed_by,
            11: whole(ask("nvmlDeviceGetPerformanceState"), 0, 15),
            12: whole(ask("nvmlDeviceGetFanSpeed"), 0, 200),
            13: self._ecc_uncorrected,
            14: replays if replays is not None else number("nvmlDeviceGetPcieReplayCounter"),
            PROCESSES: self._processes,
        }

    def _look_for_others(self, load: int | None) -> None:
        """Read the process list out of turn where memory moved or work began, and once more after it has changed."""
        used, listed = self._memory_used or 0, self._memory_at_list or 0
        began = bool(load) and not self._load
        self._load = load
        if self._is_list_doubted or began or abs(used - listed) >= MOVED_BYTES:
            before, self._memory_at_list = self._compute_processes, self._memory_used
            self._list_compute()
            self._is_list_doubted = not self._is_list_doubted and self._compute_processes != before

    def _list_compute(self) -> Any:
        compute = self.ask("nvmlDeviceGetComputeRunningProcesses")
        self._compute_processes = None if compute is None else len(compute)
        return compute

    def read_slowly(self) -> None:
        """Process lists, milliseconds each, and what hardly changes: a tenth as often."""
        lists = [self._list_compute(), self.ask("nvmlDeviceGetGraphicsRunningProcesses")]
        known = [one for one in lists if one is not None]
        self._processes = len({int(process.pid) for one in known for process in one}) if known else None
        self.read_mig()
        if not self._has_remap_fields:
            rows = self.ask("nvmlDeviceGetRemappedRows")
            self._remap = (bool(rows[2]), bool(rows[3])) if rows else (None, None)

    def slow_metrics(self) -> dict[int, int]:
        """The metrics that are read a tenth as often; only those that the card has."""
        ask, number = self.ask, self._number
        fields = nvml_details.field_values(ask, SLOW_FIELDS)
        if self._links:
            per_link = [
                (field_id, link) for link in range(min(self._links, nvml_details.LINKS_MAX)) for field_id in NVLINK
            ]
            fields |= nvml_details.field_values(ask, tuple(per_link))
        media = [ask(call) for call in ("nvmlDeviceGetEncoderUtilization", "nvmlDeviceGetDecoderUtilization")]
        link = number("nvmlDeviceGetCurrPcieLinkGeneration"), number("nvmlDeviceGetCurrPcieLinkWidth")
        if (self._busy or 0) >= BUSY_PERCENT and link[0] and link[1]:  # an idle link falls back to an old generation
            self._at_work = {"pcie_generation_loaded": link[0], "pcie_width_loaded": link[1]}
        found = {
            16: whole(media[0][0], 0, 100) if media[0] else None,
            17: whole(media[1][0], 0, 100) if media[1] else None,
            18: number("nvmlDeviceGetClockInfo", nvml_details.CLOCK_VIDEO),
            19: link[0],
            20: link[1],
            21: kibibytes(fields.get(FIELD_PCIE_SENT)),
            22: kibibytes(fields.get(FIELD_PCIE_RECEIVED)),
            23: fields.get(FIELD_NVLINK_SENT),
            24: fields.get(FIELD_NVLINK_RECEIVED),
            25: _tenths(fields.get(FIELD_HELD_BY_POWER)),
            26: _tenths(fields.get(FIELD_HELD_BY_HEAT)),
        }
        return {metric: value for metric, value in found.items() if value is not None} | self._gpm.read()

    def read_mig(self) -> None:
        """The MIG mode in force and that of after the next reset."""
        mode = self.ask("nvmlDeviceGetMigMode")
        self._mig = (bool(mode[0]), bool(mode[1])) if mode else (None, None)

    def look(self, uuid: str) -> GpuLook:
        """This card, or the slice of this UUID, with the modes of the card as they are now."""
        ask, part = self.ask, None
        if uuid != self.uuid:
            part = nvml_mig.handle_of(ask, uuid)
            if part is None:
                raise LostError
        self.read_mig()
        ecc = ask("nvmlDeviceGetEccMode")
        memory = self._memory(part)
        programs = [
            ask(f"nvmlDeviceGet{kind}RunningProcesses", of=part) for kind in ("Compute", "MPSCompute") if memory
        ]
        known = [one for one in programs if one is not None]
        more = {**self.facts.more, **nvml_details.modes(ask)}
        if self._mig[1] is not None:
            more["mig_pending"] = int(self._mig[1])
        if ecc:
            more["ecc_pending"] = int(ecc[1])
        facts = replace(
            self.facts,
            memory_bytes=whole(int(memory.total), 1) if memory else self.facts.memory_bytes,
            power_limit_mw=self._number("nvmlDeviceGetEnforcedPowerLimit"),
            ecc_enabled=bool(ecc[0]) if ecc else None,
            mig_enabled=self._mig[0],
            more=more,
        )
        used = whole(int(memory.used), 0, int(memory.total)) if memory else None
        return GpuLook(facts, used, len({int(one.pid) for found in known for one in found}) if known else None)

    def health(self) -> GpuHealth:
        """The health of the card as of the last sweep."""
        return GpuHealth(
            uuid=self.uuid,
            is_lost=self.lost,
            remap_pending=self._remap[0],
            remap_failed=self._remap[1],
            temperature_celsius=self._temperature,
            slowdown_celsius=self._slowdown,
            memory_used_bytes=self._memory_used,
            memory_bytes=self.facts.memory_bytes,
            compute_processes=self._compute_processes,
            slowed_by=self._slowed_by,
            ecc_uncorrected=self._ecc_uncorrected,
            mig_enabled=self._mig[0],
            mig_pending=self._mig[1],
        )


def address(handle: Any) -> int:
    """The address that a handle points to, by which two handles are told apart."""
    return ctypes.cast(handle, ctypes.c_void_p).value or 0


def _key(argument: object) -> object:
    """A key that tells this argument apart from another; handles and structs are not hashable."""
    return argument if argument is None or isinstance(argument, int | tuple) else address(argument)


def read_text(path: Path) -> str:
    """A small sysfs file, stripped; empty if it cannot be read."""
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _degrees(value: object) -> int | None:
    return whole(value, TEMPERATURE_LOW, TEMPERATURE_HIGH)


def _tenths(nanoseconds: int | None) -> int | None:
    """A counter of nanoseconds as tenths of a second, rounded down."""
    return None if nanoseconds is None else nanoseconds // (100 * MILLISECOND)


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
