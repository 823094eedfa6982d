"""The results of a run: all that it wrote comes back or stays to be fetched, and nothing here is lost for it."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.images import Images
from tests.support.person import Person, Said

GUARDED = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
"""Before a command that is to meet the rights of files as one who is not root does."""


@pytest.fixture(params=["process", "container"])
def flags(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """The flags of `windrow run` for one of both runtimes."""
    if request.param == "process":
        return ()
    images: Images = request.getfixturevalue("images")
    return ("--image", images.busybox())


def kept(person: Person, said: Said) -> str:
    """The cluster that a run left so that its files can be fetched."""
    assert said.code == 1, said
    found = re.search(r"(cluster_\w+) is kept so that you can fetch its files", said.errors)
    assert found is not None, said
    shown = person.renter.ask("GET", f"/clusters/{found[1]}")
    assert shown["phase"] not in ("Deleted", "Failed"), shown
    return found[1]


@pytest.mark.case("B-B1")
def test_a_link_among_the_results_comes_back_with_all_the_others(person: Person, flags: tuple[str, ...]) -> None:
    script = "mkdir run-1; echo a > run-1/w; ln -s run-1 latest; echo z > z.txt"
    said = person.windrow("run", *flags, "--", "sh", "-c", script).well()
    assert os.readlink(person.here / "latest") == "run-1", said
    assert (person.here / "latest" / "w").read_text() == "a\n"
    assert (person.here / "z.txt").read_text() == "z\n"


@pytest.fixture
def narrow(person: Person) -> Iterator[Path]:
    """A folder with room for one MiB."""
    folder = person.here / "narrow"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)], check=False)
    if mounted.returncode:
        pytest.skip("a small file system needs root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.case("B-B3")
def test_what_finds_no_room_here_is_named_and_can_be_fetched_elsewhere(
    person: Person, narrow: Path, tmp_path: Path
) -> None:
    (narrow / "a").write_text("a")
    script = "head -c 5000000 /dev/zero > big.bin; echo z > zzz.txt"
    said = person.windrow("run", "--", "sh", "-c", script, cwd=narrow)
    assert "Traceback" not in said.errors and re.search(r"MISSING: big\.bin \([^)]*room", said.errors), said
    assert sorted(path.name for path in narrow.iterdir()) == ["a", "zzz.txt"], "nothing half under a real name"
    person.windrow("run", "fetch", kept(person, said), "--into", str(tmp_path / "other")).well()
    assert (tmp_path / "other" / "big.bin").stat().st_size == 5_000_000


@pytest.mark.case("B-B4")
def test_what_may_not_be_written_here_stays_and_the_rest_comes(person: Person, tmp_path: Path) -> None:
    locked = person.here / "ro.txt"
    locked.write_text("ro\n")
    locked.chmod(0o444)
    script = "chmod u+w ro.txt; echo more >> ro.txt; echo z > zz.txt"
    windrow = shutil.which("windrow", path=person.environment()["PATH"]) or ""
    said = person.command(*GUARDED, windrow, "run", "--", "sh", "-c", script).well()
    assert (locked.read_text(), (person.here / "zz.txt").read_text()) == ("ro\n", "z\n"), said
    (beside,) = person.here.glob("ro.txt.from-*")
    assert beside.read_text() == "ro\nmore\n" and beside.name in said.errors, said

    (person.here / "zz.txt").unlink()
    person.here.chmod(0o555)
    try:
        said = person.command(*GUARDED, windrow, "run", "--", "sh", "-c", "echo z > zz.txt")
    finally:
        person.here.chmod(0o755)
    assert "Traceback" not in said.errors and "MISSING: zz.txt (Permission denied)" in said.errors, said
    person.windrow("run", "fetch", kept(person, said)).well()
    assert (person.here / "zz.txt").read_text() == "z\n", "the same folder, once it may be written"


@pytest.mark.case("B-B8")
def test_a_result_of_more_than_a_gibibyte_comes_back_whole(person: Person) -> None:
    script = "truncate -s 1150M model.safetensors; echo end >> model.safetensors; echo ok > metrics.txt"
    said = person.windrow("run", "--", "sh", "-c", script, within_s=300).well()
    assert (person.here / "model.safetensors").stat().st_size == (1150 << 20) + 4, said
    assert (person.here / "metrics.txt").read_text() == "ok\n"


WAITS = "echo up; while ! test -e /tmp/never && test $((n = n + 1)) -le 40; do sleep 0.1; done; "


@pytest.mark.case("B-B10")
def test_what_the_work_does_not_touch_stays_as_i_edit_it_meanwhile(person: Person, flags: tuple[str, ...]) -> None:
    for name in ("f1", "f2", "f3"):
        (person.here / name).write_text("v1")
    before = (person.here / "f2").stat().st_mtime_ns
    with person.started("run", *flags, "--", "sh", "-c", WAITS) as run:
        run.until(b"up\n")
        (person.here / "f1").write_text("MINE")
        said = run.end().well()
    assert b"0 changed files came back" in said.err, said
    assert (person.here / "f1").read_text() == "MINE"
    assert (person.here / "f2").stat().st_mtime_ns == before


@pytest.mark.case("B-B12")
def test_what_was_changed_here_and_there_is_kept_twice_and_told(person: Person, flags: tuple[str, ...]) -> None:
    (person.here / "f").write_text("v1")
    with person.started("run", *flags, "--", "sh", "-c", WAITS + "echo remote > f") as run:
        run.until(b"up\n")
        (person.here / "f").write_text("MINE")
        said = run.end().well()
    assert (person.here / "f").read_text() == "MINE"
    (beside,) = person.here.glob("f.from-*")
    assert beside.read_text() == "remote\n" and beside.name in said.errors, said


@pytest.mark.case("B-B13")
def test_files_that_come_back_keep_the_modes_that_they_have_here(person: Person, flags: tuple[str, ...]) -> None:
    for name, mode in (("pub", 0o664), ("page", 0o644), ("own", 0o600)):
        (person.here / name).write_text("a\n")
        (person.here / name).chmod(mode)
    script = "for f in pub page own; do echo b >> $f; done; echo c > new"
    person.windrow("run", *flags, "--", "sh", "-c", script, umask=0o022).well()
    found = {path.name: oct(path.stat().st_mode & 0o777) for path in person.here.iterdir()}
    assert found == {"pub": "0o664", "page": "0o644", "own": "0o600", "new": "0o644"}
    assert (person.here / "pub").read_text() == "a\nb\n"


@pytest.mark.case("B-B15")
def test_what_the_work_removes_stays_here(person: Person, flags: tuple[str, ...]) -> None:
    (person.here / "a").write_text("a")
    person.windrow("run", *flags, "--", "sh", "-c", "rm a; echo b > b").well()
    assert {path.name for path in person.here.iterdir()} == {"a", "b"}
