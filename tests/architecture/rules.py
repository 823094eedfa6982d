"""The rules of the code base as functions from a tree to the list of breaches; the tests also plant breaches.

Tables first: the adapter of a library, the floor of a package, or what must stay pure is a row of its table.
"""

import ast
import re
from fnmatch import fnmatchcase
from pathlib import Path

from tests.architecture.tree import Module, attributes, calls, dotted, imports, members, nodes, raised_in_groups

ADAPTERS: dict[str, tuple[str, ...]] = {
    "pynvml": ("agent/windrow_agent/gpu/nvml.py",),
    "psutil": ("agent/windrow_agent/host/psutil_reader.py",),
    "docker": ("agent/windrow_agent/runtimes/docker.py", "agent/windrow_agent/runtimes/images.py"),
    "duckdb": ("master/windrow_master/telemetry/duckdb_view.py", "master/windrow_master/telemetry/parquet.py"),
    "sqlalchemy": (
        "master/windrow_master/store/*",
        "master/windrow_master/*/tables.py",
        "master/windrow_master/*/*repository.py",
    ),
    "redis": ("master/windrow_master/store/bus_redis.py",),
    "alembic": ("master/windrow_master/store/*",),
    "fastapi": ("master/windrow_master/api/*",),
    "starlette": (
        "master/windrow_master/api/*",
        "master/windrow_master/app/serving.py",
        "master/windrow_master/app/connection_guard.py",
    ),
    "uvicorn": ("master/windrow_master/app/serving.py", "master/windrow_master/app/connection_guard.py"),
    "h11": ("master/windrow_master/app/connection_guard.py",),
    "cryptography": (
        "proto/windrow_proto/bodies.py",
        "proto/windrow_proto/keys.py",
        "proto/windrow_proto/data_keys.py",
        "proto/windrow_proto/sealed.py",
        "tunnel/windrow_tunnel/seal.py",
        "master/windrow_master/identity/authority.py",
        "master/windrow_master/identity/passwords.py",
        "master/windrow_master/identity/second_factor.py",
        "master/windrow_master/app/operator_certificate.py",
        "agent/windrow_agent/app/doctor.py",
        "sdk/windrow/link.py",
    ),
    "boto3": ("master/windrow_master/storage/s3_store.py", "master/windrow_master/hybrid/backends/ec2.py"),
    "botocore": ("master/windrow_master/storage/s3_store.py", "master/windrow_master/hybrid/backends/ec2.py"),
    "modal": ("master/windrow_master/hybrid/runs/modal.py",),
    "obstore": ("master/windrow_master/storage/s3_store.py",),
    "smtplib": ("master/windrow_master/mail/smtp.py",),
    "httpx2": ("sdk/windrow/transport.py", "master/windrow_master/outgoing.py"),
    "standardwebhooks": ("master/windrow_master/watch/notify/webhook.py",),
    "authlib": ("master/windrow_master/identity/oidc.py",),
    "markdown_it": ("master/windrow_master/handbook/markdown.py",),
    "joserfc": ("master/windrow_master/identity/oidc.py",),
    "cronsim": ("master/windrow_master/reports/schedule.py",),
    "pathspec": ("sdk/windrow/folder/ignoring.py",),
}
"""Foreign library -> the only files that may import it."""

ENVIRONMENT = (
    "*/config.py",
    "up/windrow_up/market.py",
    "master/windrow_master/store/copies.py",
    "master/windrow_master/hybrid/runs/helper.py",
)
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

PURE = re.compile(r"\bPure\b")
"""In a module's docstring: it reads no clock, file, network, database or chance, and a test holds it to that."""

EVER_PURE = (
    "agent/windrow_agent/core/*",
    "access/windrow_access/core/*",
    "master/windrow_master/*/states.py",
    "master/windrow_master/jobs/decide.py",
    "master/windrow_master/fleet/tiers.py",
    "master/windrow_master/market/ledger.py",
    "master/windrow_master/market/metering.py",
    "master/windrow_master/placement/plan.py",
)
"""Modules that may never lose the word."""

WIRING = ("master/windrow_master/app/wiring*.py", "master/windrow_master/app/main.py")

FLOORS: tuple[tuple[str, ...], ...] = (
    ("spec", "work_queue"),
    ("loops", "outgoing", "proxies", "shares", "sift"),
    ("store",),
    ("audit", "mail"),
    ("identity",),
    ("secrets",),
    ("telemetry",),
    ("fleet",),
    ("accesses", "placement", "prices", "queue"),
    ("verification",),
    ("market",),
    ("clusters",),
    ("network",),
    ("storage",),
    ("jobs",),
    ("onboarding", "acceptance", "hybrid", "handbook", "watch"),
    ("accounts", "billing", "lifecycle", "records"),
    ("reports",),
    ("config",),
    ("recovery",),
    ("link",),
    ("api",),
    ("app",),
    ("__main__",),
)
"""Packages and lone modules of the Master, the ground first: each imports only what stands below it."""

