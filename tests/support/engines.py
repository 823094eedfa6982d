"""Finds Ray, Dask and PyTorch for tests on the real ones: an environment of its own, given or made here.

python -m tests.support.engines FOLDER        makes one (from 1.5 GB; TORCH names another PyTorch, as one for CPUs)
WINDROW_ENGINES=FOLDER                        says where it is; not below /tmp, which each workload has of its own
"""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

VARIABLE = "WINDROW_ENGINES"
WANTED = ("ray[tune]>=2.60,<2.61", "distributed>=2026.8,<2027", "numpy>=2.4,<3")
PROGRAMS = ("ray", "dask", "torchrun", "python")


def found_engines() -> Path | str:
    """The folder of programs of the environment; or why there is none."""
    given = os.environ.get(VARIABLE, "")
    programs = Path(given) / "bin"
    missing = [name for name in PROGRAMS if not (programs / name).exists()] if given else list(PROGRAMS)
    if not missing:
        return programs
    where = f"{given} has no {', '.join(missing)}" if given else f"{VARIABLE} is not set"
    return f"no Ray, Dask and PyTorch: {where}; `python -m tests.support.engines FOLDER` makes it"


def need_engines() -> Path:
    """The folder of programs of the environment; skips the calling test where there is none."""
    found = found_engines()
    if isinstance(found, str):
        pytest.skip(found)
    return found


def requirement(programs: Path) -> str:
    """A requirement that gives an environment of a host all that is in this one, where no index is reached: a wheel
    that holds nothing but the way there."""
    folder = programs.parent
    (packages,) = folder.glob("lib/python3.*/site-packages")
    name, facts = folder / "engines-1-py3-none-any.whl", "engines-1.dist-info"
    with zipfile.ZipFile(name, "w") as wheel:
        wheel.writestr("engines.pth", f"{packages}\n")
        wheel.writestr(f"{facts}/METADATA", "Metadata-Version: 2.1\nName: engines\nVersion: 1\n")
        wheel.writestr(
            f"{facts}/WHEEL", "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{facts}/RECORD", "")
    return f"engines @ file://{name}"


def make(folder: Path) -> None:
    """Install all of them there."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    wanted = (*WANTED, os.environ.get("TORCH", "torch>=2.13,<3"))
    subprocess.run([str(folder / "bin" / "pip"), "install", "-q", *wanted], check=True)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
