"""The tree stays tidy: finished, short, spoken for, and free of any one machine's names."""

from pathlib import Path

import pytest

from tests.architecture import figures, tidiness
from tests.architecture.tree import ROOT


def test_no_file_says_that_something_is_left_for_later() -> None:
    assert tidiness.unfinished(ROOT) == []


def test_no_file_names_a_package_registry() -> None:
    assert tidiness.registry_hosts(ROOT) == []


def test_no_file_names_a_path_of_one_machine() -> None:
    assert tidiness.machine_paths(ROOT, ROOT) == []


def test_every_file_is_short() -> None:
    assert tidiness.long_files(ROOT) == []


def test_every_line_of_the_console_fits_a_screen() -> None:
    assert tidiness.long_lines(ROOT) == []


def test_every_function_fits_a_screen() -> None:
    assert tidiness.long_functions(ROOT) == []


def test_every_module_opens_with_its_promise() -> None:
    assert tidiness.silent_modules(ROOT) == []


def test_no_folder_is_there_for_one_file() -> None:
    assert figures.lone_files(ROOT) == []


BREACHES = [
    (figures.lone_files, "master/windrow_master/market/prices/service.py", '"""A."""\n'),
    (tidiness.unfinished, "agent/main.py", '"""A."""\n# ' + "TO" + "DO: more\n"),
    (tidiness.unfinished, "console/src/App.tsx", "// FIX" + "ME\n"),
    (tidiness.registry_hosts, "a.lock", "--index-url https://pypi" + ".org/simple\n"),
    (tidiness.long_files, "a.py", '"""A."""\n' + "x = 1\n" * 800),
    (tidiness.long_lines, "console/src/App.tsx", f'const a = "{"x" * 120}";\n'),
    (tidiness.long_functions, "a.py", '"""A."""\ndef f():\n' + "    x = 1\n" * 60),
    (tidiness.silent_modules, "a.py", "x = 1\n"),
]


@pytest.mark.parametrize(("rule", "where", "text"), BREACHES, ids=lambda value: getattr(value, "__name__", ""))
def test_an_untidy_file_is_found(rule: object, where: str, text: str, tmp_path: Path) -> None:
    (tmp_path / where).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / where).write_text(text, encoding="utf-8")
    assert callable(rule)
    assert len(rule(tmp_path)) == 1


@pytest.mark.parametrize("line", ["see /srv/checkout/windrow/x.py", "see /" + "home/somebody/x"])
def test_a_machine_path_is_found(line: str, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(line, encoding="utf-8")
    assert len(tidiness.machine_paths(tmp_path, Path("/srv/checkout/windrow"))) == 1
