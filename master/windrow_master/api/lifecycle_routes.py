"""Routes of the end of users and projects: leaving, deletion, restoring, transfers; and of users, for operators."""

from typing import Annotated, Any

from fastapi import Request, Response
from pydantic import Field

from windrow_master.api import answers
from windrow_master.api.account_routes import PersonOut
from windrow_master.api.answers import Out, Read, Time
from windrow_master.api.auth import Reach, check_unlimited
from windrow_master.api.bodies import Body
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.paging import Cursor, Limit, page, page_of, read_cursor
from windrow_master.api.people_routes import Given, Name, ProjectName, ProjectOut
from windrow_master.api.route import Routes
from windrow_master.identity.decide import Permission
from windrow_master.identity.model import Role
from windrow_master.identity.projects import KEPT_NS

route = Routes("people")

MEMBERS_PAGE = "members"
Reason = Annotated[str, Field(min_length=1, max_length=400, description="Kept in the audit log")]
OrganisationName = Annotated[str, Field(min_length=1, max_length=128, description="Id or name")]


class OwnEndBody(Body):
    """The caller's own name or id, as a confirmation, and the password if the user has one."""

    name: Name
    password: Given | None = None


class ReasonBody(Body):
    """A reason."""

    reason: Reason


class OrganisationBody(ReasonBody):
    """The organisation that gets an owner or a project, and the reason. Its members read the reason."""

    organisation: OrganisationName


class OfferBody(Body):
    """The organisation that gets the offer of a project."""

    organisation: OrganisationName


class SettleBody(ReasonBody):
    """to: the project that gets the money; null: write it off."""

    to: ProjectName | None = None


class MarketUserOrganisationOut(Out):
    """An organisation of a user."""

    id: Annotated[str, Read(lambda one: one[0].id)]
    name: Annotated[str, Read(lambda one: one[0].name)]
    role: Annotated[Role | None, Read(lambda one: one[1])]


class MarketUserOut(Out):
    """A user of the installation."""

    id: Annotated[str, Read("user.id")]
    name: Annotated[str, Read("user.name")]
    address: Annotated[str | None, Read("user.address")]
    roles: Annotated[list[Role], Read(lambda view: sorted(view.user.roles)), Field(description="Of the installation")]
    is_disabled: Annotated[bool, Read(lambda view: view.user.disabled_at_ns is not None)]
    organisations: list[MarketUserOrganisationOut]
    created_at: Annotated[Time, Read("user.created_at_ns")]


class DeletedProjectOut(Out):
    """A deleted project. expires_at: until then it can be restored."""

    id: str
    name: str
    deleted_at: Annotated[Time, Read("deleted_at_ns")]
    expires_at: Annotated[Time, Read(lambda account: account.deleted_at_ns + KEPT_NS)]


class TransferOfferOut(Out):
    """An offer to transfer a project to another organisation."""

    project: Annotated[str, Read("project.id")]
    name: Annotated[str, Read("project.name")]
    source: Annotated[str, Read("source.name"), Field(description="The organisation that has it")]
    target: Annotated[str, Read("target.name"), Field(description="The organisation that may accept it")]
    is_mine: Annotated[bool, Field(description="True if the caller's organisation offers it")]
    expires_at: Annotated[Time, Read("transfer.expires_at_ns")]


# --- users -----------------------------------------------------------------------------------------------------------


