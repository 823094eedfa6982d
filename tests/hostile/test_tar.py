"""Archives that mean harm: nothing of them is written that would not have been sent, and all else is."""

import hashlib
import io
import os
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile import IS_LONG
from tests.support.archives import Sent, file, link, put, special, tar_of, tree
from windrow.errors import MasterUnreachable
from windrow.folder import archive, returning
from windrow.folder.archive import BrokenArchive, Resuming
from windrow.folder.names import LEFT_BEHIND
from windrow.folder.returning import Terms, unpack
from windrow.folder.transfer import bring

MINE = hashlib.sha256(b"mine").hexdigest()
pytestmark = pytest.mark.row("F3")

SPELLINGS = (
    *(".GIT", ".Git", ".git.", ".git ", ".git. .", ".g\u200cit", ".\u200dgit", "\u200b.git", ".ɢit".replace("ɢ", "G")),
    *("\uff0egit", ".ｇｉｔ", ".git::$INDEX_ALLOCATION", ".git:x", "git~1", "GIT~2", ".\u212aube", ".ſsh", ".SSH"),
    *("NODE_MODULES", "VenV", "__PyCache__", ".Windrow", ".git\udce9", ".gi\u0301t"),
)
"""Names that some file system takes for one of the list."""
OTHERS = (
    *(".env", ".bashrc", ".vscode", ".github", ".envrc", ".idea", ".pre-commit-config.yaml", ".gitmodules"),
    *(".gitignore", ".windrowignore", ".windrow-part-x"),
)


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_no_name_of_the_list_is_written_however_deep_and_however_spelt(tmp_path: Path, depth: int, kind: str) -> None:
    above = "".join(f"d{number}/" for number in range(depth))
    entries = [file("before")]
    for name in (*LEFT_BEHIND, *SPELLINGS, *OTHERS):
        if kind == "file":
            entries.append(file(f"{above}{name}", mode=0o755))
        elif kind == "folder":
            entries += [file(f"{above}{name}/config"), file(f"{above}{name}/hooks/pre-commit", mode=0o755)]
        else:
            entries.append(link(f"{above}{name}", "before"))
    entries += [file(f"{above}kept-{number}") for number in range(3)]

    report = put(tmp_path, *entries)

    assert set(tree(tmp_path)) == {"before", *(f"{above}kept-{number}" for number in range(3))}
    assert report.is_whole
    assert len(report.refused) >= len(LEFT_BEHIND)


def test_a_project_is_unharmed_and_its_results_arrive(tmp_path: Path) -> None:
    (tmp_path / ".git" / "hooks").mkdir(parents=True)
    (tmp_path / ".git" / "config").write_text("mine")
    (tmp_path / "env" / "bin").mkdir(parents=True)
    (tmp_path / "env" / "pyvenv.cfg").write_text("home = x")
    before = tree(tmp_path)

    report = put(
        tmp_path,
        file(".git/config", b'[core]\n\tfsmonitor="touch PWN;false"\n'),
        file(".git/hooks/pre-commit", mode=0o755),
        file("a.txt"),
        file("env/bin/python", mode=0o755),
        file("node_modules/.bin/tsc", mode=0o755),
        file("z/z.txt"),
    )

    assert tree(tmp_path) == {**before, "a.txt": b"theirs", "z/z.txt": b"theirs"}
    assert set(report.refused) == {".git", "env", "node_modules"}


@pytest.mark.parametrize("order", [1, -1])
def test_an_environment_under_another_name_does_not_come_whatever_of_it_comes_first(tmp_path: Path, order: int) -> None:
    entries = [file("e/bin/python", mode=0o755), file("e/lib/x.py"), file("e/pyvenv.cfg"), file("e/zz")][::order]
    report = put(tmp_path, *entries, file("kept"))
    assert tree(tmp_path) == {"kept": b"theirs"}
    assert report.is_whole


def test_a_folder_does_not_become_a_repository_whose_settings_git_obeys(tmp_path: Path) -> None:
    bare = [file("HEAD", b"ref: refs/heads/main\n"), file("config", b"[core]\n"), file("objects/x"), file("refs/x")]
    weights = b"\0" * 5000
    long = [b"ref: refs/heads/main" + b"\n" * 5000, b"0" * 40 + b"\n" + b"x" * 5000]
    heads = [file(f"long{number}/HEAD", data) for number, data in enumerate(long)]
    report = put(tmp_path, *bare, link("sub/head", "x"), file("model/head", weights), *heads)
    assert not {"HEAD", "sub/head", "long0/HEAD", "long1/HEAD"} & set(tree(tmp_path))
    assert {"HEAD", "long0/HEAD", "long1/HEAD"} <= set(report.refused) and report.is_whole
    assert tree(tmp_path)["model/head"] == weights


