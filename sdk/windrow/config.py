"""Finds the Master's address and the user's credentials: flags, environment, the nearest `.windrow/` upward, the user's
own configuration.

The only module of the SDK that reads the environment.
"""

import ipaddress
import json
import os
import re
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from windrow.errors import InvalidInput, NoMaster, NotSignedIn, WindrowClientError

PROXIES: Final = frozenset({"http_proxy", "https_proxy", "all_proxy"})
"""Variables that HTTP libraries read, in either case."""
DEADLINE_S = 30.0
"""A request that streams nothing is answered in milliseconds; half a minute without an answer means nobody is there."""
OWN_TOKEN: Final = r"\bw[jlst]_[A-Za-z0-9_-]{40,}"
"""How a token, a session, a sign-in link's and a join token's secret look: a regular expression."""


def variable(name: str, line: str = "") -> str:
    """Returns the value of a variable of this process' environment. line: the place in a file that names it, whose text
    may be a secret. Raises InvalidInput where it has nothing."""
    value = os.environ.get(name)
    if value is None and line:
        raise InvalidInput(f"{line}: NAME=VALUE is expected, or the name of a variable that this shell has.")
    if value is None:
        raise InvalidInput(f"--env {name}: this shell has no variable {name}. Set it, or write {name}=value.")
    return value


@dataclass(frozen=True, slots=True)
class Config:
    """How to reach a Master. ca_file: PEM of its authority where it serves its own certificate. allows_plain_http:
    whether the token may go over a network where others can read it. token_id, expires_at: of the token, as the Master
    said at the login; empty: not known."""

    url: str
    token: str
    ca_file: str | None = None
    source: str = "arguments"
    allows_plain_http: bool = False
    token_id: str = ""
    expires_at: str = ""

    def __post_init__(self) -> None:
        """Strips the line ends of files and secrets. Raises InvalidInput for the address and NotSignedIn for the token,
        without a word of it."""
        object.__setattr__(self, "token", self.token.strip())
        object.__setattr__(self, "url", _checked_url(self.url.strip(), self.source))
        if not self.token.isascii() or not self.token.isprintable() or " " in self.token:
            raise NotSignedIn(
                f"The token from {self.source} is not valid: it contains a blank, a newline or another character that "
                "no token has. Nothing was sent. Correct it there."
            )

    def __repr__(self) -> str:
        return f"Config(url={self.url!r}, token='***', source={self.source!r})"


def wants_traceback() -> bool:
    """True if a fault of ours is to be shown with all that Python says of it."""
    return os.environ.get("WINDROW_TRACEBACK", "") not in ("", "0")


def has_display() -> bool:
    """True if a browser that is opened here is seen by whoever runs the command."""
    return sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def confirm_above() -> Decimal | None:
    """The price per hour above which a person confirms before something is rented: WINDROW_CONFIRM_ABOVE, else
    `confirm_above` in the user's file; None: nobody set it. Raises InvalidInput."""
    text, source = os.environ.get("WINDROW_CONFIRM_ABOVE"), "WINDROW_CONFIRM_ABOVE"
    if not text:
        source = str(user_file())
        text = _kept_record().get("confirm_above")
    try:
        found = None if text in (None, "") else Decimal(str(text))
    except ArithmeticError:
        found = Decimal("NaN")
    if found is not None and not found.is_finite():
        raise InvalidInput(f"{source} names no price per hour to confirm above: {text!r}. Write for example 5.00")
    return found


def _kept_record() -> dict[str, Any]:
    """What the user's file holds, whatever it is; nothing where it cannot be read."""
    with suppress(OSError, ValueError):
        record = json.loads(user_file().read_text())
        return record if isinstance(record, dict) else {}
    return {}


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        raise WindrowClientError("This user has no home folder. Set HOME to a folder that can be written.") from None


def user_file() -> Path:
    """The user's own configuration file."""
    base = os.environ.get("XDG_CONFIG_HOME") or str(_home() / ".config")
    return Path(base) / "windrow" / "config.json"


