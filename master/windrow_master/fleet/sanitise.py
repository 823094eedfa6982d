"""What a host says of itself, made safe to keep and show once more: bounded, deduplicated, plausible. Pure.

The wire already refuses garbage and cleans texts; this is the second look, at what the values mean together.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from windrow_master.fleet.model import Condition
from windrow_proto.model import GpuFacts, Inventory
from windrow_proto.wire_fields import clean_text

NAME_MAX: Final = 128
CPU_COUNT_MAX: Final = 4_096
MEMORY_BYTES_MAX: Final = 1 << 50
DISK_BYTES_MAX: Final = 1 << 60
CONDITIONS_MAX: Final = 64
RUNTIMES_MAX: Final = 16
ADDRESSES_MAX: Final = 64
BENCHMARKS_MAX: Final = 1_024
"""Each is kept and read with its host; the largest host has some 400."""
VERSION_CHARS_MAX: Final = 200

CONDITION_TEXTS: Final = {
    "agent.disk_full": "the disk of this host is full; it takes no new work until there is room",
    "agent.bug_met": "This host's agent has met a bug of its own, which ended only what met it. Its log has it with "
    "its traceback (`..._crashed`): please report it.",
    "docker.unfenced": "Containers here reach this host's network, so that they run its owner's work only. As root "
    "there: windrow-agent fence (which does not reach a rootless container daemon)",
    "process.unconfined": "Processes here run without a sandbox, with all rights of the agent's user: its owner "
    "started the agent with --no-bubblewrap.",
    "process.no_sandbox": "No sandbox can be made here, so that no processes are run, only containers. As its owner: "
    "windrow-agent doctor",
    "process.no_network": "Processes here reach no network but a cluster's own. As its owner: windrow-agent doctor",
    "gpu.none": "The host has no GPU that its agent can see; it is offered by its processors.",
    "gpu.no_driver": "There is a GPU, but no driver that answers. Install or load it; the agent looks again by itself.",
    "gpu.no_permission": "The driver refuses the agent's user. Give it access to the GPU's device files.",
    "gpu.driver_mismatch": "The driver was changed under its library. Reboot the host or reload the module.",
    "gpu.unavailable": "The GPU driver answers with an error; the host's kernel log says more.",
    "gpu.initialising": "The GPU driver is starting.",
    "gpu.sweep_stalled": "The GPU driver does not answer in time, so the state of the GPUs is not known.",
    "gpu.events_unsupported": "The driver reports no faults by itself; they are found late or not at all.",
    "gpu.lost": "This GPU fell off its bus. Reboot the host; if it happens again, look at the card.",
    "gpu.duplicate_uuid": "Two GPUs of this host claim one id; the second is left out.",
    "gpu.kernel_differs": "The kernel names another card than the driver's library does; this GPU is not offered.",
    "gpu.not_served": "No driver that the agent reads serves this card; it is shown and not offered.",
    "gpu.remap_pending": "Memory of this GPU waits to be repaired: drain the host and reset the card.",
    "gpu.remap_failed": "Memory of this GPU could not be repaired: the card needs replacing.",
    "gpu.host_fault": "The driver reported a fault of the hardware. Reset this GPU or reboot the host.",
    "gpu.hot": "This GPU is about to slow itself down. Look at its cooling.",
    "gpu.throttled": "This GPU slows itself down by heat or by its power supply. Look at its cooling and its power.",
    "gpu.mig_changed": "The MIG mode of this GPU is not the one it was listed in. Set it back, or restart the agent.",
    "gpu.foreign_use": "Something other than rented work uses this GPU; it is not offered meanwhile.",
    "gpu.stripped": "The container that rents this GPU cannot open it any more. What it has open goes on; start the "
    "container anew, and give containers their GPUs by CDI.",
    "host.sweep_stalled": "Reading the host's own figures hangs, mostly on a dead network disk.",
    "clock.skew": "The host's clock differs from the Master's by more than 5 s. Set up NTP.",
}

ALL_GPUS_CODES: Final = frozenset(
    {
        *("gpu.no_driver", "gpu.no_permission", "gpu.driver_mismatch", "gpu.unavailable"),
        *("gpu.initialising", "gpu.sweep_stalled"),
    }
)
"""What keeps every GPU of a host from being offered while it lasts."""
ONE_GPU_CODES: Final = frozenset(
    {
        *("gpu.lost", "gpu.remap_pending", "gpu.remap_failed", "gpu.host_fault", "gpu.hot", "gpu.foreign_use"),
        *("gpu.stripped", "gpu.throttled", "gpu.mig_changed", "gpu.listed_elsewhere", "gpu.kernel_differs"),
        "gpu.not_served",
    }
)
"""What keeps the GPU it names, and no neighbour of it, from being offered."""
MASTERS_CODES: Final = frozenset({"clock.skew"})
"""What the Master finds in heartbeats: an inventory does not know of it and does not end it."""
CLAIM: Final = "claim."
"""How findings begin (verification/): they keep the GPU that they name from being offered, or every GPU."""
CHALLENGE: Final = "challenge."
"""How conditions begin that come of a challenge to the card that they name; they keep it from being offered."""
CHALLENGE_RUNS: Final = "challenge.running"
CHALLENGE_FAILED: Final = "challenge.failed"
CHALLENGE_APART: Final = "challenge.apart"
RUNTIMES_CODES: Final = ("docker.", "process.")
"""How conditions begin that an agent finds by looking at its runtimes."""
OWN_CODES: Final = (CLAIM, CHALLENGE, "disputed.", "gpu.listed_elsewhere")
"""How conditions begin that the Master finds itself: a host that sends one is not believed."""
HOST_CODES: Final = frozenset({"agent.disk_full"})
"""What keeps every slot of the host from being offered, its share of the processors included."""
FAULT_CODES: Final = frozenset({"gpu.lost", "gpu.remap_failed", "gpu.host_fault"})
"""Of these: what needs re-verification afterwards, so that the slot is Faulted and not only unavailable."""


def split_condition(text: str) -> tuple[str, str]:
    """The code and the subject (a GPU's id, or empty) of a condition as agents write it: `code` or `code:subject`."""
    code, _, subject = text.partition(":")
    return code, subject


def unavailable_reason(uuid: str | None, conditions: Iterable[Condition], part: str | None = None) -> str | None:
    """Why a slot is not offered, by the host's conditions; None when nothing stands against it. uuid: its card's;
    part: of a slice, its own."""
    for condition in conditions:
        code, subject = split_condition(condition.code)
        if code in HOST_CODES:
            return condition.detail or code
        is_one = (code in ONE_GPU_CODES or code.startswith((CLAIM, CHALLENGE))) and subject in (uuid, part)
        is_all = code in ALL_GPUS_CODES or (code.startswith(CLAIM) and not subject)
        if uuid is not None and (is_one or is_all):
            return condition.detail or code
    return None


def is_faulted(uuid: str | None, conditions: Iterable[Condition], part: str | None = None) -> bool:
    """Whether one of these conditions puts this GPU, or this part of it, out of order until it was verified again."""
    return uuid is not None and any(
        code in FAULT_CODES and subject in (uuid, part)
        for code, subject in map(split_condition, (c.code for c in conditions))
    )


def host_name(text: str, fallback: str) -> str:
    """A name fit for a list: one line, trimmed, not empty."""
    name = " ".join(clean_text(text, NAME_MAX).replace("\ufffd", " ").split())
    return name or fallback


def inventory(claimed: Inventory) -> tuple[Inventory, tuple[str, ...]]:
    """The inventory as it may be kept, and what was cut off it, in words."""
    notes: list[str] = []
    gpus = _distinct(claimed.gpus, notes)
    kept = replace(
        claimed,
        hostname=host_name(claimed.hostname, "unnamed"),
        cpu_count=_within(claimed.cpu_count, CPU_COUNT_MAX, "processors", notes),
        memory_bytes=_within(claimed.memory_bytes, MEMORY_BYTES_MAX, "bytes of memory", notes),
        disk_bytes=_within(claimed.disk_bytes, DISK_BYTES_MAX, "bytes of disk", notes),
        gpus=gpus,
        runtimes=tuple(dict.fromkeys(claimed.runtimes))[:RUNTIMES_MAX],
        runtime_versions={
            name: version[:VERSION_CHARS_MAX] for name, version in list(claimed.runtime_versions.items())[:RUNTIMES_MAX]
        },
        benchmarks=claimed.benchmarks[:BENCHMARKS_MAX],
        addresses=claimed.addresses[:ADDRESSES_MAX],
        conditions=tuple(dict.fromkeys(claimed.conditions))[:CONDITIONS_MAX],
    )
    return kept, tuple(notes)


def conditions(
    codes: Iterable[str], previous: Iterable[Condition], now_ns: int, found: Mapping[str, str]
) -> tuple[Condition, ...]:
    """What the Master found itself (words by code), then what the host says; what was there keeps its moment."""
    since = {condition.code: condition.since_ns for condition in previous}
    names = (clean_text(code, NAME_MAX) for code in codes if not code.startswith(OWN_CODES))
    told = {
        code: CONDITION_TEXTS.get(split_condition(code)[0], "") for code in list(dict.fromkeys(names))[:CONDITIONS_MAX]
    }
    return tuple(Condition(code, words, since.get(code, now_ns)) for code, words in {**found, **told}.items())


def own(previous: Iterable[Condition]) -> dict[str, str]:
    """The words, by their codes, of the conditions that the Master found itself."""
    return {condition.code: condition.detail for condition in previous if condition.code.startswith(OWN_CODES)}


def _distinct(gpus: tuple[GpuFacts, ...], notes: list[str]) -> tuple[GpuFacts, ...]:
    found: dict[str, GpuFacts] = {}
    for gpu in gpus:
        if not gpu.uuid or "/" in gpu.uuid:
            notes.append(f"a GPU without a usable id ({gpu.name}) was left out")
        elif gpu.uuid in found:
            notes.append(f"GPU {gpu.uuid} was listed twice")
        else:
            found[gpu.uuid] = gpu
    return tuple(found.values())


def _within(value: int, most: int, what: str, notes: list[str]) -> int:
    if value <= most:
        return value
    notes.append(f"{value} {what} are not believed; {most} is the most")
    return most
