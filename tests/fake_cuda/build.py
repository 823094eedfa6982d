"""Builds the fake library with gcc, once per session, and says how a process finds it in the place of the real one."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("fake_cuda.c")
FILE_NAME = "libcuda.so.1"
FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-fvisibility=hidden")
GCC_LIMIT_S = 60
CARDS = {
    "GPU-0c0de000-0000-4000-8000-000000000001": "0000:17:00.0",
    "GPU-0c0de000-0000-4000-8000-000000000002": "0000:65:00.0",
}
"""The UUIDs of the fake's cards, and their places on the bus."""


@pytest.fixture(scope="session")
def fake_cuda(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library; where gcc is missing, the test is skipped with that reason."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("gcc is missing: the fake CUDA library cannot be built")
    target = tmp_path_factory.mktemp("cuda") / FILE_NAME
    subprocess.run([gcc, *FLAGS, "-o", str(target), str(SOURCE)], check=True, timeout=GCC_LIMIT_S)
    return target


def environment(library: Path, rate: float, fault: str = "") -> dict[str, str]:
    """The environment in which a child process finds this library by its ordinary name. rate: bytes that a card reads
    and writes per second; fault: `idle` or `full`, as fake_cuda.c says."""
    cards = ",".join(f"{uuid}@{address}" for uuid, address in CARDS.items())
    return {
        "PATH": os.environ["PATH"],
        "LD_LIBRARY_PATH": str(library.parent),
        "FAKE_CUDA_CARDS": cards,
        "FAKE_CUDA_RATE": str(rate),
        "FAKE_CUDA_FAULT": fault,
    }