def ssh_folder() -> Path:
    """Returns the folder with this user's keys of OpenSSH."""
    return _home() / ".ssh"


def transfers_folder() -> Path:
    """Returns the folder with the records of what was sent with runs and jobs, and of what has come back."""
    return state_folder().parent / "transfers"


def state_folder() -> Path:
    """Returns the folder for files that can be had again: how to reach the workers of clusters."""
    base = os.environ.get("XDG_STATE_HOME") or str(_home() / ".local" / "state")
    return Path(base) / "windrow" / "workers"


def proxies(url: str) -> list[str]:
    """Returns the variables that name a proxy on the way to this address; none for this machine, which no proxy can
    reach for us."""
    if is_loopback(urlsplit(url).hostname or ""):
        return []
    return [name for name, value in os.environ.items() if value and name.lower() in PROXIES]


def _checked_url(url: str, source: str) -> str:
    """The address without what it may not hold. Raises InvalidInput."""
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_address = False
    if not is_address or not url.isprintable() or " " in url:
        raise InvalidInput(
            f"The Master's address from {source} is not valid. Write it like https://market.example:8443"
        )
    if (
        parts.username is not None
        or parts.password is not None
        or parts.query
        or parts.fragment
        or re.search(OWN_TOKEN, url)
    ):
        raise InvalidInput(
            f"The Master's address from {source} contains more than a host and a port: a user name, a password or "
            "a query. Write it like https://market.example:8443 and give the token separately."
        )
    return url.rstrip("/")


def refuse_plain_http(config: Config) -> Config:
    """The same, where its token stays on this machine, is sealed on its way, or may be read there. Raises
    InvalidInput."""
    parts = urlsplit(config.url)
    if parts.scheme == "https" or config.allows_plain_http or is_loopback(parts.hostname or ""):
        return config
    raise InvalidInput(
        f"{config.url} is plain HTTP to another machine: anybody on the way can read your token and act as "
        "you. Use its https:// address. If the way is safe, as in a VPN: windrow login --insecure-http, or "
        "WINDROW_INSECURE_HTTP=1"
    )


def _refuse_other_machines(path: Path, found: Config) -> None:
    """Raise WindrowClientError where a folder names a Master on another machine: `windrow up` writes none, so the file
    came with somebody's files, and our work and secrets would go there."""
    host = urlsplit(found.url).hostname or ""
    if not is_loopback(host) and not _is_of_this_machine(host):
        raise WindrowClientError(
            f"{path} names {found.url}, which is another machine; `windrow up` writes only Masters of this "
            "machine there, so the file may be somebody else's. Nothing was sent. If you mean that Master: "
            f"remove the file, and windrow login {found.url}"
        )


def _is_of_this_machine(host: str) -> bool:
    """True if an interface of this machine has this address."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind((str(ipaddress.ip_address(host)), 0))
        return True
    except (OSError, ValueError):
        return False


def is_loopback(host: str) -> bool:
    """True for names and addresses of this machine that no other machine can answer."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _refuse_strangers(path: Path, opened: os.stat_result) -> None:
    """Raise WindrowClientError where somebody else can have written this file, or have put it, or a link, in its place:
    what came with somebody's repository must not name the Master that gets our folder and token."""
    if opened.st_mode & 0o077:
        raise WindrowClientError(
            f"{path} can be read by others, so `windrow` did not write it. If it is yours: chmod 600 {path}"
        )
    folder = path.parent
    for place, facts in (
        (path, opened), (path, path.lstat()), (folder, folder.lstat()), (folder, folder.stat()),
    ):  # fmt: skip
        if facts.st_uid not in (os.geteuid(), 0):
            raise WindrowClientError(
                f"{place} belongs to user {facts.st_uid}, and you are {os.geteuid()}: it could send you to a Master of "
                "theirs. If you mean that Master: windrow login URL, and run this elsewhere."
            )
    if folder.stat().st_mode & 0o1002 == 0o002:
        raise WindrowClientError(f"Everybody can write in {folder}, so {path} is not trusted: chmod o-w {folder}")


