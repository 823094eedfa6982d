"""The pretend Master's ends of users and projects: leaving, deletion, restoring, transfers; and its users."""

from typing import Any

from fastapi import Body, FastAPI, Request, Response
from fastapi.responses import JSONResponse

from tests.browser.pretend_http import listed, problem
from tests.browser.pretend_members import PASSWORD, Asking, project
from tests.browser.pretend_world import Json, World, at

ORGANISATIONS = ("home", "acme")
DAY_S = 86_400


def market_user(user_id: str, name: str, role: str | None) -> Json:
    """A user of the installation, a member of the first organisation."""
    organisation = {"id": "organisation_1", "name": ORGANISATIONS[0], "role": role}
    row = {"id": user_id, "name": name, "address": f"{name.split()[0].lower()}@example.org", "roles": []}
    return row | {"is_disabled": False, "organisations": [organisation], "created_at": at(DAY_S)}


def offer(project_id: str, name: str, *, is_mine: bool) -> Json:
    """A project that one organisation offers to the other."""
    source, target = ORGANISATIONS if is_mine else reversed(ORGANISATIONS)
    row = {"project": project_id, "name": name, "source": source, "target": target, "is_mine": is_mine}
    return row | {"expires_at": at(-7 * DAY_S)}


def _one(rows: list[Json], row_id: str, key: str = "id") -> Json:
    return next(one for one in rows if one[key] == row_id)


def _without(rows: list[Json], row_id: str, key: str = "id") -> list[Json]:
    return [one for one in rows if one[key] != row_id]


def _owner_stays() -> JSONResponse:
    said = "keeps at least one owner. Make somebody else an owner first: windrow member set NAME --role org_owner"
    return problem(409, "conflict", "Conflict", f"An organisation {said}")


def _open(rows: list[Json], name: str, project_id: str) -> Json:
    """Adds a project that came or came back, with the roles of its admin."""
    rows.append(project(project_id, name, "admin", "renter"))
    return rows[-1]


def project_end_routes(app: FastAPI, world: World) -> None:
    """Deletion, restoring, transfers."""

    @app.get("/api/v1/projects/deleted")
    async def deleted() -> Json:
        return listed(world.deleted_projects)

    @app.delete("/api/v1/projects/{project_id}")
    async def delete(project_id: str) -> Response:
        name = _one(world.projects, project_id)["name"]
        reasons = [{"field": name, "reason": said} for said in world.in_use.get(project_id, ())]
        if reasons:
            said = f"{name} cannot be deleted yet."
            return problem(409, "conflict", "Conflict", said, reasons=reasons)
        world.projects = _without(world.projects, project_id)
        times = {"deleted_at": at(), "expires_at": at(-30 * DAY_S)}
        world.deleted_projects.append({"id": project_id, "name": name} | times)
        return Response(status_code=204)

    @app.post("/api/v1/projects/{project_id}/restore")
    async def restore(project_id: str) -> Json:
        row = _one(world.deleted_projects, project_id)
        world.deleted_projects.remove(row)
        return _open(world.projects, row["name"], project_id)

    @app.get("/api/v1/project-transfers")
    async def offers() -> Json:
        return listed(world.offers)

    @app.post("/api/v1/projects/{project_id}/transfer")
    async def make_offer(project_id: str, body: Json = Body()) -> JSONResponse:
        if body["organisation"] not in ORGANISATIONS:
            return problem(404, "not_found", "Not found", "There is no such organisation.", body["organisation"])
        made = offer(project_id, _one(world.projects, project_id)["name"], is_mine=True)
        world.offers.append(made)
        return JSONResponse(made, 201)

    @app.post("/api/v1/projects/{project_id}/transfer/accept")
    async def accept(project_id: str) -> Json:
        row = _one(world.offers, project_id, "project")
        world.offers.remove(row)
        return _open(world.projects, row["name"], project_id)

    @app.delete("/api/v1/projects/{project_id}/transfer")
    async def withdraw(project_id: str) -> Response:
        world.offers = _without(world.offers, project_id, "project")
        return Response(status_code=204)


def user_end_routes(app: FastAPI, world: World, asking: Asking) -> None:
    """Of one's own user: it leaves the organisation, it is deleted. asking: the account that asks."""

    def is_last_owner() -> bool:
        return len(world.members) > 1 and sum(one["role"] == "org_owner" for one in world.members) < 2

    @app.delete("/api/v1/user/organisations/{organisation_id}")
    async def leave(organisation_id: str) -> Response:
        if is_last_owner():
            return _owner_stays()
        world.is_signed_out = True
        return Response(status_code=204)

    @app.post("/api/v1/user/delete")
    async def delete(request: Request, body: Json = Body()) -> Response:
        if body.get("password") != PASSWORD:
            return problem(403, "forbidden", "Not allowed", "The password is wrong.")
        if is_last_owner():
            return _owner_stays()
        assert body["name"] == asking(request)["name"]
        world.is_signed_out = True
        return Response(status_code=204)


def operator_end_routes(app: FastAPI, world: World) -> None:
    """What operators do: users are listed, deleted and made owners, accounts settled and transferred."""
    if not world.users:
        world.users.append(market_user("user_1", "first account", "org_owner"))

    @app.get("/api/v1/users")
    async def users() -> Json:
        return listed(world.users)

    @app.post("/api/v1/users/{user_id}/delete")
    async def delete(user_id: str, body: Json = Body()) -> Response:
        world.users = _without(world.users, user_id)
        return Response(status_code=204)

    @app.post("/api/v1/users/{user_id}/make-owner")
    async def make_owner(user_id: str, body: Json = Body()) -> Response:
        row = _one(world.users, user_id)
        if row["is_disabled"]:
            said = f"{row['name']} is disabled. Make somebody else an owner."
            return problem(409, "conflict", "Conflict", said, user_id)
        row["organisations"][0]["role"] = "org_owner"
        return Response(status_code=204)

    @app.post("/api/v1/accounts/{account_id}/settle")
    async def settle(account_id: str, body: Json = Body()) -> Any:
        row = _one(world.people, account_id)
        reasons = [{"field": row["name"], "reason": said} for said in world.in_use.get(account_id, ())]
        if reasons:
            said = f"{row['name']} still needs its money."
            return problem(409, "conflict", "Conflict", said, account_id, reasons)
        row["balance"]["amount"] = "0.00"
        return row

    @app.post("/api/v1/accounts/{account_id}/transfer")
    async def transfer(account_id: str, body: Json = Body()) -> Json:
        return _one(world.people, account_id)
