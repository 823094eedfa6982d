"""Records what a real NVML answers: every call's return code, type and value, so that the fake can be held to it.

    python -m tests.hardware.record OUT.json

Only getters are called. Serial numbers, UUIDs and process ids are kept in form but not in content.
"""

import ctypes
import inspect
import json
import platform
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from windrow_agent.gpu import nvml_details
from windrow_agent.gpu.nvml_codes import FIELDS, SLOW_FIELDS

FORMAT = 1
UUID = "nvmlDeviceGetUUID()"
PYTHON_ERROR = -1
"""The return code written where the bindings raised something that is no NVMLError."""

IDENTIFYING = {"nvmlDeviceGetUUID", "nvmlDeviceGetSerial", "nvmlDeviceGetBoardId", "nvmlDeviceGetPdi"}
LEFT_OUT = {"nvmlDeviceGetPlatformInfo", "nvmlDeviceGetGpuFabricInfo", "nvmlDeviceGetGpuFabricInfoV"}
"""Structures that hold serial numbers of chassis and identifiers of fabrics, which the agent does not read."""

READ: list[tuple[Any, ...]] = [(FIELDS,), (SLOW_FIELDS,), (nvml_details.FIELDS,)]
"""The lists of fields that the agent asks for at once; but for those of each link."""
LINKS = nvml_details.LINKS_MAX

