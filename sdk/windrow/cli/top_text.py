"""Tables of `windrow top`: what a host or the members of a cluster use now, with bars. Pure."""

from collections.abc import Sequence
from typing import Any, Final

from rich.table import Table
from rich.text import Text

from windrow.cli.output import ABSENT, brief, field_text, plain, rate_text, size_text
from windrow.words import money_text

Item = dict[str, Any]

BAR: Final = 10
BAR_WIDTH: Final = BAR + 5
"""Cells of a bar, and with its percentage."""
LEAST: Final = {"USE": BAR_WIDTH, "GPU": BAR_WIDTH, "MEMORY": 14, "TEMP": 5, "POWER": 6}
MOST: Final = {"": 14, "HOST": 20, "STATE": 14}
"""Columns that keep their figures whole on a narrow screen, and those that give way."""
WIDE, WIDER = 105, 130
"""Columns of the screen from which there are bars of memory and the network, and from which there is the disk."""
FULL, EMPTY = "█", "░"
GIB: Final = 2**30
HOT_CELSIUS: Final = 85
"""From here on the temperature is shown in the warning colour: most cards slow down a little above it."""


def bar(ratio: float | None, text: str = "") -> Text:
    """A ratio in [0, 1] as a bar with its percentage, or with this text; absent stays absent."""
    if ratio is None:
        return Text(text or ABSENT)
    within = min(max(float(ratio), 0.0), 1.0)
    filled = round(within * BAR)
    drawn = Text(FULL * filled, style="cyan")
    return drawn.append(EMPTY * (BAR - filled), style="dim").append(f" {text or f'{within:4.0%}'}", style="default")


def of_memory(used: float | None, whole: float | None, *, is_drawn: bool) -> Text:
    """Bytes in use, of how many where that is known, and where there is room with a bar."""
    if used is None:
        return Text(ABSENT)
    if not whole:
        return Text(size_text(used))
    said = f"{used / GIB:.1f} of {whole / GIB:.0f} GiB"
    return bar(used / whole, said) if is_drawn else Text(said)


def temperature(celsius: float | None) -> Text:
    """Degrees; hot ones in the warning colour."""
    is_hot = celsius is not None and celsius >= HOT_CELSIUS
    return Text(field_text(celsius, "Cel"), style="yellow" if is_hot else "default")


def host_title(host: Item) -> str:
    """One line about a host."""
    state, live = host["headline"], host.get("live") or {}
    if host.get("headline_reason"):
        state += f" ({str(host['headline_reason']).rstrip('.')})"
    parts = [host["name"] + (" (simulated)" if host["simulated"] else ""), state, host.get("tier")]
    if live:
        parts += [f"{rate_text(live.get('rx_bps'))} in, {rate_text(live.get('tx_bps'))} out"]
    return ", ".join(plain(brief(one)) for one in parts if one)


def host_table(host: Item, width: int) -> Table:
    """Processors and each GPU of a host. width: of the screen, in columns."""
    table = _table(width, "", "USE", "MEMORY", "TEMP", "POWER", "STATE")
    live, is_drawn = host.get("live") or {}, width >= WIDE
    load = f"load {live['load1']:.2f}" if live.get("load1") is not None else ""
    memory = of_memory(live.get("memory_used_bytes"), host.get("memory_bytes"), is_drawn=is_drawn)
    table.add_row(f"CPU x{host.get('cpu_count') or '?'}", bar(live.get("cpu_ratio")), memory, "", "", load)
    for gpu in host.get("gpus") or []:
        now = gpu.get("live") or {}
        power = now.get("power_watts")
        table.add_row(
            f"{gpu['index']} {_model(gpu['name'])}",
            bar(now.get("utilization_ratio")),
            of_memory(now.get("memory_used_bytes"), gpu.get("memory_bytes"), is_drawn=is_drawn),
            temperature(now.get("temperature_celsius")),
            ABSENT if power is None else f"{power:.0f} W",
            plain(gpu.get("state_text")),
        )
    return table


def cluster_title(cluster: Item) -> str:
    """One line about a machine or a cluster."""
    costs = [cluster.get("price_per_hour") and f"{money_text(cluster['price_per_hour'])} per hour"]
    costs += [cluster.get("cost_so_far") and f"{money_text(cluster['cost_so_far'])} so far"]
    return ", ".join(plain(one) for one in (cluster["name"], cluster["phase"], cluster.get("tier"), *costs) if one)


def cluster_table(members: Sequence[Item], width: int) -> Table:
    """Each member of a cluster. width: of the screen, in columns."""
    names = ["HOST", "GPU", "GPU MEMORY", "CPU", "MEMORY"]
    names += ["NETWORK"] if width >= WIDE else []
    names += ["DISK"] if width >= WIDER else []
    table = _table(width, *names)
    for one in members:
        cores = one["cpu_cores"]
        cells: list[Text | str] = [
            plain(one["host_name"]) if len(members) == 1 else f"{one['rank']} {plain(one['host_name'])}",
            bar(one["gpu_ratio"]),
            size_text(one["gpu_memory_used_bytes"]),
            ABSENT if cores is None else f"{cores:.2f}",
            size_text(one["memory_used_bytes"]),
            _both(one["network_receive_bytes_per_second"], one["network_transmit_bytes_per_second"], "in", "out"),
            _both(one["disk_read_bytes_per_second"], one["disk_write_bytes_per_second"], "read", "written"),
        ]
        table.add_row(*cells[: len(names)])
    return table


def _table(width: int, *names: str) -> Table:
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold")
    for name in names:
        most = MOST.get(name) if width < WIDE else None
        least = LEAST.get(name, len(name))
        table.add_column(name, no_wrap=True, overflow="ellipsis", min_width=least, max_width=most)
    return table


def _model(name: Any) -> str:
    """A GPU's model without its maker, which all of them share."""
    return plain(name).removeprefix("NVIDIA ").removeprefix("GeForce ")


def _both(one: float | None, other: float | None, to: str, fro: str) -> str:
    found = [f"{size_text(rate)}/s {word}" for rate, word in ((one, to), (other, fro)) if rate is not None]
    return ", ".join(found) or ABSENT
