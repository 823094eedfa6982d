"""Reasons for low clocks of an AMD card, from its driver's table of metrics; a reason that the table does not say is
absent."""

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import gpu_trees
from windrow_agent.core.gpu_port import HEAT_BY_HARDWARE, HEAT_BY_SOFTWARE, POWER_CAP
from windrow_agent.gpu.amd_metrics import ClockReading, held_by
from windrow_agent.gpu.sysfs import SysfsGpus

AT = "0000:43:00.0"
COUNTERS_AT = {6: 36, 7: 44}


def masked(mask: int, size: int = 120) -> bytes:
    """A table of revision 1.3."""
    table = bytearray(size)
    struct.pack_into("<HBB", table, 0, size, 1, 3)
    struct.pack_into("<Q", table, 112, mask)
    return bytes(table)


def counting(*counters: int, revision: int = 6) -> bytes:
    """A table of revision 1.6 or 1.7."""
    table = bytearray(1664)
    struct.pack_into("<HBB", table, 0, len(table), 1, revision)
    struct.pack_into("<5I", table, COUNTERS_AT[revision], *counters)
    return bytes(table)


@pytest.mark.parametrize(
    ("bits", "reasons"),
    [
        ((), 0),
        ((0,), POWER_CAP),
        ((7, 16, 23), POWER_CAP),
        ((36,), HEAT_BY_SOFTWARE),
        ((32, 43), HEAT_BY_SOFTWARE),
        ((44,), HEAT_BY_HARDWARE),
        ((47, 0), HEAT_BY_HARDWARE | POWER_CAP),
        ((8, 31, 57), 0),
    ],
)
def test_a_mask_says_what_holds_the_clocks_down_now(bits: tuple[int, ...], reasons: int) -> None:
    assert held_by(masked(sum(1 << bit for bit in bits))) == ClockReading(reasons)


@pytest.mark.parametrize("revision", [6, 7])
@pytest.mark.parametrize(
    ("grown", "reasons"),
    [
        ((0, 0, 0, 0, 0), 0),
        ((1, 0, 0, 0, 0), HEAT_BY_HARDWARE),
        ((0, 9, 0, 0, 0), POWER_CAP),
        ((0, 0, 1, 0, 0), HEAT_BY_SOFTWARE),
        ((0, 0, 0, 1, 0), HEAT_BY_SOFTWARE),
        ((0, 5, 0, 0, 1), HEAT_BY_SOFTWARE | POWER_CAP),
    ],
)
def test_counters_say_what_held_them_down_since_the_sweep_before(
    revision: int, grown: tuple[int, ...], reasons: int
) -> None:
    first = held_by(counting(5, 5, 5, 5, 5, revision=revision))
    assert first.reasons is None, "one reading alone says nothing of now"
    assert held_by(counting(*(5 + one for one in grown), revision=revision), first).reasons == reasons


def test_a_counter_that_began_anew_has_counted() -> None:
    first = held_by(counting(0, 4_000_000_000, 0, 0, 0))
    assert held_by(counting(0, 3, 0, 0, 0), first).reasons == POWER_CAP


@pytest.mark.parametrize(
    "table",
    [b"", b"\x78", masked(1)[:119], masked((1 << 64) - 1), counting(0, 0, 0, 0, 0)[:40], b"\x78\x00\x02\x01" * 40],
)
def test_a_table_that_is_cut_or_unknown_says_nothing(table: bytes) -> None:
    assert held_by(table) == ClockReading()


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_no_table_breaks_its_reader(first: bytes, second: bytes) -> None:
    held_by(second, held_by(first))


def test_a_sweep_reads_it_and_the_cards_health_counts_it(tmp_path: Path) -> None:
    machine = gpu_trees.machine(tmp_path)
    folder = machine.card(AT, gpu_trees.MI300X, "amdgpu")
    gpus = SysfsGpus(machine.root)
    gpus.open()
    found = []
    for heat in (7, 7, 8):
        (folder / "gpu_metrics").write_bytes(counting(heat, 0, 0, 0, 0))
        read = gpus.sample(False)
        found.append((next(value for (_, metric), value in read.items() if metric == 10), gpus.health()[0].slowed_by))
    assert found == [(None, None), (0, 0), (HEAT_BY_HARDWARE, HEAT_BY_HARDWARE)]
