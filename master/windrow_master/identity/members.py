"""Says which Accesses belong to the market now, and notes that what is known of members comes from a backup."""

from windrow_master.identity.model import MemberRole
from windrow_master.identity.people_repository import OrganisationRepository, UserRepository
from windrow_master.identity.repository import MemberRepository, SessionRepository, SignInLinkRepository
from windrow_master.store.unit import UnitOfWork


def accesses_in_force(uow: UnitOfWork) -> frozenset[str]:
    """The ids of Accesses in good standing whose certificate still holds: they are there, or may come back."""
    members = uow[MemberRepository].list(MemberRole.ACCESS)
    return frozenset(one.id for one in members if one.is_in_force(uow.now_wall_ns))


def note_restored(uow: UnitOfWork, now_ns: int) -> None:
    """Note that what is known comes from a backup. It may lack renewals of members; and what opened doors then must not
    open them again: sessions, invitations and links that were used, ended or withdrawn since. API tokens stay."""
    uow[SessionRepository].end_all(now_ns)
    uow[OrganisationRepository].withdraw_open()
    uow[UserRepository].forget_all_password_links()
    uow[SignInLinkRepository].forget_all()
    uow[MemberRepository].restored(now_ns)
