"""Keeps the verdicts of challenges, and says what is known of a host's cards by them, inside a unit of work."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from windrow_master.fleet import verdicts
from windrow_master.fleet.conditions import found_by_master
from windrow_master.fleet.model import Host, Slot, Verification, VerifyOutcome
from windrow_master.fleet.repository import HostRepository, SlotRepository
from windrow_master.fleet.states import VerifyState
from windrow_master.fleet.verification_repository import VerificationRepository
from windrow_master.store.unit import UnitOfWork
from windrow_proto.conditions import ConditionCode
from windrow_proto.ids import GpuUuid, HostId


@dataclass(frozen=True, slots=True)
class Challenged:
    """A host and the challenges of its cards. latest: the newest of each card, of whatever outcome; verdicts: the
    newest of each that passed or failed."""

    host: Host
    slots: Sequence[Slot]
    latest: Mapping[GpuUuid, Verification]
    verdicts: Mapping[GpuUuid, Verification]

    @property
    def failed(self) -> frozenset[GpuUuid]:
        """The cards that failed the last challenge that told."""
        return frozenset(uuid for uuid, one in self.verdicts.items() if one.outcome is VerifyOutcome.FAILED)

    @property
    def standing(self) -> dict[str, str]:
        """The conditions that challenges leave on the cards, words by code."""
        inventory = self.host.inventory
        return verdicts.standing(self.host, inventory, self.verdicts) if inventory is not None else {}


class ChallengeRegistry:
    """The verdicts' rows."""

    def of_host(self, uow: UnitOfWork, host_id: HostId) -> Challenged | None:
        """All that is known of a host's cards; None where there is no such host."""
        host, rows = uow[HostRepository].get(host_id), uow[VerificationRepository]
        if host is None:
            return None
        return Challenged(host, uow[SlotRepository].of_host(host_id), rows.latest(host_id), rows.verdicts(host_id))

    def record(self, uow: UnitOfWork, host_id: HostId, found: Iterable[Verification]) -> Challenged | None:
        """Keep what a challenge found, and return what is known of the host now; None where there is no such host."""
        if uow[HostRepository].get(host_id) is None:
            return None
        for one in found:
            uow[VerificationRepository].add(one)
        return self.of_host(uow, host_id)

    def latest(self, uow: UnitOfWork, host_id: HostId) -> Mapping[GpuUuid, Verification]:
        """The newest challenge of each card of a host, of whatever outcome."""
        return uow[VerificationRepository].latest(host_id)

    def past(self, uow: UnitOfWork, host_id: HostId) -> Sequence[Verification]:
        """The challenges of a host's cards, the newest first."""
        return uow[VerificationRepository].of_host(host_id)

    def under_way(self, uow: UnitOfWork) -> Sequence[HostId]:
        """The hosts that are being challenged, as far as is written."""
        return [host.host_id for host in uow[HostRepository].list_all() if _is_under_way(host)]


def _is_under_way(host: Host) -> bool:
    own = found_by_master(host.conditions)
    return host.verify_state is VerifyState.VERIFYING or any(c.startswith(ConditionCode.CHALLENGE_RUNNING) for c in own)