def _read(path: Path) -> Config | None:
    try:
        with path.open() as file:
            _refuse_strangers(path, os.fstat(file.fileno()))
            record = json.load(file)
        if "local_url" in record:
            # A Master of this machine: whoever took its port while it was down is told no token.
            return Config(str(record["local_url"]), str(record["token"]), str(record["ca_pem"]), source=str(path))
        is_plain = record.get("insecure_http") is True
        of_token = str(record.get("token_id", "")), str(record.get("expires_at", ""))
        return Config(str(record["url"]), str(record["token"]), record.get("ca_file"), str(path), is_plain, *of_token)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise WindrowClientError(
            f"{path} cannot be read ({error}). Remove it, or run `windrow login` again."
        ) from error


def find(url: str | None = None, token: str | None = None, start: Path | None = None) -> Config:
    """The Master to use; raises NoMaster when nothing names one.

    Order: arguments, WINDROW_URL and WINDROW_TOKEN, `.windrow/cli.json` in this folder or above, the user's file.
    """
    url = url or os.environ.get("WINDROW_URL")
    token = token or os.environ.get("WINDROW_TOKEN")
    is_plain = os.environ.get("WINDROW_INSECURE_HTTP", "") not in ("", "0")
    if url and token:
        ca_file = os.environ.get("WINDROW_CA_FILE")
        return refuse_plain_http(Config(url, token, ca_file, "arguments or environment", is_plain))
    here = (start or Path.cwd()).resolve()
    candidates = [folder / ".windrow" / "cli.json" for folder in (here, *here.parents)] + [user_file()]
    for path in candidates:
        found = _read(path)
        if found is not None:
            if url is None and path != candidates[-1]:
                _refuse_other_machines(path, found)
            is_plain = is_plain or (found.allows_plain_http and url is None)
            source = found.source if url is None and token is None else f"arguments, environment or {found.source}"
            return refuse_plain_http(Config(url or found.url, token or found.token, found.ca_file, source, is_plain))
    raise NoMaster


def save_authority(ca_hash: str, pem: bytes) -> str:
    """Keep the authority's certificate of a Master beside the user's file; returns where."""
    path = user_file().with_name(f"ca-{ca_hash}.pem")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_bytes(pem)
    return str(path)


def known_authority(url: str) -> str | None:
    """The file with the certificate authority of the Master at this address, where a login or the installation of this
    command has left one; None: none is known."""
    with suppress(WindrowClientError):  # a file that is broken is about to be replaced
        found = kept()
        if found is not None and found.ca_file and found.url.rstrip("/") == url.rstrip("/"):
            return found.ca_file
    base = Path(os.environ.get("XDG_DATA_HOME") or _home() / ".local" / "share") / "windrow"
    with suppress(OSError):
        if (base / "url").read_text().strip() == url.rstrip("/") and (base / "ca.pem").is_file():
            return str(base / "ca.pem")
    return None


def kept() -> Config | None:
    """What `windrow login` keeps in the user's file; None: nothing, or a link to a market on this machine. Raises
    WindrowClientError."""
    path = user_file()
    return None if path.is_symlink() else _read(path)


def forget() -> Path | None:
    """Remove the user's file, or the link in its place, and return where it was; None: there was none."""
    path = user_file()
    try:
        path.unlink()
    except FileNotFoundError:
        return None
    return path


def save(config: Config) -> Path:
    """Write the user's file (0600) and return where. Replaces a link to a market on this machine, never its file."""
    path = user_file()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    record: dict[str, Any] = {"url": config.url, "token": config.token, "ca_file": config.ca_file}
    record |= {"token_id": config.token_id, "expires_at": config.expires_at} if config.token_id else {}
    record |= {"insecure_http": True} if config.allows_plain_http else {}
    if path.is_symlink():
        path.unlink()
    record |= {name: value for name, value in _kept_record().items() if name == "confirm_above"}
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(record, file)
    path.chmod(0o600)
    return path
