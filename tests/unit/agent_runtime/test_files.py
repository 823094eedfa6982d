"""Archives that mean harm."""

import gzip
import io
import tarfile

import pytest

from windrow_agent.runtimes import tar_pack, tar_unpack
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
        tar_unpack.unpack(archive, tmp_path / "in", 1000)
    with pytest.raises(InvalidInput):
        tar_unpack.check_archive(archive, 1000)
    assert not (tmp_path / "x").exists()


def test_the_cap_counts_contents(tmp_path):
    (tmp_path / "in").mkdir()
    archive = _archive(tmp_path / "a.tar", ("a", tarfile.REGTYPE, b"x" * 600), ("b", tarfile.REGTYPE, b"x" * 600))
    with pytest.raises(TooLarge):
        tar_unpack.unpack(archive, tmp_path / "in", 1000)


def test_links_that_stay_inside_are_kept(tmp_path):
    (tmp_path / "in").mkdir()
    archive = _archive(tmp_path / "a.tar", ("d/a", tarfile.REGTYPE, b"x"), ("d/l", tarfile.SYMTYPE, "a"))
    assert tar_unpack.unpack(archive, tmp_path / "in", 1000).files.files == 2
    assert (tmp_path / "in" / "d" / "l").read_bytes() == b"x"


def _packed(folder, known=None, offset=0):
    pieces: list[bytes] = []
    tar_pack.pack(folder, known, offset, pieces.append)
    return b"".join(pieces)


def test_what_did_not_change_is_not_packed(tmp_path):
    (tmp_path / "in").mkdir()
    archive = _archive(tmp_path / "a.tar", ("a", tarfile.REGTYPE, b"old"), ("b", tarfile.REGTYPE, b"old"))
    known = tar_unpack.unpack(archive, tmp_path / "in", 1000).manifest
    (tmp_path / "in" / "a").touch()
    (tmp_path / "in" / "b").write_text("new!")
    (tmp_path / "in" / "c").symlink_to("a")
    with tarfile.open(fileobj=io.BytesIO(_packed(tmp_path / "in", known))) as tar:
        assert tar.getnames() == ["b", "c"]


def test_what_was_cut_off_is_had_from_the_same_byte_on_without_reading_what_lies_before(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "large").write_bytes(bytes(range(256)) * 1000)
    (tmp_path / "small").write_text("x")
    whole = _packed(tmp_path)
    assert [_packed(tmp_path, offset=at) for at in range(0, len(whole) + 600, 511)] == [
        whole[at:] for at in range(0, len(whole) + 600, 511)
    ]


def test_what_the_work_locked_comes_out_all_the_same(tmp_path):
    (tmp_path / "locked").mkdir()
    (tmp_path / "locked" / "file").write_text("x")
    (tmp_path / "locked" / "file").chmod(0)
    (tmp_path / "locked").chmod(0)
    with tarfile.open(fileobj=io.BytesIO(_packed(tmp_path))) as tar:
        assert tar.getnames() == ["locked", "locked/file"]


def test_a_folder_that_is_swapped_for_a_link_is_not_followed(tmp_path):
    """The workload turns a folder into a link while its entries are read and written."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("the agent's own")
    work = tmp_path / "work"
    (work / "d").mkdir(parents=True)
    (work / "d" / "key").write_text("mine")
    pieces: list[bytes] = []

    def swap(piece):
        pieces.append(piece)
        if not (work / "d").is_symlink():
            (work / "d").rename(work / "was")
            (work / "d").symlink_to(tmp_path / "secret")

    (work / "a").write_bytes(bytes(200_000))  # more than one piece comes before the folder is read
    tar_pack.pack(work, None, 0, swap)
    assert b"the agent's own" not in b"".join(pieces)
    archive = _archive(tmp_path / "a.tar", ("d/key", tarfile.REGTYPE, b"written"))
    with pytest.raises(InvalidInput):
        tar_unpack.unpack(archive, work, 1000)
    assert (tmp_path / "secret" / "key").read_text() == "the agent's own"


def _claiming(size):
    """A header that claims more than comes."""
    member = tarfile.TarInfo("large")
    member.size = size
    return member.tobuf() + bytes(1024)


def _sparse(size):
    """Two blocks on the line that are a file of any size (GNU's old form of a sparse file)."""
    member = tarfile.TarInfo("sparse")
    member.type, member.size = tarfile.GNUTYPE_SPARSE, 512
    block = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    block[483:495] = b"%011o\0" % size
    block[386:410] = b"%011o\0%011o\0" % (size - 512, 512)
    block[148:156] = b"        "
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block) + bytes(512) + bytes(1024)


def _many(count):
    return b"".join(tarfile.TarInfo(f"f{number}").tobuf() for number in range(count)) + bytes(1024)


BOMBS = {
    "claims 8 EiB": _claiming(1 << 62),
    "claims more than it has": _claiming(100_000),
    "sparse": _sparse(1 << 40),
    "more entries than any folder": _many(300),
    "squeezed": gzip.compress(_many(10)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_and_writes_nothing(tmp_path, name, monkeypatch):
    monkeypatch.setattr(tar_unpack, "ENTRIES_MAX", 250)
    (tmp_path / "in").mkdir()
    (tmp_path / "a.tar").write_bytes(BOMBS[name])
    with pytest.raises(WindrowError):
        tar_unpack.check_archive(tmp_path / "a.tar", 1 << 30)
    with pytest.raises(WindrowError):
        tar_unpack.unpack(tmp_path / "a.tar", tmp_path / "in", 1 << 30)
    assert sum(path.stat().st_blocks for path in (tmp_path / "in").iterdir()) == 0
