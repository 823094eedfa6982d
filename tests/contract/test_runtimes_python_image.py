"""A container of an ordinary Python image: pip, apt, a large cache and compiled code work in it as they do elsewhere.

The image is made from this machine's Debian packages, as `python:3.12-slim` is made from Debian's; the wheel and the
Debian package are served inside the container, so that no index is asked.
"""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from tests.support import clean_debian
from tests.support.places import CONTAINERS, Place, in_pieces, log_of, no_progress, only, tar_of, until_ended
from tests.support.wheels import wheel

NAME = "windrow-test-python:local"
CALL_S = 300
CACHE_MIB = 300
APT_USER = "_apt:x:42:65534::/nonexistent:/usr/sbin/nologin\n"
"""The user that apt fetches as; Debian makes it when apt is installed."""

SERVE = """
python3 -m http.server --bind 127.0.0.1 --directory served 8000 >/dev/null 2>&1 &
until python3 -c 'import socket; socket.create_connection(("127.0.0.1", 8000))' 2>/dev/null; do sleep 0.1; done
"""
PIP = """
python3 -m pip install --quiet --user --index-url http://127.0.0.1:8000/simple/ tiny_thing
python3 -c 'import tiny_thing; print("# pip", tiny_thing.answer(), "in", tiny_thing.__file__.partition("/lib/")[0])'
"""
APT = """
echo 'deb [trusted=yes] http://127.0.0.1:8000/ ./' > /etc/apt/sources.list
apt-get update --quiet >&2
apt-get install --quiet --yes tiny-tool >&2
echo "# apt $(tiny-tool)"
"""
CACHE = f"""
mkdir -p ~/.cache
dd if=/dev/zero of="$HOME/.cache/model" bs=1M count={CACHE_MIB} status=none
stat -c '# cache %s' ~/.cache/model
"""
COMPILED = """
mkdir -p ~/.triton
cp /usr/lib/*/libz.so.1 ~/.triton/kernel.so
python3 -c 'import ctypes, os; print("# so", ctypes.CDLL(os.path.expanduser("~/.triton/kernel.so")).crc32(0, None, 0))'
"""


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The root folder of the image, packed."""
    clean_debian.need_debian()
    folder = tmp_path_factory.mktemp("python")
    root = clean_debian.make(folder / "root", "python3", "python3-pip")
    for mark in root.glob("usr/lib/python3*/EXTERNALLY-MANAGED"):  # an image of Python has one that is its own
        mark.unlink()
    with open(root / "etc/passwd", "a") as file:
        file.write(APT_USER)
    packed = folder / "python.tar"
    subprocess.run(["tar", "-C", str(root), "-cf", str(packed), "."], check=True, timeout=CALL_S)
    yield packed
    packed.unlink()


@only(CONTAINERS)
async def test_an_ordinary_python_image_works_as_it_is(place: Place, archive: Path, tmp_path: Path) -> None:
    own = os.environ | {"DOCKER_HOST": place.docker_url}

    async def docker(*words: str) -> None:
        await asyncio.to_thread(
            subprocess.run, ["docker", *words], check=True, capture_output=True, timeout=CALL_S, env=own
        )

    await docker("import", '--change=CMD ["python3"]', str(archive), NAME)
    try:
        spec = replace(place.spec("sh", "-ec", SERVE + PIP + APT + CACHE + COMPILED), image=NAME)
        await place.runtime.prepare(spec, no_progress)
        await place.runtime.put_files(spec.workload_id, in_pieces(tar_of(served(tmp_path))), 0)
        await place.runtime.start(spec.workload_id)
        run = await until_ended(place, spec.workload_id)
        log = (await log_of(place, spec.workload_id))[0].decode()
        assert run.exit_code == 0, log
        said = [line for line in log.splitlines() if line.startswith("# ")]
        assert said == ["# pip 42 in /root/.local", "# apt a tool", f"# cache {CACHE_MIB << 20}", "# so 0"], log
        await place.runtime.remove(spec.workload_id)
    finally:
        await docker("rmi", "-f", NAME)


def served(folder: Path) -> dict[str, bytes]:
    """The files of an index for pip and of one for apt, by their paths."""
    name = Path(wheel(folder)).name
    tree = folder / "tiny-tool"
    (tree / "DEBIAN").mkdir(parents=True)
    control = "Package: tiny-tool\nVersion: 1.0\nArchitecture: all\nMaintainer: nobody <nobody@example.org>\n"
    control += "Description: says what it is\n"
    (tree / "DEBIAN/control").write_text(control)
    (tree / "usr/bin").mkdir(parents=True)
    (tree / "usr/bin/tiny-tool").write_text("#!/bin/sh\necho a tool\n")
    (tree / "usr/bin/tiny-tool").chmod(0o755)
    package = folder / "tiny-tool.deb"
    built = ["dpkg-deb", "--root-owner-group", "--build", str(tree), str(package)]
    subprocess.run(built, check=True, capture_output=True, timeout=CALL_S)
    data = package.read_bytes()
    listed = f"{control}Filename: ./{package.name}\nSize: {len(data)}\nSHA256: {sha256(data).hexdigest()}\n"
    return {
        f"served/simple/tiny-thing/{name}": (folder / name).read_bytes(),
        f"served/{package.name}": data,
        "served/Packages": listed.encode(),
    }
