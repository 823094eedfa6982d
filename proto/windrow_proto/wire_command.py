"""Commands, what became of them, and lease renewals as bytes and back. Pure."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, Literal

from windrow_proto import wire_fields as fields
from windrow_proto.errors import InvalidInput
from windrow_proto.ids import ClusterId, GpuUuid
from windrow_proto.model import (
    RELAYS_MAX,
    BandwidthSpec,
    Command,
    CommandKind,
    CommandPhase,
    CommandStatus,
    DeleteSpec,
    LeaseRenewal,
    PartitionSpec,
    StartSpec,
    WorkloadSpec,
)
from windrow_proto.sealed import SEALED_MAX, SEALED_VALUES_MAX, seal_values
from windrow_proto.v1 import host_pb2
from windrow_proto.volumes import Mount, check_mounts

_NEEDED: Final[dict[CommandKind, Literal["create", "delete", "bandwidth", "partition", "start"]]] = {
    CommandKind.CREATE: "create",
    CommandKind.DELETE: "delete",
    CommandKind.MEASURE_BANDWIDTH: "bandwidth",
    CommandKind.PARTITION: "partition",
    CommandKind.START: "start",
}
_SLICES_MAX: Final = 16
"""Parts of one card; the most that any is cut into is 7."""


def encode_command(command: Command) -> bytes:
    """A command as a body."""
    message = host_pb2.Command(command_id=command.command_id, kind=host_pb2.CommandKind.Name(command.kind))
    if command.create is not None:
        message.create.CopyFrom(_from_workload(command.create))
    if command.delete is not None:
        spec = command.delete
        message.delete.CopyFrom(
            host_pb2.DeleteSpec(
                workload_id=spec.workload_id,
                slots=fields.from_slots(spec.slots),
                grace_ns=spec.grace_ns,
                keeps_files=spec.keeps_files,
            )
        )
    if command.bandwidth is not None:
        limits = command.bandwidth
        message.bandwidth.CopyFrom(
            host_pb2.BandwidthSpec(
                duration_ns=limits.duration_ns,
                cap_bytes=limits.cap_bytes,
                nonce=limits.nonce,
                access_ids=limits.access_ids,
            )
        )
    if command.partition is not None:
        cut = command.partition
        message.partition.CopyFrom(host_pb2.PartitionSpec(gpu_uuid=cut.gpu_uuid, profiles=cut.profiles))
    if command.start is not None:
        begin = command.start
        message.start.CopyFrom(host_pb2.StartSpec(workload_id=begin.workload_id, slots=fields.from_slots(begin.slots)))
    return message.SerializeToString()


def decode_command(data: bytes) -> Command:
    """Read a command; raises InvalidInput, also when what its kind names is missing. An unknown kind becomes
    UNSPECIFIED, which the agent answers with REFUSED: silence would be repeated for ever."""
    message = fields.parse(host_pb2.Command, data)
    kind = fields.known(CommandKind, message.kind)
    needed = _NEEDED.get(kind)
    if needed is not None and not message.HasField(needed):
        raise InvalidInput(f"A {kind.name} command without its {needed}.", subject=message.command_id[:64])
    return Command(
        command_id=fields.command_id(message.command_id),
        kind=kind,
        create=_to_workload(message.create) if kind is CommandKind.CREATE else None,
        delete=_to_delete(message.delete) if kind is CommandKind.DELETE else None,
        bandwidth=_to_bandwidth_spec(message.bandwidth) if kind is CommandKind.MEASURE_BANDWIDTH else None,
        partition=_to_partition(message.partition) if kind is CommandKind.PARTITION else None,
        start=_to_start(message.start) if kind is CommandKind.START else None,
    )


def without_secrets(data: bytes) -> bytes:
    """An encoded command without the environment and the registry's login of what it creates, which it is done with."""
    message = fields.parse(host_pb2.Command, data)
    spec = message.create
    if not (spec.env or spec.sealed_env or spec.registry_login):
        return data
    for name in ("env", "sealed_env", "registry_login"):
        spec.ClearField(name)
    return message.SerializeToString()


def sealed_anew(data: bytes, public: str) -> bytes:
    """An encoded command whose environment was in clear, with it sealed to the host of this key."""
    command = decode_command(data)
    assert command.create is not None and not command.create.sealed_env, "sealed once"
    sealed_env = seal_values(public, command.create.env, command.create.workload_id)
    return encode_command(replace(command, create=replace(command.create, env={}, sealed_env=sealed_env)))


def _from_workload(spec: WorkloadSpec) -> host_pb2.WorkloadSpec:
    return host_pb2.WorkloadSpec(
        workload_id=spec.workload_id,
        cluster_id=spec.cluster_id,
        slots=fields.from_slots(spec.slots),
        runtime=spec.runtime,
        image=spec.image,
        argv=spec.argv,
        env=spec.env,
        cpu_milli=spec.cpu_milli,
        memory_bytes=spec.memory_bytes,
        ports=spec.ports,
        await_files=spec.await_files,
        lease_ns=spec.lease_ns,
        paid_ns=spec.paid_ns,
        log_cap_bytes=spec.log_cap_bytes,
        files_cap_bytes=spec.files_cap_bytes,
        await_members=spec.await_members,
        address=spec.address,
        listens=spec.listens,
        peers=spec.peers,
        registry_login=spec.registry_login,
        volumes=[host_pb2.VolumeMount(name=v.name, path=v.path, read_only=v.read_only) for v in spec.volumes],
        may_use_local_image=spec.may_use_local_image,
        sealed_env=spec.sealed_env,
        entrypoint=spec.entrypoint,
        starts_in_workspace=spec.starts_in_workspace,
    )


