"""The Master as a process, for programs that start one on their machine: its ports, its secrets, and how it ends."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from windrow_proto.errors import InvalidInput
from windrow_proto.units import KIB

HTTP_PORT: Final = 8000
HTTPS_PORT: Final = 8443
TRUNK_PORT: Final = 7444
HEALTH_PORT: Final = 8010
POSTGRESQL_PREFIX: Final = "postgresql+psycopg://"
EXIT_HELPLESS: Final = 78
"""The exit code of a daemon that no restart can help (sysexits.h: EX_CONFIG): its last words say how a person can."""
SUPERVISOR_MESSAGE_MAX: Final = 64 * KIB
"""A question of a Master to the supervisor that started it, or its answer, over the socket that it inherited."""
SECRETS: Final = frozenset(
    f"WINDROW_{name}"
    for name in (
        *("DATABASE_URL", "REDIS_URL", "S3_ACCESS_KEY", "S3_SECRET_KEY"),
        *("METRICS_URL", "METRICS_WRITE_URL", "METRICS_TOKEN"),
    )
)
"""Variables that are a secret or may have one in them; nobody but a Master has any business with them."""
PROVIDERS: Final = ("AWS_", "AZURE_", "DIGITALOCEAN_", "GOOGLE_", "HCLOUD_", "MODAL_", "OS_", "SCW_")
"""Beginnings of the variables in which the libraries of providers look for credentials: the Master buys machines."""


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a daemon that is no Master, from that of a Master."""
    return {
        name: value for name, value in environment.items() if name not in SECRETS and not name.startswith(PROVIDERS)
    }


def secret_setting(name: str, environment: Mapping[str, str]) -> str | None:
    """A setting that may hold a password: the variable itself, or the file that the variable with _FILE names. Raises
    InvalidInput."""
    file = environment.get(f"{name}_FILE")
    if not file:
        return environment.get(name)
    if environment.get(name):
        raise InvalidInput(f"{name} and {name}_FILE are both set; give one of them.")
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{name}_FILE names {file[:200]!r}, which cannot be read: {type(error).__name__}.") from None


def is_database_shared(environment: Mapping[str, str]) -> bool:
    """Return whether a Master of this environment would use a database that others may use, too. Raises
    InvalidInput."""
    return (secret_setting("WINDROW_DATABASE_URL", environment) or "").startswith(POSTGRESQL_PREFIX)
