"""Prepares and keeps the wheels that other machines install from: a host the agent, a person's machine the command
`windrow`. A failure is a state with its reason.

Nothing is fetched but what requirements.lock pins, by pip, from wherever pip is set up to look.
"""

import asyncio
import hashlib
import importlib.util
import os
import shutil
import sys
import sysconfig
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

import structlog

from windrow_master.onboarding import closure, wheel
from windrow_master.onboarding.model import Artifact, Manifest, Phase, Progress, by_name, record_of
from windrow_proto.errors import Conflict, Unavailable, WindrowError
from windrow_proto.keys import SigningKey
from windrow_proto.manifest import signed

FETCH_S: Final = 600
"""For pip to fetch 14 MB: seconds on a near registry, minutes on a slow line."""
CHECK_S: Final = 120
AGAIN_S: Final = 60
REASON_MAX: Final = 400
MANIFEST: Final = "manifest.json"
CARRIED: Final = {
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
"""Files that the repository keeps elsewhere and a wheel of ours carries in data/ (master/hatch_build.py copies the
same)."""
HANDED_OUT: Final = {"install.sh": "script", "windrow-agent-keep": "script", "windrow-agent.service": "unit"}
LIST: Final = "files.txt"
"""The wheels for a shell to read: the Python versions that each fits, its SHA-256, its name. The first line has the
release and the platform."""
PINS: Final = "requirements.txt"
MINORS: Final = ("3.11", "3.12", "3.13", "3.14")
"""The Python versions that people have; for others the installer names the way by their own pip."""


@dataclass(frozen=True, slots=True)
class Product:
    """A program to install elsewhere. name: of its distribution. called: by people. packages: ours, with the file of
    their metadata. files: handed out with the wheels, by kind. minors: further Python versions to have wheels for."""

    name: str
    called: str
    packages: Mapping[str, str]
    files: Mapping[str, str]
    minors: tuple[str, ...] = ()


AGENT: Final = Product(
    "windrow-agent",
    "agent",
    {"windrow_tunnel": "tunnel.toml", "windrow_proto": "proto.toml", "windrow_agent": "agent.toml"},
    HANDED_OUT,
)
CLI: Final = Product("windrow", "command", {"windrow_tunnel": "tunnel.toml", "windrow": "sdk.toml"}, {}, MINORS)

log = structlog.get_logger("windrow_master.onboarding")


class NotPrepared(Exception):
    """The wheels cannot be prepared; the message is a sentence for an operator."""


class NoSuchWheels(NotPrepared):
    """Whom pip asked has no file that fits."""


def carried(name: str) -> Path:
    """One carried file: in the installed package, else in the repository that this package is run from."""
    installed = Path(__file__).resolve().parent / "data" / name
    return installed if installed.is_file() else Path(__file__).resolve().parents[3] / CARRIED[name]


class Wheelhouse:
    """The files under `directory` that are handed out. `run` prepares them once somebody wants them, until it
    succeeds."""

    def __init__(self, directory: Path, signing: SigningKey, product: Product = AGENT) -> None:
        self._directory = directory
        self._signing = signing
        self._product = product
        self._wanted = asyncio.Event()
        self._progress = self._at(Phase.ABSENT)
        self._files: dict[str, Path] = {}
        self.ready = asyncio.Event()
        """Set once the files can be handed out."""

    @property
    def progress(self) -> Progress:
        """How far it is."""
        return self._progress

    def _at(self, phase: Phase, detail: str = "", done: int = 0, total: int = 0) -> Progress:
        return Progress(phase, detail, done, total, self._product.called)

    def want(self) -> None:
        """Begin to prepare if nobody wanted it before."""
        self._wanted.set()

    def problem(self) -> str | None:
        """Return the notice for an operator: why there are no wheels."""
        return self._progress.sentence() if self._progress.phase is Phase.FAILED else None

    def file(self, name: str) -> Path | None:
        """A file to hand out, by a name in the manifest (or the manifest's own); None for any other."""
        return self._files.get(name)

    def wheels(self) -> tuple[Path, ...]:
        """Every wheel of the release, once it is ready."""
        return tuple(path for name, path in sorted(self._files.items()) if name.endswith(".whl"))

    async def run(self) -> None:
        """Wait until wanted, prepare, and try again every minute while that fails. Ends when the files are ready."""
        await self._wanted.wait()
        while True:
            try:
                await self._prepare()
                self.ready.set()
                log.info("wheels_ready", files=self._progress.total)
                return
            except (NotPrepared, OSError) as failure:
                reason = str(failure)[:REASON_MAX].rstrip(".") + "."
                self._progress = self._at(Phase.FAILED, reason)
                log.warning("wheels_failed", reason=reason)
            await asyncio.sleep(AGAIN_S)

    async def _prepare(self) -> None:
        self._progress = self._at(Phase.PREPARING, f"reading what the {self._product.called} needs")
        pins = await asyncio.to_thread(_pins, self._product)
        text = closure.requirements_text(pins)
        wanted = hashlib.sha256(text.encode()).hexdigest()
        fetched = self._directory / wanted[:16]
        if await asyncio.to_thread(_intact, fetched, pins) is None:
            await self._fetch(fetched, text, pins)
        wheels = await asyncio.to_thread(_intact, fetched, pins)
        if wheels is None:
            raise NotPrepared("What pip fetched is not what requirements.lock names.")
        self._progress = self._at(Phase.PREPARING, f"packing the {self._product.called}", len(pins), len(pins))
        ours = await asyncio.to_thread(self._pack)
        await self._check(fetched)
        await asyncio.to_thread(self._publish, wanted, {**wheels, **ours}, text)

    async def _fetch(self, target: Path, text: str, pins: Sequence[closure.Pin]) -> None:
        fresh = target.with_name(f"{target.name}.new")
        await asyncio.to_thread(_empty, fresh)
        wanted = fresh / "wanted.txt"
        await asyncio.to_thread(wanted.write_text, text, encoding="utf-8")
        self._progress = self._at(Phase.PREPARING, "fetching", 0, len(pins))
        options = ["--no-deps", "--require-hashes", "--only-binary=:all:", "--progress-bar=off"]
        await self._pip(["download", *options, "--dest", str(fresh), "-r", str(wanted)], FETCH_S, len(pins))
        compiled = await asyncio.to_thread(_write_compiled, fresh, pins)
        for minor in self._product.minors:
            wished = ["--python-version", minor, "--dest", str(fresh), "-r", str(compiled)]
            try:
                await self._pip(["download", *options, *wished], FETCH_S, 0)
            except NoSuchWheels as failure:  # a Python for which somebody has made no wheels yet
                log.info("wheels_left_out", python=minor, reason=str(failure)[:REASON_MAX])
        await asyncio.to_thread(_replace, fresh, target)

    def _pack(self) -> dict[str, Path]:
        """Our own wheels and scripts, written anew each time: the sources here may have changed."""
        target = self._directory / "ours"
        _empty(target)
        contents = dict(_own_wheel(package, carried(toml)) for package, toml in self._product.packages.items())
        contents |= {name: carried(name).read_bytes() for name in self._product.files}
        for name, content in contents.items():
            (target / name).write_bytes(content)
        return {name: target / name for name in contents}

    async def _check(self, fetched: Path) -> None:
        """Let pip resolve the product from these files alone: what is missing shows here and not where it is used."""
        finds = [f"--find-links={folder}" for folder in (fetched, self._directory / "ours")]
        options = ["--dry-run", "--ignore-installed", "--no-index", "--isolated", "--quiet", *finds]
        await self._pip(["install", *options, self._product.name], CHECK_S, 0)

    def _publish(self, wanted: str, paths: dict[str, Path], pins: str) -> None:
        kinds = self._product.files
        entries = [Artifact.of(name, kinds.get(name, "wheel"), path.read_bytes()) for name, path in paths.items()]
        python = f"{sys.version_info.major}.{sys.version_info.minor}"
        manifest = Manifest(python, sysconfig.get_platform(), wanted, by_name(entries))
        lists = {MANIFEST: signed(record_of(manifest), self._signing)}
        if self._product.minors:
            lists |= {LIST: closure.list_text(manifest, self._product.minors).encode(), PINS: pins.encode()}
        for name, content in lists.items():
            fresh = self._directory / f"{name}.new"
            fresh.write_bytes(content)
            fresh.replace(self._directory / name)
        self._files = {**paths, **{name: self._directory / name for name in lists}}
        self._progress = self._at(Phase.READY, manifest.release, len(entries), len(entries))

    async def _pip(self, arguments: Sequence[str], deadline_s: float, total: int) -> None:
        """Run pip, counting the distributions it takes up; it is ended when we are, or at the deadline."""
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments]
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said: list[str] = []
        try:
            async with asyncio.timeout(deadline_s):
                assert process.stdout is not None
                while line := await process.stdout.readline():
                    said.append(line.decode(errors="replace").strip())
                    if total and said[-1].startswith(("Collecting ", "Processing ", "Ignoring ")):
                        done = min(self._progress.done + 1, total)
                        self._progress = self._at(Phase.PREPARING, "fetching", done, total)
                status = await process.wait()
        except TimeoutError:
            raise NotPrepared(f"pip {arguments[0]} took more than {deadline_s:.0f} s") from None
        except ValueError as error:
            raise NotPrepared(f"pip {arguments[0]} wrote a line without an end") from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()  # not wait: it would wait for a pipe that nobody reads
        if status != 0:
            kind = NoSuchWheels if _has_none_that_fits(said) else NotPrepared
            raise kind(f"pip {arguments[0]} ended with {status}: {_reason(said)}")


