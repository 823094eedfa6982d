"""Virtual environments by the hash of their requirements, each made once: by uv where it is there, else by pip."""

import asyncio
import contextlib
import hashlib
import json
import shutil
import signal
import sys
from collections.abc import Callable
from os import killpg
from pathlib import Path
from typing import Final

from windrow.worker import config

MAKE_S: Final = 1800.0
"""For all of an environment; large wheels over a slow line take minutes."""
REQUIREMENTS_MAX: Final = 500
TEXT_MAX: Final = 500
LINES_KEPT: Final = 12
"""Of an installer's output, for the error."""
OFFLINE: Final = ("resolution", "Network is unreachable", "dns error", "Connection refused", "from versions: none")
"""The messages of pip and uv where no index answers; pip says no more of it than of a package that there is not."""


class EnvFailed(Exception):
    """The environment could not be made; the message says why."""


def env_id(requirements: list[str]) -> str:
    """The name of an environment: the same for the same requirements in the same order under the same Python."""
    said = json.dumps([sys.version_info[:2], requirements])
    return hashlib.sha256(said.encode()).hexdigest()[:32]


class Envs:
    """All of them, below one folder."""

    def __init__(self, folder: Path, lib: Path) -> None:
        self._folder, self._lib = folder, lib
        self._locks: dict[str, asyncio.Lock] = {}

    def python(self, name: str | None) -> str | None:
        """Its interpreter; without a name the worker's own. None: it is not made."""
        if name is None:
            return sys.executable
        return str(self._python(name)) if (self._folder / name / "made").exists() else None

    async def make(self, requirements: object, tell: Callable[[str], None]) -> str:
        """Have an environment with these; returns its name. tell: is told each line. Raises EnvFailed."""
        if not isinstance(requirements, list) or len(requirements) > REQUIREMENTS_MAX:
            raise EnvFailed(f"An environment has a list of at most {REQUIREMENTS_MAX} requirements.")
        for one in requirements:
            if not isinstance(one, str) or not 0 < len(one) <= TEXT_MAX or one.startswith("-") or not one.isprintable():
                raise EnvFailed(f"{str(one)[:80]!r} is no requirement. Write for example numpy or numpy==2.4.")
        name = env_id(requirements)
        async with self._locks.setdefault(name, asyncio.Lock()):
            if self.python(name) is None:
                folder = self._folder / name
                shutil.rmtree(folder, ignore_errors=True)
                try:
                    async with asyncio.timeout(MAKE_S):
                        await self._make(folder, name, requirements, tell)
                except TimeoutError:
                    raise EnvFailed(f"The environment was not made within {MAKE_S / 60:.0f} minutes.") from None
                (folder / "made").touch()
        return name

    def _python(self, name: str) -> Path:
        return self._folder / name / "bin" / "python"

    async def _make(self, folder: Path, name: str, requirements: list[str], tell: Callable[[str], None]) -> None:
        uv = config.found("uv")
        with_system = ["--system-site-packages"]
        if uv is not None:
            tell("making an environment with uv")
            await _run([uv, "venv", "--python", sys.executable, *with_system, str(folder)], self._lib, tell)
            install = [uv, "pip", "install", "--python", str(self._python(name))]
        else:
            tell("making an environment with venv and pip")
            await _run([sys.executable, "-m", "venv", *with_system, str(folder)], self._lib, tell)
            install = [str(self._python(name)), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
            install += ["--progress-bar", "off"]
        if requirements:
            await _run([*install, *requirements], self._lib, tell)


async def _run(words: list[str], lib: Path, tell: Callable[[str], None]) -> None:
    """Run an installer to its end; raises EnvFailed with the last it said."""
    process = await asyncio.create_subprocess_exec(
        *words, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        env=config.for_installing(lib), start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    last: list[str] = []
    try:
        async for line in process.stdout:
            text = line.decode(errors="replace").rstrip()[:TEXT_MAX]
            last = [*last, text][-LINES_KEPT:]
            tell(text)
        code = await process.wait()
    finally:
        if process.returncode is None:
            with contextlib.suppress(OSError):
                killpg(process.pid, signal.SIGKILL)
            await process.communicate()  # not wait: it would wait for a pipe that nobody reads
    if code != 0:
        said = "\n".join(last)
        if any(word in said for word in OFFLINE):
            raise EnvFailed(f"The host reaches no package index, or the index has no such package.\n{said}")
        if "ensurepip" in said:
            raise EnvFailed(f"The host's Python has no venv module, and there is no uv; name an image.\n{said}")
        raise EnvFailed(f"The installer failed with exit code {code}.\n{said}")
