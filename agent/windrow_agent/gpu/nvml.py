"""The adapter of pynvml (nvidia-ml-py): NVIDIA cards behind the GpuBackend port.

NVML is a claim of the host, not proof. Every figure may be absent, every call may fail, and nothing raises from here.
The library must never be used on both sides of a fork: children are executed, not forked.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from windrow_agent.core.gpu_port import (
    GPU_COUNT_MAX,
    GPU_METRICS,
    Condition,
    CutRefusedError,
    GpuEvent,
    GpuEventKind,
    GpuHealth,
    GpuInventory,
    GpuLook,
    Readings,
)
from windrow_agent.core.inventory import clean_id, clean_text
from windrow_agent.core.xid_line import XidLine, same_card
from windrow_agent.gpu import nvml_details, nvml_mig
from windrow_agent.gpu.kernel_check import DRIVER_GPUS, differences
from windrow_agent.gpu.kernel_log import KernelLog
from windrow_agent.gpu.nvml_card import BrokenError, Card, LostError, address, read_text
from windrow_agent.gpu.nvml_codes import (
    BREAKING,
    DISPLAY_CLASSES,
    EVENTS,
    EVENTS_MAX,
    GPU_IS_LOST,
    LIBRARY_NOT_FOUND,
    NO_INSTANCE,
    NVIDIA,
    OPENING,
    PCI_DEVICES,
    TIMEOUT,
)
from windrow_proto.conditions import ConditionCode


class NvmlBackend:
    """NVIDIA cards through libnvidia-ml.so.1.

    pci_devices: where sysfs lists the cards that no driver serves; kernel_log: where the driver says who caused an XID.
    """

    simulated = False

    def __init__(
        self,
        pci_devices: Path = PCI_DEVICES,
        driver_gpus: Path = DRIVER_GPUS,
        kernel_log: KernelLog | None = None,
    ) -> None:
        self.waits = False
        self._kernel_log = kernel_log or KernelLog()
        self._lines: list[XidLine] = []
        self._leased: frozenset[str] = frozenset()
        self._pci_devices, self._driver_gpus = pci_devices, driver_gpus
        self._nvml: Any = None
        self._cards: list[Card] = []
        self._by_address: dict[int, Card] = {}
        self._event_set: Any = None
        self._listened_again = False
        self._standing: list[Condition] = []
        self._pending: list[GpuEvent] = []
        self._fault: Condition | None = None
        self._driver_version = ""
        self._cuda_version = ""
        self._system: nvml_details.More = {}
        """Facts that the library tells for all cards at once."""

    # --- opening and closing ---------------------------------------------------------------------

    def open(self) -> Condition | None:
        """Start the library and find the cards; the condition that stands in the way, or None."""
        self.close()
        import pynvml  # here and not above: a host that simulates its cards never loads it

        try:
            pynvml.nvmlInit()
            self._nvml = pynvml
            count = min(int(pynvml.nvmlDeviceGetCount()), GPU_COUNT_MAX)
        except pynvml.NVMLLibraryMismatchError as error:  # not a subclass of NVMLError
            return self._refused(Condition(ConditionCode.GPU_DRIVER_MISMATCH, detail=clean_text(str(error))))
        except pynvml.NVMLError as error:
            return self._refused(self._why_not_open(error))
        for index in range(count):
            self._find(index)
        if not count:
            return self._refused(Condition(ConditionCode.GPU_NONE, detail="the driver runs and serves no card"))
        self._read_versions()
        self._listen()
        self._kernel_log.open()
        return None

    def _refused(self, condition: Condition) -> Condition:
        self.close()
        self._fault = condition
        return condition

    def _why_not_open(self, error: Any) -> Condition:
        code = int(error.value)
        if code != LIBRARY_NOT_FOUND:
            known = OPENING.get(code, ConditionCode.GPU_UNAVAILABLE)
            return Condition(known, detail=f"NVML {code}: {clean_text(str(error))}")
        cards = list(self._cards_on_bus())
        if NVIDIA in cards:
            detail = "an NVIDIA card is on the bus, its library is not installed"
            return Condition(ConditionCode.GPU_NO_DRIVER, detail=detail)
        return Condition(ConditionCode.GPU_NONE, detail=f"cards without a backend: {', '.join(cards)}" if cards else "")

    def _cards_on_bus(self) -> Iterable[str]:
        """Vendor ids of the display controllers and accelerators that sysfs lists."""
        try:
            devices = sorted(self._pci_devices.iterdir())
        except OSError:
            return
        for device in devices:
            if read_text(device / "class").startswith(DISPLAY_CLASSES):
                yield clean_id(read_text(device / "vendor"))

    def _find(self, index: int) -> None:
        nvml = self._nvml
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            raw_uuid = str(nvml.nvmlDeviceGetUUID(handle))
        except (nvml.NVMLError, UnicodeDecodeError) as error:
            lost = getattr(error, "value", 0) == GPU_IS_LOST
            code = ConditionCode.GPU_LOST if lost else ConditionCode.GPU_UNAVAILABLE
            self._standing.append(Condition(code, f"index-{index}", clean_text(str(error))))
            return
        card = Card(nvml, index, handle, raw_uuid, self._pci_devices)
        if any(other.uuid == card.uuid for other in self._cards):
            self._standing.append(Condition(ConditionCode.GPU_DUPLICATE_UUID, card.uuid))
            return
        self._cards.append(card)
        self._by_address[card.address] = card

    def _read_versions(self) -> None:
        nvml = self._nvml
        try:
            self._driver_version = clean_text(str(nvml.nvmlSystemGetDriverVersion()))
            cuda = int(nvml.nvmlSystemGetCudaDriverVersion_v2())
            self._cuda_version = f"{cuda // 1000}.{cuda % 1000 // 10}"
            version = nvml_details.text(nvml.nvmlSystemGetNVMLVersion())
            self._system |= {"nvml_version": version} if version else {}
            self._system["confidential_compute"] = int(bool(nvml.nvmlSystemGetConfComputeState().ccFeature))
        except (nvml.NVMLError, AttributeError, UnicodeDecodeError):
            return

    def _listen(self) -> None:
        """Ask (again) for the events of each card that answers; a driver without them is a stated condition."""
        nvml = self._nvml
        self._stop_listening()
        try:
            self._event_set = nvml.nvmlEventSetCreate()
        except nvml.NVMLError:
            self._event_set = None
        for card in self._cards if self._event_set is not None else ():
            try:
                offered = int(nvml.nvmlDeviceGetSupportedEventTypes(card.handle))
                wanted = sum(bit for bit in EVENTS if bit & offered)
                if wanted:
                    nvml.nvmlDeviceRegisterEvents(card.handle, wanted, self._event_set)
                    self.waits = True
            except nvml.NVMLError:
                continue
        if not self.waits:
            self._standing.append(Condition(ConditionCode.GPU_EVENTS_UNSUPPORTED))

    def _stop_listening(self) -> None:
        nvml, event_set = self._nvml, self._event_set
        self._event_set, self.waits = None, False
        self._standing = [one for one in self._standing if one.code is not ConditionCode.GPU_EVENTS_UNSUPPORTED]
        if event_set is not None:
            try:
                nvml.nvmlEventSetFree(event_set)
            except nvml.NVMLError:
                pass

    def close(self) -> None:
        """Shut the library down; what it says about that no longer matters."""
        self._stop_listening()
        self._kernel_log.close()
        nvml, self._nvml = self._nvml, None
        if nvml is not None:
            for card in self._cards:
                card.close()
            try:
                nvml.nvmlShutdown()
            except nvml.NVMLError:
                pass
        self._fault = None
        self._cards, self._by_address = [], {}
        self._standing, self._pending, self._lines = [], [], []
        self._driver_version = self._cuda_version = ""
        self._system = {}

    # --- reading ---------------------------------------------------------------------------------

    def inventory(self) -> GpuInventory:
        """Facts of every card, read anew; a lost card keeps the facts it had."""
        if self._cards and self._fault is None and not self._driver_version:
            self._read_versions()  # a driver that was still being installed says it later
        for card in self._cards if self._fault is None else ():
            if card.lost:
                continue
            try:
                others = {one.index: one.handle for one in self._cards if one is not card and not one.lost}
                card.refresh(others, self._system)
                card.differences = differences(card.facts, self._pci_devices, self._driver_gpus)
            except LostError:
                self._lose(card)
            except BrokenError as error:
                self._break(error)
                break
        return GpuInventory(tuple(card.facts for card in self._cards), self._driver_version, self._cuda_version)

    def sample(self, with_processes: bool) -> Readings:
        """One sweep. What a lost card or a broken library leaves out is there as None."""
        values: dict[tuple[str, int], int | None] = {
            (card.uuid, metric): None for card in self._cards for metric in GPU_METRICS
        }
        self._listened_again = False
        for card in self._cards if self._fault is None else ():
            if card.lost and with_processes:
                self._look_for(card)
            if card.lost:
                continue
            try:
                if with_processes:
                    card.read_slowly()
                read = card.read(card.uuid in self._leased)
                slow = card.slow_metrics() if with_processes else {}
                values.update({(card.uuid, metric): value for metric, value in {**read, **slow}.items()})
            except LostError:
                self._lose(card)
            except BrokenError as error:
                self._break(error)
                break
        return values

    def _lose(self, card: Card) -> None:
        card.lost = True
        card.forget()
        self._pending.append(GpuEvent(GpuEventKind.LOST, card.uuid))

    def _look_for(self, card: Card) -> None:
        """See whether a lost card is back, by its UUID: indices may have moved."""
        nvml = self._nvml
        try:
            handle = nvml.nvmlDeviceGetHandleByUUID(card.raw_uuid)
            nvml.nvmlDeviceGetUUID(handle)
        except (nvml.NVMLError, UnicodeDecodeError):
            return
        self._by_address.pop(card.address, None)
        card.found(handle)
        self._by_address[card.address] = card
        self._pending.append(GpuEvent(GpuEventKind.RECOVERED, card.uuid))
        self._listen()

    def _break(self, error: BrokenError) -> None:
        self._fault = Condition(BREAKING[error.code], detail=str(error))

    def health(self) -> tuple[GpuHealth, ...]:
        """The health of each card as of the last sweep."""
        return tuple(card.health() for card in self._cards)

    def conditions(self) -> tuple[Condition, ...]:
        """Conditions since opening, lost cards, and the library's own fault."""
        found = list(self._standing)
        for card in self._cards:
            if card.lost:
                found.append(Condition(ConditionCode.GPU_LOST, card.uuid))
            if card.differences:
                found.append(Condition(ConditionCode.GPU_KERNEL_DIFFERS, card.uuid, "; ".join(card.differences)))
            if card.reset_required:
                found.append(Condition(ConditionCode.GPU_HOST_FAULT, card.uuid, "reset required"))
        return tuple(found if self._fault is None else [*found, self._fault])

    # --- events ----------------------------------------------------------------------------------

    def events(self, timeout_s: float) -> list[GpuEvent]:
        """XIDs and their like; also cards lost and found by a sweep, which are there at once."""
        found, self._pending = self._pending, []
        wait_ms = 0 if found else max(0, int(timeout_s * 1000))
        for _ in range(EVENTS_MAX):
            if not self.waits or self._fault is not None or not self._next_event(wait_ms, found):
                break
            wait_ms = 0
        return self._explained(found)

    def _explained(self, found: list[GpuEvent]) -> list[GpuEvent]:
        """The same with what the kernel's log says of each XID; without events of the driver, the log's own XIDs."""
        earlier, self._lines = self._lines, self._kernel_log.read()
        wanted = any(event.kind is GpuEventKind.XID for event in found)
        if wanted and not self._lines:
            self._lines = self._kernel_log.read(wait=True)
        lines = [*earlier, *self._lines] if self.waits else self._lines
        logged = [
            _of_line(card, line) for line in lines for card in self._cards if same_card(line, card.facts.pci_bus_id)
        ]
        if not self.waits:
            return [*found, *logged]
        told = []
        for event in found:
            mine = next((one for one in logged if _is_same(one, event)), None)
            if mine is not None:
                logged.remove(mine)
                event = replace(mine, slice_uuid=event.slice_uuid or mine.slice_uuid)
            told.append(event)
        return told

    def _next_event(self, wait_ms: int, found: list[GpuEvent]) -> bool:
        """Take one event from the driver; False when there is none."""
        nvml = self._nvml
        try:
            event = nvml.nvmlEventSetWait_v2(self._event_set, wait_ms)
        except nvml.NVMLError as error:
            self._on_event_error(int(error.value))
            return False
        kind = EVENTS.get(int(event.eventType))
        card = self._by_address.get(address(event.device))
        if kind is not None and card is not None:
            numbered = kind in {GpuEventKind.XID, GpuEventKind.RECOVERY_ACTION}
            ids = (None if one == NO_INSTANCE else int(one) for one in (event.gpuInstanceId, event.computeInstanceId))
            part = nvml_mig.named(card.instances, *ids) if kind is GpuEventKind.XID else ""
            found.append(GpuEvent(kind, card.uuid, int(event.eventData) if numbered else 0, slice_uuid=part))
            if kind is GpuEventKind.MIG_CHANGED:
                self._read_mig(card)
        return True

    def _read_mig(self, card: Card) -> None:
        try:
            card.read_mig()
        except LostError:
            self._lose(card)
        except BrokenError as error:
            self._break(error)

    def _on_event_error(self, code: int) -> None:
        if code == TIMEOUT:
            return
        if code in BREAKING:
            self._break(BrokenError(code, "nvmlEventSetWait_v2"))
        elif code == GPU_IS_LOST and not self._listened_again:
            self._listened_again = True  # one lost card ends the wait for all: go on without it
            self._listen()
        else:  # an error that comes at once would turn waiting into spinning
            self._stop_listening()
            self._standing.append(Condition(ConditionCode.GPU_EVENTS_UNSUPPORTED, detail=f"NVML {code}"))

    # --- around leases ---------------------------------------------------------------------------

    def look(self, uuids: frozenset[str]) -> Mapping[str, GpuLook]:
        """These cards and slices as they are now; what does not answer is left out."""
        found: dict[str, GpuLook] = {}
        for card in self._cards if self._fault is None else ():
            for uuid in sorted(uuids & {card.uuid, *(part.uuid for part in card.facts.slices)}):
                try:
                    found[uuid] = card.look(uuid)
                except LostError:
                    continue  # told by the next sweep
                except BrokenError as error:
                    self._break(error)
        return found

    def cut(self, uuid: str, profiles: tuple[str, ...]) -> None:
        """Cut a card into slices of these profiles, in this order; none: make it whole again."""
        card = next((one for one in self._cards if one.uuid == uuid and not one.lost), None)
        if card is None or self._fault is not None:
            raise CutRefusedError("the driver does not answer for such a GPU")
        try:
            card.read_mig()
            parts = nvml_mig.slices(card.ask) if card.health().mig_enabled else ()
            used = [uuid for uuid in (card.uuid, *(part.uuid for part in parts)) if card.look(uuid).processes]
        except (LostError, BrokenError) as error:
            raise CutRefusedError("the driver does not answer for this GPU") from error
        before = tuple(part.profile for part in parts)
        if sorted(before) == sorted(profiles) and bool(card.health().mig_enabled) is bool(profiles):
            return
        if used:
            raise CutRefusedError(f"programs run on {', '.join(used)}")
        self._stop_listening()  # who waits for a card's events is one who uses it
        self._by_address.pop(card.address, None)
        try:
            card.found(nvml_mig.Cutter(self._nvml, card.handle, card.raw_uuid).cut(profiles, before))
        finally:
            self._by_address[card.address] = card
            self._listen()

    def leased(self, uuids: frozenset[str]) -> None:
        """The cards that our workloads hold. Real cards show their load by themselves."""
        self._leased = uuids


def _of_line(card: Card, line: XidLine) -> GpuEvent:
    part = nvml_mig.named(card.instances, line.gpu_instance, line.compute_instance)
    return GpuEvent(
        GpuEventKind.XID, card.uuid, line.xid, line.text, pid=line.pid, process=line.process, slice_uuid=part
    )


def _is_same(logged: GpuEvent, event: GpuEvent) -> bool:
    """True if a line of the log is about the driver's event; one of the two may not know the slice."""
    ours = (event.kind, event.uuid, event.number)
    parts = {logged.slice_uuid, event.slice_uuid} - {""}
    return (logged.kind, logged.uuid, logged.number) == ours and len(parts) < 2
