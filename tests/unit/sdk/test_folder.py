"""A folder travels whole, tools' litter stays behind, and nothing that comes back can leave the folder."""

import io
import tarfile
from pathlib import Path

import pytest

from windrow import folder
from windrow.errors import WindrowClientError


def tar_of(*members: tuple[tarfile.TarInfo, bytes]) -> io.BytesIO:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for info, data in members:
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    buffer.seek(0)
    return buffer


def test_a_folder_arrives_as_it_was(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "deep").mkdir(parents=True)
    (source / "train.py").write_text("print(1)")
    (source / "deep" / "run.sh").write_text("true")
    (source / "deep" / "run.sh").chmod(0o755)
    buffer = io.BytesIO()
    folder.pack(folder.survey(source), buffer)
    buffer.seek(0)
    assert sorted(folder.unpack(buffer, target)) == ["deep/run.sh", "train.py"]
    assert (target / "train.py").read_text() == "print(1)"
    assert (target / "deep" / "run.sh").stat().st_mode & 0o111


def test_what_tools_make_and_what_the_ignore_file_names_stays_behind(tmp_path: Path) -> None:
    for name in (".git/HEAD", ".venv/bin/python", "node_modules/x.js", "data/big.bin", "keep.py", "note.log"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / ".windrowignore").write_text("# large\ndata/\n*.log\n")
    assert folder.survey(tmp_path).files == (".windrowignore", "keep.py")


def test_links_are_not_sent(tmp_path: Path) -> None:
    (tmp_path / "passwd").symlink_to("/etc/passwd")
    assert folder.survey(tmp_path).files == ()


@pytest.mark.parametrize("name", ["/etc/cron.d/x", "../x", "a/../../x"])
def test_names_that_leave_the_folder_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(WindrowClientError, match="may not be written"):
        folder.unpack(tar_of((tarfile.TarInfo(name), b"x")), tmp_path)


def test_links_that_come_back_are_refused(tmp_path: Path) -> None:
    link = tarfile.TarInfo("link")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc"
    with pytest.raises(WindrowClientError, match="may not be written"):
        folder.unpack(tar_of((link, b"")), tmp_path)


def test_nothing_is_written_through_a_link_that_is_already_there(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "door").symlink_to(outside)
    with pytest.raises(WindrowClientError, match="through a link"):
        folder.unpack(tar_of((tarfile.TarInfo("door/x"), b"x")), tmp_path / "in")
    assert list(outside.iterdir()) == []
