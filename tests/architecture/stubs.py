"""Makes the contract's stubs from its .proto files: `python -m tests.architecture.stubs OUT`, as `make proto` does."""

import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "proto"
KINDS = ("python", "pyi")
PATTERN = "*_pb2*"
GENERATE_S = 60


def generate(out: Path) -> list[Path]:
    """Write the stubs of every .proto file below `out`; return their paths relative to it."""
    names = sorted(path.relative_to(SOURCES).as_posix() for path in SOURCES.rglob("*.proto"))
    kinds = [f"--{kind}_out={out}" for kind in KINDS]
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{SOURCES}", *kinds, *names]
    subprocess.run(command, check=True, timeout=GENERATE_S)
    return sorted(path.relative_to(out) for path in out.rglob(PATTERN))


if __name__ == "__main__":
    for made in generate(Path(sys.argv[1])):
        print(made)
