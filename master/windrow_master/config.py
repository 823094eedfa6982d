"""The Master's configuration: built once from arguments and environment, validated whole, printable without secrets.

The only module of this process that reads the environment.
"""

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Final

from windrow_master.mail.settings import MailSettings, mail_settings
from windrow_master.records.rules import AUDIT_DAYS, DAYS_MAX, EVENTS_DAYS, RecordRetention
from windrow_master.storage.s3_store import S3Settings
from windrow_master.storage.s3_store import read_settings as artefact_settings
from windrow_master.store.bus import check_url
from windrow_master.telemetry.settings import HistorySettings, read_settings
from windrow_proto.errors import InvalidInput
from windrow_proto.master_process import (
    HEALTH_PORT,
    HTTP_PORT,
    HTTPS_PORT,
    POSTGRESQL_PREFIX,
    TRUNK_PORT,
    secret_setting,
)
from windrow_proto.networks import Network, parse_networks
from windrow_proto.version import VERSION

MEASURE_MIB: Final = 256
MEASURE_MIB_MAX: Final = 2048
"""The most that an agent moves in one measurement, whatever it is asked."""
LOG_LEVELS: Final = ("debug", "info", "warning", "error")
SQLITE_PREFIX: Final = "sqlite:///"


@dataclass(frozen=True, slots=True)
class Config:
    """One Master process.

    database: its URL. listen: the address that HTTPS and the trunk bind to; HTTP is always on loopback. public: the
    name or address by which other machines reach this one. health_port: on loopback, for /healthz alone. A port of
    None: the usual one, or the next that is free.
    """

    data_dir: Path
    database: str
    listen: str
    public: str
    http_port: int | None
    https_port: int | None
    trunk_port: int | None
    health_port: int | None
    log_level: str
    names: tuple[str, ...] = ()
    """Further DNS names and addresses under which HTTP is answered, such as those of a proxy."""
    trusted_proxies: tuple[Network, ...] = ()
    """Reverse proxies whose `X-Forwarded-For` is believed; from anybody else it is ignored."""
    redis_url: str = ""
    """Redis or Valkey, which other Masters of the same database share; empty: the bus is this process'."""
    rate_limits: bool = True
    proofs: bool = True
    """Rent each host for a moment, soon after it joined and now and then, to see what a renter would see."""
    measure_mib: int = MEASURE_MIB
    """How much one measurement of a host's bandwidth may move each way: less is cheaper, and less exact."""
    retention: RecordRetention = field(default_factory=RecordRetention)
    """How long records stay in the database."""
    accept_clock: bool = False
    """Start although this machine's clock cannot be right beside the audit log's last entry."""
    history: HistorySettings = field(default_factory=HistorySettings)
    artefacts: S3Settings | None = None
    """The object store of artefacts; None: a folder of the data directory."""
    waits: bool = False
    """Wait, ready, while another Master uses this data directory, instead of refusing to start; on a database that is
    shared every Master waits for its turn."""
    trusts_local_user: bool = False
    """The registry of resources answers this process' own user on this machine without a token."""
    mail: MailSettings | None = None
    """The server that mail is sent by; None: this market sends none."""
    egress_allow: tuple[Network, ...] = ()
    """Private networks whose servers this Master may ask where people name them, such as those of webhooks."""
    tls_files: tuple[Path, Path] | None = None
    """Certificate chain and key that the operator has from elsewhere, for browsers; None: HTTPS has its own alone."""
    prices: Path | None = None
    """A folder of tables that add to the price book; None: only the shipped offers."""
    supervisor_fd: int | None = None
    """An open socket to `windrow up`, where that started this Master: it makes this a market for development."""

    @property
    def is_shared(self) -> bool:
        """True if other Masters may use the same database, so that one leads and the others wait."""
        return self.database.startswith(POSTGRESQL_PREFIX)

    def printable(self) -> dict[str, str | int | None]:
        """Every setting, for the log; of the database's URL without what may be secret in it."""
        found = {one.name: getattr(self, one.name) for one in fields(self)} | {
            "database": _shown(self.database),
            "redis_url": _shown(self.redis_url) if self.redis_url else "",
            "names": " ".join(self.names),
            "retention": self.retention.shown,
            "trusted_proxies": " ".join(map(str, self.trusted_proxies)),
            "egress_allow": " ".join(map(str, self.egress_allow)),
            "history": self.history.shown,
            "mail": "" if self.mail is None else self.mail.shown,
            "tls_files": "" if self.tls_files is None else str(self.tls_files[0]),
            "artefacts": "folder" if self.artefacts is None else self.artefacts.shown,
        }
        return {name: str(value) if isinstance(value, Path) else value for name, value in found.items()}


