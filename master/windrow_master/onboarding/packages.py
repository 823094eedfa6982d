"""Makes the agent's packages in a child process, and keeps them: an archive with its own Python, one file, a .deb.

Made of the very wheels that this Master hands out, of the Python it runs on and of the libraries that Python needs; run
as a program (`python -m windrow_master.onboarding.packages DIRECTORY`) it makes them without a Master.
"""

import argparse
import asyncio
import compileall
import functools
import json
import os
import platform
import py_compile
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import structlog

from windrow_master.onboarding import archive, runtime
from windrow_master.onboarding.archive import Entry
from windrow_master.onboarding.model import Artifact, Manifest, Phase, Progress, by_name, record_of
from windrow_master.onboarding.service import HANDED_OUT, NotPrepared, Wheelhouse, agent_declared, carried
from windrow_proto.keys import DOMAIN_SUMS, SigningKey
from windrow_proto.manifest import signed

MAKE_S: Final = 600
"""For the child: a quarter of a minute on an idle core, minutes on a busy machine of two."""
TOOL_S: Final = 60
AGAIN_S: Final = 60
REASON_MAX: Final = 400
MANIFEST: Final = "packages.json"
SUMS: Final = "SHA256SUMS"
SIGNATURE: Final = "SHA256SUMS.sig"
"""Ed25519 over the domain, a zero byte and SHA256SUMS: 64 bytes, as openssl reads them."""
ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
"""As Debian calls them."""
MAINTAINER: Final = ("preinst", "postinst", "prerm", "postrm")
HOME: Final = "usr/lib/windrow-agent"
UNIT_PATH: Final = "lib/systemd/system/windrow-agent.service"
NICE: Final = 10

log = structlog.get_logger("windrow_master.onboarding")


class Packages:
    """The files under `directory` that /dl/ serves beside the wheels. `run` makes them once somebody wants them."""

    def __init__(self, directory: Path, wheelhouse: Wheelhouse, signing: SigningKey) -> None:
        self._directory = directory
        self._wheelhouse = wheelhouse
        self._signing = signing
        self._wanted = asyncio.Event()
        self._progress = Progress(Phase.ABSENT)
        self._files: dict[str, Path] = {}

    @property
    def signer(self) -> bytes:
        """The public key of what is handed out."""
        return self._signing.public

    @property
    def progress(self) -> Progress:
        """How far it is; while the wheels are not ready, how far those are."""
        wheels = self._wheelhouse.progress
        return wheels if wheels.phase in (Phase.PREPARING, Phase.FAILED) else self._progress

    def want(self) -> None:
        """Begin to make them if nobody wanted them before."""
        self._wheelhouse.want()
        self._wanted.set()

    def serves(self, name: str) -> bool:
        """Return whether this is a name of a package or of their lists, there already or not."""
        return name in (MANIFEST, SUMS, SIGNATURE, *names().values())

    def file(self, name: str) -> Path | None:
        """A file to hand out; None before it is made."""
        return self._files.get(name)

    async def run(self) -> None:
        """Wait until wanted, make them, and try again every minute while that fails. Ends when they are ready."""
        await self._wanted.wait()
        await self._wheelhouse.ready.wait()
        while True:
            try:
                await self._make()
                log.info("packages_ready", files=self._progress.total)
                return
            except (NotPrepared, OSError) as failure:
                reason = str(failure)[:REASON_MAX].rstrip(".") + "."
                self._progress = Progress(Phase.FAILED, reason)
                log.warning("packages_failed", reason=reason)
            await asyncio.sleep(AGAIN_S)

    async def _make(self) -> None:
        release = self._wheelhouse.progress.detail
        into = self._directory / f"{release}-{platform.python_version()}"  # which is packed with it
        self._progress = Progress(Phase.PREPARING, "packing the agent with its own Python", 0, len(names()))
        if not (into / SUMS).is_file():
            await asyncio.to_thread(shutil.rmtree, self._directory, True)
            wheels = [str(path) for path in self._wheelhouse.wheels()]
            await _child([sys.executable, "-m", __name__, "--wheels", json.dumps(wheels), str(into)])
        await asyncio.to_thread(self._publish, into, release)

    def _publish(self, into: Path, release: str) -> None:
        made = {name: into / name for name in (*names().values(), SUMS)}
        kinds = {name: kind for kind, name in names().items()}
        entries = [Artifact.of(name, kinds.get(name, "sums"), path.read_bytes()) for name, path in made.items()]
        python = f"{sys.version_info.major}.{sys.version_info.minor}"
        manifest = Manifest(python, sysconfig.get_platform(), release, by_name(entries))
        proofs = {
            MANIFEST: signed(record_of(manifest), self._signing),
            SIGNATURE: self._signing.sign(DOMAIN_SUMS, made[SUMS].read_bytes()),
        }
        for name, content in proofs.items():
            fresh = into / f"{name}.new"
            fresh.write_bytes(content)
            fresh.replace(into / name)
        self._files = {**made, **{name: into / name for name in proofs}}
        self._progress = Progress(Phase.READY, manifest.release, len(entries), len(entries))


