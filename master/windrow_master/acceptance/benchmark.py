"""Measures the memory bandwidth and the matrix rate of each GPU that a test rental was given. Pure.

One child per card, all at once, inside the rental: a driver that hangs or crashes costs one card's figures. It needs
python3 and a driver's OpenCL, by the loader where there is one, else by the part that NVIDIA's container toolkit passes
in (cl_khr_icd: a platform leads to a table of functions in the order of the headers). A card is known by its UUID or
its place on the bus, as the agent's challenge knows it; what is not that card is not measured in its name.

memory   bytes read and written per second by a copy between two buffers that no cache holds; of an NVIDIA card, where
         OpenCL is absent, by the driver's own copy (cuda_copy.py)
matrix   multiplications and additions of 32-bit integers per second in the challenge's own product, grown until one
         takes long enough; one entry of it is checked, so that a kernel that never ran is no fast one
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from windrow_master.acceptance import cuda_copy
from windrow_proto.metrics import BENCHMARK_UNIT, GPU_MATRIX, GPU_MEMORY, MATRIX_UNIT
from windrow_proto.model import Benchmark, GpuFacts
from windrow_proto.product_kernels import LOADER, LOADER_SOURCE, NVIDIA_SOURCE, PRODUCT

SPAN_MS: Final = 300
"""For one figure: clocks have risen long before, and eight cards are done in seconds."""
COPY_BYTES: Final = 1 << 29
"""Of each of two buffers, at most: twice the largest cache that a card of the table has."""
SIZE_MAX: Final = 8_192
"""Rows of the largest product: 1.1e12 operations, and 768 MiB for its three matrices."""
WAIT_S: Final = 60
"""For all cards: compiling takes seconds, with a cold cache for many cards more."""
LIBRARIES: Final = {LOADER: LOADER_SOURCE, "libnvidia-opencl.so.1": NVIDIA_SOURCE}
"""The loader, then driver libraries that are used where there is none or where it knows no driver; where each comes
from."""
RATE_MAX: Final = 10**18
WORDS_MAX: Final = 300
"""Characters of a reason that are believed: enough for each library that is not there, with its package."""

COPY: Final = """
__kernel void copy(__global const uint4 *from, __global uint4 *to)
{
    to[get_global_id(0)] = from[get_global_id(0)];
}
"""

PROGRAM: Final = r"""
import ctypes as c, json, os, struct, time, uuid
card, address = json.loads(os.environ["PROOF_CARD"])
span, most = int(os.environ["PROOF_SPAN_MS"]) / 1000, int(os.environ["PROOF_SIZE_MAX"])
def say(**found): print("windrow-proof " + json.dumps(dict(found, benchmark=card)) + "\n", end="", flush=True)
class Failed(Exception): pass
ORDER = dict(clGetDeviceIDs=2, clGetDeviceInfo=3, clCreateContext=4, clCreateCommandQueue=9, clCreateBuffer=14,
    clCreateProgramWithSource=26, clBuildProgram=30, clCreateKernel=34, clSetKernelArg=38, clFinish=47,
    clEnqueueReadBuffer=48, clEnqueueWriteBuffer=49, clEnqueueNDRangeKernel=59)
class Cl:
    def __init__(self, name):
        self.library, self.table = c.CDLL(name), None
        count, found = c.c_uint32(0), (c.c_void_p * 16)()
        if hasattr(self.library, "clGetPlatformIDs"): first = self.library.clGetPlatformIDs
        else:
            find = self.library.clGetExtensionFunctionAddress
            find.restype = c.c_void_p
            first = c.CFUNCTYPE(c.c_int32)(find(b"clIcdGetPlatformIDsKHR"))
            self.table = 0
        status = first(c.c_uint32(16), found, c.byref(count))
        if status: raise Failed("it knows no driver (%d)" % status)
        self.platforms = [one for one in found[:count.value] if one]
    def function(self, name, result):
        if self.table is None:
            found = getattr(self.library, name)
            found.restype = result
            return found
        return c.CFUNCTYPE(result)(c.c_void_p.from_address(self.table + 8 * ORDER[name]).value)
    def call(self, name, *given):
        status = self.function(name, c.c_int32)(*given)
        if status: raise Failed("%s failed (%d)" % (name, status))
    def make(self, name, *given):
        status = c.c_int32(0)
        made = self.function(name, c.c_void_p)(*(given + (c.byref(status),)))
        if status.value or not made: raise Failed("%s failed (%d)" % (name, status.value))
        return c.c_void_p(made)
    def about(self, device, what):
        size = c.c_size_t(0)
        self.call("clGetDeviceInfo", c.c_void_p(device), c.c_uint32(what), c.c_size_t(0), None, c.byref(size))
        room = c.create_string_buffer(size.value)
        self.call("clGetDeviceInfo", c.c_void_p(device), c.c_uint32(what), size, room, None)
        return room.raw
    def find(self):
        processors = 0
        for platform in self.platforms:
            if self.table is not None: self.table = c.c_void_p.from_address(platform).value
            count, found = c.c_uint32(0), (c.c_void_p * 64)()
            kinds = c.c_uint64(0xFFFFFFFF)
            given = (c.c_void_p(platform), kinds, c.c_uint32(64), found, c.byref(count))
            if self.function("clGetDeviceIDs", c.c_int32)(*given): continue
            for device in found[:count.value]:
                try: names = self.names(device, processors)
                except Failed: continue
                processors += self.is_processor(device)
                if card in names or address and address in names: return device
        raise Failed("none of its devices is this card")
    def is_processor(self, device): return self.about(device, 0x1000)[0] >> 1 & 1
    def names(self, device, processors):
        if self.is_processor(device): return ["CPU-%d" % processors]
        names, extensions = [], self.about(device, 0x1030).rstrip(b"\0").split()
        if b"cl_khr_device_uuid" in extensions: names.append("GPU-%s" % uuid.UUID(bytes=self.about(device, 0x106A)))
        place = None
        if b"cl_khr_pci_bus_info" in extensions: place = struct.unpack("<4I", self.about(device, 0x410F)[:16])
        elif b"cl_amd_device_attribute_query" in extensions:
            kind, bus, slot, function = struct.unpack("<I17x3B", self.about(device, 0x4037)[:24])
            if kind == 1: place = 0, bus, slot, function
        return names + (["%04x:%02x:%02x.%x" % place] if place else [])
