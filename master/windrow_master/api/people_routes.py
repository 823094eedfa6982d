"""Routes of people: sign-in by password, the own user, members of an organisation, its projects, invitations."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from fastapi import Request, Response
from pydantic import Field, SecretStr

from windrow_master.api import answers
from windrow_master.api.answers import Out, Read, Time
from windrow_master.api.auth import Reach, Repeat, check_unlimited
from windrow_master.api.bodies import Body
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.identity_routes import SignedInOut, TokenMadeOut, TokenOut
from windrow_master.api.paging import Cursor, Limit, page, read_cursor
from windrow_master.api.route import Routes
from windrow_master.identity.decide import Permission
from windrow_master.identity.model import Principal, Role, Session
from windrow_master.identity.people_service import Invited
from windrow_master.identity.profiles import Profile
from windrow_proto.units import time_text

route = Routes("people")

INVITATION_FRAGMENT: Final = "#invitation="
PASSWORD_FRAGMENT: Final = "#password="
"""A fragment stays in the browser: no server and no proxy writes it into a log."""

OrganisationRole = Literal["org_owner", "org_admin", "org_billing", "org_auditor"]
ProjectRole = Literal["admin", "renter", "viewer", "provider"]
Address = Annotated[str, Field(min_length=3, max_length=320, description="Mail address")]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Given = Annotated[SecretStr, Field(max_length=1_024)]
Code = Annotated[str, Field(min_length=6, max_length=40, description="Of the app, or a recovery code")]
Secret = Annotated[str, Field(max_length=200)]
ProjectName = Annotated[str, Field(min_length=1, max_length=64, description="Id or name")]


class PasswordSignInBody(Body):
    """An address and password. code: of the second factor, where there is one."""

    address: Address
    password: Given
    code: Code | None = None


class ProfileBody(Body):
    """Changes of the caller's user. Null leaves a field as it is. A new address needs the present password."""

    name: Name | None = None
    address: Address | None = None
    password: Given | None = None


class PasswordBody(Body):
    """A new password. present: the present password; null if there is none."""

    present: Given | None = None
    password: Given


class ProofBody(Body):
    """The present password."""

    password: Given


class FactorOffBody(ProofBody):
    """The present password, and a code of the app or a recovery code."""

    code: Code


class CodeBody(Body):
    """A code that the app shows."""

    code: Code


class LinkPasswordBody(Body):
    """A new password, and the secret of the link: the text after `#password=`."""

    secret: Secret
    password: Given


class ForgottenBody(Body):
    """The address of a user who forgot the password."""

    address: Address


class InvitationLinkBody(Body):
    """The secret of an invitation: the text after `#invitation=`."""

    secret: Secret


class AcceptBody(InvitationLinkBody):
    """Who accepts an invitation: a new user, or one with this address and password. code: of the second factor."""

    name: Name
    address: Address
    password: Given
    code: Code | None = None


class GrantBody(Body):
    """Roles in one project. Without roles the membership there ends."""

    project: ProjectName
    roles: Annotated[list[ProjectRole], Field(max_length=4)]


class InvitationBody(Body):
    """An invitation. address: the only one that may accept it; null: anybody with the link may."""

    address: Address | None = None
    role: Annotated[OrganisationRole | None, Field(description="In the organisation")] = None
    projects: Annotated[tuple[GrantBody, ...], Field(max_length=100)] = ()


class MemberBody(Body):
    """Changes of a member. role: null keeps the role, `none` removes it. Projects that are not named stay."""

    role: OrganisationRole | Literal["none"] | None = None
    projects: Annotated[tuple[GrantBody, ...], Field(max_length=100)] = ()


class ProjectBody(Body):
    """A new project."""

    name: Annotated[str, Field(min_length=1, max_length=64)]


class ProjectTokenBody(Body):
    """The name of the new token."""

    name: Annotated[str, Field(min_length=1, max_length=128)] = "project"


