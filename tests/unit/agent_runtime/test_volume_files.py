"""A volume's folder: all that it holds comes back, what is written meanwhile is seen, and no link is followed."""

import functools
import json
import os
import stat

import pytest

from windrow_agent.storage import volume_files
from windrow_proto.checkpoints import pieces_of
from windrow_proto.errors import Conflict, InvalidInput
from windrow_proto.units import GIB, KIB, MIB
from windrow_proto.volumes import INDEX_NAME


def fill(root):
    (root / "a" / "empty").mkdir(parents=True)
    (root / "a" / "file").write_bytes(b"content")
    (root / "run").write_bytes(b"#!")
    (root / "run").chmod(0o755)
    (root / "nothing").touch()
    (root / "link").symlink_to("a/file")
    (root / "out").symlink_to("/etc")


def moved(tree, root, is_anew=True, block=3):
    coming = volume_files.Incoming(root, is_anew)
    try:
        for piece in tree.pieces:
            coming.write(piece.name, tree.read(piece, block))
        return coming.finish()
    finally:
        coming.close()


@pytest.fixture
def folders(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    fill(one)
    return one, other


def test_all_of_it_comes_back_in_place_of_what_was_there(folders):
    one, other = folders
    (other / "old" / "deep").mkdir(parents=True)
    (other / "a").symlink_to("/etc")
    seen = moved(volume_files.look(one), other)
    assert sorted(os.listdir(other)) == ["a", "link", "nothing", "out", "run"]
    assert (other / "link").read_bytes() == b"content" and os.readlink(other / "out") == "/etc"
    assert (other / "a" / "empty").is_dir() and not (other / "a").is_symlink()
    modes = {name: stat.S_IMODE((other / name).stat().st_mode) for name in ("run", "nothing", "a")}
    assert modes == {"run": 0o777, "nothing": 0o666, "a": 0o777}
    assert volume_files.look(other).seen == seen
    assert moved(volume_files.look(one), other) != "" and (other / "a" / "file").read_bytes() == b"content"


def test_an_empty_restore_leaves_what_an_image_brought(folders):
    one, _ = folders
    coming = volume_files.Incoming(one, is_anew=False)
    assert coming.finish() == volume_files.look(one).seen
    coming.close()
    assert (one / "a" / "file").exists() and not any(name.startswith(".incoming") for name in os.listdir(one))
    assert stat.S_IMODE(one.stat().st_mode) == 0o777


def test_what_was_broken_off_leaves_the_folder_as_it_was(folders):
    one, other = folders
    (other / "kept").touch()
    tree = volume_files.look(one)
    coming = volume_files.Incoming(other, is_anew=True)
    coming.write(tree.pieces[0].name, tree.read(tree.pieces[0], 3))
    coming.close()
    assert os.listdir(other) == ["kept"]


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "a" / "file").write_bytes(b"CONTENT"),
        lambda root: (root / "new").touch(),
        lambda root: (root / "nothing").unlink(),
        lambda root: (root / "run").chmod(0o644),
        lambda root: (root / "dir").mkdir(),
        lambda root: ((root / "link").unlink(), (root / "link").symlink_to("run")),
    ],
)
def test_every_change_is_seen_and_looking_is_none(folders, change):
    one, _ = folders
    before = volume_files.look(one).seen
    assert volume_files.look(one).seen == before
    change(one)
    assert volume_files.look(one).seen != before


def test_a_file_that_is_written_while_it_is_read_is_torn(folders):
    one, _ = folders
    tree = volume_files.look(one)
    (piece,) = [one for one in tree.pieces if one.name == "a/file"]
    reading = tree.read(piece, 3)
    next(reading)
    (one / "a" / "file").write_bytes(b"CONTENT")
    with pytest.raises(Conflict, match="written to while"):
        list(reading)


def test_a_link_in_the_place_of_a_folder_is_not_followed(folders):
    one, _ = folders
    tree = volume_files.look(one)
    (piece,) = [one for one in tree.pieces if one.name == "a/file"]
    (one / "a" / "file").unlink()
    (one / "a" / "empty").rmdir()
    (one / "a").rmdir()
    (one / "a").symlink_to("/etc")
    with pytest.raises(Exception, match="no folder"):
        list(tree.read(piece, 3))


def test_a_pipe_is_left_out_and_named(folders):
    one, other = folders
    os.mkfifo(one / "pipe")
    tree = volume_files.look(one)
    assert (tree.left, tree.left_count) == (("'pipe' is a pipe",), 1)
    moved(tree, other)
    assert sorted(os.listdir(other)) == ["a", "link", "nothing", "out", "run"]


HEAD, TAIL = b"head" * 1024, b"tail" * 1024


def _write(path, size, *parts):
    with path.open("wb") as file:
        for at, data in parts:
            file.seek(at)
            file.write(data)
        file.truncate(size)


