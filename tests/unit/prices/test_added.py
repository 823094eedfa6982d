"""Prices that an operator adds: the tables of a folder beside the shipped ones."""

from datetime import date
from pathlib import Path

import pytest

from windrow_master.prices.book import State
from windrow_master.prices.offers import COLUMNS
from windrow_master.prices.shipped import price_book, shipped
from windrow_proto.errors import InvalidInput

TODAY = date(2027, 9, 1)


def table(name: str, *rows: str) -> str:
    return "\n".join([",".join(COLUMNS[name]), *rows]) + "\n"


def test_without_a_folder_the_shipped_offers_are_all() -> None:
    assert price_book(None) is shipped()


def test_a_source_of_the_folder_takes_the_place_of_the_shipped_one(tmp_path: Path) -> None:
    before = next(one for one in shipped().offers if one.provider.name == "aws" and one.kind == "on-demand")
    (tmp_path / "sources.csv").write_text(table("sources", f"{before.source.key},A newer list,2027-08-30,365"))
    (tmp_path / "offers.csv").write_text(
        table("offers", f"aws,p4d.24xlarge,a100-40,8,96,1152,8000,us-east-1,,US,on-demand,20,{before.source.key}")
    )
    book = price_book(tmp_path)
    (one,) = (listed for listed in book.find(TODAY) if listed.offer.source.key == before.source.key)
    assert (one.state, one.offer.name, one.offer.per_hour) == (State.CURRENT, "p4d.24xlarge", 20 * 10**8)
    kept = [offer for offer in shipped().offers if offer.source.key != before.source.key]
    assert len(book.offers) == len(kept) + 1


def test_a_provider_and_a_bad_row_of_the_folder(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "providers.csv").write_text(table("providers", "here,Here Ltd,FI,EUR,,1,1,,0.01,Its price page,"))
    (tmp_path / "sources.csv").write_text(table("sources", "own,Its price page,2027-08-30,30"))
    row = "here,big,h100,{},,,,eu,,FI,on-demand,2,own"
    (tmp_path / "offers.csv").write_text(table("offers", row.format(1), row.format(-1), row.format(1)))
    book = price_book(tmp_path)
    assert [offer.name for offer in book.offers if offer.provider.name == "here"] == ["big"]
    assert (book.egress_of("Here"), book.egress_of("nobody")) == (10**6, None)
    assert "row 3: gpu_count is not a number" in caplog.text
    assert "row 4: the same offer is in row 2" in caplog.text


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "There are no prices"),
        ({"sources": table("sources")}, "There are no prices"),
        ({"offers": "a,b\n"}, "the first line of offers is not provider,offer"),
        (
            {"offers": table("offers"), "sources": table("sources", "x,T,2026-01-31,1", "y,T,yesterday,1")},
            "row 3 of sources: date is not like 2026-01-31",
        ),
        (
            {"offers": table("offers"), "sources": table("sources", "x,T,2026-01-31,1", "x,U,2026-01-31,1")},
            "row 3 of sources: source is there twice: 'x'",
        ),
        ({"offers": "\udcff"}, "cannot be read"),
    ],
)
def test_a_folder_that_is_no_price_list_is_refused_by_its_file(
    tmp_path: Path, files: dict[str, str], said: str
) -> None:
    for name, text in files.items():
        (tmp_path / f"{name}.csv").write_text(text, errors="surrogateescape")
    with pytest.raises(InvalidInput, match=said):
        price_book(tmp_path)
