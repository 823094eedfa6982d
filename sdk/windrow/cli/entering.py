"""Entry into a box: whose keys it is given when it is made, and where its SSH and its notebook are found afterwards."""

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from windrow.cli.output import say
from windrow.client import Client
from windrow.config import ssh_folder
from windrow.errors import InvalidInput, WindrowClientError

SSH_PORT: Final = 22
NOTEBOOK_PORT: Final = 8888
"""The port at which people look for Jupyter; a box that is a process on its host has another port there."""
KEY_FILE_MAX: Final = 64 * 1024
SAID_MAX: Final = 128
HEAD_BYTES: Final = 64 * 1024
"""Of a box's log, in which it says what could not be started: that comes before all that its command prints."""
WORDS_S: Final = 10.0
"""For a box that runs to say it: a start of its own server takes less than a second."""
LOOK_S: Final = 0.5
_USER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,63}", re.ASCII)
"""The names that a user may have: somebody's own settings of OpenSSH may give the name to a shell."""

_KEY: Final = re.compile(
    r"(ssh-(ed25519|rsa)|ecdsa-sha2-nistp(256|384|521)|sk-(ssh-ed25519|ecdsa-sha2-nistp256)@openssh\.com)"
    r" [A-Za-z0-9+/]+={0,3}( .*)?"
)
"""The lines that a box takes: a kind of key, the key, and a comment."""


_WAY: Final = re.compile(r"windrow: (?:no )?(?P<way>SSH|notebook)(?: is started\.|: (?P<why>.+))")
"""The line of a box's log that says whether a way in is open."""


def own_keys() -> list[str]:
    """The public keys that OpenSSH's client of this user would show first; none where it has none."""
    found: list[str] = []
    for file in sorted(ssh_folder().glob("id_*.pub")):
        if file.name.endswith("-cert.pub"):
            continue  # a certificate stands beside its key
        try:
            found += [key for key in keys_in([file]) if key not in found]
        except WindrowClientError as error:
            say(f"  {error} This file was passed over.")
    return found


def keys_in(files: Sequence[Path]) -> list[str]:
    """The public keys of these files, a line each; raises InvalidInput, which names the file."""
    found: list[str] = []
    for file in files:
        try:
            with file.open("rb") as opened:
                text = opened.read(KEY_FILE_MAX).decode()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"{file} cannot be read: {_why(error)}.") from error
        if "PRIVATE KEY" in text:
            raise InvalidInput(f"{file} is a private key. Keep it, and give the .pub file beside it.")
        lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
        keys = [(number, line) for number, line in lines if line and not line.startswith("#")]
        if not keys:
            raise InvalidInput(f"{file} contains no public key.")
        if odd := [number for number, key in keys if not _KEY.fullmatch(key)]:
            raise InvalidInput(f"{file} line {odd[0]} is not a public key of OpenSSH.")
        found += [key for _, key in keys if key not in found]
    return found


def _why(error: OSError | UnicodeDecodeError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or "it is not text"


def has_no_ssh(cluster: dict[str, Any]) -> bool:
    """True for a machine to work in that was given no key: nothing of it listens for SSH."""
    request = cluster["request"]
    return request.get("kind", "box") == "box" and not request.get("argv") and not request.get("ssh_keys")


def asked(
    kind: str, argv: Sequence[str], files: Sequence[Path], ssh: bool, notebook: bool | None
) -> tuple[list[str], bool]:
    """The keys and whether a notebook is wanted. A box without a command is one to work in: it is given both."""
    is_to_work_in = kind == "box" and not argv
    keys = keys_in(files) if files else own_keys() if ssh and is_to_work_in else []
    if ssh and is_to_work_in and not keys:
        say(f"  SSH is off: {ssh_folder()} has no public key. Make one with ssh-keygen, or give --ssh-key FILE.pub.")
    return keys, is_to_work_in if notebook is None else notebook


def entry_ports(api: Client, cluster: dict[str, Any]) -> dict[str, Any]:
    """Returns the addresses at which a box is entered; empty: the cluster was not asked to be."""
    request = cluster.get("request") or {}
    return api.box(cluster["id"]) if request.get("ssh_keys") or request.get("notebook") else {}


def ways_in(api: Client, cluster: dict[str, Any]) -> list[str]:
    """Returns how a box that runs is entered, a line for each way that was asked for; or why it cannot be, which the
    box itself says in its log."""
    found, name = entry_ports(api, cluster), cluster["name"]
    asked = {
        "SSH": (found.get("ssh_port"), f"Log in: windrow cluster ssh {name}"),
        "notebook": (found.get("notebook_port"), f"Notebook: windrow cluster forward {name} {NOTEBOOK_PORT}"),
    }
    lines = {what: line for what, (port, line) in asked.items() if port is not None}
    said, until = dict[str, str](), time.monotonic() + WORDS_S
    while lines.keys() - said.keys() and time.monotonic() < until:
        said = _said(api, cluster["id"])
        if lines.keys() - said.keys():
            time.sleep(LOOK_S)
    return [said.get(what) or line for what, line in lines.items()]


def _said(api: Client, cluster_id: str) -> dict[str, str]:
    """What a box has said of each way in so far: why it is not open; empty: it is."""
    head, found = b"", dict[str, str]()
    for piece in api.logs(cluster_id):
        head += piece
        if len(head) >= HEAD_BYTES:
            break
    for line in head.decode(errors="replace").splitlines():
        if match := _WAY.match(line):
            way, why = match["way"], match["why"]
            found.setdefault(way, f"{way[0].upper()}{way[1:]} is off: {why}" if why else "")
    return found


def user_inside(api: Client, cluster_id: str) -> str:
    """As whom the box runs, and so who logs in; raises WindrowClientError."""
    said = b""
    for part in api.execute(cluster_id, ["id", "-un"]):
        if isinstance(part, tuple):
            said += part[1] if part[0] == 1 else b""
            if len(said) > SAID_MAX:
                break
            continue
        name = said.decode(errors="replace").strip()
        if part == 0 and _USER.fullmatch(name):
            return name
    raise WindrowClientError(
        f"{cluster_id} does not tell which user it runs as. Name the user: windrow cluster ssh --user NAME"
    )


def page_url(host: str, local_port: int, token: str | None = None) -> str:
    """Returns the URL at which a browser of this machine opens a forwarded port. host: the cluster's own name under
    localhost."""
    return f"http://{host}:{local_port}/" + (f"?token={token}" if token else "")
