"""Checks that keep the tree tidy, as functions from a tree to the list of what breaks it."""

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.architecture.tree import files, modules

FILE_LINES_MAX = 800
FUNCTION_LINES_MAX = 60
LINE_CHARACTERS_MAX = 120
CODE = (".py", ".ts", ".tsx", ".c", ".h", ".sh", ".proto", ".css")
TEXT = (*CODE, ".md", ".toml", ".json", ".lock", ".yaml", ".yml", ".html", ".service", ".txt", ".npmrc")
MEASURED = (".py", ".ts", ".tsx", ".c", ".sh", ".proto")
UNMEASURED = ("*.d.ts", "console/src/api/schema.ts", "*/migrations/[0-9]*.py", "deploy/install.sh")
"""Generated from something else, a history that is only appended to, or one download that must be whole."""

# Put together from halves, so that this file does not break the rules it holds.
UNFINISHED = ("TO" + "DO", "FIX" + "ME", "raise NotImplemented" + "Error", "pragma: no " + "cover")
REGISTRIES = (
    *("pypi" + ".org", "python" + "hosted.org", "registry." + "npmjs.org", "registry." + "yarnpkg.com"),
    *("index." + "docker.io", "registry-1." + "docker.io", "jsdelivr" + ".net", "unpkg" + ".com"),
)
HOMES = re.compile("/" + r"(?:home|Users)/[a-z][\w-]*/")


def unfinished(root: Path) -> list[str]:
    """Words that say: later."""
    return _containing(root, CODE, UNFINISHED)


def registry_hosts(root: Path) -> list[str]:
    """Names of hosts that packages come from: which registry is used is the machine's matter."""
    return _containing(root, TEXT, REGISTRIES)


def machine_paths(root: Path, this_checkout: Path) -> list[str]:
    """Paths that exist on one machine only: this checkout's own, and homes of people."""
    return [
        f"{path.relative_to(root)}:{number} names a path of one machine"
        for path in files(root, *TEXT)
        if _has(path, (str(this_checkout), "/home/", "/Users/"))
        for number, line in enumerate(_lines(path), 1)
        if _names(line, this_checkout) or HOMES.search(line)
    ]


def _names(line: str, checkout: Path) -> bool:
    return len(checkout.parts) > 2 and re.search(re.escape(str(checkout)) + r"(?![\w-])", line) is not None


def long_files(root: Path) -> list[str]:
    """Files that ask for a second noun."""
    return [
        f"{path.relative_to(root)} has {count} lines, at most {FILE_LINES_MAX}"
        for path in files(root, *MEASURED)
        if not any(path.match(pattern) for pattern in UNMEASURED) and (count := len(_lines(path))) > FILE_LINES_MAX
    ]


def long_lines(root: Path) -> list[str]:
    """Lines of the console that no screen shows whole: ruff knows those of Python."""
    return [
        f"{path.relative_to(root)}:{number} has {len(line)} characters, at most {LINE_CHARACTERS_MAX}"
        for path in files(root, ".ts", ".tsx", ".css")
        if not any(path.match(pattern) for pattern in UNMEASURED)
        for number, line in enumerate(_lines(path), 1)
        if len(line) > LINE_CHARACTERS_MAX
    ]


def long_functions(root: Path) -> list[str]:
    """Functions that do not fit a screen."""
    found = []
    for module in modules(root, root):
        if "/migrations/" in module.where:
            continue
        for node in _statements(module.syntax):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
                count = node.end_lineno - node.lineno + 1
                if count > FUNCTION_LINES_MAX:
                    found.append(f"{module.where}:{node.lineno} {node.name} has {count} lines")
    return found


def _statements(block: ast.AST) -> Iterator[ast.AST]:
    """Every statement in a block and in those that it holds: no expression holds one."""
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        held = getattr(block, name, ())
        for one in held if isinstance(held, list) else ():
            yield one
            yield from _statements(one)


def silent_modules(root: Path) -> list[str]:
    """Modules with code that do not open with their promise."""
    return [
        f"{module.where} opens with no docstring"
        for module in modules(root, root)
        if module.syntax.body and not ast.get_docstring(module.syntax)
    ]


def _containing(root: Path, suffixes: tuple[str, ...], words: tuple[str, ...]) -> list[str]:
    pattern = re.compile("|".join(rf"(?<![\w]){re.escape(word)}(?![\w])" for word in words))
    return [
        f"{path.relative_to(root)}:{number} says {match[0]}"
        for path in files(root, *suffixes)
        if _has(path, words)
        for number, line in enumerate(_lines(path), 1)
        if (match := pattern.search(line))
    ]


def _has(path: Path, words: Sequence[str]) -> bool:
    """True if one of them stands anywhere in the file: few files do, and only their lines are looked at."""
    text = path.read_text(encoding="utf-8", errors="replace")
    return any(word in text for word in words)


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8", errors="replace").splitlines()
