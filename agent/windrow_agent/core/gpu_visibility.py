"""Judges from the output of nvidia-smi inside a container whether the container can still open its GPUs. Pure.

`systemctl daemon-reload` and a reloaded driver can take the device rules from a running container, while the host sees
nothing amiss (NVIDIA/nvidia-container-toolkit#48): what is open goes on, and whatever is opened next fails.
"""

import re
from collections.abc import Collection
from typing import Final

COMMAND: Final = ("/usr/bin/nvidia-smi", "-L")
"""The container toolkit puts this program into every container that it gives GPUs; it lists cards and slices."""
CANNOT_RUN: Final = frozenset({126, 127})
"""What the container engine says of a program that is not there or cannot be run."""
_UUID: Final = re.compile(r"UUID: ((?:GPU|MIG)-[0-9a-zA-Z/-]{8,80})\)")
_REFUSED: Final = ("Failed to initialize NVML", "No devices were found", "Unable to determine the device handle")
"""How the program begins its line when the driver does not let it in."""


def missing(exit_code: int | None, said: str, granted: Collection[str]) -> frozenset[str] | None:
    """Which of the granted GPUs and slices cannot be opened inside; None where that cannot be told.

    exit_code: None if it did not end. A listing without a single id is not taken for an answer.
    """
    if exit_code is None or exit_code in CANNOT_RUN:
        return None
    if any(line.startswith(_REFUSED) for line in said.splitlines()):
        return frozenset(granted)
    listed = set(_UUID.findall(said))
    if exit_code != 0 or not listed:
        return None
    return frozenset(granted) - listed
