"""Removes secrets from log lines: a second defence, for the day when somebody logs one by mistake. Pure.

By the name of a field, whatever is in it; and by the looks of a text, whatever it is called.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

HIDDEN: Final = "[redacted]"
NAMES: Final = frozenset(
    {
        *("token", "tokens", "join_token", "secret", "password", "passwd", "authorization", "cookie", "set_cookie"),
        *("private_key", "key_pem", "tls_key_pem", "raw", "proof", "csrf", "credentials", "database_url", "redis_url"),
    }
)
"""Fields that are never logged, in lower case with `_` for `-`. Ids (`token_id`) are: they open nothing."""
LOOKS: Final = re.compile(
    r"w[tjs]_[A-Za-z0-9_-]{30,}(?:\.[0-9a-f]{32})?"  # tokens, join tokens, sessions
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|(?<=://)[^/\s:@]*:[^/\s@]+(?=@)"  # name and password in an address
    r"|(?i:\bbearer\s+)[A-Za-z0-9._~+/=-]{16,}",
    re.DOTALL,
)
DEPTH_MAX: Final = 4
"""Deeper than any event of ours nests; what lies below is hidden whole."""


def redacted(value: Any, depth: int = 0) -> Any:
    """The value without secrets, for printing; what is not text or a plain container is shown as it prints."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if depth > DEPTH_MAX:
        return HIDDEN
    if isinstance(value, str):
        return LOOKS.sub(HIDDEN, value)
    if isinstance(value, bytes | bytearray):
        return LOOKS.sub(HIDDEN, value.decode("latin-1"))
    if isinstance(value, Mapping):
        return {key: _field(str(key), item, depth) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [redacted(item, depth + 1) for item in value]
    return LOOKS.sub(HIDDEN, str(value))


def _field(name: str, value: Any, depth: int) -> Any:
    return HIDDEN if name.lower().replace("-", "_") in NAMES else redacted(value, depth + 1)


def processor(_logger: Any, _method: str, event: Mapping[str, Any]) -> dict[str, Any]:
    """For structlog: the last before the renderer, so that the text of exceptions has passed it too."""
    return {str(key): value if str(key).startswith("_") else _field(str(key), value, 0) for key, value in event.items()}
