"""Checkpoints in a folder that somebody hostile writes: found when whole, read and written nowhere else."""

import os
from pathlib import Path

import pytest

from windrow_agent.storage import checkpoint_files
from windrow_agent.storage.checkpoint_files import Incoming
from windrow_proto.checkpoints import FOLDER, Piece, check_pieces, file_name, pieces_of
from windrow_proto.errors import Conflict, InvalidInput, NotFound, TooLarge, WindrowError


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / FOLDER).mkdir(parents=True)
    (tmp_path / "secret").write_text("secret of the host")
    return folder


def save(work: Path, name: str, **files: str) -> Path:
    folder = work / FOLDER / name
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    return folder


def content(work: Path, step: int) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for piece in checkpoint_files.listed(work, step):
        found[piece.name] = found.get(piece.name, b"") + b"".join(checkpoint_files.read(work, step, piece, 3))
    return found


def test_only_a_folder_with_a_final_name_is_whole_and_the_largest_step_counts(work):
    assert checkpoint_files.newest(work, -1) is None
    save(work, "step-9", a="9")
    save(work, "step-10", a="10")
    save(work, "step-11.tmp", a="half")
    save(work, "tmp-12", a="half")
    (work / FOLDER / "step-13").write_text("a file")
    (work / FOLDER / "step-14").symlink_to(work / FOLDER / "step-9")

    assert checkpoint_files.newest(work, -1) == 10
    assert checkpoint_files.newest(work, 10) is None
    assert content(work, 10) == {"a": b"10"}


def test_zeros_before_a_number_are_the_workloads_choice(work):
    save(work, "step-000007", a="7")

    assert checkpoint_files.newest(work, 6) == 7
    assert content(work, 7) == {"a": b"7"}


def test_files_are_found_in_folders_and_hidden_ones_too(work):
    save(work, "step-1", **{"shard/0": "zero", ".metadata": "m", "empty": ""})

    assert content(work, 1) == {"shard/0": b"zero", ".metadata": b"m", "empty": b""}


def test_a_link_a_pipe_or_a_device_makes_no_checkpoint(work, tmp_path):
    (save(work, "step-1", a="a") / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(save(work, "step-2", a="a") / "pipe")
    (save(work, "step-3", a="a") / "away").symlink_to(tmp_path)

    for step in (1, 2, 3):
        with pytest.raises(InvalidInput):
            checkpoint_files.listed(work, step)


def test_whatever_is_swapped_for_a_link_after_the_listing_is_not_followed(work, tmp_path):
    folder = save(work, "step-1", **{"a": "0123456789abcdefgh", "sub/b": "0123456789abcdefgh"})
    listed = checkpoint_files.listed(work, 1)
    (folder / "a").unlink()
    (folder / "a").symlink_to(tmp_path / "secret")
    os.rename(folder / "sub", folder / "old")
    (tmp_path / "b").write_text("secret of the host")
    (folder / "sub").symlink_to(tmp_path)

    for piece in listed:
        with pytest.raises(WindrowError):
            list(checkpoint_files.read(work, 1, piece, 100))


def test_the_folder_itself_may_be_no_link(work, tmp_path):
    save(work, "step-1", a="a")
    os.rename(work / FOLDER, tmp_path / "elsewhere")
    (work / FOLDER).symlink_to(tmp_path / "elsewhere")

    assert checkpoint_files.newest(work, -1) is None
    with pytest.raises(NotFound):
        checkpoint_files.listed(work, 1)
    with pytest.raises(InvalidInput):
        Incoming(work, 2)


def test_a_file_that_became_shorter_is_said_so_and_a_longer_one_is_read_as_it_was(work):
    folder = save(work, "step-1", a="0123456789", b="0123456789")
    first, second = checkpoint_files.listed(work, 1)
    (folder / "a").write_text("0123")
    (folder / "b").write_text("0123456789 and more")

    with pytest.raises(Conflict):
        list(checkpoint_files.read(work, 1, first, 100))
    assert b"".join(checkpoint_files.read(work, 1, second, 100)) == b"0123456789"


def test_what_comes_in_appears_whole_under_its_final_name_and_not_before(work):
    incoming = Incoming(work, 7)
    incoming.write("shard/0", iter([b"ze", b"ro"]))
    incoming.write("shard/0", iter([b" one"]))
    incoming.write("empty", iter([]))
    assert checkpoint_files.newest(work, -1) is None
    incoming.finish()
    incoming.close()
    incoming.close()

    assert content(work, 7) == {"shard/0": b"zero one", "empty": b""}
    assert sorted(os.listdir(work / FOLDER)) == ["step-7"]


def test_what_was_not_finished_is_taken_away(work):
    incoming = Incoming(work, 7)
    incoming.write("a", iter([b"half"]))
    incoming.close()

    assert os.listdir(work / FOLDER) == []


def test_a_checkpoint_that_is_there_already_stays(work):
    save(work, "step-7", a="its own")
    incoming = Incoming(work, 7)
    incoming.write("a", iter([b"ours"]))
    incoming.finish()
    incoming.close()

    assert content(work, 7) == {"a": b"its own"}
    assert os.listdir(work / FOLDER) == ["step-7"]


def test_nothing_is_written_through_a_link(work, tmp_path):
    incoming = Incoming(work, 7)
    (hidden,) = (work / FOLDER).iterdir()
    (hidden / "a").symlink_to(tmp_path / "secret")
    (hidden / "sub").symlink_to(tmp_path)

    with pytest.raises(OSError):
        incoming.write("a", iter([b"overwritten"]))
    with pytest.raises(InvalidInput):
        incoming.write("sub/secret", iter([b"overwritten"]))
    incoming.close()
    assert (tmp_path / "secret").read_text() == "secret of the host"


@pytest.mark.parametrize("name", ["", "/a", "../a", "a/../b", "a//b", "a/", ".", "..", "a\0", "a\\b", "x" * 1025, 7])
def test_names_that_lead_elsewhere_are_refused(name):
    with pytest.raises(InvalidInput):
        file_name(name)


def test_large_files_are_cut_into_pieces_that_follow_each_other():
    pieces = pieces_of([("b", 0), ("a", 25)], piece_bytes=10)

    assert pieces == (Piece("a", 0, 10), Piece("a", 10, 10), Piece("a", 20, 5), Piece("b", 0, 0))
    check_pieces(pieces)
    for bad in (pieces[1:], pieces[:1] + pieces[2:], (*pieces, pieces[0])):
        with pytest.raises(InvalidInput):
            check_pieces(bad)
    with pytest.raises(TooLarge):
        pieces_of([("a", 2**60)])
