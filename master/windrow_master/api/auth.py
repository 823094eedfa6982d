"""Checks who may call a route and whose objects it reaches: each route carries a Declaration, and the Declaration
lets requests through or refuses them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from windrow_master.api.deps import principal_of, recognises_local_user
from windrow_master.api.sharing import ShareKind
from windrow_master.identity.decide import GRANTS, Permission, is_allowed
from windrow_proto.errors import Forbidden

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
    is_local: bool = False
    """The Master's own user may ask it on the same machine without a token, where the Master allows that
    (local_user.py)."""

    async def __call__(self, request: Request) -> None:
        """Raise Unauthenticated or Forbidden for who may not ask."""
        if self.may is Permission.NOBODY or (self.is_local and recognises_local_user(request)):
            return
        principal = await principal_of(request)
        if not is_allowed(principal.roles, self.may):
            wanted = " or ".join(sorted(GRANTS[self.may]))
            held = ", ".join(sorted(principal.roles)) or "none"
            raise Forbidden(f"This needs the role {wanted}; this token has {held}.")


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
