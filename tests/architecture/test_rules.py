"""Who may import whom, who may touch the world, and through which door; each rule is shown to catch a breach."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.architecture import rules
from tests.architecture.tree import ROOT

Rule = Callable[[Path], list[str]]

RULES: list[Rule] = [
    rules.doors,
    rules.environment_readers,
    rules.impurities,
    rules.room_breaches,
    rules.relative_imports,
    rules.grouped_raises,
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_tree_keeps(rule: Rule) -> None:
    assert rule(ROOT) == []


BREACHES = [
    (rules.doors, "agent/windrow_agent/service.py", "import pynvml"),
    (rules.doors, "agent/windrow_agent/core/sampling.py", "def read():\n    from psutil import cpu_percent"),
    (rules.doors, "master/windrow_master/fleet/service.py", "import sqlalchemy.orm"),
    (rules.doors, "master/windrow_master/telemetry/service.py", "import duckdb"),
    (rules.doors, "sdk/windrow/cli/main.py", "import httpx2"),
    (rules.environment_readers, "agent/windrow_agent/service.py", "import os\nHOME = os.environ['HOME']"),
    (rules.environment_readers, "sdk/windrow/cli/main.py", "from os import environ"),
    (rules.environment_readers, "access/windrow_access/main.py", "import os\nos.getenv('PORT')"),
    (rules.impurities, "proto/windrow_proto/session.py", "import time"),
    (rules.impurities, "agent/windrow_agent/core/lease.py", "from asyncio import sleep"),
    (rules.impurities, "master/windrow_master/market/prices.py", "import structlog"),
    (rules.impurities, "master/windrow_master/fleet/tiers.py", "from datetime import datetime\nNOW = datetime.now()"),
    (rules.impurities, "master/windrow_master/clusters/states.py", "import uuid\nID = uuid.uuid4()"),
    (rules.impurities, "master/windrow_master/placement/plan.py", "TEXT = open('hosts').read()"),
    (rules.room_breaches, "master/windrow_master/market/service.py", "from windrow_master.fleet.tiers import tier"),
    (rules.room_breaches, "master/windrow_master/fleet/service.py", "import windrow_master.api.app"),
    (rules.room_breaches, "master/windrow_master/fleet/model.py", "from windrow_master.store.unit import Store"),
    (rules.room_breaches, "master/windrow_master/store/unit.py", "from windrow_master.fleet.service import X"),
    (rules.room_breaches, "master/windrow_master/placement/service.py", "from windrow_master.fleet import service"),
    (rules.relative_imports, "agent/windrow_agent/service.py", "from . import host"),
    (
        rules.grouped_raises,
        "sdk/windrow/line.py",
        "try:\n    pass\nexcept* OSError as many:\n    raise ValueError from many",
    ),
]


@pytest.mark.parametrize(("rule", "where", "code"), BREACHES, ids=lambda value: getattr(value, "__name__", None))
def test_a_planted_breach_is_caught(rule: Rule, where: str, code: str, tmp_path: Path) -> None:
    plant(tmp_path, where, code)
    (breach,) = rule(tmp_path)
    assert breach.startswith(where)


PERMITTED = [
    (rules.doors, "agent/windrow_agent/gpu/nvml.py", "import pynvml"),
    (rules.doors, "master/windrow_master/store/tables_fleet.py", "from sqlalchemy import Table"),
    (rules.environment_readers, "agent/windrow_agent/config.py", "import os\nHOME = os.environ['HOME']"),
    (rules.impurities, "agent/windrow_agent/service.py", "import asyncio"),
    (rules.impurities, "master/windrow_master/fleet/service.py", "import asyncio"),
    (rules.impurities, "master/windrow_master/fleet/tiers.py", "from datetime import timedelta"),
    (rules.room_breaches, "master/windrow_master/market/service.py", "from windrow_master.fleet.service import Fleet"),
    (rules.room_breaches, "master/windrow_master/market/model.py", "from windrow_master.fleet.model import Host"),
    (rules.room_breaches, "master/windrow_master/fleet/service.py", "from windrow_master.store.unit import Store"),
    (rules.room_breaches, "master/windrow_master/api/app.py", "from windrow_master.fleet.tiers import tier"),
    (
        rules.grouped_raises,
        "sdk/windrow/line.py",
        "try:\n    pass\nexcept OSError as one:\n    raise ValueError from one",
    ),
]


@pytest.mark.parametrize(("rule", "where", "code"), PERMITTED, ids=lambda value: getattr(value, "__name__", None))
def test_what_is_permitted_is_left_alone(rule: Rule, where: str, code: str, tmp_path: Path) -> None:
    plant(tmp_path, where, code)
    assert rule(tmp_path) == []


def plant(root: Path, where: str, code: str) -> None:
    """Write one module into an empty tree."""
    (root / where).parent.mkdir(parents=True)
    (root / where).write_text(f'"""Planted."""\n{code}\n', encoding="utf-8")
