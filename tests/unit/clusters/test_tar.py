"""Files are counted while a tar stream passes by."""

import io
import tarfile

from hypothesis import given
from hypothesis import strategies as st

from windrow_master.network.tar import TarCheck, TarCounter


def packed(sizes: list[int], form: int) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as tar:
        folder = tarfile.TarInfo("folder")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        for number, size in enumerate(sizes):
            # Long enough for both forms to need a header of their own for the name.
            member = tarfile.TarInfo(f"folder/{'n' * 120}{number}")
            member.size = size
            tar.addfile(member, io.BytesIO(b"x" * size))
    return buffer.getvalue()


@given(
    sizes=st.lists(st.integers(0, 2_000), max_size=6),
    cuts=st.lists(st.integers(1, 700), min_size=1, max_size=20),
    form=st.sampled_from([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT]),
)
def test_the_count_does_not_depend_on_how_the_stream_is_cut(sizes: list[int], cuts: list[int], form: int) -> None:
    data, counter, at, turn = packed(sizes, form), TarCounter(), 0, 0
    check = TarCheck()
    while at < len(data):
        counter.feed(data[at : at + cuts[turn % len(cuts)]])
        check.feed(data[at : at + cuts[turn % len(cuts)]])
        at += cuts[turn % len(cuts)]
        turn += 1
    assert (counter.files, counter.bytes) == (len(sizes), len(data))
    check.end()


@given(st.binary(max_size=3_000))
def test_what_is_no_tar_breaks_nothing(data: bytes) -> None:
    counter = TarCounter()
    counter.feed(data)
    assert counter.bytes == len(data)
