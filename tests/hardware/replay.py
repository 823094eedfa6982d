"""A recording in the place of the bindings: each call answers, or fails, as the real NVML did."""

import types
from typing import Any

import pynvml

from tests.hardware.record import PYTHON_ERROR, key


class Replay:
    """A stand-in for pynvml in gpu/nvml.py: the calls of one recording, and the real bindings' constants and errors."""

    def __init__(self, recording: dict[str, Any]) -> None:
        self._recording = recording
        self.unknown: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("nvml") or name.startswith("nvmlMemory"):
            return getattr(pynvml, name)
        if name in {"nvmlInit", "nvmlShutdown"}:
            return lambda: None
        if name == "nvmlDeviceGetHandleByIndex":
            return lambda index: index
        if name.startswith("nvmlSystem") or name == "nvmlDeviceGetCount":
            return lambda: self._answer(self._recording["system"], name, (), {})
        if name in {"nvmlEventSetCreate", "nvmlGpmSampleAlloc"}:
            return self._not_recorded
        return lambda handle, *arguments, **named: self._answer(self._recording["gpus"][handle], name, arguments, named)

    @staticmethod
    def _not_recorded() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    def _answer(self, answers: dict[str, Any], name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        answer = answers.get(key(name, arguments, named))
        if answer is None:
            self.unknown.add(key(name, arguments, named))
            raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        if answer["code"] == PYTHON_ERROR:
            raise pynvml.NVMLLibraryMismatchError(answer["raised"])
        if answer["code"] != 0:
            raise pynvml.NVMLError(answer["code"])
        return _object(answer["value"], name)


def _object(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return types.SimpleNamespace(**{field: _object(one, field) for field, one in value.items()})
    if isinstance(value, list):
        return [_object(one, name) for one in value]
    return _union(value) if name == "value" else value


def _union(value: int) -> types.SimpleNamespace:
    """All members of nvmlValue_t over one integer: little endian, so the narrow ones are its low bits."""
    low = value & 0xFFFFFFFF
    signed = low - (1 << 32) if low >> 31 else low
    members = {"uiVal": low, "siVal": signed, "usVal": value & 0xFFFF}
    return types.SimpleNamespace(ulVal=value, ullVal=value, sllVal=value, **members)