class ProjectOut(Out):
    """A project, and the roles in it: the caller's, or those of the member that the answer is about."""

    id: str
    name: str
    roles: Annotated[list[Role], Read(lambda one: sorted(one.roles))]


class MembershipOut(Out):
    """A user's place in one organisation."""

    id: Annotated[str, Read("organisation.id")]
    name: Annotated[str, Read("organisation.name")]
    role: Role | None
    projects: list[ProjectOut]


class ProfileOut(Out):
    """The caller as a user."""

    id: Annotated[str, Read("user.id")]
    name: Annotated[str, Read("user.name")]
    address: Annotated[str | None, Read("user.address")]
    has_password: Annotated[bool, Read(lambda one: one.user.password is not None)]
    has_second_factor: Annotated[bool, Read(lambda one: one.recovery_left is not None)]
    recovery_codes_left: Annotated[int | None, Read("recovery_left")]
    organisations: list[MembershipOut]


class FactorOut(Out):
    """The secret of an authenticator app, shown this once."""

    secret: str
    uri: Annotated[str, Field(description="The content of a QR code for the app")]


class CodesOut(Out):
    """Recovery codes, shown this once; each works once."""

    recovery_codes: list[str]


class MemberOut(Out):
    """A member of the organisation."""

    id: Annotated[str, Read("member.user.id")]
    name: Annotated[str, Read("member.user.name")]
    address: Annotated[str | None, Read("member.user.address")]
    role: Annotated[Role | None, Read("member.role"), Field(description="In the organisation")]
    has_second_factor: Annotated[bool, Read("has_factor")]
    projects: list[ProjectOut]


class OrganisationOut(Out):
    """The organisation of the caller's project."""

    id: str
    name: str
    created_at: Annotated[Time, Read("created_at_ns")]


class InvitationOut(Out):
    """An invitation that can still be accepted."""

    id: Annotated[str, Read("invitation.id")]
    organisation: Annotated[str, Read("organisation.name")]
    address: Annotated[str | None, Read("invitation.address"), Field(description="Null: anybody with the link")]
    role: Annotated[Role | None, Read("invitation.role")]
    projects: list[ProjectOut]
    created_by: Annotated[str, Read("invitation.made_by")]
    expires_at: Annotated[Time, Read("invitation.expires_at_ns")]


class InvitationMadeOut(InvitationOut):
    """An invitation and its link."""

    link: Annotated[str | None, Field(description="A URL that works once, shown this once; null: it was mailed")]


class InvitationShownOut(Out):
    """An invitation, as the invited person sees it."""

    organisation: Annotated[str, Read("organisation.name")]
    address: Annotated[str | None, Read("invitation.address")]
    role: Annotated[Role | None, Read("invitation.role")]
    projects: list[ProjectOut]
    expires_at: Annotated[Time, Read("invitation.expires_at_ns")]


class PasswordLinkOut(Out):
    """A link by which a member sets a new password."""

    link: Annotated[str, Field(description="A URL that works once, shown this once")]
    link_expires_at: Time


class ProjectTokenOut(Out):
    """A token of the caller in another project."""

    project: ProjectOut
    token: TokenMadeOut


# --- sign-in ---------------------------------------------------------------------------------------------------------


@route.post("/sign-in/password", may=Permission.NOBODY, signs_in=True, hashes=True, status_code=201, answer=SignedInOut)
async def sign_in_by_password(request: Request, services: Serving, body: PasswordSignInBody) -> Any:
    """Sign a user in by address and password. 401 `second_factor_required`: the same again, with a code."""
    secret = body.password.get_secret_value()
    made = await services.identity.sign_in.with_password(body.address, secret, body.code, *seen_from(request))
    return signed_in(*made)


@route.post("/password", may=Permission.NOBODY, signs_in=True, hashes=True, status_code=204)
async def set_password_by_link(services: Serving, body: LinkPasswordBody) -> Response:
    """Set a password by a link that works once; all sessions of its user end."""
    await services.identity.profiles.set_password_by_link(body.secret, body.password.get_secret_value())
    return Response(status_code=204)