async def _child(command: list[str]) -> None:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(MAKE_S):
            said, _ = await process.communicate()
    except TimeoutError:
        raise NotPrepared(f"packing took more than {MAKE_S} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()  # not wait: it would wait for a pipe that nobody reads
    if process.returncode != 0:
        lines = said.decode(errors="replace").strip().splitlines() or ["it said nothing"]
        raise NotPrepared(f"packing ended with {process.returncode}: {lines[-1]}")


@functools.cache
def names() -> dict[str, str]:
    """Kind -> file name, for the processor that this Master runs on."""
    machine = platform.machine()
    stem = f"windrow-agent-linux-{machine}"
    return {
        "archive": f"{stem}.tar.gz",
        "program": stem,
        "deb": f"windrow-agent_{ARCHITECTURES.get(machine, machine)}.deb",
    }


# --- making, in the child -----------------------------------------------------------------------------------------


def make(wheels: list[Path], into: Path) -> None:
    """Write the three packages and their sums into `into`, which appears whole or not at all. Blocking: a quarter of a
    minute and 300 MB of memory. Raises NotPrepared, OSError."""
    into.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".packing-", dir=into.parent) as scratch:
        tree, made = Path(scratch) / "tree", Path(scratch) / "made"
        made.mkdir()
        _lay_out(wheels, tree)
        files = dict(_entries(tree))
        found = names()
        packed = archive.tar_gz(files)
        contents = {
            found["archive"]: packed,
            found["program"]: archive.one_file(carried("windrow-agent-onefile").read_bytes(), packed),
            found["deb"]: _deb(files),
        }
        for name, content in contents.items():
            (made / name).write_bytes(content)
        (made / SUMS).write_bytes(archive.sums(contents))
        shutil.rmtree(into, ignore_errors=True)
        made.rename(into)


def _lay_out(wheels: list[Path], tree: Path) -> None:
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    library = tree / "lib" / python
    for relative, path in _standard_library(Path(sysconfig.get_path("stdlib"))):
        target = library / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(library, runtime.from_wheel(packed.namelist()))
    (library / "sitecustomize.py").write_text(runtime.CUSTOMIZE, encoding="utf-8")
    (tree / "bin").mkdir()
    shutil.copyfile(os.path.realpath(sys.executable), tree / "bin" / python)
    _scripts(tree, python)
    _libraries(tree)
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    if not compileall.compile_dir(library, quiet=2, stripdir=str(tree), invalidation_mode=mode):
        raise NotPrepared("some module of the agent cannot be compiled")
    (tree / "files").mkdir()
    for name in HANDED_OUT:
        shutil.copyfile(carried(name), tree / "files" / name)


def _scripts(tree: Path, python: str) -> None:
    for name, text in {"python": runtime.PYTHON.replace("@PYTHON@", python), "windrow-agent": runtime.AGENT}.items():
        (tree / "bin" / name).write_text(text, encoding="utf-8")


