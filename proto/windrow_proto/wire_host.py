"""Hosts, what runs on them and what is measured there as bytes and back: the bodies of the evidence lane. Pure."""

from windrow_proto import wire_fields as fields
from windrow_proto.bandwidth import BandwidthClaim, BandwidthResult
from windrow_proto.errors import InvalidInput
from windrow_proto.ids import ClusterId, GpuUuid, SlotId
from windrow_proto.model import (
    Benchmark,
    Event,
    GpuFacts,
    GpuSlice,
    Inventory,
    Isolation,
    Observed,
    ObservedWorkload,
    Receipt,
    WorkloadPhase,
)
from windrow_proto.v1 import host_pb2, link_pb2

_GPU_OPTIONAL_NUMBERS = (
    "memory_bytes",
    "compute_capability_major",
    "compute_capability_minor",
    "power_limit_mw",
    "power_limit_max_mw",
    "clock_sm_max_mhz",
    "clock_memory_max_mhz",
    "pcie_generation_max",
    "pcie_width_max",
    "core_count",
    "memory_bus_bits",
    "ecc_enabled",
    "mig_enabled",
    "numa_node",
    "device_minor",
)
_SIGNATURE_BYTES = 64
_GPUS_MAX = 64
"""GPUs in one host; the largest sold have 16."""
_FIELDS_MAX = 256
"""Further fields of one GPU or host; gpu_fields.py and host_fields.py name half as many."""
_SLICES_MAX = 16
"""Parts of one card; the most that any is cut into is 7."""
_WORDS_MAX = 1024
"""Characters of one of them: sixteen slices with their ids."""


# --- inventory ----------------------------------------------------------------------------------------------------


def encode_inventory(inventory: Inventory) -> bytes:
    """An inventory as a body."""
    return host_pb2.Inventory(
        hostname=inventory.hostname,
        os=inventory.os,
        kernel=inventory.kernel,
        cpu_model=inventory.cpu_model,
        cpu_count=inventory.cpu_count,
        cpu_physical=inventory.cpu_physical,
        memory_bytes=inventory.memory_bytes,
        disk_bytes=inventory.disk_bytes,
        machine_id_hash=inventory.machine_id_hash,
        agent_version=inventory.agent_version,
        simulated=inventory.simulated,
        driver_version=inventory.driver_version,
        cuda_version=inventory.cuda_version,
        gpus=[_from_gpu(gpu) for gpu in inventory.gpus],
        runtimes=inventory.runtimes,
        conditions=inventory.conditions,
        runtime_versions=inventory.runtime_versions,
        benchmarks=[
            host_pb2.Benchmark(
                name=b.name, value=b.value, unit=b.unit, measured_wall_ns=b.measured_wall_ns, subject=b.subject
            )
            for b in inventory.benchmarks
        ],
        owner_account=inventory.owner_account,
        addresses=inventory.addresses,
        figures={name: value for name, value in inventory.more.items() if isinstance(value, int)},
        words={name: value for name, value in inventory.more.items() if isinstance(value, str)},
    ).SerializeToString()


def decode_inventory(data: bytes) -> Inventory:
    """Read an inventory; raises InvalidInput."""
    message = fields.parse(host_pb2.Inventory, data)
    return Inventory(
        hostname=fields.text(message.hostname),
        os=fields.text(message.os),
        kernel=fields.text(message.kernel),
        cpu_model=fields.text(message.cpu_model),
        cpu_count=message.cpu_count,
        cpu_physical=message.cpu_physical,
        memory_bytes=message.memory_bytes,
        disk_bytes=message.disk_bytes,
        machine_id_hash=fields.text(message.machine_id_hash),
        agent_version=fields.text(message.agent_version),
        simulated=message.simulated,
        driver_version=fields.text(message.driver_version),
        cuda_version=fields.text(message.cuda_version),
        gpus=tuple(_to_gpu(gpu) for gpu in fields.listed(message.gpus, _GPUS_MAX)),
        runtimes=fields.texts(message.runtimes),
        conditions=fields.texts(message.conditions),
        runtime_versions=fields.text_map(message.runtime_versions),
        benchmarks=tuple(_to_benchmark(benchmark) for benchmark in fields.listed(message.benchmarks)),
        owner_account=fields.text(message.owner_account),
        addresses=tuple(fields.text(address) for address in fields.listed(message.addresses)),
        more=_to_more(message),
    )


def _from_gpu(gpu: GpuFacts) -> host_pb2.GpuFacts:
    message = host_pb2.GpuFacts(
        uuid=gpu.uuid,
        index=gpu.index,
        vendor=gpu.vendor,
        name=gpu.name,
        pci_bus_id=gpu.pci_bus_id,
        pci_device_id=gpu.pci_device_id,
        pci_subsystem_id=gpu.pci_subsystem_id,
        serial=gpu.serial,
        vbios=gpu.vbios,
        figures={name: value for name, value in gpu.more.items() if isinstance(value, int)},
        words={name: value for name, value in gpu.more.items() if isinstance(value, str)},
        slices=[
            host_pb2.GpuSlice(
                uuid=one.uuid,
                profile=one.profile,
                isolation=host_pb2.Isolation.Name(one.isolation),
                memory_bytes=one.memory_bytes,
                compute_slices=one.compute_slices,
            )
            for one in gpu.slices
        ],
        layout=gpu.layout,
    )
    for name in _GPU_OPTIONAL_NUMBERS:
        value = getattr(gpu, name)
        if value is not None:
            setattr(message, name, value)
    return message


