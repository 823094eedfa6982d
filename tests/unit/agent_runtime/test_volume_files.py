"""A volume's folder: all that it holds comes back, what is written meanwhile is seen, and no link is followed."""

import os
import stat

import pytest

from windrow_agent.storage import volume_files
from windrow_proto.errors import Conflict, InvalidInput
from windrow_proto.volumes import INDEX_NAME


def fill(root):
    (root / "a" / "empty").mkdir(parents=True)
    (root / "a" / "file").write_bytes(b"content")
    (root / "run").write_bytes(b"#!")
    (root / "run").chmod(0o755)
    (root / "nothing").touch()
    (root / "link").symlink_to("a/file")
    (root / "out").symlink_to("/etc")


def moved(tree, root, is_anew=True):
    coming = volume_files.Incoming(root, is_anew)
    try:
        for piece in tree.pieces:
            coming.write(piece.name, tree.read(piece, 3))
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