UPWARD: frozenset[tuple[str, str]] = frozenset()
"""Imports that run up the floors and are still to be turned around; one that is gone has to go from here, too."""

AGENT_FLOORS: tuple[tuple[str, ...], ...] = (
    ("loops", "release", "threads"),
    ("core",),
    ("gpu",),
    ("challenge", "host"),
    ("runtimes",),
    ("link", "overlay"),
    ("report", "storage"),
    ("workloads",),
    ("app",),
    ("__main__",),
)
"""Likewise of the agent."""

AGENT_UPWARD: frozenset[tuple[str, str]] = frozenset()

FLOORS_OF = {"windrow_master": (FLOORS, UPWARD), "windrow_agent": (AGENT_FLOORS, AGENT_UPWARD)}
"""The floors of each distribution that has declared them, and its imports that still run up."""


def adapters(root: Path) -> list[str]:
    """Foreign libraries imported elsewhere than in their adapter."""
    return [
        f"{module.where}:{item.line} imports {library}; its adapter is {' or '.join(ADAPTERS[library])}"
        for module in members(root)
        for item in imports(module)
        for library in ADAPTERS
        if item.is_of(library) and not _matches(module.where, ADAPTERS[library])
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


def says_pure(module: Module) -> bool:
    """True if its docstring promises it."""
    return PURE.search(ast.get_docstring(module.syntax) or "") is not None


def impurities(root: Path) -> list[str]:
    """Pure files that import the world, or read a clock, a file or chance."""
    found = []
    for module in members(root):
        if not says_pure(module):
            continue
        for item in imports(module):
            library = item.name.split(".")[0]
            if library in IMPURE_LIBRARIES:
                found.append(f"{module.where}:{item.line} is pure and imports {library}")
        for name, line in calls(module):
            if name in IMPURE_CALLS:
                found.append(f"{module.where}:{line} is pure and calls {name}()")
    return found


def lost_promises(root: Path) -> list[str]:
    """Modules that have to be pure and do not say so."""
    return [
        f"{module.where} does not say in its docstring that it is pure"
        for module in members(root)
        if _matches(module.where, EVER_PURE) and module.syntax.body[1:] and not says_pure(module)
    ]


def upward_imports(root: Path) -> list[str]:
    """Imports that run up the floors of their distribution, and packages that stand on none."""
    return [
        said
        for package, (_, known) in FLOORS_OF.items()
        for here, there, said in upward(root, package)
        if (here, there) not in known
    ]


def upward(root: Path, package: str) -> list[tuple[str, str, str]]:
    """All such imports of one distribution, each as importing package, imported package and a sentence."""
    floors = FLOORS_OF[package][0]
    floor = {name: number for number, names in enumerate(floors) for name in names}
    found = list[tuple[str, str, str]]()
    for module in members(root):
        here = _package(module.name)
        if not module.name.startswith(f"{package}.") or not here:
            continue
        if here not in floor:
            found.append((here, "", f"{module.where} is in {here}, which stands on no floor"))
            continue
        for item in imports(module):
            there = _package(item.name)
            if not item.is_of(package) or there in {"", here}:
                continue
            if floor.get(there, len(floors)) >= floor[here]:
                found.append(
                    (here, there, f"{module.where}:{item.line} imports {item.name}, which is not below {here}")
                )
    return found


def foreign_repositories(root: Path) -> list[str]:
    """Uses of another package's repository: a package asks the one that owns the rows."""
    return [said for _, _, said in foreign(root)]


def foreign(root: Path) -> list[tuple[str, str, str]]:
    """All such uses, `uow[Repository]` each, as using package, owner and a sentence."""
    found = list[tuple[str, str, str]]()
    for module in members(root):
        here, owners = _package(module.name), dict[str, str]()
        for node in nodes(module):
            if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("repository"):
                owners |= {alias.asname or alias.name: _package(str(node.module)) for alias in node.names}
        for node in nodes(module):
            there = owners.get(dotted(node.slice), here) if isinstance(node, ast.Subscript) else here
            if isinstance(node, ast.Subscript) and there != here:
                found.append((here, there, f"{module.where}:{node.lineno} uses a repository of {there}"))
    return found


def _package(name: str) -> str:
    """The package below a distribution's own; "" for attributes of that, as its version."""
    found = [*name.split("."), "", ""][1]
    return "" if found.startswith("__version") else found


def late_assignments(root: Path) -> list[str]:
    """Returns the fields that the wiring assigns to objects after it has made them: it belongs to their
    constructors."""
    return [
        f"{module.where}:{node.lineno} assigns {name} after construction"
        for module in members(root)
        if _matches(module.where, WIRING)
        for node in nodes(module)
        if isinstance(node, ast.Assign)
        for name in map(dotted, node.targets)
        if "." in name and not name.startswith("self.")
    ]


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


def _matches(where: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(where, pattern) for pattern in patterns)
