"""XIDs in the kernel's log: lines as people posted them with their bug reports, and lines that are none."""

import os
from pathlib import Path

import pytest

from tests.fake_nvml.build import FakeNvml
from windrow_agent.core.gpu_port import GpuEvent, GpuEventKind
from windrow_agent.core.xid_line import XidLine, parse, same_card
from windrow_agent.gpu.kernel_log import KernelLog
from windrow_agent.gpu.nvml import NvmlBackend

BEFORE = "kernel: NVRM: Xid (0000:01:00): 16, Head 00000000 Count 00000000"
BARE = "[24128.828315] NVRM: Xid (PCI:0000:01:00): 32, Channel ID 00000000 intr 00004000"
NAMED = "kernel: NVRM: Xid (PCI:0000:dc:00): 45, pid=1818990, name=python3, Ch 00000001 caused by previous Xid 149"
UNKNOWN = (
    "[Fri Aug 30 11:43:09 2024] NVRM: Xid (PCI:0000:cb:00): 13, pid='<unknown>', name=<unknown>, "
    "Graphics SM Warp Exception on (GPC 7, TPC 7, SM 0): Illegal Instruction Parameter"
)
DOTTED = "NVRM: Xid (PCI:0000:01:00): 13, pid=1773, name=.gala-wrapped, Graphics Exception: channel 0x00000005"
BUS = "NVRM: Xid (PCI:0000:44:00): 79, GPU has fallen off the bus"
ACTION = "NVRM: Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
ZERO = "NVRM: Xid (PCI:0000:01:00): 79, pid=0, GPU has fallen off the bus."
OTHER = "r8169 0000:03:00.0 eth0: RTL8125B, 58:47:ca:7b:55:71, XID 641, IRQ 51"
NEIGHBOUR = "NVRM: GPU at PCI:0000:07:00: GPU-fb51809b-350a-99db-67b5-e16fc6d498ab"


@pytest.mark.parametrize(
    ("line", "bus", "xid", "pid", "process", "text"),
    [
        (BEFORE, 1, 16, None, "", "Head 00000000 Count 00000000"),
        (BARE, 1, 32, None, "", "Channel ID 00000000 intr 00004000"),
        (NAMED, 0xDC, 45, 1818990, "python3", "Ch 00000001 caused by previous Xid 149"),
        (
            *(UNKNOWN, 0xCB, 13, None, ""),
            "Graphics SM Warp Exception on (GPC 7, TPC 7, SM 0): Illegal Instruction Parameter",
        ),
        (DOTTED, 1, 13, 1773, ".gala-wrapped", "Graphics Exception: channel 0x00000005"),
        (BUS, 0x44, 79, None, "", "GPU has fallen off the bus"),
        (ACTION, 1, 154, None, "", "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"),
        (ZERO, 1, 79, None, "", "GPU has fallen off the bus."),
    ],
)
def test_a_line_of_the_driver_is_taken_apart(line: str, bus: int, xid: int, pid: int | None, process: str, text: str):
    assert parse(line) == XidLine((0, bus, 0), xid, pid, process, text)


@pytest.mark.parametrize(
    ("where", "ids"),
    [(" GPU-I:05", (5, None)), (" GPU-I:13 GPU-CI:01", (13, 1)), (" GPU-X:1", (None, None)), (".0", (None, None))],
)
def test_a_line_of_a_cut_card_names_its_slice(where: str, ids: tuple[int | None, int | None]):
    line = parse(f"NVRM: Xid (PCI:0000:01:00{where}): 94, pid=7194, Contained: CE User Channel (0x9)")
    assert line is not None
    assert (line.gpu_instance, line.compute_instance) == ids
    assert (line.bus, line.xid, line.pid) == ((0, 1, 0), 94, 7194)


@pytest.mark.parametrize("line", [OTHER, NEIGHBOUR, "", "NVRM: Xid (PCI:0000:01:00)", "NVRM: Xid (nonsense): 13"])
def test_other_lines_are_no_xid(line: str):
    assert parse(line) is None


def test_a_line_belongs_to_the_card_at_its_address():
    line = parse(NAMED)
    assert line is not None
    assert same_card(line, "00000000:DC:00.0")
    assert not [bus for bus in ("00000000:DD:00.0", "00000001:DC:00.0", "", "rubbish") if same_card(line, bus)]


def test_what_a_program_calls_itself_cannot_forge_a_field():
    line = parse("NVRM: Xid (PCI:0000:01:00): 13, pid=7, name=<b>\x1b[31m evil, NVRM: Xid (PCI:0000:02:00): 79")
    assert line is not None
    assert (line.bus, line.xid, line.pid, line.process) == ((0, 1, 0), 13, 7, "b [31m evil")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "kmsg"
    path.write_text(f"4,1,1,-;{BUS}\n")
    return path


