"""Routes of secrets: set, list and delete. No answer has a value."""

from typing import Annotated, Any, Final

from fastapi import Path
from pydantic import Field, SecretStr

from windrow_master.api import answers
from windrow_master.api.auth import Reach
from windrow_master.api.bodies import Body
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.paging import Cursor, Limit, page_of
from windrow_master.api.route import Routes
from windrow_master.identity.decide import Permission
from windrow_master.secrets.model import SECRETS_MAX, SecretKind
from windrow_master.secrets.service import SecretView
from windrow_master.spec import SECRET_NAME

route = Routes("secrets")

NAME_WORDS: Final = "At most 64 capital letters, digits and underscores; the first a letter"
Name = Annotated[str, Path(pattern=f"^{SECRET_NAME}$", description=NAME_WORDS)]
CHARS_MAX: Final = 96 * 1024
"""More than the longest value in base64."""


class SecretBody(Body):
    """The value of a secret. Hosts of work that names the secret get it. It is never shown again."""

    value: Annotated[
        SecretStr,
        Field(
            max_length=CHARS_MAX,
            description="1 to 65,536 bytes. Text without NUL; file: its base64; registry: NAME:PASSWORD",
        ),
    ]
    kind: Annotated[
        SecretKind,
        Field(description="text, file (its variable holds base64) or registry (a login for images)"),
    ] = SecretKind.TEXT


class SecretUserOut(answers.Out):
    """Work or a template that names a secret."""

    kind: Annotated[str, Field(description="job, machine or template")]
    id: str
    name: str
    is_waiting: Annotated[
        bool, Field(description="True if it still needs the value: it waits for a place, or is stopped")
    ]


class SecretOut(answers.Out):
    """A secret, without its value."""

    name: str
    kind: str
    created_at: answers.Time
    created_by: str
    updated_at: answers.Time
    updated_by: str
    last_used_at: answers.Time | None
    last_used_by: Annotated[str | None, Field(description="The machine that got the value last")]
    used_by: Annotated[list[SecretUserOut], Field(description="Machines and jobs that have not ended, and templates")]


class SecretDeletedOut(answers.Out):
    """A secret that was deleted."""

    name: str
    used_by: Annotated[list[SecretUserOut], Field(description="Machines, jobs and templates that still name it")]
    warning: Annotated[str | None, Field(description="The work that will fail without it; null: none")]


def secret_json(view: SecretView) -> dict[str, Any]:
    """As the API shows it."""
    return SecretOut.of(view.secret, used_by=_users(view))


def _users(view: SecretView) -> list[dict[str, Any]]:
    return [SecretUserOut.of(one) for one in view.users]


@route.get("/secrets", may=Permission.SECRETS_READ, answer=answers.Page[SecretOut])
async def secrets(services: Serving, principal: Asking, limit: Limit = SECRETS_MAX, cursor: Cursor = None) -> Any:
    """The secrets of the project, by name, without their values."""
    return page_of(await services.secrets.list(principal), limit, cursor, secret_json, lambda one: one.secret.name)


@route.get("/secrets/{name}", may=Permission.SECRETS_READ, reach=Reach.OWN, answer=SecretOut)
async def secret(services: Serving, principal: Asking, name: Name) -> Any:
    """One secret of the project, without its value."""
    return secret_json(await services.secrets.get(principal, name))


@route.put("/secrets/{name}", may=Permission.SECRETS, reach=Reach.ALL, answer=SecretOut)
async def set_secret(services: Serving, principal: Asking, name: Name, body: SecretBody) -> Any:
    """Create or replace a secret. Work that runs keeps the old value."""
    return secret_json(await services.secrets.set(principal, name, body.kind, body.value.get_secret_value()))


@route.delete("/secrets/{name}", may=Permission.SECRETS, reach=Reach.OWN, answer=SecretDeletedOut)
async def delete_secret(services: Serving, principal: Asking, name: Name) -> Any:
    """Delete a secret. Work that runs keeps the value; jobs that name it and wait for a place will fail."""
    view = await services.secrets.delete(principal, name)
    waiting = ", ".join(f"{one.kind} {one.name} ({one.id})" for one in view.users if one.is_waiting)
    warning = f"These will fail unless the secret {name} is set again: {waiting}." if waiting else None
    return {"name": name, "used_by": _users(view), "warning": warning}
