"""The route that says what the caller may do: answered from the declarations of the routes themselves."""

from typing import Annotated, Any

from fastapi import Query, Request
from pydantic import Field
from starlette.routing import compile_path

from windrow_master.api.answers import Out
from windrow_master.api.auth import V1, Declaration, Declarations, Reach
from windrow_master.api.deps import Asking
from windrow_master.api.route import Routes
from windrow_master.identity import rights
from windrow_master.identity.decide import GRANTS, Permission, is_allowed
from windrow_master.identity.model import Principal, Role
from windrow_proto.errors import NotFound

route = Routes("permissions")

Wanted = Annotated[
    str | None,
    Query(max_length=300, description="A permission, or a method and a path: `POST /clusters`; default: all"),
]


class PermissionOut(Out):
    """A permission, and whether the caller has it."""

    permission: Permission
    allowed: bool
    roles: Annotated[list[Role], Field(description="Those that have it; one is enough")]
    reason: Annotated[str | None, Field(description="The reason of a refusal, and who can help; null if allowed")]
    objects: Annotated[
        Reach | None, Field(description="The owners whose objects the route reaches; null if its path names no object")
    ]


class PermissionsOut(Out):
    """Permissions of the caller."""

    items: list[PermissionOut]


@route.get("/permissions", may=Permission.SIGNED_IN, answer=PermissionsOut)
async def permissions(request: Request, principal: Asking, wanted: Wanted = None) -> Any:
    """The permissions of the caller, and who can give the missing ones. It does not check the object of a path: the
    route itself answers 404."""
    if wanted is None:
        return {"items": [_told(principal, one, None) for one in Permission]}
    if wanted in set(Permission):
        return {"items": [_told(principal, Permission(wanted), None)]}
    method, _, path = wanted.strip().partition(" ")
    declared: Declarations = request.app.state.declared
    rules = _rules(declared, method.upper(), "/" + path.strip().lstrip("/"))
    if rules is None:
        known = ", ".join(sorted(Permission))
        said = f"There is no route or permission of this name. Routes are like POST /clusters; permissions: {known}."
        raise NotFound(said, subject="wanted")
    return {"items": [_told(principal, rules.may, rules.reach)]}


def _rules(declared: Declarations, method: str, path: str) -> Declaration | None:
    """The rules of the API's route for this method and path, with or without its prefix and with ids or `{...}` in
    it; the first that fits, as at a request."""
    whole = path if path.startswith(f"{V1}/") else V1 + path
    fits = (
        rules
        for (known, template), rules in declared.items()
        if known == method and template.startswith(f"{V1}/") and compile_path(template)[0].match(whole)
    )
    return next(fits, None)


def _told(principal: Principal, permission: Permission, objects: Reach | None) -> dict[str, Any]:
    is_there = is_allowed(principal.roles, permission)
    return {
        "permission": permission,
        "allowed": is_there,
        "roles": sorted(GRANTS.get(permission, frozenset(Role))),
        "reason": None if is_there else rights.missing(principal, permission),
        "objects": objects,
    }
