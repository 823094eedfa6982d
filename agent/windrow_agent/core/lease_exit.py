"""Judges whether a lease left its card clean: no program runs, memory is free, modes are the same. Pure."""

from collections.abc import Mapping

from windrow_agent.core.availability import is_in_use
from windrow_agent.core.gpu_port import GpuLook
from windrow_proto.model import GpuFacts
from windrow_proto.units import MIB

Modes = Mapping[str, str]
"""The modes of a card, by the name of the setting, both as people read them; absent: the card does not say."""

SILENT = "the driver did not answer for it, so nobody knows whether its memory is free"


def modes(facts: GpuFacts) -> Modes:
    """The modes that a tenant must leave unchanged. The power limit in force is not among them: boards move it by
    themselves."""
    switches = {
        "MIG mode": facts.mig_enabled,
        "MIG mode after a reset": facts.more.get("mig_pending"),
        "ECC mode": facts.ecc_enabled,
        "ECC mode after a reset": facts.more.get("ecc_pending"),
        "persistence mode": facts.more.get("persistence_mode"),
    }
    found = {name: "on" if value else "off" for name, value in switches.items() if value is not None}
    if "compute_mode" in facts.more:
        found["compute mode"] = str(facts.more["compute_mode"])
    return found


def left_behind(before: Modes, after: GpuLook | None) -> str:
    """Names the differences that the lease left, in words; empty: there are none. before: the modes when the lease
    began."""
    if after is None:
        return SILENT
    found = []
    if after.processes:
        found.append(f"{after.processes} programs still run on it")
    if is_in_use(None, after.memory_used_bytes, after.facts.memory_bytes):
        found.append(f"{(after.memory_used_bytes or 0) // MIB} MiB of its memory are still in use")
    now = modes(after.facts)
    changed = [name for name, was in before.items() if now.get(name, was) != was]
    found += [f"its {name} was {before[name]} and is {now[name]}" for name in changed]
    return "; ".join(found)
