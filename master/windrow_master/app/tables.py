"""The whole schema: the tables of all packages, as migrations are compared with it."""

import importlib
import pkgutil
from importlib.util import find_spec

from sqlalchemy import MetaData

import windrow_master
from windrow_master.store.schema import metadata


def whole_schema() -> MetaData:
    """The metadata with every package's `tables.py` imported."""
    for package in pkgutil.walk_packages(windrow_master.__path__, "windrow_master."):
        if package.ispkg and find_spec(name := f"{package.name}.tables") is not None:
            importlib.import_module(name)
    return metadata
