"""Holds the program that measures the memory bandwidth of an NVIDIA card through its driver, where OpenCL is absent.

The driver's own library, libcuda.so.1, is in every container that NVIDIA's toolkit makes, and on every host with a
driver. The part that runs CUDA needs no compiler: memory is copied on the card, and the card's own events time it.
benchmark.py runs this text inside its child, whose names it uses. Pure.
"""

from typing import Final

LIBRARY: Final = "libcuda.so.1"

PROGRAM: Final = r"""
def by_cuda(name):
    cuda = c.CDLL(name)
    def ask(what, *given):
        code = getattr(cuda, what)(*given)
        if code: raise Failed("%s failed (%d)" % (what, code))
    def find():
        count, device = c.c_int(), c.c_int()
        ask("cuInit", c.c_uint(0))
        ask("cuDeviceGetCount", c.byref(count))
        for index in range(count.value):
            told, place = (c.c_ubyte * 16)(), c.create_string_buffer(32)
            ask("cuDeviceGet", c.byref(device), c.c_int(index))
            ask("cuDeviceGetUuid", told, device)
            ask("cuDeviceGetPCIBusId", place, c.c_int(32), device)
            names = "GPU-%s" % uuid.UUID(bytes=bytes(told)), place.value.decode("ascii", "replace").lower()
            if card in names or address and address in names: return device
        raise Failed("none of its devices is this card")
    device, context, called = find(), c.c_void_p(), c.create_string_buffer(100)
    ask("cuDeviceGetName", called, c.c_int(100), device)
    ask("cuDevicePrimaryCtxRetain", c.byref(context), device)
    ask("cuCtxSetCurrent", context)
    free, whole = c.c_size_t(), c.c_size_t()
    ask("cuMemGetInfo_v2", c.byref(free), c.byref(whole))
    size = min(int(os.environ["PROOF_COPY_BYTES"]), free.value // 4) // 4096 * 4096
    if not size: raise Failed("it has no free memory")
    source, target, begun, ended = c.c_uint64(), c.c_uint64(), c.c_void_p(), c.c_void_p()
    for place in source, target: ask("cuMemAlloc_v2", c.byref(place), c.c_size_t(size))
    for event in begun, ended: ask("cuEventCreate", c.byref(event), c.c_uint(0))
    pattern, = struct.unpack("<I", os.urandom(4))
    for place, word in (source, pattern), (target, ~pattern & 0xFFFFFFFF):
        ask("cuMemsetD32_v2", place, c.c_uint(word), c.c_size_t(size // 4))
    def took(times):
        ask("cuEventRecord", begun, None)
        for _ in range(times): ask("cuMemcpyDtoDAsync_v2", target, source, c.c_size_t(size), None)
        ask("cuEventRecord", ended, None)
        ask("cuEventSynchronize", ended)
        span = c.c_float()
        ask("cuEventElapsedTime", c.byref(span), begun, ended)
        return max(1e-9, span.value / 1000)
    times = 1
    while took(times) < span / 3 and times < 4096: times *= 2
    rate = round(2 * size * times / min(took(times) for _ in range(3)))
    word = c.c_uint32()
    for step in range(16):
        at = (size // 4 - 1) * step // 15 * 4
        ask("cuMemcpyDtoH_v2", c.byref(word), c.c_uint64(target.value + at), c.c_size_t(4))
        if word.value != pattern: return say(wrong="what it copied is not what was there")
    say(device=called.value.decode("ascii", "replace"), memory=rate, why="; ".join(tried))
"""
