"""The slices of an NVIDIA card (MIG): reads them, partitions a card into others, and makes it whole again.

The library comes in as a value; only gpu/nvml.py imports it. A slice is a GPU instance with one compute instance over
all of it. A cut that cannot be made leaves nothing half done: what was made for it goes, and the mode is set back.
"""

import ctypes
from collections.abc import Iterator, Mapping
from typing import Any, Final

from windrow_agent.core.gpu_port import CutRefusedError
from windrow_agent.core.inventory import clean_id
from windrow_agent.core.scaling import whole
from windrow_agent.gpu.nvml_codes import (
    IN_USE,
    INSUFFICIENT_RESOURCES,
    INVALID_ARGUMENT,
    NO_PERMISSION,
    NOT_SUPPORTED,
    RESET_REQUIRED,
)
from windrow_agent.gpu.nvml_details import PROFILES, SLICES_MAX, Ask, text
from windrow_proto.ids import GpuUuid
from windrow_proto.model import GpuSlice, Isolation
from windrow_proto.units import MIB

MARK: Final = "MIG "
"""The word before the profile in the names of slices and of profiles."""
COMPUTE_PROFILES: Final = 9
"""Kinds of compute instances that nvml.h has."""
Instances = Mapping[tuple[int, int], str]
"""(GPU instance, compute instance) to the UUID of the slice."""
WORDS: Final = {
    NOT_SUPPORTED: "this card has no MIG",
    NO_PERMISSION: "the driver lets only root, or who has its mig/config capability, cut a card",
    RESET_REQUIRED: "the change waits for a reset of the card or of its machine, which the agent does not do",
    IN_USE: "something still uses the card or a slice of it",
    INSUFFICIENT_RESOURCES: "the profiles do not fit on the card together in this order",
}


def slices(ask: Ask) -> tuple[GpuSlice, ...]:
    """Those there are, in the driver's order; one that does not say all of it is left out."""
    return tuple(found for handle in handles(ask) if (found := _slice(ask, handle)) is not None)


def instances(ask: Ask) -> Instances:
    """Which slice is which, in the driver's own numbers; one that does not say them is left out."""
    found: dict[tuple[int, int], str] = {}
    for handle in handles(ask):
        gpu, compute = (whole(ask(f"nvmlDeviceGet{kind}InstanceId", of=handle)) for kind in ("Gpu", "Compute"))
        uuid = _uuid(ask, handle)
        if uuid and gpu is not None and compute is not None:
            found[gpu, compute] = uuid
    return found


def named(known: Instances, gpu_instance: int | None, compute_instance: int | None) -> str:
    """The slice that a fault is put down to by these numbers; empty: to none, or to more than one."""
    found = [
        uuid for (gpu, compute), uuid in known.items() if gpu == gpu_instance and compute_instance in (None, compute)
    ]
    return found[0] if len(found) == 1 else ""


def handles(ask: Ask) -> Iterator[Any]:
    """Of each slice of the card."""
    most = whole(ask("nvmlDeviceGetMaxMigDeviceCount"), 0, SLICES_MAX) or 0
    found = (ask("nvmlDeviceGetMigDeviceHandleByIndex", index) for index in range(most))
    return (handle for handle in found if handle is not None)


def handle_of(ask: Ask, uuid: str) -> Any:
    """Of the slice with this UUID; None: there is none."""
    return next((handle for handle in handles(ask) if _uuid(ask, handle) == uuid), None)


def _uuid(ask: Ask, handle: Any) -> str:
    return clean_id(text(ask("nvmlDeviceGetUUID", of=handle)) or "")


def _slice(ask: Ask, handle: Any) -> GpuSlice | None:
    uuid, name = _uuid(ask, handle), text(ask("nvmlDeviceGetName", of=handle)) or ""
    attributes = ask("nvmlDeviceGetAttributes", of=handle)
    if not uuid or MARK not in name or attributes is None:
        return None
    return GpuSlice(
        uuid=GpuUuid(uuid),
        profile=name.rpartition(MARK)[2],
        isolation=Isolation.MIG,
        memory_bytes=int(attributes.memorySizeMB) * MIB,
        compute_slices=int(attributes.computeInstanceSliceCount),
    )


