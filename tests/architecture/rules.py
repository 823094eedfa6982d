"""The rules of the house as functions from a tree to the list of what breaks them; the tests also plant breaches.

Tables first: to open a door, or to say that a file of the Master is a shell, add it to its table with the reason.
"""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from tests.architecture.tree import Module, attributes, calls, imports, members, raised_in_groups

DOORS: dict[str, tuple[str, ...]] = {
    "pynvml": ("agent/windrow_agent/gpu/nvml.py",),
    "psutil": ("agent/windrow_agent/host.py",),
    "docker": ("agent/windrow_agent/runtimes/docker.py", "agent/windrow_agent/runtimes/images.py"),
    "duckdb": ("master/windrow_master/telemetry/duckdb_view.py", "master/windrow_master/telemetry/parquet.py"),
    "sqlalchemy": ("master/windrow_master/store/*",),
    "redis": ("master/windrow_master/store/bus_redis.py",),
    "alembic": ("master/windrow_master/store/*",),
    "fastapi": ("master/windrow_master/api/*",),
    "starlette": ("master/windrow_master/api/*", "master/windrow_master/serving*.py"),
    "uvicorn": ("master/windrow_master/app/serving.py", "master/windrow_master/app/connection_guard.py"),
    "h11": ("master/windrow_master/app/connection_guard.py",),
    "cryptography": (
        "proto/windrow_proto/bodies.py",
        "proto/windrow_proto/keys.py",
        "proto/windrow_proto/data_keys.py",
        "proto/windrow_proto/sealed.py",
        "proto/windrow_proto/tunnel_seal.py",
        "master/windrow_master/identity/authority.py",
        "agent/windrow_agent/onboard.py",
        "sdk/windrow/link.py",
        "sdk/windrow/seal.py",
    ),
    "boto3": ("master/windrow_master/storage/s3_store.py",),
    "botocore": ("master/windrow_master/storage/s3_store.py",),
    "obstore": ("master/windrow_master/storage/s3_store.py",),
    "httpx2": ("sdk/windrow/transport.py",),
    "pathspec": ("sdk/windrow/folder/ignoring.py",),
}
"""Foreign library -> the only files that may import it."""

ENVIRONMENT = ("*/config.py", "master/windrow_master/up/up.py", "master/windrow_master/store/copies.py")
"""The only files that read the environment; the last passes it on to PostgreSQL's own programs."""

IMPURE_LIBRARIES = (
    # what the outside world comes in through
    *("asyncio", "time", "random", "os", "socket", "subprocess", "logging", "grpc", "sqlalchemy", "redis"),
    *("pynvml", "psutil"),
    # and the same under other names
    *("threading", "multiprocessing", "concurrent", "queue", "selectors", "signal", "secrets", "tempfile", "shutil"),
    *("structlog", "docker", "duckdb", "fastapi", "starlette", "uvicorn", "alembic", "httpx2", "sqlite3", "ssl"),
)
IMPURE_CALLS = frozenset(
    {
        *("datetime.now", "datetime.utcnow", "datetime.today", "date.today"),
        *("datetime.datetime.now", "datetime.datetime.utcnow", "datetime.date.today"),
        *("uuid.uuid1", "uuid.uuid4", "uuid1", "uuid4", "open", "input", "print"),
    }
)

PURE = (
    "proto/windrow_proto/*",
    "agent/windrow_agent/core/*",
    "access/windrow_access/core/*",
    "master/windrow_master/*",
)
SHELLS: dict[str, str] = {
    "proto/windrow_proto/link_*.py": "links carry frames over gRPC or memory",
    "proto/windrow_proto/keys.py": "the door to cryptography draws keys",
    "proto/windrow_proto/enrol.py": "joining speaks HTTP and keeps keys in files",
    "proto/windrow_proto/scrape.py": "serves figures on loopback",
    "proto/windrow_proto/oneline.py": "sets up the log of what is no event",
    "proto/windrow_proto/connection.py": "one end of a TCP or TLS connection",
    "proto/windrow_proto/renter_end.py": "dials an Access for a tunnel",
    "proto/windrow_proto/tunnel_socket.py": "TLS on the sockets of tunnels",
    "proto/windrow_proto/tunnel_tls.py": "TLS from end to end of a tunnel",
    "proto/windrow_proto/tunnel_seal.py": "sealed records from end to end of a tunnel",
    "proto/windrow_proto/gather.py": "wakes the writer of a trunk after a moment",
    "proto/windrow_proto/once.py": "wakes the coroutines that wait for what happens once",
    "proto/windrow_proto/patience.py": "a deadline that is put off",
    "proto/windrow_proto/together.py": "runs several coroutines as one",
    "proto/windrow_proto/clock.py": "the system's clock and randomness",
    "proto/windrow_proto/disk.py": "the door to the disk",
    "master/windrow_master/*/service.py": "each room's shell",
    "master/windrow_master/service.py": "a shell by name",
    "master/windrow_master/store/*": "the door to SQL",
    "master/windrow_master/api/*": "the faces to people and to Access",
    "master/windrow_master/*/backends/*": "doors to other providers",
    "master/windrow_master/*/drawings.py": "prints the drawings of the machines when run",
    "master/windrow_master/config.py": "reads the environment",
    "master/windrow_master/storage/folder_store.py": "objects in files of the Master's disk",
    "master/windrow_master/storage/sealing.py": "seals and opens blocks on a thread",
    "master/windrow_master/telemetry/remote/store.py": "the door to a metrics store over HTTP",
    "master/windrow_master/recovery/archive.py": "a backup is a file",
    "master/windrow_master/recovery/backup.py": "reads a data directory into a backup",
    "master/windrow_master/recovery/restore.py": "writes a data directory from a backup",
    "master/windrow_master/recovery/check.py": "looks whether a data directory is whole",
    "master/windrow_master/recovery/command.py": "commands that people run",
    "master/windrow_master/loops.py": "does work again and again, and logs what it met",
    "master/windrow_master/app/main.py": "starts and stops the Master",
    "master/windrow_master/rooms*.py": "wires the rooms to one another",
    "master/windrow_master/app/serving.py": "listens and writes where",
    "master/windrow_master/app/connection_guard.py": "ends connections that only take up a place",
    "master/windrow_master/app/standby.py": "waits for the leader's seat",
    "master/windrow_master/app/logs.py": "sets up the log",
    "master/windrow_master/app/clock.py": "the clock of the whole process, asked from every thread",
    "master/windrow_master/up/supervisor.py": "starts, watches and ends daemons",
    "master/windrow_master/up*.py": "`windrow up`, run by people",
    **{path: f"the door to {library}" for library, paths in DOORS.items() for path in paths},
}
"""Files among the pure that are not, each with its reason."""

