"""Where the Master is and who we are: flags, environment, the nearest `.windrow/` upward, the user's own configuration.

The only module of the SDK that reads the environment.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from windrow.errors import NoMaster, WindrowClientError

DEADLINE_S = 30.0
"""A request that streams nothing is answered in milliseconds; half a minute without an answer means nobody is there."""


@dataclass(frozen=True, slots=True)
class Config:
    """How to reach a Master. ca_file: PEM of its authority where it serves its own certificate."""

    url: str
    token: str
    ca_file: str | None = None
    source: str = "arguments"

    def __repr__(self) -> str:
        return f"Config(url={self.url!r}, token='***', source={self.source!r})"


def user_file() -> Path:
    """The user's own configuration file."""
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "windrow" / "config.json"


def ssh_folder() -> Path:
    """Where this user's OpenSSH has its keys."""
    return Path.home() / ".ssh"


def state_folder() -> Path:
    """Where this user keeps what can be had again: how to reach the workers of clusters."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "windrow" / "workers"


def has_proxy() -> bool:
    """Whether the environment names a proxy for HTTP."""
    return any(name.lower() in ("http_proxy", "https_proxy", "all_proxy") for name in os.environ)


def _read(path: Path) -> Config | None:
    try:
        with path.open() as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                # What came with somebody's repository must not name the Master that gets our folder and token.
                raise WindrowClientError(
                    f"{path} can be read by others, so `windrow` did not write it. If it is yours: chmod 600 {path}"
                )
            record = json.load(file)
        if "local_url" in record:
            # A Master of this machine: whoever took its port while it was down is told no token.
            return Config(str(record["local_url"]), str(record["token"]), str(record["ca_pem"]), source=str(path))
        return Config(str(record["url"]), str(record["token"]), record.get("ca_file"), source=str(path))
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
    if url and token:
        return Config(url.rstrip("/"), token, os.environ.get("WINDROW_CA_FILE"), source="arguments or environment")
    here = (start or Path.cwd()).resolve()
    candidates = [folder / ".windrow" / "cli.json" for folder in (here, *here.parents)] + [user_file()]
    for path in candidates:
        found = _read(path)
        if found is not None:
            return Config((url or found.url).rstrip("/"), token or found.token, found.ca_file, found.source)
    raise NoMaster


def save_authority(ca_hash: str, pem: bytes) -> str:
    """Keep the authority's certificate of a Master beside the user's file; returns where."""
    path = user_file().with_name(f"ca-{ca_hash}.pem")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_bytes(pem)
    return str(path)


def save(config: Config) -> Path:
    """Write the user's file (0600) and return where."""
    path = user_file()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    record = {"url": config.url, "token": config.token, "ca_file": config.ca_file}
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(record, file)
    path.chmod(0o600)
    return path