def not_ready(progress: Progress) -> WindrowError:
    """Return the error to answer with while there is nothing to hand out: to be repeated while it is being prepared,
    else not."""
    return Conflict(progress.sentence()) if progress.phase is Phase.FAILED else Unavailable(progress.sentence())


def _reason(said: Sequence[str]) -> str:
    errors = [line.removeprefix("ERROR: ") for line in said if line.startswith("ERROR: ")]
    return (errors or [line for line in said if line] or ["it said nothing"])[-1]


def _has_none_that_fits(said: Sequence[str]) -> bool:
    """True if nothing fits, in pip's words. Without a network it says the same, after it has tried again."""
    is_none = any(line.startswith("ERROR: No matching distribution found") for line in said)
    return is_none and not any("Retrying (" in line or "Could not fetch URL" in line for line in said)


def _write_compiled(folder: Path, pins: Sequence[closure.Pin]) -> Path:
    """Write the pins of which this folder has a wheel for one platform; returns the file."""
    file = folder / "compiled.txt"
    names = [path.name for path in folder.glob("*.whl")]
    file.write_text(closure.requirements_text(closure.compiled(pins, names)), encoding="utf-8")
    return file


def _pins(product: Product) -> tuple[closure.Pin, ...]:
    roots: list[str] = []
    for package, toml in product.packages.items():
        if importlib.util.find_spec(package) is None:
            raise NotPrepared(f"{package} is not installed beside this Master; install {product.name} with it")
        roots += _declared(carried(toml)).dependencies
    lock = closure.read_lock(carried("requirements.lock").read_text(encoding="utf-8"))
    names = closure.needed(roots, _requires)
    return closure.locked(names - {closure.normal(package) for package in product.packages}, lock)