@route.post("/password/forgotten", may=Permission.NOBODY, repeat=Repeat.ALWAYS, status_code=204)
async def forgotten_password(request: Request, services: Serving, body: ForgottenBody) -> Response:
    """Mail a link for a new password to the user with this address. The answer is the same if there is no such user."""
    await services.identity.profiles.forgotten(body.address, _link_of(request, services, PASSWORD_FRAGMENT))
    return Response(status_code=204)


# --- the own user ----------------------------------------------------------------------------------------------------


@route.get("/user", may=Permission.SIGNED_IN, answer=ProfileOut)
async def profile(services: Serving, principal: Asking) -> Any:
    """The caller as a user, with the organisations and projects where the user is a member."""
    return _profile(await services.identity.profiles.profile(principal))


@route.put("/user", may=Permission.SIGNED_IN, answer=ProfileOut)
async def change_profile(services: Serving, principal: Asking, body: ProfileBody) -> Any:
    """Change the caller's name or mail address."""
    if body.address is not None:  # by which people sign in
        await check_unlimited(services, principal)
    await services.identity.profiles.change_profile(principal, body.name, body.address, _text(body.password))
    return _profile(await services.identity.profiles.profile(principal))


@route.put("/user/password", may=Permission.SIGNED_IN, status_code=204)
async def set_password(services: Serving, principal: Asking, body: PasswordBody) -> Response:
    """Set or change the caller's password. All other sessions of the user end; tokens stay."""
    await check_unlimited(services, principal)
    profiles = services.identity.profiles
    await profiles.set_password(principal, _text(body.present), body.password.get_secret_value())
    return Response(status_code=204)


@route.post("/user/second-factor", may=Permission.SIGNED_IN, repeat=Repeat.ALWAYS, status_code=201, answer=FactorOut)
async def begin_factor(services: Serving, principal: Asking, body: ProofBody) -> Any:
    """Create a secret for an authenticator app. Sign-in asks for a code after the first code was confirmed."""
    secret, uri = await services.identity.profiles.begin_factor(principal, body.password.get_secret_value())
    return {"secret": secret, "uri": uri}


@route.put("/user/second-factor", may=Permission.SIGNED_IN, answer=CodesOut)
async def confirm_factor(services: Serving, principal: Asking, body: CodeBody) -> Any:
    """Confirm the app with a code. From now on sign-in asks for codes. Other sessions of the user end."""
    return {"recovery_codes": await services.identity.profiles.confirm_factor(principal, body.code)}


@route.post("/user/second-factor/remove", may=Permission.SIGNED_IN, status_code=204)
async def remove_factor(services: Serving, principal: Asking, body: FactorOffBody) -> Response:
    """Remove the second factor."""
    await services.identity.profiles.remove_factor(principal, body.password.get_secret_value(), body.code)
    return Response(status_code=204)


# --- organisation, members, projects ---------------------------------------------------------------------------------


@route.get("/organisation", may=Permission.SIGNED_IN, answer=OrganisationOut)
async def organisation(services: Serving, principal: Asking) -> Any:
    """The organisation of the caller's project."""
    return OrganisationOut.of(await services.identity.people.organisation(principal))


