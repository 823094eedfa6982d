"""The pretend Master's users: the own one, members of the organisation, its projects and invitations, and the ways to
sign in without a token."""

from collections.abc import Callable
from typing import Any

from fastapi import Body, FastAPI, Request, Response
from fastapi.responses import JSONResponse

from tests.browser.pretend_http import listed, problem
from tests.browser.pretend_world import Json, World, at

INVITATION = "wi_pretend-invitation-secret"
PASSWORD_LINK = "wp_pretend-password-link-secret"
PASSWORD = "violet kettle upon seven hills"
RECOVERY_CODE = "ABCD-EFGH-IJKL-MNOP"
OPEN = {
    *("/sign-in/password", "/sign-in/providers", "/password", "/password/forgotten", "/invitation"),
    "/invitation/accept",
}
"""Paths that need no session."""
BASE = "https://market.example:8443"
MADE_BY = "user/user_1"

Session = Callable[[], Json]
Asking = Callable[[Request], Json]


def project(project_id: str, name: str, *roles: str) -> Json:
    """A project, and the roles of whom the answer is about."""
    return {"id": project_id, "name": name, "roles": sorted(roles)}


def member(user_id: str, name: str, role: str | None, projects: list[Json]) -> Json:
    """One member of the organisation."""
    address = f"{name.split()[0].lower()}@example.org"
    return {
        "id": user_id,
        "name": name,
        "address": address,
        "role": role,
        "has_second_factor": False,
        "projects": projects,
    }


def invitation(invitation_id: str, address: str | None, role: str | None, projects: list[Json]) -> Json:
    """One invitation that can be accepted."""
    row = {"id": invitation_id, "organisation": "home", "address": address, "role": role, "projects": projects}
    return row | {"created_by": MADE_BY, "expires_at": at(-7 * 86_400)}


def member_routes(app: FastAPI, world: World, asking: Asking, session: Session) -> None:
    """All of them. asking: the account that asks. session: that of who signs in."""
    if not world.projects:
        world.projects.append(project("account_1", "first account", "admin", "provider", "renter"))
    if not world.members:
        world.members.append(member("user_1", "first account", "org_owner", list(world.projects)))
    _own_routes(app, world, asking)
    _member_routes(app, world)
    _invitation_routes(app, world)
    _share_routes(app, world)
    _open_routes(app, world, session)
    _provider_routes(app, world)


def provider(name: str) -> Json:
    """One identity provider."""
    lab = project("account_1", "first account", "renter")
    return {
        "name": name,
        "issuer": f"https://{name}.example",
        "client_id": "windrow",
        "has_client_secret": True,
        "organisation": "home",
        "domains": ["example.org"],
        "creates_users": True,
        "private": False,
        "scopes": ["openid"],
        "group_claim": "groups",
        "groups": [{"group": "ml", "role": None, "projects": [lab]}],
        "redirect_uri": f"{BASE}/oidc/{name}",
        "created_at": at(86_400),
    }


def _provider_routes(app: FastAPI, world: World) -> None:
    @app.get("/api/v1/sign-in/providers")
    async def buttons() -> Json:
        return listed([{"name": one["name"]} for one in world.providers])

    @app.get("/api/v1/identity-providers")
    async def providers() -> Json:
        return listed(world.providers)

    @app.get("/api/v1/user/identities")
    async def identities() -> Json:
        return listed([])

    @app.put("/api/v1/identity-providers/{name}")
    async def set_provider(name: str, body: Json = Body()) -> Json:
        world.providers.append(provider(name) | {"issuer": body["issuer"]})
        return world.providers[-1]

    @app.post("/api/v1/identity-providers/{name}/test")
    async def test() -> JSONResponse:
        said = "The identity provider acme cannot be used now. acme.example did not answer within 5 s."
        return problem(503, "unavailable", "Not possible now", said)

    @app.delete("/api/v1/identity-providers/{name}")
    async def remove(name: str) -> Response:
        world.providers = [one for one in world.providers if one["name"] != name]
        return Response(status_code=204)


