"""The adapter of OpenCL: libOpenCL.so.1 by ctypes, as far as the challenge needs it. Blocking; for a child process.

Nothing is installed for it: the loader and a driver's part come with the card's driver (`/etc/OpenCL/vendors`). Every
failure is a ComputeFailed that says which call failed and with which number (CL/cl.h of the Khronos headers).
"""

import ctypes
import struct
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from windrow_proto.product_kernels import LOADER, LOADER_SOURCE

DEVICES_MAX: Final = 64
LOG_MAX: Final = 2_000
"""Characters of a compiler's complaint that are passed on."""

_PLATFORMS_NONE: Final = -1001
"""CL_PLATFORM_NOT_FOUND_KHR: the loader is there and no driver is."""
_DEVICE_NONE: Final = -1
_TYPE_CPU: Final = 1 << 1
_TYPE_ALL: Final = 0xFFFFFFFF
_DEVICE_TYPE: Final = 0x1000
_DEVICE_MEMORY: Final = 0x101F
_DEVICE_UNIFIED: Final = 0x1035
_DEVICE_LITTLE: Final = 0x1026
_DEVICE_NAME: Final = 0x102B
_DEVICE_EXTENSIONS: Final = 0x1030
_DEVICE_UUID: Final = 0x106A
"""CL_DEVICE_UUID_KHR, with cl_khr_device_uuid."""
_DEVICE_PCI: Final = 0x410F
"""CL_DEVICE_PCI_BUS_INFO_KHR, with cl_khr_pci_bus_info: domain, bus, device and function, 32 bits each."""
_DEVICE_TOPOLOGY: Final = 0x4037
"""CL_DEVICE_TOPOLOGY_AMD, with cl_amd_device_attribute_query: 1, then 17 bytes of nothing, bus, device and function."""
_BUILD_LOG: Final = 0x1183
_READ_WRITE: Final = 1 << 0
_TRUE: Final = 1

Handle = ctypes.c_void_p
Scalar = ctypes.c_uint32 | ctypes.c_uint64


class ComputeFailed(Exception):
    """OpenCL is not there, has no such device, or a call failed."""


@dataclass(frozen=True, slots=True)
class Device:
    """One device. uuid: `GPU-...` as NVML writes it where the driver tells it, `CPU-n` for processors, else empty;
    is_unified: its memory is the host's; address: on the PCI bus as the kernel writes it, where the driver tells it."""

    handle: int
    name: str
    uuid: str
    memory_bytes: int
    is_processor: bool
    is_unified: bool = False
    address: str = ""

    @property
    def fill_bytes(self) -> int:
        """Bytes that can be filled; 0 for a card that would take them from the host. (A processor is such a card in
        tests.)"""
        return self.memory_bytes if self.is_processor or not self.is_unified else 0