def append(path: Path, line: str) -> None:
    with path.open("a") as file:
        file.write(f"4,2,2,-;{line}\n")


def test_only_what_is_written_after_opening_is_read_and_once(log: Path):
    reader = KernelLog(log)
    reader.open()
    assert reader.read() == []
    append(log, NAMED)
    append(log, OTHER)
    assert [line.xid for line in reader.read(wait=True)] == [45]
    assert reader.read() == []
    reader.close()
    reader.close()
    assert reader.read(wait=True) == []


def test_a_log_that_may_not_be_read_says_nothing(tmp_path: Path):
    reader = KernelLog(tmp_path / "missing")
    reader.open()
    assert reader.read(wait=True) == []


def test_records_that_were_overwritten_are_passed_over(log: Path, monkeypatch: pytest.MonkeyPatch):
    reader, real, failures = KernelLog(log), os.read, [BrokenPipeError(), BrokenPipeError()]

    def read(file: int, count: int) -> bytes:
        if failures:
            raise failures.pop()
        return real(file, count)

    reader.open()
    append(log, NAMED)
    monkeypatch.setattr(os, "read", read)
    assert [line.xid for line in reader.read()] == [45]
    reader.close()


@pytest.fixture
def backend(fake_nvml: FakeNvml, tmp_path: Path, log: Path):
    made = NvmlBackend(pci_devices=tmp_path / "pci", kernel_log=KernelLog(log))
    yield made
    made.close()


def test_an_xid_comes_with_who_caused_it(fake_nvml: FakeNvml, backend: NvmlBackend, log: Path):
    backend.open()
    backend.inventory()
    append(log, "NVRM: Xid (PCI:0000:30:00): 13, pid=4242, name=python3, Graphics Exception")
    append(log, "NVRM: Xid (PCI:0000:30:00): 45, pid=4243, name=python3, Ch 00000008")
    fake_nvml.state.xid(3, 45)
    fake_nvml.state.xid(2, 13)
    fourth, third = backend.events(1.0)
    uuid = fake_nvml.state.uuid
    assert fourth == GpuEvent(GpuEventKind.XID, uuid(3), 45, "Ch 00000008", pid=4243, process="python3")
    assert third == GpuEvent(GpuEventKind.XID, uuid(2), 13)


def test_a_driver_without_events_is_heard_by_its_log(fake_nvml: FakeNvml, backend: NvmlBackend, log: Path):
    for index in range(8):
        fake_nvml.state.gpu(index).event_types = 0
    backend.open()
    backend.inventory()
    append(log, "NVRM: Xid (PCI:0000:30:00): 79, GPU has fallen off the bus.")
    uuid = fake_nvml.state.uuid(3)
    assert backend.events(0) == [GpuEvent(GpuEventKind.XID, uuid, 79, "GPU has fallen off the bus.")]
    assert backend.events(0) == []


def test_an_xid_of_a_cut_card_names_the_slice_by_event_and_by_log(fake_nvml: FakeNvml, backend: NvmlBackend, log: Path):
    fake_nvml.state.cut(3, "3g.40gb", "2g.20gb")
    backend.open()
    first, second = (part.uuid for part in backend.inventory().gpus[3].slices)
    append(log, "NVRM: Xid (PCI:0000:30:00 GPU-I:02 GPU-CI:00): 13, pid=4243, name=python3, Graphics Exception")
    append(log, "NVRM: Xid (PCI:0000:30:00 GPU-I:01): 13, pid=4242, name=torch, Graphics Exception")
    fake_nvml.state.xid(3, 13, 0)
    fake_nvml.state.xid(3, 13, 1)
    fake_nvml.state.xid(3, 79)
    told = [(event.number, event.slice_uuid, event.pid) for event in backend.events(1.0)]
    told += [(event.number, event.slice_uuid, event.pid) for event in backend.events(0.1)]
    assert told[:3] == [(13, first, 4242), (13, second, 4243), (79, "", None)]


@pytest.mark.parametrize(
    ("where", "at"), [(" GPU-I:02", 1), (" GPU-I:02 GPU-CI:00", 1), (" GPU-I:09", None), ("", None)]
)
def test_a_log_alone_names_the_slice_too_and_none_that_nobody_knows(
    fake_nvml: FakeNvml, backend: NvmlBackend, log: Path, where: str, at: int | None
):
    for index in range(8):
        fake_nvml.state.gpu(index).event_types = 0
    fake_nvml.state.cut(3, "3g.40gb", "2g.20gb")
    backend.open()
    parts = backend.inventory().gpus[3].slices
    append(log, f"NVRM: Xid (PCI:0000:30:00{where}): 94, pid=7194, Contained: CE User Channel (0x9)")
    (event,) = backend.events(0)
    assert event.slice_uuid == ("" if at is None else parts[at].uuid)
    assert event.where == (event.slice_uuid or fake_nvml.state.uuid(3))