def _to_gpu(message: host_pb2.GpuFacts) -> GpuFacts:
    numbers = {name: getattr(message, name) if message.HasField(name) else None for name in _GPU_OPTIONAL_NUMBERS}
    return GpuFacts(
        uuid=GpuUuid(fields.text(message.uuid)),
        index=message.index,
        vendor=fields.text(message.vendor),
        name=fields.text(message.name),
        pci_bus_id=fields.text(message.pci_bus_id),
        pci_device_id=message.pci_device_id,
        pci_subsystem_id=message.pci_subsystem_id,
        serial=fields.text(message.serial) if message.HasField("serial") else None,
        vbios=fields.text(message.vbios) if message.HasField("vbios") else None,
        **numbers,
        more=_to_more(message),
        slices=tuple(_to_slice(one) for one in fields.listed(message.slices, _SLICES_MAX)),
        layout=tuple(fields.text(profile) for profile in fields.listed(message.layout, _SLICES_MAX)),
    )


def _to_slice(message: host_pb2.GpuSlice) -> GpuSlice:
    return GpuSlice(
        uuid=GpuUuid(fields.text(message.uuid)),
        profile=fields.text(message.profile),
        isolation=fields.known(Isolation, message.isolation),
        memory_bytes=message.memory_bytes,
        compute_slices=message.compute_slices,
    )


def _to_more(message: host_pb2.GpuFacts | host_pb2.Inventory) -> dict[str, int | str]:
    count = len(message.figures) + len(message.words)
    if count > _FIELDS_MAX:
        raise InvalidInput(f"A host or GPU with {count} further fields where at most {_FIELDS_MAX} are allowed.")
    figures = {fields.text(name): message.figures[name] for name in message.figures}
    return {**figures, **{fields.text(name): fields.text(message.words[name], _WORDS_MAX) for name in message.words}}


def _to_benchmark(message: host_pb2.Benchmark) -> Benchmark:
    if message.value != message.value or abs(message.value) == float("inf"):
        raise InvalidInput("A benchmark's value is not a number.")
    return Benchmark(
        name=fields.text(message.name),
        value=message.value,
        unit=fields.text(message.unit),
        measured_wall_ns=message.measured_wall_ns,
        subject=fields.text(message.subject),
    )


# --- workloads ----------------------------------------------------------------------------------------------------


def encode_observed(observed: Observed) -> bytes:
    """All workloads of a host, as a body."""
    workloads = [
        host_pb2.ObservedWorkload(
            workload_id=w.workload_id,
            phase=host_pb2.WorkloadPhase.Name(w.phase),
            slots=fields.from_slots(w.slots),
            exit_code=w.exit_code,
            running_ns=w.running_ns,
            runtime=w.runtime,
            ports=w.ports,
            detail=w.detail,
            faults={str(slot): why for slot, why in w.faults.items()},
        )
        for w in observed.workloads
    ]
    return host_pb2.Observed(
        workloads=workloads, digest=observed.digest, at_wall_ns=observed.at_wall_ns
    ).SerializeToString()


def decode_observed(data: bytes) -> Observed:
    """Read all workloads of a host; raises InvalidInput. An unknown phase becomes UNSPECIFIED."""
    message = fields.parse(host_pb2.Observed, data)
    return Observed(
        workloads=tuple(_to_observed_workload(w) for w in fields.listed(message.workloads)),
        digest=fields.digest(message.digest, "A digest"),
        at_wall_ns=message.at_wall_ns,
    )


def _to_observed_workload(message: host_pb2.ObservedWorkload) -> ObservedWorkload:
    return ObservedWorkload(
        workload_id=fields.workload_id(message.workload_id),
        phase=fields.known(WorkloadPhase, message.phase),
        slots=fields.to_slots(message.slots),
        exit_code=message.exit_code if message.HasField("exit_code") else None,
        running_ns=fields.not_negative(message.running_ns, "A running time"),
        runtime=fields.text(message.runtime),
        ports={fields.text(inside): fields.port(outside) for inside, outside in message.ports.items()},
        detail=fields.text(message.detail, fields.DETAIL_MAX),
        faults={SlotId(slot): why for slot, why in fields.text_map(message.faults).items()},
    )