def _standard_library(top: Path) -> Iterator[tuple[str, Path]]:
    for folder, folders, found in os.walk(top):
        at = Path(folder).relative_to(top).as_posix()
        prefix = "" if at == "." else f"{at}/"
        folders[:] = sorted(name for name in folders if name != "__pycache__" and runtime.is_kept(f"{prefix}{name}"))
        for name in sorted(found):
            path = Path(folder) / name
            if runtime.is_kept(f"{prefix}{name}") and path.is_file():
                yield f"{prefix}{name}", path


def _libraries(tree: Path) -> None:
    """Copy what the interpreter and the compiled modules load, and leave out what is only for debuggers."""
    binaries = [path for path in (tree / "bin").iterdir() if path.read_bytes()[:4] == b"\x7fELF"]
    binaries += sorted(path for path in tree.rglob("*.so*") if path.is_file())
    wanted: dict[str, str] = {}
    for binary in binaries:
        said = _ran("ldd", str(binary))
        missing = runtime.unresolved(said)
        if missing:
            raise NotPrepared(f"{binary.name} needs {', '.join(missing)}, which is not here")
        wanted |= dict(runtime.libraries_of(said))
    own = {path.name for path in binaries}
    for name, path in sorted(wanted.items()):
        if name not in own:
            shutil.copyfile(path, tree / "lib" / name)
            binaries.append(tree / "lib" / name)
    if shutil.which("strip"):
        _ran("strip", "--strip-unneeded", *(str(path) for path in binaries))


def _ran(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotPrepared(f"`{command[0]}` could not be run: {error}") from error
    return done.stdout


def _entries(tree: Path) -> Iterator[tuple[str, Entry]]:
    for path in sorted(tree.rglob("*")):
        if path.is_file():
            relative = path.relative_to(tree).as_posix()
            yield relative, Entry(path.read_bytes(), is_program=relative.startswith("bin/"))


def _deb(files: Mapping[str, Entry]) -> bytes:
    declared = agent_declared()
    unit = carried("windrow-agent.service").read_text(encoding="utf-8")
    account = {"@ACCOUNT@": "windrow-agent", "@GROUP@": "windrow-agent", "@STATE@": "/var/lib/windrow-agent"}
    for name, value in {"@PREFIX@/current": f"/{HOME}", **account}.items():
        unit = unit.replace(name, value)
    glibc = ".".join(platform.libc_ver()[1].split(".")[:2])
    control = (
        ("Package", declared.name),
        ("Version", declared.version),
        ("Architecture", ARCHITECTURES.get(platform.machine(), platform.machine())),
        ("Maintainer", "Windrow <maintainers@windrow.dev>"),
        ("Section", "admin"),
        ("Priority", "optional"),
        ("Depends", f"libc6 (>= {glibc}), libstdc++6, libgcc-s1, passwd, util-linux"),
        ("Recommends", "bubblewrap, nftables, passt"),
        ("Suggests", "docker.io"),
        ("Homepage", "https://windrow.dev"),
        ("Description", declared.summary),
    )
    placed = {f"{HOME}/{path}": entry for path, entry in files.items()}
    placed[UNIT_PATH] = Entry(unit.encode())
    placed["usr/bin/windrow-agent"] = Entry(link=f"../../{HOME}/bin/windrow-agent")
    return archive.deb(control, {name: carried(name).read_bytes() for name in MAINTAINER}, placed)


async def _make_alone(into: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="windrow-wheels-") as scratch:
        wheelhouse = Wheelhouse(Path(scratch), SigningKey.generate())
        wheelhouse.want()
        await wheelhouse.run()
        await asyncio.to_thread(make, list(wheelhouse.wheels()), into)


def main() -> int:
    """Make them; exit status 1 with a sentence when that fails."""
    parser = argparse.ArgumentParser(description="Make the agent's packages.")
    parser.add_argument(
        "--wheels", type=json.loads, help="wheels to build from, as a JSON list; default: pip downloads them"
    )
    parser.add_argument("into", type=Path)
    found = parser.parse_args()
    os.nice(NICE)
    try:
        if found.wheels is None:
            asyncio.run(_make_alone(found.into))
        else:
            make([Path(path) for path in found.wheels], found.into)
    except (NotPrepared, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    if found.wheels is None:
        print((found.into / SUMS).read_text(encoding="utf-8"), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