ARGUMENTS: dict[str, list[tuple[Any, ...]]] = {
    "nvmlDeviceGetTemperature": [(0,)],
    "nvmlDeviceGetTemperatureThreshold": [(kind,) for kind in range(6)],
    "nvmlDeviceGetClockInfo": [(kind,) for kind in range(4)],
    "nvmlDeviceGetMaxClockInfo": [(kind,) for kind in range(4)],
    "nvmlDeviceGetTotalEccErrors": [(kind, counter) for kind in (0, 1) for counter in (0, 1)],
    "nvmlDeviceGetFieldValues": [
        ([82, 83, 94, 186, 185, 193, 194, 195, 196, 230],),
        ((82, 83, 94, 186, 144, 145),),
        *READ,
    ],
    "nvmlDeviceGetPcieThroughput": [(0,), (1,)],
    "nvmlDeviceGetRetiredPages": [(0,), (1,)],
    "nvmlDeviceGetNvLinkState": [(link,) for link in range(LINKS)],
    "nvmlDeviceGetNvLinkVersion": [(link,) for link in range(LINKS)],
    "nvmlDeviceGetNvLinkRemotePciInfo": [(link,) for link in range(LINKS)],
    "nvmlDeviceGetCpuAffinity": [(nvml_details.CPUS_MAX // 64,)],
    "nvmlDeviceGetGpuInstanceProfileInfo": [(profile,) for profile in range(nvml_details.PROFILES)],
}
"""Calls that need more than a handle, with what they are called with."""

OPTIONAL: dict[str, list[dict[str, Any]]] = {"nvmlDeviceGetMemoryInfo": [{}, {"version": 0x02000028}]}
SYSTEM = [
    "nvmlSystemGetDriverVersion",
    "nvmlSystemGetNVMLVersion",
    "nvmlSystemGetCudaDriverVersion",
    "nvmlSystemGetCudaDriverVersion_v2",
    "nvmlDeviceGetCount",
]


def masked(text: str) -> str:
    """The form of an identifier without its content: digits become 0, letters after the first dash become x."""
    head, dash, tail = text.partition("-")
    hidden = re.sub(r"[A-Za-z]", "x", re.sub(r"[0-9]", "0", tail))
    return re.sub(r"[0-9]", "0", head) + dash + hidden


def plain(value: Any, depth: int = 0) -> Any:
    """A ctypes structure, friendly object or list as JSON."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if depth > 4:
        return "..."
    if isinstance(value, ctypes.Union):
        return int(getattr(value, "ullVal", 0))
    if isinstance(value, ctypes.Structure):
        return {name: plain(getattr(value, name), depth + 1) for name, *_ in value._fields_}
    if isinstance(value, list | tuple | ctypes.Array):
        return [plain(one, depth + 1) for one in list(value)[:64]]
    if hasattr(value, "__dict__"):
        fields = {name: plain(one, depth + 1) for name, one in vars(value).items()}
        return fields | ({"pid": 0} if "pid" in fields else {})
    return type(value).__name__


def key(name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> str:
    """The name under which a call is filed: its name and its arguments without the handle."""
    told = [repr(plain(one)) for one in arguments] + [f"{name}={value}" for name, value in sorted(named.items())]
    return f"{name}({', '.join(told)})"


def call(nvml: Any, name: str, function: Callable[..., Any], *arguments: Any, **named: Any) -> dict[str, Any]:
    """One answer: code, type, value, and how many microseconds it took."""
    began = time.perf_counter_ns()
    try:
        value = function(*arguments, **named)
    except nvml.NVMLError as error:
        return {"code": int(error.value), "us": _since(began)}
    except Exception as error:
        return {"code": PYTHON_ERROR, "raised": type(error).__name__, "us": _since(began)}
    answer = {"code": 0, "type": type(value).__name__, "us": _since(began), "value": plain(value)}
    if name in IDENTIFYING:
        answer["value"] = masked(str(answer["value"]))
    return answer


def _since(began_ns: int) -> float:
    return round((time.perf_counter_ns() - began_ns) / 1000, 1)


def getters(nvml: Any) -> list[str]:
    """Every device getter of the bindings that needs nothing but a handle, or stands in ARGUMENTS."""
    found = []
    for name in sorted(dir(nvml)):
        if not name.startswith("nvmlDeviceGet") or "Handle" in name or name == "nvmlDeviceGetCount":
            continue
        if name in LEFT_OUT or "ConfCompute" in name:
            continue
        try:
            wanted = list(inspect.signature(getattr(nvml, name)).parameters.values())
        except (TypeError, ValueError):
            continue
        needed = [one for one in wanted if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]
        if len(needed) <= 1 or name in ARGUMENTS:
            found.append(name)
    return found


def record() -> dict[str, Any]:
    """Everything this machine's NVML says. Raises the bindings' NVMLError where there is none."""
    import pynvml as nvml

    began = time.perf_counter_ns()
    nvml.nvmlInit()
    init_us = _since(began)
    try:
        count = nvml.nvmlDeviceGetCount()
        system = {key(name, (), {}): call(nvml, name, getattr(nvml, name)) for name in SYSTEM}
        gpus = [_record_gpu(nvml, index) for index in range(count)]
    finally:
        nvml.nvmlShutdown()
    machine = f"{platform.system()} {platform.machine()}"
    return {"format": FORMAT, "machine": machine, "init_us": init_us, "system": system, "gpus": gpus}


def _record_gpu(nvml: Any, index: int) -> dict[str, Any]:
    handle, answers = nvml.nvmlDeviceGetHandleByIndex(index), {}
    for name in getters(nvml):
        function = getattr(nvml, name)
        for arguments in ARGUMENTS.get(name, [()]):
            for named in OPTIONAL.get(name, [{}]):
                answers[key(name, arguments, named)] = call(nvml, name, function, handle, *arguments, **named)
    support = "nvmlGpmQueryDeviceSupport"
    answers[key(support, (), {})] = call(nvml, support, nvml.nvmlGpmQueryDeviceSupport, handle)
    own = answers[UUID]
    if own["code"] == 0:  # masked, and still another than its neighbours': one UUID twice would be one card
        own["value"] = f"{own['value'][:-2]}{index:02d}"
    return answers


def main() -> None:
    """Record into the named file and say what was found."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tests.hardware.record OUT.json")
    import pynvml

    try:
        found = record()
    except pynvml.NVMLError as error:
        sys.exit(f"No NVIDIA driver answers here, so there is nothing to record: {error}")
    Path(sys.argv[1]).write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    answered = [sum(one["code"] == 0 for one in gpu.values()) for gpu in found["gpus"]]
    print(f"{len(found['gpus'])} GPUs; calls answered per GPU: {answered} of {[len(gpu) for gpu in found['gpus']]}")


if __name__ == "__main__":
    main()
