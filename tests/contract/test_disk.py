"""The Disk port: what the operating system's files and their twin in memory both promise."""

from pathlib import Path

import pytest

from windrow_proto.disk import OsDisk
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.ports import Disk


@pytest.fixture(params=["os", "memory"])
def disk(request: pytest.FixtureRequest) -> Disk:
    return OsDisk() if request.param == "os" else MemoryDisk()


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "a" / "b")


def test_what_is_appended_is_read_back_from_any_offset(disk, folder):
    disk.make_directory(folder)
    disk.append(f"{folder}/f", b"one")
    disk.append(f"{folder}/f", b"two")
    disk.sync(f"{folder}/f")
    disk.sync_directory(folder)

    assert disk.size(f"{folder}/f") == 6
    assert disk.read(f"{folder}/f", 2, 3) == b"etw"
    assert disk.read(f"{folder}/f", 4, 99) == b"wo"
    assert disk.read(f"{folder}/f", 99, 1) == b""
    disk.release(f"{folder}/f")


def test_a_folder_lists_its_files_sorted_and_nothing_below(disk, folder):
    assert disk.list(folder) == ()
    disk.make_directory(folder)
    disk.make_directory(folder)
    disk.make_directory(f"{folder}/below")
    for name in ("f2", "f1", "below/f3"):
        disk.append(f"{folder}/{name}", b"x")
        disk.release(f"{folder}/{name}")

    assert disk.list(folder) == ("f1", "f2")
    assert disk.folders(folder) == ("below",)
    assert disk.folders(f"{folder}/nowhere") == ()


def test_a_cut_file_goes_on_where_it_was_cut(disk, folder):
    disk.make_directory(folder)
    disk.append(f"{folder}/f", b"abcdef")
    disk.truncate(f"{folder}/f", 2)
    disk.append(f"{folder}/f", b"X")

    assert disk.read(f"{folder}/f", 0, 9) == b"abX"
    disk.release(f"{folder}/f")


def test_renaming_replaces_and_deleting_twice_is_fine(disk, folder):
    disk.make_directory(folder)
    disk.append(f"{folder}/old", b"old")
    disk.append(f"{folder}/new", b"new")
    disk.rename(f"{folder}/new", f"{folder}/old")
    assert disk.list(folder) == ("old",)
    assert disk.read(f"{folder}/old", 0, 9) == b"new"

    disk.append(f"{folder}/old", b"er")
    assert disk.read(f"{folder}/old", 0, 9) == b"newer"
    disk.delete(f"{folder}/old")
    disk.delete(f"{folder}/old")
    assert disk.list(folder) == ()


def test_a_file_that_is_not_there_raises_what_the_system_raises(disk, folder):
    for call in (lambda: disk.size(f"{folder}/f"), lambda: disk.read(f"{folder}/f", 0, 1)):
        with pytest.raises(FileNotFoundError):
            call()


def test_there_is_room(disk, tmp_path):
    assert disk.free_bytes(str(tmp_path)) > 0
