"""Reads how busy the units of an NVIDIA card are, from Hopper on: NVML's counters (GPM), as the difference of two
samples.

The library comes in as a value. A card that has none, or a driver that keeps them for root, tells nothing here.
"""

from collections.abc import Mapping
from typing import Any, Final

from windrow_agent.core.scaling import whole
from windrow_agent.gpu.nvml_details import Ask

WANTED: Final[Mapping[int, int]] = {1: 27, 2: 28, 3: 29, 5: 30, 10: 31, 11: 32, 12: 33, 13: 34}
"""NVML's number of a metric in percent (nvmlGpmMetricId_t) to ours in thousandths."""


class Gpm:
    """The counters of one card. Each reading is of the time since the one before."""

    def __init__(self, nvml: Any, ask: Ask) -> None:
        self._nvml, self._ask = nvml, ask
        self._samples: list[Any] = []
        self._has_first = False
        self._asked: Any = None
        self._is_tried = False

    def read(self) -> dict[int, int]:
        """Our number of each metric to its thousandths; nothing at the first reading, nor where there are none."""
        if not self._is_tried:
            self._open()
        if not self._samples or self._ask("nvmlGpmSampleGet", self._samples[1]) is None:
            self._has_first = False
            return {}
        found = self._compared() if self._has_first else {}
        self._samples.reverse()
        self._has_first = True
        return found

    def forget(self) -> None:
        """The next reading has nothing before it."""
        self._has_first = False

    def close(self) -> None:
        """Let go of the samples; the library must be open still."""
        samples, self._samples, self._asked, self._is_tried = self._samples, [], None, False
        self._has_first = False
        for sample in samples:
            self._call("nvmlGpmSampleFree", sample)

    def _open(self) -> None:
        self._is_tried = True
        support = self._ask("nvmlGpmQueryDeviceSupport")
        if support is None or not support.isSupportedDevice:
            return
        samples = [self._call("nvmlGpmSampleAlloc") for _ in range(2)]
        if None not in samples:
            self._samples = samples
            self._asked = self._nvml.c_nvmlGpmMetricsGet_t()
            self._asked.version, self._asked.numMetrics = self._nvml.NVML_GPM_METRICS_GET_VERSION, len(WANTED)
            for at, number in enumerate(WANTED):
                self._asked.metrics[at].metricId = number

    def _compared(self) -> dict[int, int]:
        self._asked.sample1, self._asked.sample2 = self._samples
        if self._call("nvmlGpmMetricsGet", self._asked) is None:
            return {}
        told = [self._asked.metrics[at] for at in range(len(WANTED))]
        good = {WANTED[one.metricId]: one.value for one in told if one.nvmlReturn == 0 and 0 <= one.value <= 100}
        return {number: value for number, share in good.items() if (value := whole(round(10 * share))) is not None}

    def _call(self, name: str, *arguments: object) -> Any:
        """A call that is of no card; None where it failed. What frees answers with nothing, which is None as well."""
        try:
            return getattr(self._nvml, name)(*arguments)
        except (self._nvml.NVMLError, self._nvml.NVMLLibraryMismatchError, AttributeError):
            return None
