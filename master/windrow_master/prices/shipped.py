"""The price book: the three tables in `data/` that come with Windrow, and those that an operator adds."""

import logging
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

from windrow_master.fleet import gpus
from windrow_master.prices import offers
from windrow_master.prices.book import PriceBook
from windrow_proto.errors import InvalidInput

log = logging.getLogger(__name__)

TABLE_MAX: Final = 32 << 20
"""Bytes of one table."""


@cache
def shipped() -> PriceBook:
    """The shipped offers."""
    return PriceBook(*_read(_shipped_texts()))


def price_book(folder: Path | None) -> PriceBook:
    """The shipped offers, with the tables of this folder: offers.csv, and sources.csv and providers.csv where they add
    any. A source of the folder takes the place of the shipped one of that name, with all its prices; a provider
    likewise. Raises InvalidInput that names the table."""
    if folder is None:
        return shipped()
    given = {table: _text(folder / f"{table}.csv") for table in offers.COLUMNS}
    if not given["offers"]:
        raise InvalidInput(f"There are no prices: {folder / 'offers.csv'} is missing or empty.")
    try:
        found, refused = _read(_shipped_texts(), given)
    except offers.BadRow as wrong:
        raise InvalidInput(f"The prices in {folder}: {wrong}.") from None
    for sentence in refused[:20]:
        log.warning("a price in %s was left out: %s", folder, sentence)
    return PriceBook(found, refused)


def _shipped_texts() -> Mapping[str, str]:
    folder = files("windrow_master.prices") / "data"
    return {table: (folder / f"{table}.csv").read_text(encoding="utf-8") for table in offers.COLUMNS}


def _text(path: Path) -> str:
    """The table in this file; empty where there is none. Raises InvalidInput where it cannot be read."""
    try:
        if path.exists() and path.stat().st_size > TABLE_MAX:
            raise InvalidInput(f"{path} is larger than {TABLE_MAX >> 20} MiB.")
        if path.exists() and not path.is_file():
            raise InvalidInput(f"{path} is no file.")
        return path.read_text(encoding="utf-8-sig") if path.exists() else ""  # as Excel writes it, too
    except (OSError, UnicodeDecodeError) as fault:
        raise InvalidInput(f"{path} cannot be read: {fault}") from None


def _read(texts: Mapping[str, str], added: Mapping[str, str] | None = None) -> tuple[list[offers.Offer], list[str]]:
    sellers, read_in = dict(offers.providers(texts["providers"])), dict(offers.sources(texts["sources"]))
    known_gpus = {model.model_class for model in gpus.MODELS} | {gpus.CPU_CLASS}
    if added is None:
        return offers.offers(texts["offers"], sellers, read_in, known_gpus)
    own = offers.sources(added["sources"]) if added["sources"] else {}
    sellers |= offers.providers(added["providers"]) if added["providers"] else {}
    found, _ = offers.offers(texts["offers"], sellers, read_in, known_gpus)
    extra, refused = offers.offers(added["offers"], sellers, {**read_in, **own}, known_gpus)
    return [one for one in found if one.source.key not in own] + extra, refused