LEADING_OUT = ("/etc/cron.d/x", "../x", "a/../../x", "a/..", "..", "//x", "/".join(["d"] * 200))


def test_names_that_lead_out_are_named_and_the_others_come(tmp_path: Path) -> None:
    root = tmp_path / "in"
    hidden = file("hidden")
    hidden[0].pax_headers = {"path": "x\0y"}
    endless = file("n/" * 100_000)
    report = put(root, *(file(name) for name in LEADING_OUT), hidden, endless, file("./a/./b"), file("z"))
    assert max(map(len, report.refused)) <= 4096
    assert tree(tmp_path) == {"in/a/b": b"theirs", "in/z": b"theirs"}
    assert report.is_whole and len(report.refused) >= len(LEADING_OUT) - 1


LINKS_OUT = (
    *("/etc/passwd", "../x", "a/../../x", "", "..", "sub/up/../x", "up/../../x", "door/x", "door", ".git/config"),
    *("./../x", ".git", "sub/../.git/config", "x" * 5000, "inner/../../x"),
)


@pytest.mark.row("F19")
def test_safe_links_are_kept_and_those_that_lead_out_are_not(tmp_path: Path) -> None:
    root, outside = tmp_path / "in", tmp_path / "outside"
    outside.mkdir()
    (root / ".git").mkdir(parents=True)
    (root / "door").symlink_to(outside)
    entries = [link(f"bad{number}", target) for number, target in enumerate(LINKS_OUT)]
    report = put(
        root,
        link("aaa", "run-1"),
        file("run-1/w"),
        link("models/snapshots/abc/weights", "../../blobs/xyz"),
        file("models/blobs/xyz", b"large"),
        link("sub/up", ".."),
        link("self", "."),
        *entries,
        file("zzz", b"2"),
    )
    links = {name: target for name, target in tree(root).items() if isinstance(target, str)}
    assert links == {
        "aaa": "run-1",
        "models/snapshots/abc/weights": "../../blobs/xyz",
        "sub/up": "..",
        "self": ".",
        "door": str(outside),
    }
    assert (root / "zzz").read_bytes() == b"2"
    assert (root / "models" / "snapshots" / "abc" / "weights").read_bytes() == b"large"
    assert report.is_whole and len(report.refused) == len(LINKS_OUT)
    assert list(outside.iterdir()) == []


def test_nothing_is_written_through_a_link_of_here_or_of_the_archive(tmp_path: Path) -> None:
    root, outside = tmp_path / "in", tmp_path / "outside"
    outside.mkdir()
    root.mkdir()
    (outside / "mine").write_text("mine")
    (root / "door").symlink_to(outside)
    (root / "file").symlink_to(outside / "mine")
    report = put(
        root,
        file("door/x"),
        file("door/deep/x"),
        file("file"),
        link("made", "../outside"),
        file("made/x"),
        link("twice", "kept"),
        file("twice"),
        special("hard", tarfile.LNKTYPE, "../outside/mine"),
        special("hard2", tarfile.LNKTYPE, "file"),
        file("kept"),
    )
    assert tree(outside) == {"mine": b"mine"}
    found = tree(root)
    assert (found["kept"], found["made/x"], found["file"]) == (b"theirs", b"theirs", str(outside / "mine"))
    assert found["file.from-cluster_x"] == b"theirs"
    assert {name for name, _ in report.missing} == {"door/x", "door/deep/x"}


def test_devices_pipes_sparse_and_hard_links_are_named(tmp_path: Path) -> None:
    kinds = (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.LNKTYPE, tarfile.GNUTYPE_SPARSE, b"Z")
    report = put(tmp_path, *(special(f"x{number}", kind, "y") for number, kind in enumerate(kinds)), file("y"))
    assert set(tree(tmp_path)) == {"y"}
    assert len(report.refused) == len(kinds)


