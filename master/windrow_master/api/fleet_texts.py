"""Writes hosts and their GPUs as pieces of JSON text: parts that seldom change are written once, a sample's values are
added. Pure.

A host's text is `head`, link, `gpus`: a sample makes new heads and GPUs, a heartbeat only a new link.
"""

import json
from dataclasses import dataclass
from typing import Any, Final

from windrow_master.api import fleet_shapes as shapes
from windrow_master.fleet.availability import gpus_shown
from windrow_master.fleet.model import Slot
from windrow_master.fleet.presence import Live
from windrow_master.fleet.view import Entry
from windrow_master.market.offers import PriceBook
from windrow_master.telemetry.live import Reading
from windrow_proto.units import time_text

_WRITER: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)
_NO_ROW_LIVE: Final = "," + _WRITER.encode(dict.fromkeys(shapes.ROW_LIVE))[1:]
_NO_LIVE: Final = "null}"


@dataclass(frozen=True, slots=True)
class Frames:
    """The parts of a host's text that stay from one sample to the next: the holders, and of each GPU its uuid, and its
    text and its row before the live values. Good for one version of the host and of the prices.

    Each text that says who holds what is there twice: for the host's owner and who oversees the market, and for others.
    """

    entry_version: int
    book_version: int
    holders: tuple[str, str]
    gpus: tuple[tuple[str, str, str, str], ...]


def text_of(value: Any) -> str:
    """A value as compact JSON."""
    return _WRITER.encode(value)


def frames(entry: Entry, book: PriceBook, book_version: int) -> Frames:
    """The frames of a host as it is now."""
    slots = {slot.gpu_uuid: slot for slot in entry.slots if slot.gpu_uuid is not None}
    inventory, states = entry.host.inventory, gpus_shown(entry)
    found = []
    for gpu in inventory.gpus if inventory else ():
        slot, shown = slots.get(gpu.uuid), states[gpu.uuid]
        whole = text_of(shapes.gpu_json(gpu, slot, shown, None)).removesuffix(_NO_LIVE)
        row, closed = (
            text_of(shapes.row_json(entry, gpu, slot, shown, book, is_open=is_open)).removesuffix(_NO_ROW_LIVE)
            for is_open in (True, False)
        )
        found.append((str(gpu.uuid), whole, row, closed))
    opened, shut = (text_of(shapes.holders_json(entry, sees))[1:-1] for sees in (None, _nobody))
    return Frames(entry.version, book_version, (opened, shut), tuple(found))


def _nobody(_: Slot) -> bool:
    return False


def filled(kept: Frames, reading: Reading | None) -> tuple[str, str, str]:
    """The GPUs of a host, their rows, and their rows for strangers, with what they read, each joined by commas."""
    gpus, rows, closed_rows = [], [], []
    at = "" if reading is None else f'"at":"{time_text(reading.at_ns)}"}}'
    for uuid, whole, row, closed in kept.gpus:
        values = None if reading is None else reading.values.get(uuid)
        if values is None:
            gpus.append(whole + _NO_LIVE)
            ending = _NO_ROW_LIVE
        else:
            gpus.append(f"{whole}{{{_fields(shapes.GPU_NUMBERS, values)}{at}}}")
            ending = f",{_fields(shapes.ROW_NUMBERS, values)}{at}"
        rows.append(row + ending)
        closed_rows.append(closed + ending)
    return ",".join(gpus), ",".join(rows), ",".join(closed_rows)


def _fields(numbers: tuple[tuple[str, int], ...], values: Any) -> str:
    # A float's repr is its JSON; NaN and infinities never come from the wire's integers.
    written = []
    for name, number in numbers:
        value = values.get(number)
        written.append(f'"{name}":{"null" if value is None else repr(value)},')
    return "".join(written)


def head_text(entry: Entry, reading: Reading | None, book: PriceBook) -> str:
    """A host without its GPUs, its link and who holds what, its closing brace left off."""
    return text_of(shapes.head_json(entry, reading, book))[:-1]


def link_text(entry: Entry, live: Live | None) -> str:
    """A host's link, without braces."""
    return text_of(shapes.link_json(entry.host, live))[1:-1]