@route.get("/members", may=Permission.MEMBERS_READ, answer=answers.Page[MemberOut])
async def members(services: Serving, principal: Asking, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """The members of the organisation; an admin of a project sees those of the project."""
    found = await services.identity.people.members(principal, read_cursor(cursor), limit + 1)
    return page(found, limit, MemberOut.of, lambda view: view.member.user.id)


@route.put(
    "/members/{user_id}", may=Permission.MEMBERS, reach=Reach.ORGANISATION, changes_rights=True, answer=MemberOut
)
async def set_member(services: Serving, principal: Asking, user_id: str, body: MemberBody) -> Any:
    """Change a member's roles. They hold at once, in the member's sessions and tokens too."""
    role = None if body.role in (None, "none") else Role(body.role)
    people = services.identity.people
    return MemberOut.of(await people.set_member(principal, user_id, role, body.role is None, grants_of(body.projects)))


@route.delete(
    "/members/{user_id}", may=Permission.SIGNED_IN, reach=Reach.ORGANISATION, changes_rights=True, status_code=204
)
async def remove_member(services: Serving, principal: Asking, user_id: str) -> Response:
    """Remove a member, or leave. The user's tokens and sessions in the organisation's projects end at once."""
    await services.identity.people.remove_member(principal, user_id)
    return Response(status_code=204)


@route.post(
    "/members/{user_id}/password-link",
    may=Permission.MEMBERS,
    changes_rights=True,
    reach=Reach.ORGANISATION,
    repeat=Repeat.ALWAYS,
    status_code=201,
    answer=PasswordLinkOut,
)
async def password_link(request: Request, services: Serving, principal: Asking, user_id: str) -> Any:
    """Create a link by which a member sets a new password. It works once, within 30 minutes."""
    _, secret, until_ns = await services.identity.profiles.password_link(principal, user_id)
    link = _link_of(request, services, PASSWORD_FRAGMENT)(secret)
    return {"link": link, "link_expires_at": time_text(until_ns)}


@route.get("/projects", may=Permission.SIGNED_IN, answer=answers.Page[ProjectOut])
async def projects(services: Serving, principal: Asking, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """The projects of the organisation that the caller may see, with the caller's roles."""
    found = await services.identity.people.projects(principal, read_cursor(cursor), limit + 1)
    return page(found, limit, ProjectOut.of, lambda one: one.id)


@route.post("/projects", may=Permission.PROJECTS, status_code=201, answer=ProjectOut)
async def add_project(services: Serving, principal: Asking, body: ProjectBody) -> Any:
    """Create a project in the organisation, with the caller as its admin. It has no money at first."""
    return ProjectOut.of(await services.identity.people.add_project(principal, body.name))


@route.post("/projects/{project}/use", may=Permission.SIGNED_IN, reach=Reach.OWN, answer=ProjectOut)
async def use_project(services: Serving, principal: Asking, project: str) -> Any:
    """Switch this session to another project of the user, by its id or name."""
    return ProjectOut.of(await services.identity.people.use_project(principal, project))


@route.post(
    "/projects/{project}/token",
    may=Permission.TOKENS,
    changes_rights=True,
    keeps_limits=True,
    reach=Reach.OWN,
    repeat=Repeat.ALWAYS,
    status_code=201,
    answer=ProjectTokenOut,
)
async def project_token(services: Serving, principal: Asking, project: str, body: ProjectTokenBody) -> Any:
    """Create a token of the caller's user in another project. It has at most the roles and the lifetime of the token
    that asks."""
    found, token, text = await services.identity.people.token_in(principal, project, body.name)
    return {"project": ProjectOut.of(found), "token": {**TokenOut.of(token), "token": text}}


# --- invitations -----------------------------------------------------------------------------------------------------


@route.get("/invitations", may=Permission.MEMBERS_READ, answer=answers.Page[InvitationOut])
async def invitations(services: Serving, principal: Asking, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """Invitations that can still be accepted, the oldest first."""
    found = await services.identity.people.invitations(principal, read_cursor(cursor), limit + 1)
    return page(found, limit, _invitation, lambda one: one.invitation.id)


@route.post(
    "/invitations",
    may=Permission.MEMBERS,
    repeat=Repeat.ALWAYS,
    changes_rights=True,
    status_code=201,
    answer=InvitationMadeOut,
)
async def invite(request: Request, services: Serving, principal: Asking, body: InvitationBody) -> Any:
    """Create an invitation. Its link works once, within a week. It is mailed to the address if this market sends mail;
    otherwise the answer has it, this once."""
    role = None if body.role is None else Role(body.role)
    link_of = _link_of(request, services, INVITATION_FRAGMENT)
    made = await services.identity.people.invite(principal, body.address, role, grants_of(body.projects), link_of)
    return _made(*made)


@route.post(
    "/invitations/{invitation_id}/link",
    may=Permission.MEMBERS,
    changes_rights=True,
    reach=Reach.ORGANISATION,
    repeat=Repeat.ALWAYS,
    status_code=201,
    answer=InvitationMadeOut,
)
async def renew_invitation(request: Request, services: Serving, principal: Asking, invitation_id: str) -> Any:
    """Create a new link for an invitation. The old link stops working."""
    link_of = _link_of(request, services, INVITATION_FRAGMENT)
    return _made(*await services.identity.people.renew_invitation(principal, invitation_id, link_of))


@route.delete("/invitations/{invitation_id}", may=Permission.MEMBERS, reach=Reach.ORGANISATION, status_code=204)
async def withdraw_invitation(services: Serving, principal: Asking, invitation_id: str) -> Response:
    """Withdraw an invitation."""
    await services.identity.people.withdraw(principal, invitation_id)
    return Response(status_code=204)


@route.post("/invitation", may=Permission.NOBODY, signs_in=True, repeat=Repeat.ALWAYS, answer=InvitationShownOut)
async def look_at_invitation(services: Serving, body: InvitationLinkBody) -> Any:
    """The invitation that a link is for, before it is accepted."""
    found = await services.identity.people.look_at(body.secret)
    return InvitationShownOut.of(found, projects=[ProjectOut.of(one) for one in found.projects])


@route.post(
    "/invitation/accept",
    may=Permission.NOBODY,
    signs_in=True,
    hashes=True,
    repeat=Repeat.ALWAYS,
    status_code=201,
    answer=SignedInOut,
)
async def accept_invitation(request: Request, services: Serving, body: AcceptBody) -> Any:
    """Accept an invitation and sign in, as a new user or as the one with this address and password."""
    password = body.password.get_secret_value()
    made = await services.identity.people.accept_as_new(
        body.secret, body.name, body.address, password, body.code, *seen_from(request)
    )
    return signed_in(*made)


@route.post("/invitation/join", may=Permission.SIGNED_IN, answer=OrganisationOut)
async def join_organisation(services: Serving, principal: Asking, body: InvitationLinkBody) -> Any:
    """Accept an invitation as the user who is signed in."""
    return OrganisationOut.of(await services.identity.people.accept(principal, body.secret))


# --- inside ----------------------------------------------------------------------------------------------------------


def _text(given: SecretStr | None) -> str | None:
    return None if given is None else given.get_secret_value()


def seen_from(request: Request) -> tuple[str, str]:
    """The browser and the address that a request comes from."""
    return request.headers.get("user-agent", ""), request.client.host if request.client is not None else ""


def grants_of(given: Sequence[GrantBody]) -> Mapping[str, frozenset[Role]]:
    """The roles in each project, by its id or name."""
    return {one.project: frozenset(map(Role, one.roles)) for one in given}


def signed_in(session: Session, secret: str, principal: Principal) -> dict[str, Any]:
    """The answer to a sign-in."""
    return {
        "account": {"id": principal.account_id, "name": principal.account_name},
        "session": {"id": session.id, "expires_at": time_text(session.expires_at_ns)},
        "secret": secret,
    }


def _profile(found: Profile) -> dict[str, Any]:
    standings = [
        MembershipOut.of(one, projects=[ProjectOut.of(each) for each in one.projects]) for one in found.standings
    ]
    return ProfileOut.of(found, organisations=standings)


def _invitation(found: Invited) -> dict[str, Any]:
    return InvitationOut.of(found, projects=[ProjectOut.of(one) for one in found.projects])


def _made(invited: Invited, link: str | None) -> dict[str, Any]:
    return {**_invitation(invited), "link": link}


def _link_of(request: Request, services: Serving, fragment: str) -> Callable[[str], str]:
    base = services.https_url or str(request.base_url).rstrip("/")
    return lambda secret: f"{base}/{fragment}{secret}"
