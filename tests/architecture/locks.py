"""Resolves the three locks again: versions and hashes of every wheel, from the ordinary index, naming no host.

`make lock` runs it. This machine's own index settings are switched off, or a local mirror would leak into the locks.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
RESOLVE_S = 300
RUN, BUILD, TEST = "requirements.lock", "requirements-build.lock", "requirements-test.lock"
HEADS = {
    RUN: "# What Windrow runs on. Made by `make lock`; names no host on purpose.\n",
    BUILD: "# What Windrow and its console are built with. Made by `make lock`; names no host on purpose.\n",
    TEST: "# What `make check` and `make test` need besides. Made by `make lock`; names no host on purpose.\n",
}
FOREIGN = ("UV_", "PIP_")
"""Environment settings that could point at another index."""
FLAGS = (
    "--no-config",
    "--universal",
    "--python-version=3.11",
    "--generate-hashes",
    "--no-annotate",
    "--no-header",
    "--no-emit-index-url",
    "--no-emit-find-links",
    "--quiet",
    "--upgrade",
)


def resolve(uv: Path, lock: str, arguments: list[str]) -> None:
    """Write one lock anew."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    made = subprocess.run(
        [uv, "pip", "compile", *FLAGS, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=RESOLVE_S,
        check=False,
    )
    if made.returncode != 0:
        sys.exit(f"{lock} could not be resolved:\n{made.stderr}")
    (ROOT / lock).write_text(HEADS[lock] + made.stdout, encoding="utf-8")
    print(f"{lock}: {len(pins(made.stdout))} packages")


def pins(lock: str) -> dict[str, list[tuple[str, int]]]:
    """Package name -> (version, number of hashes) of each pin; a package may be pinned twice under two markers."""
    found: dict[str, list[tuple[str, int]]] = {}
    for block in re.split(r"\n(?=[a-z0-9])", lock):
        if match := re.match(r"([a-z0-9][a-z0-9._-]*)(?:\[[^]]*])?==([^\s;\\]+)", block):
            found.setdefault(match[1], []).append((match[2], block.count("--hash=sha256:")))
    return found


def main() -> None:
    """Resolve the run lock first; the others follow its versions where they meet."""
    uv = Path(sys.executable).with_name("uv")
    resolve(uv, RUN, ["pyproject.toml"])
    resolve(uv, BUILD, ["--group=build", f"--constraint={RUN}"])
    resolve(uv, TEST, ["--group=test", f"--constraint={RUN}", f"--constraint={BUILD}"])


if __name__ == "__main__":
    main()
