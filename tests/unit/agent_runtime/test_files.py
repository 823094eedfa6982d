"""Archives that mean harm."""

import io
import tarfile

import pytest

from windrow_agent.runtimes import files
from windrow_proto.errors import InvalidInput, TooLarge, WindrowError


def _archive(path, *members):
    with tarfile.open(path, "w") as tar:
        for name, kind, content in members:
            member = tarfile.TarInfo(name)
            member.type = kind
            if kind == tarfile.REGTYPE:
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
            else:
                member.linkname = content
                tar.addfile(member)
    return path


HARMFUL = {
    "parent": [("../x", tarfile.REGTYPE, b"")],
    "absolute": [("/x", tarfile.REGTYPE, b"")],
    "link out": [("l", tarfile.SYMTYPE, "../../etc")],
    "absolute link": [("l", tarfile.SYMTYPE, "/etc")],
    "through a link": [("d", tarfile.SYMTYPE, "."), ("d/x", tarfile.REGTYPE, b"")],
    "hard link out": [("l", tarfile.LNKTYPE, "../secret")],
    "device": [("null", tarfile.CHRTYPE, "")],
    "fifo": [("pipe", tarfile.FIFOTYPE, "")],
}


@pytest.mark.parametrize("members", HARMFUL.values(), ids=HARMFUL.keys())
def test_what_leads_out_or_is_no_file_is_refused_by_both_ways_in(tmp_path, members):
    (tmp_path / "in").mkdir()
    archive = _archive(tmp_path / "a.tar", *members)
    with pytest.raises(WindrowError):
        files.unpack(archive, tmp_path / "in", 1000)
    with pytest.raises(InvalidInput):
        files.check_archive(archive, 1000)
    assert not (tmp_path / "x").exists()


def test_the_cap_counts_contents(tmp_path):
    (tmp_path / "in").mkdir()
    archive = _archive(tmp_path / "a.tar", ("a", tarfile.REGTYPE, b"x" * 600), ("b", tarfile.REGTYPE, b"x" * 600))
    with pytest.raises(TooLarge):
        files.unpack(archive, tmp_path / "in", 1000)


def test_links_that_stay_inside_are_kept(tmp_path):
    (tmp_path / "in").mkdir()
    archive = _archive(tmp_path / "a.tar", ("d/a", tarfile.REGTYPE, b"x"), ("d/l", tarfile.SYMTYPE, "a"))
    assert files.unpack(archive, tmp_path / "in", 1000)[0].files == 2
    assert (tmp_path / "in" / "d" / "l").read_bytes() == b"x"


def test_what_did_not_change_is_not_packed(tmp_path):
    (tmp_path / "a").write_text("old")
    (tmp_path / "b").write_text("old")
    known = files.scan(tmp_path)
    (tmp_path / "b").write_text("new!")
    (tmp_path / "c").symlink_to("a")
    pieces: list[bytes] = []
    assert files.pack(tmp_path, known, 1000, pieces.append) is False
    with tarfile.open(fileobj=io.BytesIO(b"".join(pieces))) as tar:
        assert tar.getnames() == ["b", "c"]