def test_a_new_file_cannot_be_executed_and_one_that_was_sent_keeps_its_rights(tmp_path: Path) -> None:
    os.umask(0o022)
    (tmp_path / "run.sh").write_bytes(b"mine")
    (tmp_path / "run.sh").chmod(0o775)
    (tmp_path / "plain").write_bytes(b"mine")
    (tmp_path / "plain").chmod(0o664)
    sent = dict.fromkeys(("run.sh", "plain"), "6dd1842f2a9ee6d9c6b4dc66dec38f1f5d8e2cb9a7a84b1a3c4ad5a2a9fd6e9b")
    digest = __import__("hashlib").sha256(b"mine").hexdigest()
    sent = dict.fromkeys(sent, digest)
    entries = [
        file("run.sh", mode=0o600), file("plain", mode=0o6777), file("new", mode=0o7777), file("data", mode=0o664)
    ]  # fmt: skip
    put(tmp_path, *entries, sent=sent)
    modes = {path.name: oct(path.stat().st_mode & 0o7777) for path in tmp_path.iterdir()}
    assert modes == {"run.sh": "0o775", "plain": "0o664", "new": "0o644", "data": "0o644"}
    put(tmp_path, file("tool", mode=0o755), allow_executables=True)
    assert oct((tmp_path / "tool").stat().st_mode & 0o7777) == "0o755"