def encode_receipt(receipt: Receipt) -> bytes:
    """A receipt as a body."""
    return host_pb2.Receipt(
        workload_id=receipt.workload_id,
        cluster_id=receipt.cluster_id,
        slots=fields.from_slots(receipt.slots),
        number=receipt.number,
        running_ns=receipt.running_ns,
        started_wall_ns=receipt.started_wall_ns,
        at_wall_ns=receipt.at_wall_ns,
        final=receipt.final,
        exit_code=receipt.exit_code,
        end_reason=receipt.end_reason,
    ).SerializeToString()


def decode_receipt(data: bytes) -> Receipt:
    """Read a receipt; raises InvalidInput, also for a negative running time or number 0."""
    message = fields.parse(host_pb2.Receipt, data)
    if message.number < 1:
        raise InvalidInput("Receipts count from 1.", subject=message.workload_id[:64])
    return Receipt(
        workload_id=fields.workload_id(message.workload_id),
        cluster_id=ClusterId(fields.text(message.cluster_id)),
        slots=fields.to_slots(message.slots),
        number=message.number,
        running_ns=fields.not_negative(message.running_ns, "A running time"),
        started_wall_ns=message.started_wall_ns,
        at_wall_ns=message.at_wall_ns,
        final=message.final,
        exit_code=message.exit_code if message.HasField("exit_code") else None,
        end_reason=fields.text(message.end_reason),
    )


# --- events and bandwidth -----------------------------------------------------------------------------------------


def encode_event(event: Event) -> bytes:
    """An event as a body."""
    return link_pb2.Event(
        code=event.code, at_wall_ns=event.at_wall_ns, subject=event.subject, detail=event.detail, fields=event.fields
    ).SerializeToString()


def decode_event(data: bytes) -> Event:
    """Read an event; raises InvalidInput."""
    message = fields.parse(link_pb2.Event, data)
    return Event(
        code=fields.text(message.code),
        at_wall_ns=message.at_wall_ns,
        subject=fields.text(message.subject),
        detail=fields.text(message.detail, fields.DETAIL_MAX),
        fields=fields.text_map(message.fields),
    )


def encode_bandwidth(result: BandwidthResult) -> bytes:
    """A bandwidth result as a body."""
    return host_pb2.BandwidthResult(
        nonce=result.nonce,
        access_id=result.access_id,
        region=result.region,
        up_bits_per_s=result.up_bits_per_s,
        down_bits_per_s=result.down_bits_per_s,
        up_bytes=result.up_bytes,
        down_bytes=result.down_bytes,
        duration_ns=result.duration_ns,
        at_wall_ns=result.at_wall_ns,
        access_signed=result.access_signed,
        access_signature=result.access_signature,
        rtt_ns=result.rtt_ns,
    ).SerializeToString()


def decode_bandwidth(data: bytes) -> BandwidthResult:
    """Read a bandwidth result; raises InvalidInput. The relay's claim in it is not checked here."""
    message = fields.parse(host_pb2.BandwidthResult, data)
    if len(message.access_signed) > fields.DETAIL_MAX or len(message.access_signature) not in (0, _SIGNATURE_BYTES):
        raise InvalidInput("The relay's claim or its signature has the wrong size.")
    return BandwidthResult(
        nonce=fields.text(message.nonce),
        access_id=fields.text(message.access_id),
        region=fields.text(message.region),
        up_bits_per_s=fields.not_negative(message.up_bits_per_s, "A bandwidth"),
        down_bits_per_s=fields.not_negative(message.down_bits_per_s, "A bandwidth"),
        up_bytes=message.up_bytes,
        down_bytes=message.down_bytes,
        duration_ns=fields.not_negative(message.duration_ns, "A duration"),
        at_wall_ns=message.at_wall_ns,
        access_signed=message.access_signed,
        access_signature=message.access_signature,
        rtt_ns=max(-1, message.rtt_ns),
    )


def encode_claim(claim: BandwidthClaim) -> bytes:
    """Encodes the claim about a measurement that a relay signs (domain CLAIM)."""
    return host_pb2.BandwidthClaim(
        nonce=claim.nonce,
        access_id=claim.access_id,
        host_id=claim.host_id,
        up_bits_per_s=claim.up_bits_per_s,
        down_bits_per_s=claim.down_bits_per_s,
        up_bytes=claim.up_bytes,
        down_bytes=claim.down_bytes,
        duration_ns=claim.duration_ns,
        at_wall_ns=claim.at_wall_ns,
    ).SerializeToString()


def decode_claim(data: bytes) -> BandwidthClaim:
    """Read a relay's claim; raises InvalidInput."""
    message = fields.parse(host_pb2.BandwidthClaim, data)
    return BandwidthClaim(
        nonce=fields.text(message.nonce),
        access_id=fields.text(message.access_id),
        host_id=fields.host_id(message.host_id),
        up_bits_per_s=fields.not_negative(message.up_bits_per_s, "A bandwidth"),
        down_bits_per_s=fields.not_negative(message.down_bits_per_s, "A bandwidth"),
        up_bytes=message.up_bytes,
        down_bytes=message.down_bytes,
        duration_ns=fields.not_negative(message.duration_ns, "A duration"),
        at_wall_ns=message.at_wall_ns,
    )