def _to_workload(message: host_pb2.WorkloadSpec) -> WorkloadSpec:
    return WorkloadSpec(
        workload_id=fields.workload_id(message.workload_id),
        cluster_id=ClusterId(fields.text(message.cluster_id)),
        slots=fields.to_slots(message.slots),
        runtime=fields.text(message.runtime),
        image=fields.text(message.image, fields.IMAGE_MAX),
        argv=fields.arguments(message.argv),
        env=fields.environment(message.env),
        cpu_milli=message.cpu_milli,
        memory_bytes=message.memory_bytes,
        ports=tuple(fields.port(port) for port in fields.listed(message.ports)),
        await_files=message.await_files,
        lease_ns=fields.not_negative(message.lease_ns, "A lease"),
        paid_ns=fields.not_negative(message.paid_ns, "A paid time"),
        log_cap_bytes=message.log_cap_bytes,
        files_cap_bytes=message.files_cap_bytes,
        await_members=message.await_members,
        address=fields.text(message.address),
        listens=tuple(fields.port(port) for port in fields.listed(message.listens)),
        peers=tuple(fields.text(one) for one in fields.listed(message.peers)),
        registry_login=fields.blob(message.registry_login, SEALED_MAX),
        volumes=_to_mounts(message.volumes),
        may_use_local_image=message.may_use_local_image,
        sealed_env=fields.blob(message.sealed_env, SEALED_VALUES_MAX),
        entrypoint=fields.arguments((message.entrypoint,))[0] if message.HasField("entrypoint") else None,
        starts_in_workspace=message.starts_in_workspace,
    )


def _to_mounts(listed: Iterable[host_pb2.VolumeMount]) -> tuple[Mount, ...]:
    found = tuple(Mount(fields.text(one.name), fields.text(one.path), one.read_only) for one in listed)
    check_mounts(found)
    return found


def _to_delete(message: host_pb2.DeleteSpec) -> DeleteSpec:
    return DeleteSpec(
        workload_id=fields.workload_id(message.workload_id),
        slots=fields.to_slots(message.slots),
        grace_ns=fields.not_negative(message.grace_ns, "A grace"),
        keeps_files=message.keeps_files,
    )


def _to_start(message: host_pb2.StartSpec) -> StartSpec:
    return StartSpec(fields.workload_id(message.workload_id), fields.to_slots(message.slots))


def _to_bandwidth_spec(message: host_pb2.BandwidthSpec) -> BandwidthSpec:
    return BandwidthSpec(
        duration_ns=fields.not_negative(message.duration_ns, "A duration"),
        cap_bytes=message.cap_bytes,
        nonce=fields.text(message.nonce),
        access_ids=tuple(fields.text(one) for one in fields.listed(message.access_ids, RELAYS_MAX)),
    )


def _to_partition(message: host_pb2.PartitionSpec) -> PartitionSpec:
    profiles = tuple(fields.text(profile) for profile in fields.listed(message.profiles, _SLICES_MAX))
    return PartitionSpec(GpuUuid(fields.text(message.gpu_uuid)), profiles)


def encode_status(status: CommandStatus) -> bytes:
    """Encodes the state of a command, as a body."""
    return host_pb2.CommandStatus(
        command_id=status.command_id,
        phase=host_pb2.CommandPhase.Name(status.phase),
        step=status.step,
        progress_permille=status.progress_permille,
        error_code=status.error_code,
        error_detail=status.error_detail,
        result=status.result,
        at_wall_ns=status.at_wall_ns,
    ).SerializeToString()


def decode_status(data: bytes) -> CommandStatus:
    """Read what became of a command; raises InvalidInput, also for a phase we do not know."""
    message = fields.parse(host_pb2.CommandStatus, data)
    phase = fields.known(CommandPhase, message.phase)
    if phase is CommandPhase.UNSPECIFIED:
        raise InvalidInput(f"There is no phase {message.phase} of a command.", subject=message.command_id[:64])
    return CommandStatus(
        command_id=fields.command_id(message.command_id),
        phase=phase,
        step=fields.text(message.step),
        progress_permille=min(1000, message.progress_permille),
        error_code=fields.text(message.error_code),
        error_detail=fields.text(message.error_detail, fields.DETAIL_MAX),
        result=fields.text_map(message.result),
        at_wall_ns=message.at_wall_ns,
    )


def encode_leases(renewals: Iterable[LeaseRenewal]) -> bytes:
    """Renewals as a body."""
    return host_pb2.Leases(
        renewals=[
            host_pb2.LeaseRenewal(workload_id=r.workload_id, lease_ns=r.lease_ns, paid_ns=r.paid_ns, token=r.token)
            for r in renewals
        ]
    ).SerializeToString()


def decode_leases(data: bytes) -> tuple[LeaseRenewal, ...]:
    """Read renewals; raises InvalidInput."""
    message = fields.parse(host_pb2.Leases, data)
    return tuple(
        LeaseRenewal(
            workload_id=fields.workload_id(r.workload_id),
            lease_ns=fields.not_negative(r.lease_ns, "A lease"),
            paid_ns=fields.not_negative(r.paid_ns, "A paid time"),
            token=r.token,
        )
        for r in fields.listed(message.renewals)
    )