def test_what_was_not_sent_or_was_changed_here_is_not_overwritten(tmp_path: Path) -> None:
    for name in ("same", "not-sent", "changed", "sent", "locked"):
        (tmp_path / name).write_bytes(b"mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "locked").chmod(0o444)
    sent = {"changed": "0" * 64, "sent": MINE, "locked": MINE, "gone": MINE, "folder": MINE}
    names = ("not-sent", "changed", "sent", "locked", "folder", "gone", "sent", "SENT")
    report = put(tmp_path, file("same", b"mine"), *(file(name) for name in names), sent=sent)
    assert tree(tmp_path) == {
        "same": b"mine",
        "not-sent": b"mine",
        "changed": b"mine",
        "locked": b"mine",
        **{f"{name}.from-cluster_x": b"theirs" for name in ("not-sent", "changed", "locked", "folder")},
        "sent": b"theirs",
        "gone": b"theirs",
        "SENT": b"theirs",
    }
    assert report.is_whole and {name for name, _ in report.beside} == {"not-sent", "changed", "locked", "folder"}


def test_of_two_with_one_name_the_first_stays(tmp_path: Path) -> None:
    report = put(tmp_path, file("x", b"1"), file("x", b"2"), file("x/y", b"3"), file("d/y"), file("d", b"4"))
    assert tree(tmp_path) == {
        "x": b"1",
        "x.from-cluster_x": b"2",
        "d/y": b"theirs",
        "d.from-cluster_x": b"4",
    }
    assert [name for name, _ in report.missing] == ["x/y"]


def _pax(records: bytes, name: str = "x") -> bytes:
    head = tarfile.TarInfo("h")
    head.type, head.size = b"x", len(records)
    return head.tobuf() + records + bytes(-len(records) % 512) + file(name)[0].tobuf() + b"theirs" + bytes(506)


def _huge_header() -> bytes:
    head = tarfile.TarInfo("h")
    head.type, head.size = b"x", 1 << 32
    return head.tobuf()


def _many_headers() -> bytes:
    records = [b"1000 key%06d=" % number for number in range(1100)]
    heads = []
    for record in records:
        head = tarfile.TarInfo("h")
        head.type, head.size = b"x", 1000
        heads.append(head.tobuf() + record.ljust(999, b"v") + b"\n" + bytes(24))
    return b"".join(heads)


BROKEN = {
    "headers without an end": _many_headers(),
    "a huge header": _huge_header(),
    "noise": os.urandom(4096).replace(b"\0", b"x"),
    "a record without an end": _pax(b"99 path=y\n"),
    "a record without a length": _pax(b"path=y\n"),
    "a negative size": _pax(b"12 size=-5\n\n"),
    "an endless size": _pax(b"40 size=" + b"9" * 31 + b"\n"),
    "half an end": tar_of(file("a"))[:1024] + bytes(512) + b"x" * 512,
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_archive_says_so_and_what_came_before_it_is_here(tmp_path: Path, name: str) -> None:
    data = tar_of(file("first"))[:1024] + BROKEN[name]
    with pytest.raises(BrokenArchive):
        unpack(Resuming(Sent(data)), Terms(tmp_path, {}, "cluster_x"))
    assert tree(tmp_path)["first"] == b"theirs"
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.row("K1")
def test_a_file_larger_than_the_disk_is_named_without_being_moved(tmp_path: Path) -> None:
    huge = tarfile.TarInfo("huge")
    huge.size = 1 << 60
    data = huge.tobuf(tarfile.PAX_FORMAT)
    whole = tar_of(file("after"))

    class Jumping(Sent):
        def pieces(self, offset):
            self.asked.append(offset)
            yield data if offset == 0 else whole[offset - len(data) - (1 << 60) :]

    source = Jumping(b"")
    report = unpack(Resuming(source), Terms(tmp_path, {}, "cluster_x"))
    assert source.asked == [0, len(data) + (1 << 60)]
    assert tree(tmp_path) == {"after": b"theirs"}
    assert [name for name, _ in report.missing] == ["huge"]


def test_many_files_and_deep_folders_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(returning, "ENTRIES_MAX", 200_000 if IS_LONG else 500)
    many = returning.ENTRIES_MAX + 100
    report = put(tmp_path, *(file(f"f{number}", b"") for number in range(many)))
    assert len(tree(tmp_path)) == returning.ENTRIES_MAX
    assert not report.is_whole
    deep = [file(f"{number}/" + "/".join(["d"] * 120) + "/x") for number in range(10)]
    report = put(tmp_path / "deep", *deep)
    assert len(report.written) == 4 if not IS_LONG else 10


@pytest.mark.row("K1")
@pytest.mark.parametrize("every", [1, 700, 5000, 100_000])
def test_a_line_that_is_cut_again_and_again_brings_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    monkeypatch.setattr(archive, "PAUSE_S", 0.0)
    size = 300 if every == 1 else 300_000
    data = tar_of(file("a", b"a" * size), link("l", "a"), file("b", b"b" * size), file("c"))
    data = data[: len(data) - len(data) % 512] if every > 1 else data[:4608]
    report = unpack(Resuming(Sent(data, every)), Terms(tmp_path, {}, "cluster_x"))
    assert report.is_whole
    assert tree(tmp_path) == {"a": b"a" * size, "l": "a", "b": b"b" * size, "c": b"theirs"}


class Switched(Sent):
    """Cut once after `cut` bytes; from then on another archive comes, of this version."""

    def __init__(self, first: bytes, cut: int, then: bytes, version: str) -> None:
        super().__init__(first)
        self.then, self.cut, self.next_version = then, cut, version

    def pieces(self, offset: int) -> Iterator[bytes]:
        is_first = not self.asked
        self.asked.append(offset)
        self.is_resumed = self.is_resumed or offset > 0
        self.version = self.version if is_first else self.next_version
        yield self.data[: self.cut] if is_first else self.then[offset:]


@pytest.mark.row("K1")
@pytest.mark.parametrize("version", ["2", ""])
@pytest.mark.parametrize("cut", [600, 1024, 20_000, 21_504])
def test_another_archive_after_a_cut_is_read_from_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int, version: str
) -> None:
    """The host's own folder, then what the Master kept of it: each later entry lies as far before, so that the end of
    one file falls on the header of the file after the next."""
    monkeypatch.setattr(archive, "PAUSE_S", 0.0)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    kept = [file("model", bytes(range(250)) * 80), file("x"), file("y"), file("z")]
    source = Switched(tar_of(file("a", b"old"), *kept), cut, tar_of(*kept), version)
    report = bring(source, "cluster_x", tmp_path / "in")
    assert report.is_whole and 0 in source.asked[1:]
    found = tree(tmp_path / "in")
    assert found.pop("a", b"old") == b"old"
    assert found == {"model": kept[0][1], "x": b"theirs", "y": b"theirs", "z": b"theirs"}


@pytest.mark.row("K1")
def test_what_came_of_an_archive_that_is_another_now_is_replaced_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "PAUSE_S", 0.0)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    first, second = (tar_of(file("a", one), file("b", one * 5000), file("c", one)) for one in (b"1", b"2"))
    report = bring(Switched(first, 2000, second, "2"), "cluster_x", tmp_path / "in")
    assert report.is_whole and not report.beside
    assert tree(tmp_path / "in") == {"a": b"2", "b": b"2" * 5000, "c": b"2"}


@pytest.mark.row("K1")
@pytest.mark.parametrize(("first", "second"), [("rank 0", "rank 1"), ("", ""), ("a", "")])
def test_what_came_of_one_archive_shortens_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, second: str
) -> None:
    monkeypatch.setattr(archive, "PAUSE_S", 0.0)
    monkeypatch.setattr(archive, "FIRST_S", 0.0)
    monkeypatch.setattr(archive, "ABSENT_S", 0.0)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    begun = Sent(tar_of(file("a", b"1"), file("b", b"1" * 5000))[:2000])
    begun.version = first
    assert not bring(begun, "cluster_x", tmp_path / "in").is_whole
    other = Sent(tar_of(file("a", b"2"), file("b", b"2" * 20_000), file("c", b"2")))
    other.version = second
    assert bring(other, "cluster_x", tmp_path / "in").is_whole
    assert {name: set(data) for name, data in tree(tmp_path / "in").items()} == {key: set(b"2") for key in "abc"}