def _requires(name: str) -> Sequence[str]:
    try:
        return distribution(name).requires or ()
    except PackageNotFoundError:
        return ()  # another platform's, or one of ours


def agent_declared() -> wheel.Declared:
    """Return the metadata of the agent's distribution."""
    return _declared(carried("agent.toml"))


def _declared(path: Path) -> wheel.Declared:
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    return wheel.Declared(
        name=project["name"],
        version=project["version"],
        summary=project["description"],
        requires_python=project["requires-python"],
        licence=project["license"],
        dependencies=tuple(project["dependencies"]),
        scripts=project.get("scripts", {}),
    )


def _own_wheel(package: str, toml: Path) -> tuple[str, bytes]:
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise NotPrepared(f"{package} is not installed beside this Master")
    top = Path(found.submodule_search_locations[0])
    files: dict[str, bytes] = {}
    for folder, folders, names in os.walk(top):
        folders[:] = sorted(name for name in folders if name != "__pycache__" and not name.startswith("."))
        for name in sorted(names):
            path = Path(folder) / name
            if not name.startswith(".") and not name.endswith((".pyc", "~")) and path.is_file():
                files[f"{package}/{path.relative_to(top).as_posix()}"] = path.read_bytes()
    return wheel.pack(_declared(toml), files)


def _intact(folder: Path, pins: Sequence[closure.Pin]) -> dict[str, Path] | None:
    """The wheels of this folder if each is one that the lock names; None where it is not there or holds another."""
    if not (folder / "wanted.txt").is_file():
        return None
    allowed = frozenset[str]().union(*(pin.sha256 for pin in pins))
    found = {path.name: path for path in sorted(folder.glob("*.whl"))}
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in found.values()]
    return found if found and allowed.issuperset(digests) else None


def _empty(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def _replace(fresh: Path, target: Path) -> None:
    """Put a whole folder in place; whatever else was fetched for older locks goes."""
    for old in target.parent.iterdir():
        if old.is_dir() and old != fresh and old.name != "ours":
            shutil.rmtree(old, ignore_errors=True)
    fresh.rename(target)