@pytest.mark.parametrize(
    ("parts", "data_most"),
    [
        ((), 0),
        (((0, HEAD),), 64 * KIB),
        (((GIB - len(TAIL), TAIL),), 64 * KIB),
        (((0, HEAD), (400 * MIB + 7, TAIL), (900 * MIB, HEAD)), 192 * KIB),
        (((100 * MIB, HEAD), (100 * MIB + 512 * KIB, TAIL)), 640 * KIB),
    ],
    ids=["nothing", "begin", "end", "parts", "a small hole"],
)
def test_a_sparse_file_comes_back_and_its_holes_are_not_read(folders, monkeypatch, parts, data_most):
    one, other = folders
    _write(one / "sparse", GIB, *parts)
    (one / "sparse").chmod(0o755)
    read, pread = [], os.pread

    def counted(*args):
        read.append(len(block := pread(*args)))
        return block

    monkeypatch.setattr(os, "pread", counted)
    tree = volume_files.look(one)
    seen = moved(tree, other, block=3 * KIB)
    assert sum(read) <= 2 * data_most + KIB, "read once to be sent, and once to be put in its places"
    (size,) = [piece.size_bytes for piece in tree.pieces if piece.name == "sparse"]
    assert size <= data_most
    facts = (other / "sparse").stat()
    assert (facts.st_size, stat.S_IMODE(facts.st_mode)) == (GIB, 0o777)
    assert facts.st_blocks * 512 <= data_most
    with (other / "sparse").open("rb") as file:
        for at, data in parts:
            assert file.seek(at) == at and file.read(len(data)) == data
    assert volume_files.look(other).seen == seen and (other / "run").read_bytes() == b"#!"


def test_pieces_of_a_sparse_file_are_of_its_data(folders, monkeypatch):
    one, other = folders
    content = os.urandom(40 * KIB)
    _write(one / "sparse", 64 * MIB, (0, content), (32 * MIB, content))
    cut = functools.partial(pieces_of, piece_bytes=24 * KIB)
    monkeypatch.setattr(volume_files, "pieces_of", cut)
    tree = volume_files.look(one)
    assert len([piece for piece in tree.pieces if piece.name == "sparse"]) == 4
    moved(tree, other, block=KIB)
    assert (other / "sparse").read_bytes() == (one / "sparse").read_bytes()


def test_a_sparse_file_that_gets_data_while_it_is_saved_is_torn(folders):
    one, _ = folders
    _write(one / "sparse", 64 * MIB)
    tree = volume_files.look(one)
    (piece,) = [one for one in tree.pieces if one.name == "sparse"]
    with (one / "sparse").open("r+b") as file:
        file.write(b"more")
    os.utime(one / "sparse", ns=(1, 1))
    with pytest.raises(Conflict, match="written to while"):
        list(tree.read(piece, 3))


def test_a_file_with_more_parts_than_are_asked_for_comes_back_whole(folders, monkeypatch):
    one, other = folders
    monkeypatch.setattr(volume_files, "EXTENTS_MAX", 2)
    _write(one / "sparse", 16 * MIB, *((at * 3 * MIB, HEAD) for at in range(5)))
    moved(volume_files.look(one), other, block=MIB)
    assert (other / "sparse").read_bytes() == (one / "sparse").read_bytes()


@pytest.mark.parametrize(
    "sparse",
    [
        [1 << 60, [[0, 4]]],
        [3, [[0, 4]]],
        [9, [[0, 3]]],
        [9, [[4, 2], [5, 2]]],
        [9, [[-1, 4]]],
        [9, [[0, 8], [8, -4]]],
        [9, [["0", 4]]],
        [9, [[0.5, 4]]],
        [9],
        9,
    ],
)
def test_a_sparse_file_whose_parts_cannot_be_so_is_refused(folders, sparse):
    _, other = folders
    coming = volume_files.Incoming(other, is_anew=True)
    coming.write("f", iter([b"data"]))
    told = {"sparse": {"f": sparse}, "index": {"folders": [], "links": {}, "programs": []}}
    coming.write(INDEX_NAME, iter([json.dumps(told).encode()]))
    with pytest.raises(InvalidInput):
        coming.finish()
    coming.close()
    assert os.listdir(other) == []


@pytest.mark.parametrize(
    "index",
    [
        b'{"folders": ["../evil"], "links": {}, "programs": []}',
        b'{"folders": [], "links": {"a": "x\\u0000y"}, "programs": []}',
        b'{"folders": [7], "links": [], "programs": {}}',
        b'{"folders": []}',
        b"[" * 100_000,
        b"7",
        b"",
    ],
)
def test_an_index_that_leads_elsewhere_or_is_none_is_refused(folders, tmp_path, index):
    _, other = folders
    coming = volume_files.Incoming(other, is_anew=True)
    coming.write(INDEX_NAME, iter([index]))
    with pytest.raises(InvalidInput):
        coming.finish()
    coming.close()
    assert not (tmp_path / "evil").exists() and os.listdir(other) == []
