"""The table of XIDs: its rows are whole, and what is decided by it stands."""

import pytest

from windrow_proto.xids import CARD_XIDS, PROGRAM_XIDS, RECORD_XIDS, XIDS, Xid, name_of


@pytest.mark.parametrize("row", XIDS.values(), ids=lambda row: str(row.code))
def test_a_row_says_in_a_few_words_what_is_so_and_in_sentences_what_to_do(row: Xid) -> None:
    assert 15 < len(row.meaning) < 75 and not row.meaning.endswith(".") and "|" not in row.meaning
    assert row.remedy.endswith(".") and row.remedy[0] in "`ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def test_there_is_a_row_for_each_code_that_matters() -> None:
    assert len(XIDS) > 60
    assert {13, 31, 43, 45, 48, 62, 63, 64, 74, 79, 92, 94, 95, 109, 119, 120, 140, 143, 154} <= XIDS.keys()


def test_who_pays_and_what_is_faulty_by_a_code() -> None:
    assert {13, 14, 31, 43, 45, 68, 109, 137} == PROGRAM_XIDS
    assert {14, 63, 64, 92, 106, 107, 162} == RECORD_XIDS
    assert {79, 95} == CARD_XIDS


def test_a_code_is_named_with_its_meaning_where_there_is_one() -> None:
    assert name_of(79) == "XID 79: the GPU has fallen off the bus"
    assert name_of(999) == "XID 999"
