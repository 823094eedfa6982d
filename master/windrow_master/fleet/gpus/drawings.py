"""The table of GPU models as a page of the documentation."""

from windrow_master.fleet.gpus import MODELS, GpuModel, Source

_HEAD = "| card | class | PCI ids | GiB | MiB reported | CUDA | W | GB/s | PCIe | sheet | read in |"
_NUMBER = {source: number for number, source in enumerate(Source, 1)}


def page() -> str:
    """The whole of docs/gpu-models.md."""
    sheets = sum(model.sheet_read for model in MODELS)
    parts = [
        "# GPU models",
        "",
        f"What a card of each of {len(MODELS)} models must look like. Generated from `windrow_master.fleet.gpus` by",
        "`python -m windrow_master.fleet.gpus.drawings`; a test keeps it fresh. Every figure was read in one of the",
        "documents below the tables; `-` is a figure that nobody has read yet, and nothing is compared with it.",
        "",
        "- GiB: nominal memory of one device; MiB reported: what drivers were seen to report.",
        "- W: default limit, and what a driver lets set; GB/s: peak of the memory; PCIe: generation x lanes.",
        f"- sheet: whether the maker's own data sheet was read ({sheets} rows); else others are believed.",
        "- A PCI id that stands twice is shared by cards that their memory tells apart.",
    ]
    for vendor, segment in dict.fromkeys((model.vendor, model.segment) for model in MODELS):
        name = {"nvidia": "NVIDIA", "amd": "AMD", "intel": "Intel"}[vendor]
        parts += ["", f"## {name}, {segment}", "", _HEAD, "|---" * _HEAD.count(" | ") + "|---|"]
        parts += [_line(model) for model in MODELS if (model.vendor, model.segment) == (vendor, segment)]
    parts += ["", "## Read in", "", *(f"{number}. {source}" for source, number in _NUMBER.items())]
    return "\n".join(parts) + "\n"


def _line(model: GpuModel) -> str:
    power = "" if model.power_w is None else f"{model.power_w.value}"
    if model.power_range_w is not None:
        power += " ({}-{})".format(*model.power_range_w.value)
    cells = (
        model.name,
        model.model_class,
        " ".join(f"{device:04x}" for device in model.pci.value),
        model.memory_gib.value,
        ", ".join(f"{each.value:,}" for each in model.reported_mib),
        model.capability and "{}.{}".format(*model.capability.value),
        power,
        model.bandwidth_gb_s and f"{model.bandwidth_gb_s.value:g}",
        model.pcie and "{}x{}".format(*model.pcie.value),
        "yes" if model.sheet_read else "no",
        " ".join(str(number) for number in sorted(_NUMBER[source] for source in model.sources)),
    )
    return f"| {' | '.join(str(cell or '-') for cell in cells)} |"


if __name__ == "__main__":
    print(page(), end="")
