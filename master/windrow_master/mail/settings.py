"""Reads how mail is sent: `smtp://USER:PASSWORD@HOST:PORT?from=ADDRESS`. Pure."""

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

from windrow_proto.errors import InvalidInput

PORTS: Final = {"smtp": 587, "smtps": 465}


@dataclass(frozen=True, slots=True)
class MailSettings:
    """A mail server. encrypts: TLS from the first byte (smtps). starts_tls: TLS after the first words; the password is
    never sent without one of the two, unless the server is on this machine."""

    host: str
    port: int
    sender: str
    encrypts: bool
    starts_tls: bool
    user: str = ""
    password: str = field(default="", repr=False)

    @property
    def shown(self) -> str:
        """The same for a log."""
        return f"{self.host}:{self.port} from {self.sender}"


def mail_settings(url: str) -> MailSettings:
    """The server of this URL; raises InvalidInput. `starttls=off` is for a server on this machine alone."""
    form = "WINDROW_SMTP_URL looks like smtp://USER:PASSWORD@HOST:PORT?from=ADDRESS, or begins with smtps://."
    try:
        parts = urlsplit(url)
        port = parts.port
        asked = parse_qs(parts.query, strict_parsing=bool(parts.query))
    except ValueError:
        raise InvalidInput(form) from None
    sender = asked.pop("from", [""])[-1]
    starts_tls = asked.pop("starttls", ["on"])[-1]
    if parts.scheme not in PORTS or not parts.hostname or "@" not in sender or asked or starts_tls not in ("on", "off"):
        raise InvalidInput(form)
    is_here = parts.hostname in ("localhost", "127.0.0.1", "::1")
    encrypts = parts.scheme == "smtps"
    if starts_tls == "off" and not encrypts and not is_here:
        raise InvalidInput("WINDROW_SMTP_URL: starttls=off sends mail and password in clear; it is for localhost only.")
    return MailSettings(
        host=parts.hostname,
        port=port or PORTS[parts.scheme],
        sender=sender,
        encrypts=encrypts,
        starts_tls=not encrypts and starts_tls == "on",
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
    )
