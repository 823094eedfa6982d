"""The source tree as the architecture tests see it: members, modules, and what each module imports and calls."""

import ast
import functools
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

MEMBERS = {
    "tunnel": "windrow_tunnel",
    "proto": "windrow_proto",
    "agent": "windrow_agent",
    "access": "windrow_access",
    "master": "windrow_master",
    "sdk": "windrow",
    "up": "windrow_up",
}
SKIPPED_FOLDERS = frozenset(
    {"node_modules", "__pycache__", "static", "dist", "build", ".cache", ".venv", ".git", "out"}
)
GENERATED = ("_pb2.py", "_pb2.pyi", "_pb2_grpc.py", "_pb2_grpc.pyi")


@dataclass(frozen=True, slots=True)
class Module:
    """One Python file: `where` is its path from the root, `name` its import name or "" outside of the members."""

    where: str
    name: str
    text: str
    syntax: ast.Module

    @property
    def lines(self) -> int:
        return self.text.count("\n")


@dataclass(frozen=True, slots=True)
class Import:
    """One imported name, dotted and whole: `from a.b import c` is `a.b.c`."""

    name: str
    line: int

    def is_of(self, library: str) -> bool:
        """True if this is the library or something inside of it."""
        return self.name == library or self.name.startswith(library + ".")


def files(root: Path, *suffixes: str) -> Iterator[Path]:
    """Every file below the root with one of the suffixes, that a person wrote."""
    for path in sorted(root.iterdir()):
        if path.is_dir():
            if path.name not in SKIPPED_FOLDERS and not (path.name.startswith(".") and path.name != ".ci"):
                yield from files(path, *suffixes)
        elif path.suffix in suffixes and not path.name.endswith(GENERATED):
            yield path


def members(root: Path) -> list[Module]:
    """Every module of the distributions."""
    found: list[Module] = []
    for folder, package in MEMBERS.items():
        if (root / folder / package).is_dir():
            found += modules(root, root / folder / package)
    return found


def modules(root: Path, below: Path) -> list[Module]:
    """Every hand-written module below a folder.

    Read without searches for garbage, which took two thirds of the time: what is parsed stays.
    """
    gc.disable()
    try:
        return [_read(root, path, path.read_text(encoding="utf-8")) for path in files(below, ".py")]
    finally:
        gc.freeze()
        gc.enable()


@functools.cache
def _read(root: Path, path: Path, text: str) -> Module:
    """Parsed once, for all rules that look at it."""
    where = path.relative_to(root)
    parts = where.with_suffix("").parts[1:] if where.parts[0] in MEMBERS else ()
    name = ".".join(parts).removesuffix(".__init__")
    return Module(where.as_posix(), name, text, ast.parse(text, filename=str(path)))


@functools.cache
def nodes(module: Module) -> tuple[ast.AST, ...]:
    """All of its syntax, walked once for all rules that look at it."""
    return tuple(ast.walk(module.syntax))


@functools.cache
def imports(module: Module) -> list[Import]:
    """All imports, wherever in the file they stand."""
    found: list[Import] = []
    for node in nodes(module):
        if isinstance(node, ast.Import):
            found += [Import(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            prefix = f"{node.module}." if node.module else "." * node.level
            found += [Import(prefix + alias.name, node.lineno) for alias in node.names]
    return found


def calls(module: Module) -> Iterator[tuple[str, int]]:
    """Dotted names that are called, as written: `datetime.now`, `uuid.uuid4`, `open`."""
    for node in nodes(module):
        if isinstance(node, ast.Call) and (name := dotted(node.func)):
            yield name, node.lineno


def attributes(module: Module) -> Iterator[tuple[str, int]]:
    """Dotted names that are read, as written: `os.environ`."""
    for node in nodes(module):
        if isinstance(node, ast.Attribute) and (name := dotted(node)):
            yield name, node.lineno


def dotted(node: ast.expr) -> str:
    """`a.b.c` for such an expression, "" for any other."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (left := dotted(node.value)):
        return f"{left}.{node.attr}"
    return ""


def raised_in_groups(module: Module) -> Iterator[int]:
    """The lines of every `raise` inside an `except*`."""
    for statement in nodes(module):
        if isinstance(statement, ast.TryStar):
            for handler in statement.handlers:
                yield from (node.lineno for node in ast.walk(handler) if isinstance(node, ast.Raise))