class OpenCl:
    """The library, loaded. Raises ComputeFailed where there is none."""

    def __init__(self, library: str = LOADER) -> None:
        try:
            self._library: Any = ctypes.CDLL(library)
        except OSError as error:
            raise ComputeFailed(f"OpenCL is not here: {error} ({LOADER_SOURCE})") from error
        self.call("clGetPlatformIDs", 0, None, None, allowed=(0, -30, _PLATFORMS_NONE))  # is it OpenCL at all?

    def call(self, name: str, *arguments: object, allowed: Sequence[int] = (0,)) -> int:
        """Call what returns a status; raises ComputeFailed for any but the allowed ones."""
        status = int(self._function(name, ctypes.c_int32)(*arguments))
        if status not in allowed:
            raise ComputeFailed(f"{name} failed ({status}).")
        return status

    def make(self, name: str, *arguments: object) -> Handle:
        """Call what returns an object and a status by its last argument."""
        status = ctypes.c_int32(0)
        made = self._function(name, ctypes.c_void_p)(*arguments, ctypes.byref(status))
        if status.value or not made:
            raise ComputeFailed(f"{name} failed ({status.value}).")
        return Handle(made)

    def devices(self) -> list[Device]:
        """Every device of every driver, at most DEVICES_MAX; a driver or device that fails is left out."""
        found: list[Device] = []
        for platform in self._handles("clGetPlatformIDs", (), _PLATFORMS_NONE):
            for handle in self._devices_of(platform):
                with suppress(ComputeFailed):
                    found.append(self._device(handle, sum(one.is_processor for one in found)))
        return found[:DEVICES_MAX]

    def _devices_of(self, platform: int) -> list[int]:
        try:
            return self._handles("clGetDeviceIDs", (Handle(platform), ctypes.c_uint64(_TYPE_ALL)), _DEVICE_NONE)
        except ComputeFailed:
            return []

    def _function(self, name: str, result: type[Any]) -> Any:
        try:
            function = getattr(self._library, name)
        except AttributeError as error:
            raise ComputeFailed(f"This library has no {name}.") from error
        function.restype = result
        return function

    def _handles(self, name: str, before: tuple[object, ...], none: int) -> list[int]:
        count = ctypes.c_uint32(0)
        handles = (ctypes.c_void_p * DEVICES_MAX)()
        arguments = (*before, ctypes.c_uint32(DEVICES_MAX), handles, ctypes.byref(count))
        if self.call(name, *arguments, allowed=(0, none)) == none:
            return []
        return [handle for handle in handles[: count.value] if handle]

    def _device(self, handle: int, processors: int) -> Device:
        is_processor = bool(int.from_bytes(self._info(handle, _DEVICE_TYPE), "little") & _TYPE_CPU)
        if not int.from_bytes(self._info(handle, _DEVICE_LITTLE), "little"):
            raise ComputeFailed("A device that keeps its numbers big end first.")
        name = self._info(handle, _DEVICE_NAME).rstrip(b"\0").decode("ascii", "replace")
        extensions = self._info(handle, _DEVICE_EXTENSIONS).rstrip(b"\0").split()
        told = f"CPU-{processors}" if is_processor else ""
        if not is_processor and b"cl_khr_device_uuid" in extensions:
            told = f"GPU-{uuid.UUID(bytes=self._info(handle, _DEVICE_UUID))}"
        memory = int.from_bytes(self._info(handle, _DEVICE_MEMORY), "little")
        is_unified = bool(int.from_bytes(self._info(handle, _DEVICE_UNIFIED), "little"))
        return Device(handle, name, told, memory, is_processor, is_unified, self._address(handle, extensions))

    def _address(self, handle: int, extensions: list[bytes]) -> str:
        if b"cl_khr_pci_bus_info" in extensions:
            return pci_address(*struct.unpack("<4I", self._info(handle, _DEVICE_PCI)[:16]))
        if b"cl_amd_device_attribute_query" in extensions:
            kind, *place = struct.unpack("<I17x3B", self._info(handle, _DEVICE_TOPOLOGY)[:24])
            return pci_address(0, *place) if kind == 1 else ""
        return ""

    def _info(self, handle: int, what: int) -> bytes:
        size = ctypes.c_size_t(0)
        asked = (Handle(handle), ctypes.c_uint32(what))
        self.call("clGetDeviceInfo", *asked, ctypes.c_size_t(0), None, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self.call("clGetDeviceInfo", *asked, size, buffer, None)
        return buffer.raw


def pci_address(domain: int, bus: int, device: int, function: int) -> str:
    """As the kernel names a place on the bus."""
    return f"{domain:04x}:{bus:02x}:{device:02x}.{function:x}"


class Buffer:
    """Memory on a device, of the `Session` that made it."""

    __slots__ = ("handle", "size")

    def __init__(self, handle: Handle, size: int) -> None:
        self.handle = handle
        self.size = size


class Session:
    """One device with a queue and a compiled program; a context manager, since a device keeps what is not released."""

    def __init__(self, opencl: OpenCl, device: Device, source: str) -> None:
        self._cl = opencl
        self._device = Handle(device.handle)
        self._made: list[tuple[str, Handle]] = []
        try:
            devices = (ctypes.c_void_p * 1)(device.handle)
            self._context = self._keep(
                "clReleaseContext", opencl.make("clCreateContext", None, ctypes.c_uint32(1), devices, None, None)
            )
            self._queue = self._keep(
                "clReleaseCommandQueue",
                opencl.make("clCreateCommandQueue", self._context, self._device, ctypes.c_uint64(0)),
            )
            self._program = self._build(source)
        except ComputeFailed:
            self.close()
            raise

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of everything, the last first; safe to call twice."""
        while self._made:
            release, handle = self._made.pop()
            self._cl.call(release, handle, allowed=range(-2000, 1))

    def kernel(self, name: str) -> Handle:
        """One of the program's kernels."""
        made = self._cl.make("clCreateKernel", self._program, ctypes.c_char_p(name.encode()))
        return self._keep("clReleaseKernel", made)

    def buffer(self, size: int) -> Buffer:
        """Uninitialised memory of `size` bytes, at least one."""
        made = self._cl.make("clCreateBuffer", self._context, ctypes.c_uint64(_READ_WRITE), ctypes.c_size_t(size), None)
        return Buffer(self._keep("clReleaseMemObject", made), size)

    def write(self, buffer: Buffer, data: bytes) -> None:
        """Put bytes at the start of a buffer."""
        assert len(data) <= buffer.size, "more than the buffer holds"
        self._cl.call(
            "clEnqueueWriteBuffer", self._queue, buffer.handle, ctypes.c_uint32(_TRUE), ctypes.c_size_t(0),
            ctypes.c_size_t(len(data)), ctypes.c_char_p(data), ctypes.c_uint32(0), None, None,
        )  # fmt: skip

    def read(self, buffer: Buffer, size: int, at: int = 0) -> bytes:
        """`size` bytes from `at` on, after everything asked for before is done."""
        assert at + size <= buffer.size, "more than the buffer holds"
        out = ctypes.create_string_buffer(size)
        self._cl.call(
            "clEnqueueReadBuffer", self._queue, buffer.handle, ctypes.c_uint32(_TRUE), ctypes.c_size_t(at),
            ctypes.c_size_t(size), out, ctypes.c_uint32(0), None, None,
        )  # fmt: skip
        return out.raw

    def run(
        self, kernel: Handle, shape: Sequence[int], arguments: Sequence[Buffer | Scalar], group: Sequence[int] | None
    ) -> None:
        """Queue one kernel over `shape` work-items, in groups of `group` or of the driver's choice."""
        for place, argument in enumerate(arguments):
            value = argument.handle if isinstance(argument, Buffer) else argument
            size = ctypes.c_size_t(ctypes.sizeof(value))
            self._cl.call("clSetKernelArg", kernel, ctypes.c_uint32(place), size, ctypes.byref(value))
        sizes = ctypes.c_size_t * len(shape)
        self._cl.call(
            "clEnqueueNDRangeKernel", self._queue, kernel, ctypes.c_uint32(len(shape)), None, sizes(*shape),
            None if group is None else sizes(*group), ctypes.c_uint32(0), None, None,
        )  # fmt: skip

    def finish(self) -> None:
        """Wait for everything that was asked for."""
        self._cl.call("clFinish", self._queue)

    def _keep(self, release: str, handle: Handle) -> Handle:
        self._made.append((release, handle))
        return handle

    def _build(self, source: str) -> Handle:
        text = ctypes.c_char_p(source.encode())
        made = self._cl.make("clCreateProgramWithSource", self._context, ctypes.c_uint32(1), ctypes.byref(text), None)
        program = self._keep("clReleaseProgram", made)
        devices = (ctypes.c_void_p * 1)(self._device.value)
        options = ctypes.c_char_p(b"-cl-std=CL1.2")
        try:
            self._cl.call("clBuildProgram", program, ctypes.c_uint32(1), devices, options, None, None)
        except ComputeFailed as error:
            raise ComputeFailed(f"{error} {self._build_log(program)}") from error
        return program

    def _build_log(self, program: Handle) -> str:
        size = ctypes.c_size_t(0)
        asked = (program, self._device, ctypes.c_uint32(_BUILD_LOG))
        self._cl.call("clGetProgramBuildInfo", *asked, ctypes.c_size_t(0), None, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(max(1, size.value))
        self._cl.call("clGetProgramBuildInfo", *asked, size, buffer, None)
        return buffer.value.decode("ascii", "replace")[:LOG_MAX]
