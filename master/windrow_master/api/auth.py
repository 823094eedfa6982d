"""Checks who may call a route and whose objects it reaches: each route carries a Declaration, and the Declaration
lets requests through or refuses them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from windrow_master.api.deps import Services, principal_of, recognises_local_user, services_of
from windrow_master.api.sharing import ShareKind
from windrow_master.identity import rights
from windrow_master.identity.decide import Permission, is_allowed
from windrow_master.identity.model import Principal
from windrow_master.identity.object_shares import Level, ObjectKind
from windrow_proto.errors import Forbidden, SignInAgain

V1: Final = "/api/v1"


class Reach(StrEnum):
    """The owners whose objects a route reaches by their ids; other objects do not exist for the caller (404)."""

    ALL = "everybody's"
    OWN = "own"
    OWN_OR_OVERSEEN = "own; operators and auditors: everybody's"
    OWN_OR_OPERATED = "own; operators: everybody's"
    OPERATED = "operators: everybody's"
    ORGANISATION = "of the own organisation; admins of a project: of the project"


class Repeat(StrEnum):
    """The answer to a POST that comes again with its Idempotency-Key."""

    REMEMBERED = "remembered"
    """With the first answer. One that was cut short is refused, because its outcome is not known."""
    REPEATABLE = "repeatable"
    """With the first answer. One that was cut short runs again: the key is kept in the transaction that does the work,
    or the request says how something is to be."""
    ALWAYS = "always"
    """It runs again: its answer holds a secret that is shown once and stored nowhere, or it does no harm twice."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """The rules of one route. As a dependency of its route, it refuses who may not ask."""

    may: Permission
    reach: Reach | None = None
    """Of a route whose path names an object."""
    repeat: Repeat = Repeat.REMEMBERED
    share: ShareKind = ShareKind.REQUESTS
    shared: Level | None = None
    """The level of a share of its object by which others reach it, too; None: no share lets anybody in."""
    body_max: int | None = None
    """Bytes of a request's body where it may be longer than others', or shorter."""
    signs_in: bool = False
    """Its body holds a secret, so a refusal counts as a wrong guess."""
    hashes: bool = False
    """It computes the hash of a password: each request of an address counts as a guess, before it costs."""
    is_unlimited: bool = False
    """It is answered however often anybody asks."""
    hears_token: bool = False
    """It needs no sign-in, and answers by the token where the request carries one."""
    changes_rights: bool = False
    """It makes or ends rights: a browser's session is asked for a password, a code or a token again where its user has
    shown none for ten minutes."""
    keeps_limits: bool = False
    """Its rights count for the token that asks: a token with a spending limit may ask it, too. It may ask no other
    route that changes rights, since those could give rights without a limit."""
    is_local: bool = False
    """The Master's own user may ask it on the same machine without a token, where the Master allows that
    (local_user.py)."""

    async def __call__(self, request: Request) -> None:
        """Raise Unauthenticated, Forbidden or SignInAgain for who may not ask."""
        if self.may is Permission.NOBODY or (self.is_local and recognises_local_user(request)):
            return
        principal = await principal_of(request)
        if principal.own_account_id is not None:
            return  # judged already: it visits an object that is shared with it
        if self.shared is not None and (visitor := await self._visitor(request, principal, self.shared)) is not None:
            request.state.principal = visitor
            return
        if not is_allowed(principal.roles, self.may):
            raise Forbidden(rights.missing(principal, self.may))
        if self.changes_rights and not rights.is_fresh(principal, services_of(request).clock.wall_ns()):
            raise SignInAgain
        if self.changes_rights and not self.keeps_limits:
            await check_unlimited(services_of(request), principal)

    async def _visitor(self, request: Request, principal: Principal, needed: Level) -> Principal | None:
        """The caller as an object's project lets it act there; None: no share of the object says anything."""
        first: Principal | None = getattr(request.state, "first", None)
        if first is not None and first.own_account_id is None:
            return None  # a long request that began without a share
        found = _object_of(request)
        if found is None:
            return None
        kind, named = found
        visit = await services_of(request).identity.object_shares.visit(principal, kind, named, self.may, needed)
        if visit is None:
            return None
        if kind is ObjectKind.TEMPLATE:
            request.path_params["name"] = visit[1].object_id
        return visit[0]


async def check_unlimited(services: Services, principal: Principal) -> None:
    """Raises Forbidden for a token with a spending limit: what it asks for could be used without the limit."""
    if await services.spending.is_limited(principal):
        raise Forbidden("A token with a spending limit makes and ends no rights but tokens. Sign in without it.")


def _object_of(request: Request) -> tuple[ObjectKind, str] | None:
    """The object that a request is about, which its path names; of events, which name none there, their subject."""
    path = request.path_params
    if "cluster_id" in path:
        return ObjectKind.CLUSTER, path["cluster_id"]
    if "job_id" in path:
        return ObjectKind.JOB, path["job_id"]
    if "owner_kind" in path:
        kind, named = path["owner_kind"], path["owner_id"]
    elif "name" in path:
        return ObjectKind.TEMPLATE, path["name"]
    else:
        named = path.get("entry_id") or request.query_params.get("subject", "")
        kind = named.partition("_")[0]
    return (ObjectKind(kind), named) if kind in (ObjectKind.CLUSTER, ObjectKind.JOB) else None


Declarations = Mapping[tuple[str, str], Declaration]
"""By method and path."""


def declaration_of(route: BaseRoute) -> Declaration:
    """The rules of a route; raises LookupError where it has none."""
    for one in route.dependencies if isinstance(route, APIRoute) else ():
        if isinstance(one.dependency, Declaration):
            return one.dependency
    raise LookupError(f"The route {getattr(route, 'path', route)} declares no permission.")


async def authorise(request: Request) -> None:
    """Refuse whoever may not ask the route of this request."""
    await declaration_of(request.scope["route"])(request)