def command_line(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    """Returns the parser of `windrow-master` where it serves, with the environment as its flags' defaults."""
    parser = argparse.ArgumentParser(
        prog="windrow-master",
        description="The Windrow Master: the control plane.",
        epilog="Instead of serving: windrow-master backup|restore|check|rebuild-history (each with --help).",
    )
    parser.add_argument("--version", action="version", version=VERSION)
    parser.add_argument("--data-dir", type=Path, default=Path(environment.get("WINDROW_DATA_DIR", ".windrow")))
    parser.add_argument("--listen", default=environment.get("WINDROW_LISTEN", "127.0.0.1"))
    parser.add_argument("--public", default=environment.get("WINDROW_PUBLIC", ""))
    parser.add_argument(
        "--trusted-proxy",
        action="append",
        metavar="ADDRESS/NET",
        help="reverse proxy whose X-Forwarded-For is trusted; repeatable",
    )
    parser.add_argument("--http-port", type=int, default=None, help=f"default {HTTP_PORT}, or the next free one")
    parser.add_argument("--https-port", type=int, default=None, help=f"default {HTTPS_PORT}, or the next free one")
    parser.add_argument("--trunk-port", type=int, default=None, help=f"default {TRUNK_PORT}, or the next free one")
    parser.add_argument("--health-port", type=int, default=None, help=f"default {HEALTH_PORT}, or the next free one")
    for flag, what in (("cert", "certificate chain in PEM, for browsers"), ("key", "key of that certificate")):
        default = environment.get(f"WINDROW_TLS_{flag.upper()}_FILE", "")
        parser.add_argument(f"--tls-{flag}-file", metavar="FILE", default=default, help=what)
    parser.add_argument("--wait", action="store_true", help="stand by while another Master uses the data directory")
    parser.add_argument(
        "--trust-local-user",
        action="store_true",
        help="answer this user's own programs on this machine without a token, in the registry of resources alone",
    )
    parser.add_argument(
        "--prices",
        metavar="DIR",
        default=environment.get("WINDROW_PRICES", ""),
        help="folder of CSV tables that add to the price book",
    )
    parser.add_argument("--supervisor-fd", type=int, default=None, help=argparse.SUPPRESS)  # of `windrow up` alone
    parser.add_argument("--log-level", default=environment.get("WINDROW_LOG_LEVEL", "info"), choices=LOG_LEVELS)
    return parser


def parse(arguments: Sequence[str], environment: Mapping[str, str]) -> Config:
    """Read the command line over the environment; raises InvalidInput with what is wrong."""
    read = command_line(environment).parse_args(list(arguments))
    data_dir = read.data_dir.expanduser().resolve()
    return Config(
        data_dir=data_dir,
        database=_database(secret_setting("WINDROW_DATABASE_URL", environment), data_dir),
        listen=_address("--listen", read.listen),
        public=_address("--public", read.public or _public_of(read.listen)),
        http_port=_port("--http-port", read.http_port),
        https_port=_port("--https-port", read.https_port),
        trunk_port=_port("--trunk-port", read.trunk_port),
        health_port=_port("--health-port", read.health_port),
        log_level=read.log_level,
        names=_names(environment.get("WINDROW_NAMES", "")),
        trusted_proxies=_proxies(read.trusted_proxy, environment),
        redis_url=_redis(secret_setting("WINDROW_REDIS_URL", environment)),
        rate_limits=_switch("WINDROW_RATE_LIMITS", environment),
        proofs=_switch("WINDROW_PROOFS", environment),
        measure_mib=_number("WINDROW_MEASURE_MIB", environment, MEASURE_MIB, MEASURE_MIB_MAX),
        retention=RecordRetention(
            _number("WINDROW_AUDIT_DAYS", environment, AUDIT_DAYS, DAYS_MAX),
            _number("WINDROW_EVENTS_DAYS", environment, EVENTS_DAYS, DAYS_MAX),
        ),
        accept_clock=_switch("WINDROW_ACCEPT_CLOCK", environment, "off"),
        history=read_settings(lambda name: secret_setting(name, environment)),
        artefacts=_artefacts(environment),
        waits=read.wait,
        trusts_local_user=read.trust_local_user,
        mail=mail_settings(smtp_url) if (smtp_url := secret_setting("WINDROW_SMTP_URL", environment)) else None,
        egress_allow=_networks("WINDROW_EGRESS_ALLOW", environment),
        tls_files=_tls_files(read.tls_cert_file, read.tls_key_file),
        prices=Path(read.prices).expanduser().resolve() if read.prices else None,
        supervisor_fd=read.supervisor_fd,
    )


def default_data_dir() -> Path:
    """Return the folder of the state unless a flag says otherwise."""
    return Path(os.environ.get("WINDROW_DATA_DIR", ".windrow"))


def market_of_process() -> Path:
    """The data directory that a command is about: WINDROW_DATA_DIR, else .windrow in this folder or the next above."""
    given = default_data_dir()
    if given.is_absolute() or "WINDROW_DATA_DIR" in os.environ:
        return given
    here = Path.cwd()
    return next((folder / given for folder in (here, *here.parents) if (folder / given).is_dir()), given)


def database_of_process(data_dir: Path) -> str:
    """The URL of the database that a Master of this environment would use with this data directory."""
    return _database(secret_setting("WINDROW_DATABASE_URL", os.environ), data_dir)


def from_process(arguments: Sequence[str]) -> Config:
    """The configuration of this very process."""
    return parse(arguments, os.environ)


def _artefacts(environment: Mapping[str, str]) -> S3Settings | None:
    url = environment.get("WINDROW_ARTEFACTS_URL")
    if not url:
        return None
    keys = [secret_setting(name, environment) or "" for name in ("WINDROW_S3_ACCESS_KEY", "WINDROW_S3_SECRET_KEY")]
    return artefact_settings(url, *keys)


def _redis(url: str | None) -> str:
    return check_url(url) if url else ""


def _switch(name: str, environment: Mapping[str, str], default: str = "on") -> bool:
    text = environment.get(name, default)
    if text not in {"on", "off"}:
        raise InvalidInput(f"{name} is on or off.")
    return text == "on"


def _number(name: str, environment: Mapping[str, str], default: int, most: int) -> int:
    text = environment.get(name, "") or str(default)
    if not text.isdecimal() or not 1 <= int(text) <= most:
        raise InvalidInput(f"{name} is a whole number from 1 to {most}.")
    return int(text)


def _database(url: str | None, data_dir: Path) -> str:
    if not url:
        return f"{SQLITE_PREFIX}{data_dir / 'master.sqlite3'}"
    if url.startswith(SQLITE_PREFIX) and url != SQLITE_PREFIX:
        return SQLITE_PREFIX + str(Path(url.removeprefix(SQLITE_PREFIX)).expanduser().resolve())
    if url.startswith(POSTGRESQL_PREFIX) and url != POSTGRESQL_PREFIX:
        return url
    kind = url.split(":", 1)[0][:32]
    raise InvalidInput(
        f"WINDROW_DATABASE_URL names a {kind} database; the truth is kept in SQLite (sqlite:////absolute/path) or "
        "PostgreSQL (postgresql+psycopg://user@host/name)."
    )


def _shown(url: str) -> str:
    """Neither the password nor the options, where one may stand as well."""
    head, _, rest = url.partition("?")[0].partition("://")
    user, at, place = rest.rpartition("@")
    return f"{head}://{user.partition(':')[0]}{at}{place}"


def _address(flag: str, text: str) -> str:
    if not 1 <= len(text) <= 253 or not all(c.isascii() and (c.isalnum() or c in ".-:") for c in text):
        raise InvalidInput(f"{flag} {text[:60]!r} is neither a DNS name nor an IP address.")
    return text


def _names(text: str) -> tuple[str, ...]:
    return tuple(_address("WINDROW_NAMES", name) for name in text.replace(",", " ").split())


def _tls_files(certificate: str, key: str) -> tuple[Path, Path] | None:
    if bool(certificate) != bool(key):
        raise InvalidInput("WINDROW_TLS_CERT_FILE and WINDROW_TLS_KEY_FILE belong together: give both, or neither.")
    return (Path(certificate).expanduser().absolute(), Path(key).expanduser().absolute()) if key else None


def _proxies(flags: Sequence[str] | None, environment: Mapping[str, str]) -> tuple[Network, ...]:
    if flags:
        return parse_networks(flags, "--trusted-proxy")
    return _networks("WINDROW_TRUSTED_PROXIES", environment)


def _networks(name: str, environment: Mapping[str, str]) -> tuple[Network, ...]:
    return parse_networks(environment.get(name, "").replace(",", " ").split(), name)


def _public_of(listen: str) -> str:
    return "127.0.0.1" if listen in {"0.0.0.0", "::"} else listen


def _port(flag: str, port: int | None) -> int | None:
    if port is not None and not 0 <= port <= 65535:
        raise InvalidInput(f"{flag} {port}: a port is from 0 to 65535 (0: any free one).")
    return port
