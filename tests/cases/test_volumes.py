"""Volumes give back what was put into them."""

from collections.abc import Iterator

import pytest

from tests.support.rental import Renter

pytestmark = [pytest.mark.timeout(240), pytest.mark.slow]

PUT = r"""
import os
os.chdir(os.environ["WINDROW_VOLUME_KEPT"])
os.makedirs("empty/inner"); os.makedirs("deep/er"); os.makedirs("closed", 0o700)
open("deep/er/file", "w").write("one"); os.link("deep/er/file", "hard"); os.symlink("deep/er/file", "soft")
os.symlink("/etc/hostname", "outside"); os.symlink("nowhere", "dangling")
open("run", "w").write("#!/bin/sh\n"); os.chmod("run", 0o755); open("ro", "w").write("r"); os.chmod("ro", 0o444)
for name in ODD: open(name, "wb").write(name)
"""
GET = r"""
import os
os.chdir(os.environ["WINDROW_VOLUME_KEPT"])
links = {name: os.readlink(name) for name in ("soft", "dangling") if os.path.islink(name)}
print(sorted(links.items()), os.path.isdir("empty/inner"), open("hard").read(), open("soft").read())
print([name for name in ("run", "ro", "hard") if os.stat(name).st_mode & 0o111])
print([name for name in ODD if not os.path.exists(name) or open(name, "rb").read() != name])
print(os.path.lexists("outside") and os.readlink("outside"))
"""
ODD = [
    b"a\nb",
    b"tab\t",
    b"-dash",
    b"..dots",
    b"quo'te\"s",
    "\u65e5\u672c".encode(),
    b"n" * 255,
]


@pytest.fixture
def volume(renter: Renter) -> Iterator[str]:
    """Named kept, and away at the end."""
    name = "kept"
    renter.ask("POST", "/volumes", {"name": name})
    yield name
    renter.windrow("volume", "rm", name, "--yes")


@pytest.mark.case("B-G3")
def test_links_empty_folders_odd_names_and_programs_come_back(renter: Renter, volume: str) -> None:
    mount, odd = ("--volume", f"{volume}:/data"), f"ODD = {ODD!r}\n"

    put = renter.windrow("run", "--no-files", *mount, "--", "python3", "-c", odd + PUT)
    got = renter.windrow("run", "--no-files", *mount, "--", "python3", "-c", odd + GET)

    assert (put.returncode, got.returncode) == (0, 0), put.stdout + put.stderr + got.stdout + got.stderr
    links, programs, lost, outside = got.stdout.splitlines()
    assert links == "[('dangling', 'nowhere'), ('soft', 'deep/er/file')] True one one"
    assert programs == "['run']", "docs/volumes.md: of permissions a volume keeps who is a program"
    assert lost == "[]"
    assert outside in ("/etc/hostname", "False"), outside