def _own_routes(app: FastAPI, world: World, asking: Asking) -> None:
    def profile(request: Request) -> Json:
        account = asking(request)
        own = {"id": account["id"].replace("account", "user"), "name": account["name"]} | world.profile
        role = "org_owner" if account["id"] == "account_1" else None
        organisation = {"id": "organisation_1", "name": "home", "role": role, "projects": world.projects}
        return own | {"organisations": [organisation]}

    @app.get("/api/v1/user")
    async def user(request: Request) -> Json:
        return profile(request)

    @app.put("/api/v1/user")
    async def change(request: Request, body: Json = Body()) -> Any:
        if "password" in body and body["password"] != PASSWORD:
            return problem(403, "forbidden", "Not allowed", "The password is wrong.")
        world.profile |= {name: value for name, value in body.items() if name != "password"}
        return profile(request)

    @app.put("/api/v1/user/password")
    async def set_password() -> Response:
        world.profile["has_password"] = True
        return Response(status_code=204)

    @app.post("/api/v1/user/second-factor")
    async def begin_factor() -> JSONResponse:
        secret = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
        uri = f"otpauth://totp/Windrow%3Aada?secret={secret}&issuer=Windrow&digits=6&period=30"
        return JSONResponse({"secret": secret, "uri": uri}, 201)

    @app.put("/api/v1/user/second-factor")
    async def confirm_factor() -> Json:
        world.profile |= {"has_second_factor": True, "recovery_codes_left": 10}
        return {"recovery_codes": [RECOVERY_CODE] * 10}

    @app.post("/api/v1/user/second-factor/remove")
    async def remove_factor() -> Response:
        world.profile |= {"has_second_factor": False, "recovery_codes_left": None}
        return Response(status_code=204)


def _member_routes(app: FastAPI, world: World) -> None:
    @app.get("/api/v1/organisation")
    async def organisation() -> Json:
        return {"id": "organisation_1", "name": "home", "created_at": at(86_400)}

    @app.get("/api/v1/members")
    async def members() -> Json:
        return listed(world.members)

    @app.put("/api/v1/members/{user_id}")
    async def set_member(user_id: str, body: Json = Body()) -> Json:
        one = next(one for one in world.members if one["id"] == user_id)
        if "role" in body:
            one["role"] = None if body["role"] == "none" else body["role"]
        one["projects"] = _granted(one["projects"], body, world)
        return one

    @app.delete("/api/v1/members/{user_id}")
    async def remove(user_id: str) -> Response:
        world.members = [one for one in world.members if one["id"] != user_id]
        return Response(status_code=204)

    @app.post("/api/v1/members/{user_id}/password-link")
    async def password_link(user_id: str) -> JSONResponse:
        return JSONResponse({"link": f"{BASE}/#password={PASSWORD_LINK}", "link_expires_at": at(-1800)}, 201)

    @app.get("/api/v1/projects")
    async def projects() -> Json:
        return listed(world.projects)

    @app.post("/api/v1/projects")
    async def add_project(body: Json = Body()) -> Any:
        if any(one["name"] == body["name"] for one in world.projects):
            return problem(409, "conflict", "Conflict", f"The name {body['name']} is taken. Take another one.")
        made = project(f"account_{len(world.projects) + 10}", body["name"], "admin", "renter")
        world.projects.append(made)
        return JSONResponse(made, 201)

    @app.post("/api/v1/projects/{project_id}/use")
    async def use_project(project_id: str) -> Json:
        used = next(one for one in world.projects if one["id"] == project_id)
        world.project = {"id": used["id"], "name": used["name"]}
        return used


def _granted(before: list[Json], body: Json, world: World) -> list[Json]:
    """The projects with their roles after this request."""
    ids = {one["name"]: one["id"] for one in world.projects}
    roles = {one["name"]: one["roles"] for one in before}
    roles |= {one["project"]: one["roles"] for one in body.get("projects", [])}
    return [project(ids[name], name, *given) for name, given in roles.items() if given]


def _invitation_routes(app: FastAPI, world: World) -> None:
    def made(row: Json) -> JSONResponse:
        is_mailed = world.sends_mail and row["address"] is not None
        return JSONResponse(row | {"link": None if is_mailed else f"{BASE}/#invitation={INVITATION}"}, 201)

    @app.get("/api/v1/invitations")
    async def invitations() -> Json:
        return listed(world.invitations)

    @app.post("/api/v1/invitations")
    async def invite(body: Json = Body()) -> JSONResponse:
        number = len(world.invitations) + 1
        row = invitation(f"invitation_{number}", body.get("address"), body.get("role"), _granted([], body, world))
        world.invitations.append(row)
        return made(row)

    @app.post("/api/v1/invitations/{invitation_id}/link")
    async def renew(invitation_id: str) -> JSONResponse:
        return made(next(one for one in world.invitations if one["id"] == invitation_id))

    @app.delete("/api/v1/invitations/{invitation_id}")
    async def withdraw(invitation_id: str) -> Response:
        world.invitations = [one for one in world.invitations if one["id"] != invitation_id]
        return Response(status_code=204)