@pytest.mark.row("K1")
def test_an_archive_without_its_end_is_not_whole_and_goes_on_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "PAUSE_S", 0.0)
    monkeypatch.setattr(archive, "ABSENT_S", 0.0)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = tmp_path / "in"
    whole = tar_of(file("a", b"a" * 5000), file("b", b"b" * 5000), file("c"))

    class Lost(Sent):
        def pieces(self, offset):
            yield from super().pieces(offset)
            raise MasterUnreachable("gone")

    report = bring(Lost(whole[:9000]), "cluster_x", root)
    assert not report.is_whole
    assert set(tree(root)) == {"a"}  # nothing half under a real name
    again = Sent(whole)
    assert bring(again, "cluster_x", root).is_whole
    assert again.asked == [512 + 5120]  # what is here does not come twice
    assert set(tree(root)) == {"a", "b", "c"}
    third = bring(Sent(whole), "cluster_x", root)
    assert third.is_whole and not third.written and not third.beside
    other = Sent(tar_of(file("a", b"new"), file("d")))
    assert bring(other, "cluster_x", root).is_whole
    assert (tree(root)["a"], tree(root)["d"]) == (b"new", b"theirs")  # ours from before, so it is renewed


def test_what_changed_between_two_parts_is_fetched_from_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "PAUSE_S", 0.0)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    first, second = tar_of(file("a", b"1" * 9000), file("b")), tar_of(file("a", b"2" * 700), file("b", b"bb"))

    class Changing(Sent):
        def pieces(self, offset):
            self.data = second if self.asked else first
            self.every = 0 if self.asked else 3000
            yield from super().pieces(offset)

    report = bring(Changing(b""), "cluster_x", tmp_path / "in")
    assert report.is_whole
    assert tree(tmp_path / "in") == {"a": b"2" * 700, "b": b"bb"}


@pytest.mark.row("K1")
def test_no_room_is_a_sentence_and_what_fits_comes(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make so small a disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(disk)], check=True)
    try:
        report = put(disk, file("big.bin", b"x" * 5_000_000), file("zzz.txt"))
        assert tree(disk) == {"zzz.txt": b"theirs"}
        assert [name for name, _ in report.missing] == ["big.bin"]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.row("K1")
def test_odd_names_both_too_long_and_strange_do_not_stop_the_others(tmp_path: Path) -> None:
    odd = ["new\nline", "tab\t", "lat\udce9", "emoji🎉", "n" * 255, "-dash", "..dots", "back\\slash", "'quotes\""]
    odd = [name for name in odd if not name.startswith(".")]
    report = put(tmp_path, *(file(name) for name in odd), file("n" * 256), file("d" * 300 + "/x"), file("z"))
    assert set(tree(tmp_path)) == {*odd, "z"}
    assert {name for name, _ in report.missing} == {"n" * 256, "d" * 300 + "/x"}


def test_times_are_kept_to_the_nanosecond_and_impossible_ones_do_not_matter(tmp_path: Path) -> None:
    when = file("when")
    when[0].pax_headers = {"mtime": "1700000000.123456789"}
    odd = [file("nan"), file("old"), file("far"), file("less"), file("dots")]
    for (member, _), said in zip(odd, ("nan", "-1.5", "9" * 30, "--5", "1.2.3"), strict=True):
        member.pax_headers = {"mtime": said}
    assert put(tmp_path, when, *odd).is_whole
    assert (tmp_path / "when").stat().st_mtime_ns == 1_700_000_000_123_456_789
    assert len(tree(tmp_path)) == 6


def test_the_reader_takes_what_tar_writes(tmp_path: Path) -> None:
    """Other forms of a long name than our own."""
    long = "d" * 90 + "/" + "n" * 120
    for form in (tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT, tarfile.PAX_FORMAT):
        out = io.BytesIO()
        name = long if form != tarfile.USTAR_FORMAT else "d" * 90 + "/" + "n" * 90
        with tarfile.open(fileobj=out, mode="w", format=form) as tar:
            tar.addfile(file(name)[0], io.BytesIO(b"theirs"))
        root = tmp_path / str(form)
        unpack(Resuming(Sent(out.getvalue())), Terms(root, {}, "cluster_x"))
        assert tree(root) == {name: b"theirs"}