def rates(cl, device):
    handle, one = c.c_void_p(device), c.c_uint32(1)
    context = cl.make("clCreateContext", None, one, (c.c_void_p * 1)(device), None, None)
    queue = cl.make("clCreateCommandQueue", context, handle, c.c_uint64(0))
    text = c.c_char_p(os.environ["PROOF_KERNELS"].encode())
    program = cl.make("clCreateProgramWithSource", context, one, c.byref(text), None)
    cl.call("clBuildProgram", program, one, (c.c_void_p * 1)(device), c.c_char_p(b"-cl-std=CL1.2"), None, None)
    names = b"generate", b"multiply", b"copy"
    generate, multiply, copy = (cl.make("clCreateKernel", program, c.c_char_p(name)) for name in names)
    def buffer(size): return cl.make("clCreateBuffer", context, c.c_uint64(1), c.c_size_t(size), None)
    def run(kernel, shape, given, group=None):
        for place, value in enumerate(given):
            cl.call("clSetKernelArg", kernel, c.c_uint32(place), c.c_size_t(c.sizeof(value)), c.byref(value))
        sizes = c.c_size_t * len(shape)
        group = sizes(*group) if group else None
        given = (c.c_uint32(len(shape)), None, sizes(*shape), group, c.c_uint32(0), None, None)
        cl.call("clEnqueueNDRangeKernel", queue, kernel, *given)
    def read(source, at, count):
        room = (c.c_uint32 * count)()
        given = (c.c_uint32(1), c.c_size_t(4 * at), c.c_size_t(4 * count), room, c.c_uint32(0), None, None)
        cl.call("clEnqueueReadBuffer", queue, source, *given)
        return list(room)
    def took(work, times=1):
        cl.call("clFinish", queue)
        began = time.perf_counter()
        for _ in range(times): work()
        cl.call("clFinish", queue)
        return max(1e-9, time.perf_counter() - began)
    def best(work):
        times, each = 1, took(work)
        while each * times < span / 3 and times < 4096:
            times *= 2
            each = took(work, times) / times
        return min(took(work, times) / times for _ in range(3))
    memory = struct.unpack("<Q", cl.about(device, 0x101F))[0]
    room = min(memory // 8, struct.unpack("<Q", cl.about(device, 0x1010))[0])
    size = min(int(os.environ["PROOF_COPY_BYTES"]), room) // 4096 * 4096
    given = buffer(size), buffer(size)
    name = cl.about(device, 0x102B).rstrip(b"\0").decode("ascii", "replace")[:100]
    say(device=name, memory=round(2 * size / best(lambda: run(copy, (size // 16,), given))))
    key, n = os.urandom(16), 512
    first, second = (c.c_uint64(number) for number in struct.unpack("<2Q", key))
    while True:
        a, b, out, lines = buffer(4 * n * n), buffer(4 * n * n), buffer(4 * n * n), buffer(4 * n)
        numbers = struct.pack("<%dI" % n, *range(n))
        given = (one, c.c_size_t(0), c.c_size_t(4 * n), c.c_char_p(numbers), c.c_uint32(0), None, None)
        cl.call("clEnqueueWriteBuffer", queue, lines, *given)
        for matrix, target in enumerate((a, b)):
            run(generate, (n // 8, n), (first, second, c.c_uint64(matrix), lines, target))
        work = lambda: run(multiply, (n // 4, n // 4), (c.c_uint32(n), a, b, out), (16, 16))
        if min(took(work), took(work)) > span / 6 or 2 * n > most or 16 * n * n > room: break
        n *= 2
    rate = round(2 * n ** 3 / best(work))
    row, column = (number % n for number in struct.unpack("<2I", os.urandom(8)))
    true = sum(x * y for x, y in zip(read(a, row * n, n), read(b, column * n, n))) & 0xFFFFFFFF
    if read(out, row * n + column, 1) != [true]: say(wrong="an entry of its product of %d rows is not true" % n)
    else: say(matrix=rate, size=n)
tried = []
for name, source in json.loads(os.environ["PROOF_LIBRARIES"]).items():
    try:
        cl = Cl(name)
        device = cl.find()
    except (OSError, AttributeError, Failed) as error:
        tried.append("%s: %s" % (name, error) if isinstance(error, Failed) else "there is no %s (%s)" % (name, source))
        continue
    try: rates(cl, device)
    except Failed as error: say(why=str(error))
    break
else:
    exec(os.environ["PROOF_CUDA_COPY"])
    try: by_cuda(os.environ["PROOF_CUDA"])
    except OSError: say(why="; ".join(tried))
    except (AttributeError, Failed) as error: say(why="; ".join(tried + ["%s: %s" % (os.environ["PROOF_CUDA"], error)]))
"""


def environment(gpus: Sequence[GpuFacts]) -> dict[str, str]:
    """Return the environment that the program beside it hands on to its children; nothing where no card is rented."""
    if not gpus:
        return {}
    return {
        "PROOF_BENCHMARK": PROGRAM,
        "PROOF_KERNELS": PRODUCT + COPY,
        "PROOF_CARDS": json.dumps([[gpu.uuid, address_of(gpu)] for gpu in gpus]),
        "PROOF_LIBRARIES": json.dumps(LIBRARIES),
        "PROOF_CUDA": cuda_copy.LIBRARY,
        "PROOF_CUDA_COPY": cuda_copy.PROGRAM,
        "PROOF_SPAN_MS": str(SPAN_MS),
        "PROOF_SIZE_MAX": str(SIZE_MAX),
        "PROOF_COPY_BYTES": str(COPY_BYTES),
        "PROOF_WAIT_S": str(WAIT_S),
    }


def address_of(gpu: GpuFacts) -> str:
    """A card's place on the bus as the kernel writes it; empty where its driver did not say."""
    domain, _, rest = gpu.pci_bus_id.partition(":")
    try:
        return f"{int(domain, 16):04x}:{rest.lower()}" if rest else ""
    except ValueError:
        return ""


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures that were reported for one card. memory: bytes per second; matrix: operations per second, of a
    product of `size` rows; None where there is no such figure; why: the reason; wrong: what it computed
    falsely, empty for nothing."""

    device: str = ""
    memory: int | None = None
    matrix: int | None = None
    size: int | None = None
    why: str = ""
    wrong: str = ""

    def benchmarks(self, gpu_uuid: str, now_ns: int) -> tuple[Benchmark, ...]:
        """As the fleet keeps them; nothing of a card that computes falsely."""
        rates = ((GPU_MEMORY, self.memory, BENCHMARK_UNIT), (GPU_MATRIX, self.matrix, MATRIX_UNIT))
        return tuple(
            Benchmark(name, float(value), unit, now_ns, gpu_uuid)
            for name, value, unit in rates
            if value is not None and not self.wrong
        )


def read(found: Collection[Mapping[str, Any]], text: int = WORDS_MAX) -> dict[str, Figures]:
    """Lines of the log about cards, by card, as what a stranger wrote: a later line adds to what an earlier one said.
    text: characters of words that are believed."""
    cards: dict[str, dict[str, Any]] = {}
    for line in found:
        name = line.get("benchmark")
        if isinstance(name, str) and name:
            cards.setdefault(name, {}).update(line)
    return {
        name: Figures(
            device=_words(said, "device", text),
            memory=_rate(said, "memory"),
            matrix=_rate(said, "matrix"),
            size=_rate(said, "size"),
            why=_words(said, "why", text),
            wrong=_words(said, "wrong", text),
        )
        for name, said in cards.items()
    }


def _rate(found: Mapping[str, Any], name: str) -> int | None:
    value = found.get(name)
    return value if type(value) is int and 0 < value < RATE_MAX else None


def _words(found: Mapping[str, Any], name: str, most: int) -> str:
    value = found.get(name)
    text = value if isinstance(value, str) else ""
    return "".join(letter for letter in text if letter.isprintable())[:most]
