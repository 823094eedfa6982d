"""Asks hosts to cut idle cards into the slices that their owners allow, inside a unit of work."""

from typing import Final

from windrow_master.fleet.commands import CommandQueue
from windrow_master.fleet.hosts import HostRegistry
from windrow_master.fleet.repository import SlotRepository
from windrow_master.fleet.slices import cut_refusal
from windrow_master.store.model import Operation
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import NotFound
from windrow_proto.ids import AccountId, CommandId, HostId
from windrow_proto.model import Command, CommandKind, PartitionSpec
from windrow_proto.units import MINUTE

OPERATION: Final = "gpu.partition"
CUT_LIFE_NS: Final = MINUTE
"""Not-after of the command: the host was idle a moment ago, and nobody knows for how long."""


class GpuPartitioner:
    """The cards that are asked to be cut."""

    def __init__(self, hosts: HostRegistry, commands: CommandQueue) -> None:
        self._hosts, self._commands = hosts, commands

    def ask(
        self, uow: UnitOfWork, host_id: HostId, gpu_uuid: str, is_whole: bool, account_id: AccountId, actor: str
    ) -> Operation:
        """Have a card cut into its owner's layout, or made whole again. Raises Conflict; the host may refuse, too."""
        host = self._hosts.load(uow, host_id)
        gpu = host.gpu(gpu_uuid)
        refused = cut_refusal(host, uow[SlotRepository].of_host(host_id), gpu)
        if refused is not None:
            raise refused
        if gpu is None:
            raise NotFound("There is no such GPU. List GPUs: windrow gpu ls", subject=gpu_uuid[:64])
        spec = PartitionSpec(gpu.uuid, () if is_whole else gpu.layout)
        command = Command(CommandId(""), CommandKind.PARTITION, partition=spec)
        not_after_ns = uow.now_wall_ns + CUT_LIFE_NS
        command_id = self._commands.issue(uow, host_id, command, not_after_ns, subject=gpu.uuid, actor=actor)
        words = "make it whole again" if is_whole else f"cut it into {', '.join(gpu.layout)}"
        uow.audit(actor, OPERATION, gpu.uuid, words, {"host": host_id, "command": command_id})
        return uow.operation(OPERATION, command_id, account_id, actor)