class Cutter:
    """Partitions one card. `again` gives its handle anew: a change of the mode makes the old one useless."""

    def __init__(self, nvml: Any, handle: Any, raw_uuid: str) -> None:
        self._nvml, self._handle, self._raw_uuid = nvml, handle, raw_uuid

    def cut(self, profiles: tuple[str, ...], before: tuple[str, ...]) -> Any:
        """Cut it as asked and return its handle, which may be another one. before: what it was cut into, which is
        put back where the new slices cannot be had. Raises CutRefusedError, and the library's own error for a card
        or a driver that fails."""
        nvml = self._nvml
        try:
            was_on = bool(nvml.nvmlDeviceGetMigMode(self._handle)[0])
            self._clear(was_on)
            self._set_mode(bool(profiles), was_on)
            self._fill(profiles, before, was_on)
        except nvml.NVMLError as error:
            raise CutRefusedError(_words(error)) from error
        return self._handle

    def _set_mode(self, wanted: bool, was: bool) -> None:
        if wanted is was:
            return
        nvml = self._nvml
        status = int(nvml.nvmlDeviceSetMigMode(self._handle, int(wanted)))
        if status != 0:
            nvml.nvmlDeviceSetMigMode(self._handle, int(was))  # else it would change with some later reset
            raise CutRefusedError(WORDS.get(status, f"the mode did not change (NVML {status})"))
        self._handle = nvml.nvmlDeviceGetHandleByUUID(self._raw_uuid)

    def _fill(self, profiles: tuple[str, ...], before: tuple[str, ...], was_on: bool) -> None:
        nvml = self._nvml
        try:
            self._make(profiles)
        except (CutRefusedError, nvml.NVMLError):
            self._clear(bool(profiles))
            self._set_mode(was_on, bool(profiles))
            self._make(before)
            raise

    def _make(self, profiles: tuple[str, ...]) -> None:
        nvml, known = self._nvml, self._profiles() if profiles else {}
        for profile in profiles:
            info = known.get(profile)
            if info is None:
                raise CutRefusedError(f"there is no profile {profile} here, but {', '.join(sorted(known))}")
            instance = nvml.nvmlDeviceCreateGpuInstance(self._handle, info.id)
            nvml.nvmlGpuInstanceCreateComputeInstance(instance, self._whole_of(instance, int(info.sliceCount)))

    def _profiles(self) -> dict[str, Any]:
        found = {}
        for number in range(PROFILES):
            info = self._maybe(lambda at=number: self._nvml.nvmlDeviceGetGpuInstanceProfileInfo(self._handle, at))
            if info is not None:
                found[(text(info.name) or "").removeprefix(MARK)] = info
        return found

    def _whole_of(self, instance: Any, slices: int) -> int:
        """The id of the compute instance that takes all of a GPU instance."""
        ask = self._nvml.nvmlGpuInstanceGetComputeInstanceProfileInfo
        for number in range(COMPUTE_PROFILES):
            info = self._maybe(lambda at=number: ask(instance, at, 0))
            if info is not None and int(info.sliceCount) == slices:
                return int(info.id)
        raise CutRefusedError(f"the driver offers no compute instance of {slices} slices")

    def _maybe(self, call: Any) -> Any:
        try:
            return call()
        except self._nvml.NVMLError as error:
            if int(error.value) in (NOT_SUPPORTED, INVALID_ARGUMENT):  # a number that this card has no profile of
                return None
            raise

    def _clear(self, is_on: bool) -> None:
        """Take every slice away. Raises the library's error where one is in use; then the others may be gone."""
        nvml = self._nvml
        ask, of_it = nvml.nvmlGpuInstanceGetComputeInstanceProfileInfo, nvml.nvmlGpuInstanceGetComputeInstances
        for number in range(PROFILES) if is_on else ():
            info = self._maybe(lambda at=number: nvml.nvmlDeviceGetGpuInstanceProfileInfo(self._handle, at))
            for instance in self._listed(nvml.nvmlDeviceGetGpuInstances, self._handle, info, "c_nvmlGpuInstance_t"):
                for kind in range(COMPUTE_PROFILES):
                    part = self._maybe(lambda at=kind, of=instance: ask(of, at, 0))
                    for one in self._listed(of_it, instance, part, "c_nvmlComputeInstance_t"):
                        nvml.nvmlComputeInstanceDestroy(one)
                nvml.nvmlGpuInstanceDestroy(instance)

    def _listed(self, call: Any, of: Any, info: Any, kind: str) -> list[Any]:
        """The instances of one profile; the library fills an array of as many as there can be."""
        if info is None:
            return []
        found = (getattr(self._nvml, kind) * max(1, int(info.instanceCount)))()
        count = ctypes.c_uint(0)
        call(of, info.id, found, ctypes.byref(count))
        return list(found)[: count.value]


def _words(error: Any) -> str:
    return WORDS.get(int(error.value), f"NVML {int(error.value)}: {error}")
