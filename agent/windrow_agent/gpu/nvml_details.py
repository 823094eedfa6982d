"""Further facts of an NVIDIA card, by the names of proto's gpu_fields.py: modes, firmware, links, slices, errors. Facts
that may change are read once a minute, the rest once an hour; a fact that the card does not have is left out.

The library comes in as a value and every call through `Ask`, which answers None for what a card cannot do.
"""

import ctypes
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol

from windrow_agent.core.inventory import clean_id, clean_text
from windrow_agent.core.scaling import whole
from windrow_agent.gpu.nvml_codes import FIELD_MEMBERS, TEMPERATURE_HIGH, U32_MAX
from windrow_proto.gpu_fields import FIELD_IDS

More = dict[str, int | str]

LINKS_MAX: Final = 36
"""NVLinks of one card that are looked at, as many as nvml.h has."""
SLICES_MAX: Final = 16
CPUS_MAX: Final = 4096

TEXTS: Final[Mapping[str, str]] = {
    "board_part_number": "nvmlDeviceGetBoardPartNumber",
    "inforom": "nvmlDeviceGetInforomImageVersion",
    "gsp_firmware": "nvmlDeviceGetGspFirmwareVersion",
}

Words = Mapping[str, tuple[str, Mapping[int, str]]]
"""Calls that answer with a number of nvml.h, and its words; a number that is not here is shown as it is."""

