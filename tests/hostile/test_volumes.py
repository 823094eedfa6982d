"""Folders with things in them that no volume can hold: what can be saved is, and what cannot is named."""

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.artefacts.test_moving import World
from tests.unit.artefacts.test_moving import world as world
from tests.unit.artefacts.test_moving_volumes import folder, restore, save
from windrow_agent.storage import volume_files
from windrow_master.storage.volume_rules import part_words
from windrow_proto.checkpoints import LEFT_MAX, Found, Moved, decode, encode
from windrow_proto.errors import Conflict
from windrow_proto.units import GIB

pytestmark = pytest.mark.row("K14")


def bound(path: Path) -> None:
    """A socket with this name, as tmux, Jupyter and gpg-agent leave."""
    here = os.open(path.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as line:
        line.bind(f"/proc/self/fd/{here}/{path.name}")  # short: a socket's path has at most 107 bytes
    os.close(here)


def bound_below(path: Path) -> None:
    """A socket in a folder."""
    path.mkdir()
    bound(path / "s")


def raw(path: Path, name: bytes) -> None:
    """An empty file with a name of any bytes."""
    os.close(os.open(os.fsencode(path) + b"/" + name, os.O_CREAT | os.O_WRONLY))


def deep(path: Path) -> None:
    """A file in more folders than a version has."""
    (path / "/".join("d" * 20)).mkdir(parents=True)
    (path / "/".join("d" * 20) / "file").touch()


ODD: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a socket": (lambda root: bound(root / "agent.sock"), "'agent.sock' is a socket"),
    "a socket below": (lambda root: bound_below(root / "b"), "'b/s' is a socket"),
    "a pipe": (lambda root: os.mkfifo(root / "pipe"), "'pipe' is a pipe"),
    "a device": (lambda root: os.mknod(root / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3)), "'null' is a device"),
    "a name of odd bytes": (lambda root: raw(root, b"caf\xe9\x1b[2J"), "is not UTF-8"),
    "a name with a backslash": (lambda root: raw(root, b"a\\b"), "backslash"),
    "a link to odd bytes": (lambda root: os.symlink(b"\xff", os.fsencode(root) + b"/odd"), "'odd' leads to"),
    "a folder too deep": (deep, "16 folders already"),
    "the name of the index": (lambda root: (root / ".windrow-volume.json").write_text("{}"), "kept for"),
    "the name of what comes": (lambda root: (root / ".incoming-mine").touch(), "kept for"),
    "a file of a terabyte": (lambda root: os.truncate(_made(root / "huge"), 1024 * GIB), "'huge' is too large"),
}


def _made(path: Path) -> Path:
    path.touch()
    return path


@pytest.mark.parametrize("name", ODD)
async def test_all_else_is_saved_and_what_cannot_be_is_named(world: World, name: str) -> None:
    make, words = ODD[name]
    one, two = folder(world, "one"), folder(world, "two")
    (one / "result.pt").write_bytes(b"weights")
    (one / "out").symlink_to("/etc/passwd")
    try:
        make(one)
    except PermissionError:
        pytest.skip("only root makes devices")

    saved = await save(world, "one", 0)
    assert saved.left_count == len(saved.left) >= 1
    assert words in saved.left[0], saved.left
    assert part_words(saved.left, saved.left_count, saved.torn).startswith("saved except 1: ")
    assert all(one.isprintable() for one in saved.left)
    assert await save(world, "one", 1, saved.seen) is None, "a look at the same is the same"
    assert (await restore(world, "two")).step == 1
    assert (two / "result.pt").read_bytes() == b"weights"
    assert os.readlink(two / "out") == "/etc/passwd", "a link goes as a link, and nobody follows it"


async def test_everything_odd_at_once_is_counted_and_the_first_are_named(world: World) -> None:
    one = folder(world, "one")
    (one / "result.pt").write_bytes(b"weights")
    for at in range(30):
        os.mkfifo(one / f"pipe{at:02}")

    saved = await save(world, "one", 0)
    assert (len(saved.left), saved.left_count) == (LEFT_MAX, 30)
    words = part_words(saved.left, saved.left_count, ())
    assert words.startswith("saved except 30: 'pipe00' is a pipe; ") and words.endswith("and 22 more")


