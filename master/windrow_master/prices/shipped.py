"""The price book that comes with Windrow: the three tables in `data/`, read once."""

from functools import cache
from importlib.resources import files

from windrow_master.fleet import gpus
from windrow_master.prices import offers
from windrow_master.prices.book import PriceBook


@cache
def shipped() -> PriceBook:
    """The shipped offers."""
    folder = files("windrow_master.prices") / "data"
    texts = {table: (folder / f"{table}.csv").read_text(encoding="utf-8") for table in offers.COLUMNS}
    sellers, read_in = offers.providers(texts["providers"]), offers.sources(texts["sources"])
    known_gpus = {model.model_class for model in gpus.MODELS} | {gpus.CPU_CLASS}
    return PriceBook(*offers.offers(texts["offers"], sellers, read_in, known_gpus))
