"""The names under which an Access is found in DNS: what agents ask for, and what an operator's records must say.
Pure."""

import re
from typing import Final

from windrow_proto.errors import InvalidInput

SERVICE: Final = "_windrow-access._tcp"
"""Before a domain: its service records (SRV)."""
DEFAULT_PORT: Final = 7443
"""An Access's, where a name has no service record that says another."""
NAME_CHARS_MAX: Final = 253
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")


def check_name(text: str) -> str:
    """A host's name in lower case without its last dot; raises InvalidInput if it cannot be one (IDN: as xn--...)."""
    name = text.lower().removesuffix(".")
    if not name or len(name) > NAME_CHARS_MAX or not all(_LABEL.fullmatch(label) for label in name.split(".")):
        raise InvalidInput(f"{text[:260]!r} is not a name that DNS can be asked for.")
    return name
