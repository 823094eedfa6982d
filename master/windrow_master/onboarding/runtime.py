"""Selects the parts of a Python that go with the agent, and writes the small scripts that start it from any folder.

bin/windrow-agent, bin/python    scripts; they find the folder they lie in
bin/python3.N                    the interpreter
lib/                             the libraries it needs beyond those of the C compiler
lib/python3.N/                   the standard library, the agent and what it needs, with bytecode
files/                           unit, supervisor, installer
"""

from collections.abc import Iterable
from typing import Final

LEFT_OUT: Final = frozenset(
    {
        *("test", "tests", "idlelib", "tkinter", "turtledemo", "turtle.py", "lib2to3", "ensurepip", "pydoc_data"),
        *("site-packages", "dist-packages", "__pycache__", "curses", "dbm", "sqlite3", "venv", "EXTERNALLY-MANAGED"),
        *("sitecustomize.py", "unittest", "distutils"),
    }
)
"""Of the standard library, by the first part of the path: what no agent runs. Names with config- go as well."""
MODULES_LEFT_OUT: Final = (
    "_tkinter",
    "_test",
    "_xx",
    "xx",
    "nis.",
    "readline.",
    "_curses",
    "_dbm",
    "_gdbm",
    "_sqlite3",
)
"""Of its compiled modules, by how their names begin; most would bring libraries of their own."""
SYSTEM_LIBRARIES: Final = (
    *("linux-vdso", "ld-linux", "libc.", "libm.", "libpthread.", "libdl.", "librt.", "libutil.", "libresolv."),
    *("libgcc_s.", "libstdc++."),
)
"""Libraries that every machine with glibc and its package manager has, and that must be the machine's own: a
driver's library that is loaded beside ours needs the newer of both."""
PYTHON: Final = """#!/bin/sh
# Runs the Python of this folder with the libraries of this folder.
here=$(readlink -f "$0")
here=${here%/*/*}
LD_LIBRARY_PATH=$here/lib exec "$here/bin/@PYTHON@" "$@"
"""
AGENT: Final = """#!/bin/sh
here=$(readlink -f "$0")
exec "${here%/*}/python" -I -m windrow_agent "$@"
"""
CUSTOMIZE: Final = '''"""Lets programs that this Python starts find it again, and its libraries only there."""

import os
import sys

os.environ.pop("LD_LIBRARY_PATH", None)
sys.executable = sys._base_executable = os.path.join(sys.prefix, "bin", "python")
'''


def is_kept(path: str) -> bool:
    """Return whether a file of the standard library goes with the agent. path: from the library's top, with slashes."""
    first, _, rest = path.partition("/")
    if first == "lib-dynload":
        return not rest.startswith(MODULES_LEFT_OUT)
    return first not in LEFT_OUT and not first.startswith("config-") and "/__pycache__/" not in path


def libraries_of(said: str) -> tuple[tuple[str, str], ...]:
    """Name and path of each library that ldd named and that a machine may lack, in its order."""
    found = []
    for line in said.splitlines():
        name, arrow, rest = line.strip().partition(" => ")
        path = rest.split(" (")[0].strip()
        if arrow and path.startswith("/") and not name.startswith(SYSTEM_LIBRARIES):
            found.append((name, path))
    return tuple(found)


def unresolved(said: str) -> tuple[str, ...]:
    """The libraries that ldd could not find."""
    return tuple(line.split(" => ")[0].strip() for line in said.splitlines() if "not found" in line)


def from_wheel(names: Iterable[str]) -> tuple[str, ...]:
    """The files of a wheel that are installed beside the standard library: its scripts and data are nobody's here."""
    return tuple(name for name in names if not name.endswith("/") and ".data/" not in name)