async def test_what_cannot_be_read_is_named_by_an_agent_that_is_not_root(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() == 0:
        refusing = os.open

        def refused(path: Any, flags: int, *more: Any, **named: Any) -> int:
            if path in ("private", "closed"):
                raise PermissionError(13, "Permission denied", path)
            return refusing(path, flags, *more, **named)

        monkeypatch.setattr(os, "open", refused)
    await _unreadable(world)


async def _unreadable(world: World) -> None:
    one = folder(world, "one")
    (one / "result.pt").write_bytes(b"weights")
    (one / "private").touch(0o000)
    (one / "closed").mkdir(0o000)
    saved = await save(world, "one", 0)
    (one / "closed").chmod(0o700)
    assert sorted(line.partition(" ")[0] for line in saved.left) == ["'closed'", "'private'"]
    assert {part.name for part in saved.manifest.parts} == {"result.pt", ".windrow-volume.json"}


def test_what_goes_away_during_the_look_is_no_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("file", "folder", "link", "stays"):
        (tmp_path / name).mkdir() if name == "folder" else (tmp_path / name).touch()
    listing = volume_files._names

    def vanishing(folder: int) -> list[str]:
        found = listing(folder)
        if (tmp_path / "file").exists():
            (tmp_path / "file").unlink()
            (tmp_path / "folder").rmdir()
            (tmp_path / "link").unlink()
        return found

    monkeypatch.setattr(volume_files, "_names", vanishing)
    tree = volume_files.look(tmp_path)
    assert [piece.name for piece in tree.pieces if not piece.name.startswith(".")] == ["stays"]
    assert tree.left_count == 0


def test_a_file_that_is_always_written_to_is_saved_as_it_was_read_and_named(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_bytes(b"0123456789")
    for takes_torn in (False, True):
        tree = volume_files.look(tmp_path, takes_torn=takes_torn)
        (piece,) = [one for one in tree.pieces if one.name == "train.log"]
        reading = tree.read(piece, 4)
        first = next(reading)
        with log.open("ab") as file:
            file.write(b"more")
        if not takes_torn:
            with pytest.raises(Conflict):
                list(reading)
            continue
        assert b"".join([first, *reading]) == b"0123456789more"[: piece.size_bytes]
        assert tree.is_torn(piece)
    assert part_words((), 0, ("train.log",)) == "maybe torn, being written to while it was saved: train.log"


def test_of_a_sparse_file_nothing_is_read_where_it_has_nothing(tmp_path: Path) -> None:
    os.truncate(_made(tmp_path / "sparse"), 50 * GIB)
    tree = volume_files.look(tmp_path)
    (piece,) = [one for one in tree.pieces if one.name == "sparse"]
    assert (piece.size_bytes, list(tree.read(piece, 1 << 20)), tree.left_count) == (0, [], 0)


def test_more_files_than_a_version_has_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(volume_files, "PIECES_MAX", 5)
    for at in range(9):
        (tmp_path / f"f{at}").touch()
    tree = volume_files.look(tmp_path)
    assert [piece.name for piece in tree.pieces] == [".windrow-volume.json", "f0", "f1", "f2", "f3"]
    assert tree.left_count == 5 and "one file too many" in tree.left[0]


def test_what_a_host_says_of_what_it_left_is_bounded_and_printable() -> None:
    said = Found(1, (), "", tuple(f"{at} \x1b[2J\n" * 100 for at in range(50)), 50)
    heard = decode(encode(said))
    assert isinstance(heard, Found) and len(heard.left) == LEFT_MAX and heard.left_count == 50
    words = part_words(heard.left, heard.left_count, ("a\nb",) * 9)
    assert words.isprintable() and len(words) <= 400
    assert decode(encode(Moved(1, "ab", True))) == Moved(1, "ab", True)
