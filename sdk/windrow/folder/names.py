"""Names of files: which stay here, which look like secrets, and which a host may never write.

What may not come back is this fixed list, at any depth; ignore files decide what is sent, and never what returns.
"""

import os
import re
import unicodedata
from collections.abc import Collection
from fnmatch import fnmatchcase
from typing import Final

LEFT_BEHIND: Final = (
    ".git", ".hg", ".svn", ".ssh", ".venv", "venv", "node_modules", "__pycache__", ".windrow", ".mypy_cache",
    ".ruff_cache", ".pytest_cache", ".tox", ".DS_Store",
)  # fmt: skip
"""Made by tools, large, or meaningless on another machine: never sent, and never written by what comes back."""
CACHES: Final = frozenset({"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".cache", ".ds_store"})
"""Of what may not come back, what every program leaves and nobody misses: not worth a line."""
IGNORE_FILES: Final = (".windrowignore", ".gitignore")
"""They decide what is sent the next time, so a host does not write them."""
ENVIRONMENT_MARK: Final = "pyvenv.cfg"
"""In a folder that is a Python environment, whatever its name."""
PART_PREFIX: Final = ".windrow-part-"
"""How a file begins that is still being written."""
NAME_BYTES_MAX: Final = 1024
"""Of a path below the folder: what an agent takes."""
DEPTH_MAX: Final = 128
PATH_BYTES_MAX: Final = 4096
"""Of what comes back: no more can be opened here."""
HEAD_BYTES_MAX: Final = 4096
"""A file `HEAD` of at most so many bytes can turn its folder into a repository whose settings git obeys; a longer one
where it begins as git wants it to."""
_HEAD: Final = re.compile(rb"ref:|[0-9a-fA-F]{40}")

SECRET_FOLDERS: Final = (".aws", ".azure", ".gnupg", ".kaggle", ".kube", ".gcloud", ".oci", ".password-store")
SECRET_PATHS: Final = (
    ".config/gcloud", ".config/gh", ".docker/config.json", ".cargo/credentials.toml", ".gem/credentials",
    "huggingface/token", ".huggingface/token", "huggingface/stored_tokens",
)  # fmt: skip
"""By the end of their path."""
SECRET_NAMES: Final = (
    ".env", ".env.*", "*.env", ".envrc", "*.pem", "*.key", "*.p12", "*.pfx", "*.ppk", "*.jks", "*.keystore", "*.kdbx",
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".pypirc",
    ".git-credentials", ".htpasswd", ".vault-token", ".boto", ".s3cfg", ".dockerconfigjson", ".dockercfg", ".npmrc",
    "credentials", "*credentials*.json", "client_secret*.json", "*service*account*.json", "*-key.json", "*_key.json",
    "*_api_key", "*_token", "*_token.txt", "token.json", "token.pickle", "kaggle.json", "rclone.conf", ".rclone.conf",
    "wallet.dat", ".databrickscfg", "secrets.json", "secrets.toml", "secrets.yaml", "secrets.yml", "*.tfvars",
    "*.tfstate", "*.tfstate.backup", ".terraformrc", "kubeconfig",
)  # fmt: skip
OPEN_NAMES: Final = (".env.example", ".env.sample", ".env.template", ".env.dist", "example.env", "*.pub")
"""They look like secrets and are made to be shown."""
WHOLE_SYSTEM: Final = (
    "/boot", "/etc", "/proc", "/sys", "/var/backups", "/var/cache", "/var/log", "/var/mail", "/var/spool",
)  # fmt: skip
"""Folders of the system, with all below them."""
SYSTEM: Final = (
    "/Applications", "/Library", "/System", "/Users", "/bin", "/dev", "/home", "/lib", "/lib64", "/opt", "/root",
    "/run", "/sbin", "/srv", "/usr", "/usr/bin", "/usr/include", "/usr/lib", "/usr/lib64", "/usr/libexec",
    "/usr/local", "/usr/sbin", "/usr/share", "/usr/src", "/var", "/var/lib", "/var/local", "/var/opt", "/var/tmp",
    "/var/www",
)  # fmt: skip
"""The same, where a folder below may be somebody's own."""
SECRET_TEXT: Final = re.compile(
    rb"^-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----\r?$|^PuTTY-User-Key-File-\d|"
    rb"^\s*aws_secret_access_key\s*=\s*[A-Za-z0-9/+]{40}\s*$|\"private_key\"\s*:\s*\"-----BEGIN |"
    rb"^[^#;]*:_(?:authToken|password|auth)\s*=\s*[^\s$]",
    re.MULTILINE | re.IGNORECASE,
)
"""The beginning of a line in a file with a key; a program that only speaks of keys has not."""
SECRET_LOOK_BYTES: Final = 64 * 1024
"""A key is short: of a file so much is looked at."""


def folded(part: str) -> str:
    """A part of a name as the most forgiving file system reads it: without letter case, marks that do not show, and
    what Windows drops at the end."""
    shown = "".join(one for one in part if unicodedata.category(one) not in ("Cf", "Cc", "Mn", "Cs") or one == "\0")
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", shown).casefold())
    return text.partition(":")[0].rstrip(" .") or text


_REFUSED: Final = frozenset(folded(name) for name in LEFT_BEHIND)
_SHORT: Final = re.compile(r"(?:git|hg|svn|ssh|venv|windrow|node_m)~\d", re.IGNORECASE)
"""How Windows names some of them a second time."""


def refused_part(name: str, sent: Collection[str]) -> tuple[str, str] | None:
    """Which part of a name may not come back, as the path up to it, and why; None: it may. sent: what was sent."""
    parts = name.split("/")
    for depth, part in enumerate(parts, 1):
        text, path = folded(part), "/".join(parts[:depth])
        if text in _REFUSED or _SHORT.fullmatch(text):
            return path, "a place that a host never writes"
        if text == ENVIRONMENT_MARK:
            return path, "it would make its folder a Python environment"
        if text in IGNORE_FILES:
            return path, "it decides what is sent"
        if (text.startswith(".") or part.startswith(".")) and name not in sent:
            return path, "a dotfile that was not sent"
    return None


def is_quiet(path: str) -> bool:
    """True if this refusal is worth no line."""
    return any(folded(part) in CACHES for part in path.split("/"))


def is_left_behind(part: str) -> bool:
    """True if a file or folder of this name is never sent."""
    return part in LEFT_BEHIND or part.startswith(PART_PREFIX)


def is_secret_name(name: str, *, is_folder: bool) -> bool:
    """True if a file or folder is a secret by its name."""
    path, last = f"/{name.lower()}", name.rpartition("/")[2].lower()
    if any(path.endswith(f"/{one}") for one in SECRET_PATHS):
        return True
    if is_folder:
        return last in SECRET_FOLDERS
    if any(fnmatchcase(last, pattern) for pattern in OPEN_NAMES):
        return False
    return any(fnmatchcase(last, pattern) for pattern in SECRET_NAMES)


def is_git_head(start: bytes) -> bool:
    """True if git takes a file `HEAD` that begins so, of any length, for that of a repository."""
    return _HEAD.match(start) is not None


def is_secret_text(head: bytes) -> bool:
    """True if a file that begins so holds a private key."""
    return SECRET_TEXT.search(head) is not None


def path_flaw(parts: list[str]) -> str | None:
    """Why this is no path below a folder; None: it is one."""
    if not parts or ".." in parts:
        return "it leads out of the folder"
    if any("\0" in part for part in parts):
        return "its name holds a NUL"
    if sum(len(os.fsencode(part)) + 1 for part in parts) > PATH_BYTES_MAX:
        return f"its name has more than {PATH_BYTES_MAX} bytes"
    if len(parts) > DEPTH_MAX:
        return f"it lies more than {DEPTH_MAX} folders deep"
    return None


def link_target(parent: list[str], target: str) -> list[str] | None:
    """Returns the target of a link in this folder, below the root; None: out of it, or nowhere that can be told.

    Only steps up and then down: a step up behind a name could leave by a link of that name.
    """
    if not target or target.startswith("/") or "\0" in target or len(target) > 4095:
        return None
    steps = [step for step in target.split("/") if step not in ("", ".")]
    up = 0
    while up < len(steps) and steps[up] == "..":
        up += 1
    if ".." in steps[up:] or up > len(parent):
        return None
    return [*parent[: len(parent) - up], *steps[up:]]
