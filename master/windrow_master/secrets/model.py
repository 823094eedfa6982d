"""The values of secrets: a secret as its row keeps it, what a request names, and who names a secret. Pure."""

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from windrow_master.spec import Work
from windrow_proto.errors import InvalidInput
from windrow_proto.ids import AccountId
from windrow_proto.sealed import LOGIN_MAX, RegistryLogin

SECRETS_MAX: Final = 200
"""Of one project: they are listed at once."""
VALUE_BYTES_MAX: Final = 64 * 1024
"""Of one value. In base64 it is 87,384 characters; Linux takes 131,071 of one variable with its name."""


class SecretKind(StrEnum):
    """The kind of a secret. TEXT: the variable holds it as it is. FILE: any bytes; the variable holds them in base64.
    REGISTRY_LOGIN: NAME:PASSWORD of a registry of images; no variable holds it."""

    TEXT = "text"
    FILE = "file"
    REGISTRY_LOGIN = "registry_login"


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """A secret of a project. sealed: its value under a data key of its own; wrapped_key: that key (sealing.py).
    created_by, updated_by: actors; last_used_by: the cluster that was last given the value."""

    account_id: AccountId
    name: str
    kind: SecretKind
    wrapped_key: bytes = field(repr=False)
    sealed: bytes = field(repr=False)
    created_at_ns: int
    created_by: str
    updated_at_ns: int
    updated_by: str
    last_used_at_ns: int | None = None
    last_used_by: str | None = None


@dataclass(frozen=True, slots=True)
class SecretUser:
    """Work or a template that names a secret. kind: job, cluster or template. is_waiting: it has not been given the
    value, and will need it."""

    kind: str
    id: str
    name: str
    is_waiting: bool


@dataclass(frozen=True, slots=True)
class Opened:
    """The values for one launch. variables: by their names."""

    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    login: RegistryLogin | None = field(default=None, repr=False)


def variables_of(request: Work) -> tuple[tuple[str, str], ...]:
    """The variables that a request takes from secrets, each as (variable, secret): `NAME` is the variable NAME,
    `NAME=VARIABLE` another one."""
    found = (given.partition("=") for given in request.secrets)
    return tuple((variable or name, name) for name, _, variable in found)


def names_in(request: Work) -> frozenset[str]:
    """The names of all secrets that a request needs."""
    login = {request.registry_secret} if request.registry_secret is not None else set[str]()
    return frozenset(name for _, name in variables_of(request)) | login


def by_name(naming: Iterable[tuple[SecretUser, Work]]) -> dict[str, list[SecretUser]]:
    """Those who name secrets, by the names."""
    found: dict[str, list[SecretUser]] = {}
    for user, request in naming:
        for name in names_in(request):
            found.setdefault(name, []).append(user)
    return found


def parsed(kind: SecretKind, value: str) -> bytes:
    """The bytes of a value as it was given: a text, base64 of a file, NAME:PASSWORD. Raises InvalidInput, without a
    word of the value."""
    try:
        raw = base64.b64decode(value, validate=True) if kind is SecretKind.FILE else value.encode()
    except ValueError:  # also of a text that is no Unicode
        must = "base64" if kind is SecretKind.FILE else "text in UTF-8"
        raise InvalidInput(f"value must be {must} for a secret of the kind {kind}.", subject="value") from None
    if not 1 <= len(raw) <= VALUE_BYTES_MAX:
        raise InvalidInput(
            f"value must have 1 to {VALUE_BYTES_MAX:,} bytes; this one has {len(raw):,}.", subject="value"
        )
    if kind is not SecretKind.FILE and b"\0" in raw:
        words = "value must be text without NUL, which no variable can hold. Keep other bytes as the kind file."
        raise InvalidInput(words, subject="value")
    if kind is SecretKind.REGISTRY_LOGIN:
        login_of(raw)
    return raw


def variable_of(kind: SecretKind, raw: bytes) -> str:
    """The value as a variable holds it."""
    return base64.b64encode(raw).decode() if kind is SecretKind.FILE else raw.decode()


def login_of(raw: bytes) -> RegistryLogin:
    """The login that a value holds. Raises InvalidInput where it holds none."""
    username, _, password = raw.decode().strip().partition(":")
    if not username or not password or "\n" in password or len(raw) > LOGIN_MAX // 2:
        words = f"value must be NAME:PASSWORD on one line of at most {LOGIN_MAX // 2:,} bytes for a registry login."
        raise InvalidInput(words, subject="value")
    return RegistryLogin(username, password)
