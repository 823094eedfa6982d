"""Finds nodes of the tree of shares inside a unit of work, by id or name, as far as the caller may see and manage them:
the installation, organisations, and projects, which are its leaves."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from windrow_master.identity.accounts import find_account
from windrow_master.identity.model import INSTALLATION_ROLES, AccountState, Principal, Role
from windrow_master.identity.people_lookup import manages_all, organisation_named, sees_all
from windrow_master.identity.spenders import projects_seen
from windrow_master.queue.quota import NodeLevel
from windrow_master.queue.shares import ROOT
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Forbidden, NotFound

ORGANISATION_PREFIX: Final = "organisation_"


@dataclass(frozen=True, slots=True)
class Place:
    """A node with its name. parent: the id of the node above it; empty: of the installation."""

    id: str
    level: NodeLevel
    name: str
    parent: str

    @property
    def words(self) -> str:
        """In a sentence: the project lab."""
        return f"the {self.level}" if self.level is NodeLevel.INSTALLATION else f"the {self.level} {self.name}"

    @property
    def path(self) -> str:
        """Sorts nodes behind the one above them."""
        return f"{self.parent.removeprefix(ROOT)}/{self.id}".removeprefix("/") if self.parent else "/"


INSTALLATION: Final = Place(ROOT, NodeLevel.INSTALLATION, ROOT, "")


def named(uow: UnitOfWork, wanted: str) -> Place | None:
    """A node by its id, by `org:NAME`, `organisation:NAME` or `project:NAME`; any other name is a project's. None:
    there is none, or the project was deleted."""
    if wanted == ROOT:
        return INSTALLATION
    kind, _, name = wanted.rpartition(":")
    if kind in (NodeLevel.ORGANISATION, "org") or wanted.startswith(ORGANISATION_PREFIX):
        with suppress(NotFound):
            organisation = organisation_named(uow, name)
            return Place(organisation.id, NodeLevel.ORGANISATION, organisation.name, ROOT)
        return None
    account = find_account(uow, name) if kind in ("", NodeLevel.PROJECT) else None
    if account is None or account.state is AccountState.DELETED:
        return None
    return Place(account.id, NodeLevel.PROJECT, account.name, account.organisation_id or ROOT)


def path_of(uow: UnitOfWork, account_id: str) -> list[Place]:
    """From the installation down to a project; the installation alone for one that is deleted."""
    project = named(uow, account_id)
    above = None if project is None or project.parent == ROOT else named(uow, project.parent)
    return [INSTALLATION, *(one for one in (above, project) if one is not None)]


def find(uow: UnitOfWork, principal: Principal, wanted: str) -> Place:
    """As `named`. Raises NotFound, also for one that the caller does not see."""
    found = named(uow, wanted)
    if found is None or not sees(principal, found):
        raise NotFound("There is no such project or organisation, or it is not yours.", subject=wanted[:64])
    return found


def sees(principal: Principal, place: Place) -> bool:
    """True of one's own project and organisation, of the organisation's others for who sees all of it, and of all nodes
    for operators and auditors."""
    if principal.roles & INSTALLATION_ROLES or place.id in (principal.account_id, principal.organisation_id):
        return True
    return place.level is NodeLevel.PROJECT and place.parent == principal.organisation_id and sees_all(principal)


def seen(uow: UnitOfWork, principal: Principal, known: Iterable[str]) -> list[Place]:
    """All that the caller sees, by path: for operators and auditors these nodes, and those above them."""
    if principal.roles & INSTALLATION_ROLES:
        found = {one.id: one for node_id in known for one in path_of(uow, node_id)}
    else:
        own = [*projects_seen(uow, principal), *filter(None, [principal.organisation_id])]
        found = {one.id: one for node_id in own if (one := named(uow, node_id)) is not None}
    return sorted(found.values(), key=lambda one: one.path)


def check_may_set(principal: Principal, place: Place) -> None:
    """Raises Forbidden unless the caller decides on this node: operators on all, owners and admins of an organisation
    on its projects."""
    is_project = place.level is NodeLevel.PROJECT
    is_theirs = is_project and place.parent == principal.organisation_id and manages_all(principal)
    if not is_theirs and Role.OPERATOR not in principal.roles:
        who = "Admins of its organisation set, and operators," if is_project else "Operators set"
        raise Forbidden(f"{who} the shares and quotas of {place.words}.", subject=place.id)