def share(share_id: str, object_id: str, receiver: str, level: str, **more: Any) -> Json:
    """One share of a cluster or job with a user."""
    kind = object_id.partition("_")[0]
    row = {"id": share_id, "object_kind": kind, "object_id": object_id, "object_name": "trainer", "level": level}
    row |= {"project_id": "account_1", "project": "first account", "receiver_kind": "user", "receiver": receiver}
    return (
        row
        | {
            "receiver_id": "user_9",
            "created_by": MADE_BY,
            "created_by_name": "Ada",
            "created_at": at(60),
            "expires_at": None,
            "is_active": True,
        }
        | more
    )


def _share_routes(app: FastAPI, world: World) -> None:
    def of(rows: list[Json], object_id: str | None) -> Json:
        return listed([one for one in rows if object_id in (None, one["object_id"])])

    @app.get("/api/v1/shares")
    async def shares(object_id: str | None = None) -> Json:
        return of(world.shares, object_id)

    @app.get("/api/v1/shares/received")
    async def received(object_id: str | None = None) -> Json:
        return of(world.received, object_id)

    @app.post("/api/v1/shares")
    async def make(body: Json = Body()) -> Any:
        if body["receiver"] == "nobody":
            return problem(404, "not_found", "Not found", "There is no such member of your organisation.", "receiver")
        made = share(f"share_{len(world.shares)}", body["object_id"], body["receiver"], body["level"])
        made |= {"receiver_kind": body["receiver_kind"], "expires_at": at(-86_400) if "expires_in_s" in body else None}
        world.shares.append(made)
        return JSONResponse(made, 201)

    @app.delete("/api/v1/shares/{share_id}")
    async def withdraw(share_id: str) -> Response:
        world.shares = [one for one in world.shares if one["id"] != share_id]
        return Response(status_code=204)


def _open_routes(app: FastAPI, world: World, session: Session) -> None:
    """What needs no session: to sign in by password, to accept an invitation, to set a password by a link."""

    def found(secret: str) -> Json | None:
        return world.invitations[0] if secret == INVITATION and world.invitations else None

    def gone() -> JSONResponse:
        said = "This invitation was accepted already. Sign in, or ask for a new one."
        return problem(409, "conflict", "Conflict", said)

    @app.post("/api/v1/sign-in/password")
    async def sign_in(body: Json = Body()) -> Any:
        if body["password"] != PASSWORD:
            return problem(401, "unauthenticated", "Not signed in", "The address or the password is wrong.")
        if world.profile["has_second_factor"] and "code" not in body:
            said = "This user signs in with a second factor: the code of an authenticator app, or a recovery code."
            return problem(401, "second_factor_required", "Second factor required", said)
        if world.profile["has_second_factor"] and body["code"] != RECOVERY_CODE:
            return problem(401, "unauthenticated", "Not signed in", "The code is wrong, or was used already.")
        return JSONResponse(session(), 201)

    @app.post("/api/v1/password")
    async def set_password(body: Json = Body()) -> Response:
        if body["secret"] != PASSWORD_LINK:
            said = "This link was used, has expired or was replaced. Ask for a new one."
            return problem(401, "unauthenticated", "Not signed in", said)
        return Response(status_code=204)

    @app.post("/api/v1/password/forgotten")
    async def forgotten() -> Response:
        if not world.sends_mail:
            return problem(409, "conflict", "Conflict", "This market sends no mail. Ask an admin of your organisation.")
        return Response(status_code=204)

    @app.post("/api/v1/invitation")
    async def look(body: Json = Body()) -> Any:
        row = found(body["secret"])
        shown = ("organisation", "address", "role", "projects", "expires_at")
        return gone() if row is None else {name: row[name] for name in shown}

    @app.post("/api/v1/invitation/accept")
    async def accept(body: Json = Body()) -> Any:
        row = found(body["secret"])
        if row is None:
            return gone()
        world.invitations.remove(row)
        world.members.append(member("user_2", body["name"], row["role"], row["projects"]))
        return JSONResponse(session(), 201)

    @app.post("/api/v1/invitation/join")
    async def join(body: Json = Body()) -> Any:
        row = found(body["secret"])
        if row is None:
            return gone()
        world.invitations.remove(row)
        return {"id": "organisation_1", "name": "home", "created_at": at(86_400)}
