"""Inventories of the load generator's hosts, their batches, and the bytes on this process' sockets."""

import os
import socket
import struct
import time
from collections.abc import Iterable

from bench._series import Plan, batch_samples, host_series, uuid
from windrow_proto.ids import GpuUuid
from windrow_proto.model import Benchmark, GpuFacts, Inventory
from windrow_proto.samples import encode_batch
from windrow_proto.units import GIB


def inventory(number: int, plan: Plan) -> Inventory:
    """The inventory of a host of the benchmark."""
    gpus = tuple(
        GpuFacts(
            uuid=GpuUuid(uuid(plan.seed, number, index)),
            index=index,
            vendor="nvidia",
            name="NVIDIA H100 80GB HBM3",
            pci_bus_id=f"00000000:{index + 1:02X}:00.0",
            pci_device_id=0x2330_10DE,
            memory_bytes=80 * GIB,
            compute_capability_major=9,
            compute_capability_minor=0,
        )
        for index in range(plan.gpus)
    )
    return Inventory(
        hostname=f"bench-{number:04d}",
        os="Debian GNU/Linux 12",
        kernel="6.1.0",
        cpu_model="bench",
        cpu_count=64,
        cpu_physical=32,
        memory_bytes=512 * GIB,
        disk_bytes=4096 * GIB,
        agent_version="bench",
        simulated=True,
        driver_version="580.95.05",
        cuda_version="13.0",
        gpus=gpus,
        runtimes=("simulated",),
        # Without any the Master would have every host measure itself while we do.
        benchmarks=(Benchmark("cpu.single", 1.0, "1", time.time_ns()),),
    )


def encode_host(plan: Plan, start_ms: int, host: int) -> list[bytes]:
    """All batches of one host."""
    series = host_series(plan, host, start_ms)
    return [encode_batch(batch_samples(plan, host, series, batch)) for batch in range(plan.batches)]


def socket_bytes(ports: Iterable[int]) -> tuple[int, int]:
    """Bytes that this process sent and received on its TCP connections to these ports, TLS included (TCP_INFO's
    tcpi_bytes_acked and tcpi_bytes_received, at 120 and 128 in Linux' struct)."""
    wanted = set(ports)
    up = down = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            number = os.dup(int(name))
        except OSError:
            continue
        try:
            duplicate = socket.socket(fileno=number)
        except OSError:
            os.close(number)
            continue
        with duplicate:
            try:
                peer = duplicate.getpeername()
                if not isinstance(peer, tuple) or peer[1] not in wanted:
                    continue
                info = duplicate.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
                acked, received = struct.unpack_from("<QQ", info, 120)
            except (OSError, struct.error):
                continue
            up, down = up + acked, down + received
    return up, down