ROOMS = ("audit", "identity", "fleet", "telemetry", "placement", "clusters", "market", "hybrid", "watch")
FACES = ("service", "model")
"""What a room shows to the others."""


def doors(root: Path) -> list[str]:
    """Foreign libraries imported elsewhere than at their door."""
    return [
        f"{module.where}:{item.line} imports {library}; its door is {' or '.join(DOORS[library])}"
        for module in members(root)
        for item in imports(module)
        for library in DOORS
        if item.is_of(library) and not _matches(module.where, DOORS[library])
    ]


def environment_readers(root: Path) -> list[str]:
    """Modules that read the environment and are not allowed to."""
    found = []
    for module in members(root):
        if _matches(module.where, ENVIRONMENT):
            continue
        named = [(item.name, item.line) for item in imports(module)] + list(attributes(module))
        reads = [line for name, line in named if name in {"os.environ", "os.getenv", "os.environb"}]
        found += [f"{module.where}:{line} reads the environment; only config.py does" for line in sorted(set(reads))]
    return found


def is_pure(where: str) -> bool:
    """Whether the file at this path has to be pure."""
    return _matches(where, PURE) and not _matches(where, SHELLS)


def impurities(root: Path) -> list[str]:
    """Pure files that import the world, or read a clock, a file or chance."""
    found = []
    for module in members(root):
        if not is_pure(module.where):
            continue
        for item in imports(module):
            library = item.name.split(".")[0]
            if library in IMPURE_LIBRARIES:
                found.append(f"{module.where}:{item.line} is pure and imports {library}")
        for name, line in calls(module):
            if name in IMPURE_CALLS:
                found.append(f"{module.where}:{line} is pure and calls {name}()")
    return found


WIRING = {"api", "main", "rooms", "rooms_history", "up"}
"""Of the Master, beside the rooms: what may know all of them."""


def room_breaches(root: Path) -> list[str]:
    """Rooms of the Master that know more of one another than they may."""
    return [
        f"{module.where}:{line} imports {name}: {why}"
        for module in members(root)
        if module.name.startswith("windrow_master.")
        for name, line, why in _breaches(module)
    ]


def _breaches(module: Module) -> Iterator[tuple[str, int, str]]:
    room = _room(module.name)
    is_shell = module.name.endswith(".service")
    for item in imports(module):
        other = _room(item.name)
        if not item.is_of("windrow_master") or other in {"", room} or room in WIRING:
            continue
        face = [*item.name.split("."), "", ""][2]
        if other == "api":
            yield item.name, item.line, "nobody imports api"
        elif other == "store" and room in ROOMS and not is_shell and face != "model":
            yield item.name, item.line, "only a service imports more of store than its values"
        elif other in ROOMS and room == "store" and "model" not in item.name.split(".")[2:]:
            yield item.name, item.line, "store imports the rooms' models only"
        elif other in ROOMS and room == "placement" and face != "model":
            yield item.name, item.line, "placement knows no other room's shell"
        elif other in ROOMS and room in ROOMS and face not in FACES:
            yield item.name, item.line, "rooms talk through service or model"


def _room(name: str) -> str:
    return [*name.split("."), "", ""][1]


def relative_imports(root: Path) -> list[str]:
    """Imports that do not say where they come from."""
    return [
        f"{module.where}:{item.line} imports relatively"
        for module in members(root)
        for item in imports(module)
        if item.name.startswith(".")
    ]


def grouped_raises(root: Path) -> list[str]:
    """Raises inside `except*`: until Python 3.11.4, which Debian 12 has not, what is raised there comes out as a group,
    and passes whoever waits for the error itself. Keep it, and raise it after the statement."""
    return [
        f"{module.where}:{line} raises inside except*" for module in members(root) for line in raised_in_groups(module)
    ]


def _matches(where: str, patterns: tuple[str, ...] | dict[str, str]) -> bool:
    return any(fnmatchcase(where, pattern) for pattern in patterns)
