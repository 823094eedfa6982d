"""Builds the fake library with gcc, once per variant and session, and puts it in the place of the real one."""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fake_nvml.state import Event, FakeState, Gpu, State

SOURCE = Path(__file__).with_name("fake_nvml.c")
FILE_NAME = "libnvidia-ml.so.1"
FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-fvisibility=hidden")
"""No soname: a process that has the fake loaded by its path must still find a real library by that name."""

GCC_LIMIT_S = 60


def build(folder: Path, *defines: str) -> Path:
    """Compile one variant into `folder` and return the library; where gcc is missing, skip with that reason."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("gcc is missing: the fake NVIDIA library cannot be built")
    target = folder / FILE_NAME
    command = [gcc, *FLAGS, *(f"-D{name}" for name in defines), "-o", str(target), str(SOURCE)]
    subprocess.run(command, check=True, timeout=GCC_LIMIT_S)
    library = ctypes.CDLL(str(target))
    mirrored = [ctypes.sizeof(kind) for kind in (State, Gpu, Event)]
    assert [library.fake_sizeof(what) for what in range(3)] == mirrored, "state.py no longer mirrors fake_nvml.c"
    return target


class FakeNvml:
    """The library and the state it answers from."""

    def __init__(self, library: Path, state: FakeState) -> None:
        self.library, self.state = library, state

    @property
    def environment(self) -> dict[str, str]:
        """The environment in which a child process finds this library by its ordinary name."""
        folder = str(self.library.parent)
        return {**os.environ, "LD_LIBRARY_PATH": folder, "FAKE_NVML_STATE": str(self.state.path)}


@pytest.fixture(scope="session")
def fake_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The fake as a current driver."""
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture(scope="session")
def old_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The fake as a driver from before R535: symbols are missing."""
    return build(tmp_path_factory.mktemp("nvml_old"), "OLD_DRIVER")


def installed(library: Path, state: FakeState, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeNvml]:
    """Let this process's nvidia-ml-py use `library`, with its own function cache, until the test ends.

    By path and not by soname, so that variants (and a real library) can be loaded in one process.
    """
    import pynvml

    monkeypatch.setenv("FAKE_NVML_STATE", str(state.path))
    monkeypatch.setattr(pynvml, "nvmlLib", ctypes.CDLL(str(library)))
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    loaded = pynvml.nvmlLib
    with state:
        yield FakeNvml(library, state)
    while loaded.nvmlShutdown() == 0:  # whatever the test left open, so that the next one maps its own state
        continue


@pytest.fixture
def fake_nvml(fake_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeNvml]:
    """Eight H100 under a current driver."""
    yield from installed(fake_library, FakeState(tmp_path / "nvml_state"), monkeypatch)


@pytest.fixture
def old_nvml(old_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeNvml]:
    """Two H100 under a driver that lacks symbols."""
    yield from installed(old_library, FakeState(tmp_path / "nvml_state", count=2), monkeypatch)