@route.get("/users", may=Permission.ACCOUNTS_READ, answer=answers.Page[MarketUserOut])
async def users(services: Serving, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """The users of this installation, with their organisations."""
    found = await services.identity.people.users(read_cursor(cursor), limit + 1)
    return page(found, limit, _user, lambda view: view.user.id)


@route.post(
    "/users/{user_id}/delete", may=Permission.ACCOUNTS, reach=Reach.OPERATED, changes_rights=True, status_code=204
)
async def delete_user(services: Serving, principal: Asking, user_id: str, body: ReasonBody) -> Response:
    """Delete a user with all personal data. Tokens and sessions end at once. The id stays in ledger and audit log.
    409: the last owner of an organisation that is still in use."""
    await services.lifecycle.delete_user(principal, user_id, body.reason)
    return Response(status_code=204)


@route.post(
    "/users/{user_id}/make-owner", may=Permission.ACCOUNTS, reach=Reach.OPERATED, changes_rights=True, status_code=204
)
async def make_owner(
    request: Request, services: Serving, principal: Asking, user_id: str, body: OrganisationBody
) -> Response:
    """Make a member an owner of an organisation that has lost its owners. All members get a mail."""
    base = services.https_url or str(request.base_url).rstrip("/")
    link = f"{base}/{MEMBERS_PAGE}"
    await services.identity.people.make_owner(principal, user_id, body.organisation, body.reason, link)
    return Response(status_code=204)


@route.post("/user/delete", may=Permission.SIGNED_IN, status_code=204)
async def delete_own_user(services: Serving, principal: Asking, body: OwnEndBody) -> Response:
    """Delete the caller's user with all personal data."""
    await check_unlimited(services, principal)
    password = None if body.password is None else body.password.get_secret_value()
    await services.lifecycle.delete_self(principal, body.name, password)
    return Response(status_code=204)


@route.delete(
    "/user/organisations/{organisation}",
    may=Permission.SIGNED_IN,
    reach=Reach.OWN,
    changes_rights=True,
    status_code=204,
)
async def leave_organisation(services: Serving, principal: Asking, organisation: str) -> Response:
    """Leave an organisation, by its id or name. Tokens and sessions in its projects end at once. 409: last owner."""
    await services.identity.people.leave(principal, organisation)
    return Response(status_code=204)


# --- projects --------------------------------------------------------------------------------------------------------


@route.delete(
    "/projects/{project}", may=Permission.PROJECTS, reach=Reach.ORGANISATION, changes_rights=True, status_code=204
)
async def delete_project(services: Serving, principal: Asking, project: str) -> Response:
    """Delete a project, by its id or name. 409: it is still in use, or has money; the reasons follow. For 30 days it
    can be restored; then its files, volumes, logs and secrets are deleted."""
    await services.lifecycle.delete_project(principal, project)
    return Response(status_code=204)


@route.get("/projects/deleted", may=Permission.PROJECTS, answer=answers.Page[DeletedProjectOut])
async def deleted_projects(services: Serving, principal: Asking, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """Deleted projects of the organisation that can be restored."""
    found = await services.identity.projects.deleted(principal)
    return page_of(found, limit, cursor, DeletedProjectOut.of, lambda one: one.id)


@route.post(
    "/projects/{project}/restore",
    may=Permission.PROJECTS,
    reach=Reach.ORGANISATION,
    changes_rights=True,
    answer=ProjectOut,
)
async def restore_project(services: Serving, principal: Asking, project: str) -> Any:
    """Restore a deleted project, by its id or name. Its members get access again; old tokens and shares do not work."""
    return ProjectOut.of(await services.identity.projects.restore(principal, project))


@route.get("/project-transfers", may=Permission.PROJECTS, answer=answers.Page[TransferOfferOut])
async def project_transfers(services: Serving, principal: Asking, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """Open offers to transfer a project, by the caller's organisation or to it."""
    found = await services.identity.projects.transfers(principal)
    return page_of(found, limit, cursor, TransferOfferOut.of, lambda one: one.project.id)


@route.post(
    "/projects/{project}/transfer",
    may=Permission.PROJECTS,
    reach=Reach.ORGANISATION,
    changes_rights=True,
    status_code=201,
    answer=TransferOfferOut,
)
async def offer_project(services: Serving, principal: Asking, project: str, body: OfferBody) -> Any:
    """Offer a project with all that it has to another organisation, for a week. Only for owners."""
    return TransferOfferOut.of(await services.identity.projects.offer(principal, project, body.organisation))


@route.post(
    "/projects/{project}/transfer/accept",
    may=Permission.PROJECTS,
    reach=Reach.ORGANISATION,
    changes_rights=True,
    answer=ProjectOut,
)
async def accept_project(services: Serving, principal: Asking, project: str) -> Any:
    """Accept a project that is offered to the organisation. Its old members and tokens lose access. Only for owners."""
    return ProjectOut.of(await services.identity.projects.accept(principal, project))


@route.delete("/projects/{project}/transfer", may=Permission.PROJECTS, reach=Reach.ORGANISATION, status_code=204)
async def withdraw_project(services: Serving, principal: Asking, project: str) -> Response:
    """Withdraw an offer, or refuse one. Only for owners."""
    await services.identity.projects.withdraw(principal, project)
    return Response(status_code=204)


# --- for operators ---------------------------------------------------------------------------------------------------


@route.post(
    "/accounts/{account_id}/settle",
    may=Permission.ACCOUNTS,
    reach=Reach.OPERATED,
    changes_rights=True,
    answer=PersonOut,
)
async def settle_account(services: Serving, principal: Asking, account_id: str, body: SettleBody) -> Any:
    """Move the rest of an account's money to another project of its organisation, or write it off. 409: the account is
    still in use."""
    account = await services.lifecycle.settle(principal, account_id, body.to, body.reason)
    return PersonOut.of(await services.accounts.get(account.id))


@route.post(
    "/accounts/{account_id}/transfer",
    may=Permission.ACCOUNTS,
    reach=Reach.OPERATED,
    changes_rights=True,
    answer=PersonOut,
)
async def transfer_account(services: Serving, principal: Asking, account_id: str, body: OrganisationBody) -> Any:
    """Transfer a project to another organisation without an offer. Its old members and tokens lose access."""
    account = await services.identity.projects.transfer(principal, account_id, body.organisation, body.reason)
    return PersonOut.of(await services.accounts.get(account.id))


def _user(view: Any) -> Any:
    return MarketUserOut.of(view, organisations=[MarketUserOrganisationOut.of(one) for one in view.organisations])
