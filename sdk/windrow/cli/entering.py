"""Entry into a box: whose keys it is given when it is made, and where its SSH and its notebook are found afterwards."""

import re
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
_USER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,63}", re.ASCII)
"""The names that a user may have: somebody's own settings of OpenSSH may give the name to a shell."""

_KEY: Final = re.compile(
    r"(ssh-(ed25519|rsa)|ecdsa-sha2-nistp(256|384|521)|sk-(ssh-ed25519|ecdsa-sha2-nistp256)@openssh\.com)"
    r" [A-Za-z0-9+/]+={0,3}( .*)?"
)
"""The lines that a box takes: a kind of key, the key, and a comment."""


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
            text = file.read_bytes()[:KEY_FILE_MAX].decode()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"{file} cannot be read: {_why(error)}.") from error
        if "PRIVATE KEY" in text:
            raise InvalidInput(f"{file} is a private key. Keep it, and give the .pub file beside it.")
        lines = [line.strip() for line in text.splitlines()]
        keys = [line for line in lines if line and not line.startswith("#")]
        if not keys:
            raise InvalidInput(f"{file} contains no public key.")
        if odd := [key for key in keys if not _KEY.fullmatch(key)]:
            raise InvalidInput(f"{file} contains a line that is not a public key of OpenSSH: {odd[0][:40]!r}.")
        found += [key for key in keys if key not in found]
    return found


def _why(error: OSError | UnicodeDecodeError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or "it is not text"


def asked(
    kind: str, argv: Sequence[str], files: Sequence[Path], ssh: bool, notebook: bool | None
) -> tuple[list[str], bool]:
    """The keys and whether a notebook is wanted. A box without a command is one to work in: it is given both."""
    is_to_work_in = kind == "box" and not argv
    keys = keys_in(files) if files else own_keys() if ssh and is_to_work_in else []
    return keys, is_to_work_in if notebook is None else notebook


def entry_ports(api: Client, cluster: dict[str, Any]) -> dict[str, Any]:
    """Returns the addresses at which a box is entered; empty: the cluster was not asked to be."""
    request = cluster.get("request") or {}
    return api.box(cluster["id"]) if request.get("ssh_keys") or request.get("notebook") else {}


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
