"""Promises of what `windrow up` writes for its user: a link to the command, and a configuration."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from windrow.config import Config, find, save, user_file
from windrow_up import config
from windrow_up.user_setup import Done, Place, Surroundings, command_prefix, lines, offers_link, quoted, writes_config

FIRST = Surroundings(
    command="/src/.venv/bin/windrow", found="", link="/people/u/.local/bin/windrow", link_place=Place.FREE,
    is_link_folder_on_path=True, config="/people/u/.config/windrow/config.json", config_place=Place.FREE,
    data_dir="/src/.windrow", is_default_data_dir=True, is_terminal=True, was_asked=False, is_once=False,
)  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "is_offered"),
    [
        ({}, True),
        ({"is_terminal": False}, False),
        ({"was_asked": True}, False),
        ({"is_once": True}, False),
        ({"link_place": Place.FOREIGN}, False),
        ({"link_place": Place.DANGLING}, False),
        ({"link_place": Place.OURS}, False),
        ({"found": "/src/.venv/bin/windrow"}, False),
        ({"found": "/usr/bin/windrow"}, True),
    ],
)
def test_a_link_is_offered_once_on_a_terminal_where_nothing_is_in_its_way(
    changed: dict[str, object], is_offered: bool
) -> None:
    assert offers_link(replace(FIRST, **changed)) is is_offered  # type: ignore[arg-type]  # the table's own fields


@pytest.mark.parametrize(
    ("changed", "is_written"),
    [
        ({}, True),
        ({"config_place": Place.DANGLING}, True),
        ({"config_place": Place.FOREIGN}, False),
        ({"config_place": Place.OURS}, False),
        ({"is_terminal": False}, True),
        ({"is_terminal": False, "is_default_data_dir": False}, False),
        ({"is_once": True}, False),
    ],
)
def test_a_configuration_is_written_where_there_is_none(changed: dict[str, object], is_written: bool) -> None:
    assert writes_config(replace(FIRST, **changed)) is is_written  # type: ignore[arg-type]  # the table's own fields


@pytest.mark.parametrize(
    ("changed", "done", "prefix"),
    [
        ({}, Done(True, True), "windrow"),
        ({"is_link_folder_on_path": False}, Done(True, True), "/people/u/.local/bin/windrow"),
        ({}, Done(False, True), "/src/.venv/bin/windrow"),
        ({}, Done(True, False), "cd /src && windrow"),
        ({"data_dir": "/a b/.windrow"}, Done(True, False), "cd '/a b' && windrow"),
        ({"found": "/src/.venv/bin/windrow"}, Done(False, True), "windrow"),
        ({"data_dir": "/srv/market"}, Done(True, False), "windrow"),
    ],
)
def test_printed_commands_work_in_every_folder(changed: dict[str, object], done: Done, prefix: str) -> None:
    assert command_prefix(replace(FIRST, **changed), done) == prefix  # type: ignore[arg-type]  # the table's own fields


def test_what_was_written_is_said_once_and_a_later_start_says_nothing() -> None:
    first = lines(replace(FIRST, is_link_folder_on_path=False), Done(True, True), True, True)
    assert [line.split()[0] for line in first] == ["Linked", "Your", "Wrote"]
    assert lines(FIRST, Done(True, True), False, False) == []
    assert "no entry in" in lines(replace(FIRST, data_dir="/srv/m"), Done(True, False), False, False)[0]


def test_a_path_with_a_quote_is_one_word_of_a_shell() -> None:
    assert quoted("/a'b") == "'/a'\"'\"'b'"


class Home:
    """A user's home with a market in it, and what was said and asked."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "src" / ".windrow"
        self.data.mkdir(parents=True)
        self.cli = self.data / "cli.json"
        self.cli.write_text(json.dumps({"url": "http://127.0.0.1:8000", "token": "t"}))
        self.cli.chmod(0o600)
        self.link = folder / ".local" / "bin" / "windrow"
        self.config = folder / ".config" / "windrow" / "config.json"
        self.asked: list[str] = []

    def start(self, answer: bool) -> str:
        """As a start of `windrow up` on a terminal does."""

        def ask(question: str) -> bool:
            self.asked.append(question)
            return answer

        found = config.surroundings(self.data, is_default=True, is_once=False)
        return config.set_up(replace(found, is_terminal=True), ask, lambda _: None)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    for name in ("WINDROW_URL", "WINDROW_TOKEN", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / ".local" / "bin"))
    return Home(tmp_path)


def test_both_are_written_at_the_first_start_and_the_second_asks_nothing(home: Home, tmp_path: Path) -> None:
    assert home.start(True) == "windrow"
    assert home.link.readlink() == Path(sys.executable).absolute().parent / "windrow"
    assert user_file() == home.config and find(start=tmp_path).url == "http://127.0.0.1:8000"

    assert home.start(True) == "windrow"
    assert len(home.asked) == 1


def test_a_no_is_kept_and_printed_commands_name_the_whole_path(home: Home) -> None:
    assert home.start(False).endswith("/bin/windrow")
    home.start(True)
    assert len(home.asked) == 1 and not os.path.lexists(home.link)


def test_what_is_not_ours_stays_as_it_is(home: Home) -> None:
    for path in (home.link, home.config):
        path.parent.mkdir(parents=True)
        path.write_text("mine")
    assert home.start(True).startswith(f"cd {home.data.parent} && ")
    assert (home.link.read_text(), home.config.read_text(), home.asked) == ("mine", "mine", [])


def test_a_configuration_whose_market_is_gone_is_replaced(home: Home, tmp_path: Path) -> None:
    home.config.parent.mkdir(parents=True)
    home.config.symlink_to(tmp_path / "gone" / "cli.json")
    home.start(False)
    assert home.config.resolve() == home.cli


def test_a_folder_that_cannot_be_made_stops_nothing(home: Home, tmp_path: Path) -> None:
    (tmp_path / ".config").write_text("a file where a folder should be")
    assert home.start(False).startswith("cd ")


def test_a_login_replaces_the_link_and_leaves_the_market_its_file(home: Home) -> None:
    home.start(False)
    save(Config("https://other", "wt_other"))
    assert json.loads(home.cli.read_text())["token"] == "t"
    assert find(start=home.config.parent).url == "https://other"
