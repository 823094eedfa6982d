"""Says which Accesses belong to the market now, and notes that what is known of members comes from a backup."""

from windrow_master.identity.model import MemberRole
from windrow_master.identity.repository import MemberRepository
from windrow_master.store.unit import UnitOfWork


def accesses_in_force(uow: UnitOfWork) -> frozenset[str]:
    """The ids of Accesses in good standing whose certificate still holds: they are there, or may come back."""
    members = uow[MemberRepository].list(MemberRole.ACCESS)
    return frozenset(one.id for one in members if one.is_in_force(uow.now_wall_ns))


def note_restored(uow: UnitOfWork, now_ns: int) -> None:
    """Note that what is known of members comes from a backup, which may lack renewals."""
    uow[MemberRepository].restored(now_ns)