MAKE: Final[Words] = {
    "brand": (
        "nvmlDeviceGetBrand",
        {
            1: "Quadro",
            2: "Tesla",
            3: "NVS",
            5: "GeForce",
            6: "Titan",
            7: "vApps",
            8: "vPC",
            9: "vCS",
            10: "vWS",
            11: "Cloud Gaming",
            12: "Quadro RTX",
            13: "NVIDIA RTX",
            14: "NVIDIA",
            15: "GeForce RTX",
            16: "Titan RTX",
        },
    ),
    "architecture": (
        "nvmlDeviceGetArchitecture",
        {
            2: "Kepler",
            3: "Maxwell",
            4: "Pascal",
            5: "Volta",
            6: "Turing",
            7: "Ampere",
            8: "Ada",
            9: "Hopper",
            10: "Blackwell",
            13: "Rubin",
        },
    ),
}
MODES: Final[Words] = {
    "compute_mode": (
        "nvmlDeviceGetComputeMode",
        {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive process"},
    ),
    "virtualization_mode": (
        "nvmlDeviceGetVirtualizationMode",
        {0: "none", 1: "passthrough", 2: "vGPU", 3: "host of vGPUs", 4: "host of vSGA"},
    ),
}

RECOVERY: Final[Mapping[int, str]] = {
    0: "none",
    1: "reset the GPU",
    2: "reboot the node",
    3: "drain peer-to-peer",
    4: "drain and reset",
    5: "recover the IMEX domain",
    6: "reset the bus",
    7: "reboot the system",
}
NEARNESS: Final[Mapping[int, str]] = {
    0: "same board",
    10: "one switch",
    20: "several switches",
    30: "one host bridge",
    40: "one NUMA node",
    50: "between NUMA nodes",
}
FABRIC: Final[Mapping[int, str]] = {1: "not started", 2: "in progress", 3: "completed"}
THRESHOLDS: Final = {
    "temperature_shutdown": 0,
    "temperature_slowdown": 1,
    "temperature_memory_max": 2,
    "temperature_gpu_max": 3,
}
CLOCK_VIDEO: Final = 3
P2P_READ: Final = 0
FIELDS: Final = tuple(sorted(FIELD_IDS))


PROFILES: Final = 0x12
"""Kinds of MIG slices that nvml.h has."""

_raw: Final = object.__getattribute__
"""A member of one of nvidia-ml-py's structures, past its own way to it, which is for printing and ten times slower."""


class Ask(Protocol):
    """One call on this card, or on the handle `of` a part of it: its answer, or None."""

    def __call__(self, name: str, *arguments: object, of: Any = None, **named: object) -> Any: ...


def neighbours(ask: Ask, others: Mapping[int, Any]) -> More:
    """The way to the host's other cards, whose handles these are by index. It does not change: read once, since a card
    that was lost meanwhile would look like this one's loss."""
    found = {
        "topology": _each(others, lambda other: _word(ask("nvmlDeviceGetTopologyCommonAncestor", other), NEARNESS)),
        "peer_to_peer": _peers(ask, others),
    }
    return {name: value for name, value in found.items() if value is not None}


def lasting(ask: Ask, active: object) -> More:
    """Reads the facts that stay the same while a card is in use. active: the number of its NVLinks that are up."""
    found: dict[str, int | str | None] = {name: text(ask(call)) for name, call in TEXTS.items()}
    found |= _words(ask, MAKE)
    for name, kind in THRESHOLDS.items():
        found[name] = whole(ask("nvmlDeviceGetTemperatureThreshold", kind), 1, TEMPERATURE_HIGH)
    bar1, pdi = ask("nvmlDeviceGetBAR1MemoryInfo"), whole(ask("nvmlDeviceGetPdi"), 1, (1 << 64) - 1)
    found |= {
        "pdi": None if pdi is None else f"{pdi:016x}",
        "bar1_bytes": whole(int(bar1.bar1Total), 1) if bar1 else None,
        "clock_video_max_mhz": whole(ask("nvmlDeviceGetMaxClockInfo", CLOCK_VIDEO), 0, U32_MAX),
        "cpu_affinity": _processors(ask("nvmlDeviceGetCpuAffinity", CPUS_MAX // 64)),
    }
    found |= _link_ends(ask) if active else {}
    found |= _slice_kinds(ask)
    return {name: value for name, value in found.items() if value is not None}


def read(nvml: Any, ask: Ask) -> More:
    """All that may change."""
    found: dict[str, int | str | None] = dict(fields(ask))
    found |= modes(ask)
    ecc = ask("nvmlDeviceGetEccMode")
    found |= {
        "ecc_pending": whole(int(ecc[1]), 0, 1) if ecc else None,
        "fabric_state": _fabric(nvml, ask),
        "sram_threshold_exceeded": _sram(nvml, ask),
        "memory_unrepairable": whole(ask("nvmlDeviceGetUnrepairableMemoryFlag_v1"), 0, 1),
        "nvlink_active": _links_up(ask, found.get("nvlink_count")),
        "mig_devices": ", ".join(_slices_there(ask)) or None,
    }
    return {name: value for name, value in found.items() if value is not None}


def modes(ask: Ask) -> More:
    """The modes that somebody can set."""
    found: dict[str, int | str | None] = {"persistence_mode": whole(ask("nvmlDeviceGetPersistenceMode"), 0, 1)}
    found |= _words(ask, MODES)
    return {name: value for name, value in found.items() if value is not None}


def fields(ask: Ask) -> dict[str, int | str]:
    """Reads the fields of one batched call; each field has its own return code."""
    found: dict[str, int | str] = {FIELD_IDS[at]: value for at, value in field_values(ask, FIELDS).items()}
    if "recovery_action" in found:
        found["recovery_action"] = RECOVERY.get(int(found["recovery_action"]), str(found["recovery_action"]))
    return found


def field_values(ask: Ask, wanted: tuple[Any, ...]) -> dict[int, int]:
    """Field id to value; the values of one field over several links are summed. Absent: the card does not say."""
    found: dict[int, int] = {}
    answer = ask("nvmlDeviceGetFieldValues", wanted)
    for value in answer if answer is not None else ():
        member = FIELD_MEMBERS.get(int(_raw(value, "valueType")))
        if int(_raw(value, "nvmlReturn")) == 0 and member is not None:
            number = whole(int(getattr(_raw(value, "value"), member)), -(1 << 31))
            if number is not None:
                field_id = int(_raw(value, "fieldId"))
                found[field_id] = found.get(field_id, 0) + number
    return found


def text(value: object) -> str | None:
    """A text of the library, cleaned; None if it is empty or none."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return clean_text(value) or None if isinstance(value, str) else None


def _words(ask: Ask, wanted: Words) -> dict[str, str | None]:
    return {name: _word(ask(call), words) for name, (call, words) in wanted.items()}


def _word(value: object, words: Mapping[int, str]) -> str | None:
    number = whole(value, 0, U32_MAX)
    return None if number is None else words.get(number, str(number))


def _processors(sets: Any) -> str | None:
    """Sets of 64 processors each as ranges: `0-55,112-167`."""
    if sets is None:
        return None
    chosen = [64 * at + bit for at, word in enumerate(sets) for bit in range(64) if int(word) >> bit & 1]
    ranges: list[list[int]] = []
    for cpu in chosen:
        if ranges and ranges[-1][1] == cpu - 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ",".join(f"{low}-{high}" if high > low else str(low) for low, high in ranges) or None


def _fabric(nvml: Any, ask: Ask) -> str | None:
    """True if the NVSwitch fabric has this card; None for a card without one."""
    made = getattr(nvml, "c_nvmlGpuFabricInfo_v2_t", None)
    info = made() if made is not None else None
    if info is None or ask("nvmlDeviceGetGpuFabricInfoV", ctypes.byref(info)) is None:
        return None
    return FABRIC.get(int(info.state))


def _sram(nvml: Any, ask: Ask) -> int | None:
    made = getattr(nvml, "c_nvmlEccSramErrorStatus_v1_t", None)
    status = made() if made is not None else None
    if status is None or ask("nvmlDeviceGetSramEccErrorStatus", ctypes.byref(status)) is None:
        return None
    return int(bool(status.bThresholdExceeded))


def _each(others: Mapping[int, Any], said: Callable[[Any], str | None]) -> str | None:
    """Describes the link to each other card, equal links together: `one switch: 1 2 3; between NUMA nodes: 4`."""
    by_word: dict[str, list[int]] = {}
    for index, handle in sorted(others.items()):
        word = said(handle)
        if word is not None:
            by_word.setdefault(word, []).append(index)
    return "; ".join(f"{word}: {' '.join(map(str, indices))}" for word, indices in by_word.items()) or None


def _peers(ask: Ask, others: Mapping[int, Any]) -> str | None:
    """The indices of the cards whose memory this one reads by itself; `none` where it reads that of none."""
    states = {index: ask("nvmlDeviceGetP2PStatus", other, P2P_READ) for index, other in sorted(others.items())}
    if all(state is None for state in states.values()):
        return None
    return " ".join(str(index) for index, state in states.items() if state == 0) or "none"


def _links_up(ask: Ask, count: object) -> int | None:
    """The number of its NVLinks that are up."""
    if not isinstance(count, int) or count <= 0:
        return None
    states = [ask("nvmlDeviceGetNvLinkState", link) for link in range(min(count, LINKS_MAX))]
    return None if all(state is None for state in states) else states.count(1)


def _link_ends(ask: Ask) -> More:
    """The version of the NVLinks that are up, and what is at their other ends."""
    up = [link for link in range(LINKS_MAX) if ask("nvmlDeviceGetNvLinkState", link) == 1]
    version = whole(ask("nvmlDeviceGetNvLinkVersion", up[0]), 0, 100) if up else None
    ends = [ask("nvmlDeviceGetNvLinkRemotePciInfo", link) for link in up]
    peers = Counter(clean_id(text(end.busId) or "") for end in ends if end is not None)
    found: More = {} if version is None else {"nvlink_version": version}
    if peers:
        found["nvlink_peers"] = ", ".join(f"{times} to {peer}" for peer, times in sorted(peers.items()))
    return found


def _slice_kinds(ask: Ask) -> dict[str, int | str | None]:
    """The number of MIG slices that the card can have, and their possible kinds."""
    most = whole(ask("nvmlDeviceGetMaxMigDeviceCount"), 0, 100)
    if not most:
        return {}
    infos = [ask("nvmlDeviceGetGpuInstanceProfileInfo", profile) for profile in range(PROFILES)]
    kinds = [(text(info.name), int(info.instanceCount)) for info in infos if info is not None]
    return {
        "mig_devices_max": most,
        "mig_profiles": ", ".join(f"{count} x {name}" for name, count in kinds if name and count) or None,
    }


def _slices_there(ask: Ask) -> Iterator[str]:
    for index in range(SLICES_MAX):
        handle = ask("nvmlDeviceGetMigDeviceHandleByIndex", index)
        if handle is None:
            return
        names = [text(ask(call, of=handle)) for call in ("nvmlDeviceGetName", "nvmlDeviceGetUUID")]
        yield " ".join(clean_id(name) if name and name.startswith("MIG-") else name or "?" for name in names)
