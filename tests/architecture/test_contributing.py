"""Pages of contributing/ exist, are linked, have numbered steps and name paths that exist; the changelog is short."""

import re

import pytest

from tests.architecture.tree import ROOT, files

PAGES = ROOT / "contributing"
EXPECTED = frozenset(
    {
        *("route", "condition", "request-field", "cluster-kind", "ledger-transfer", "gpu-field", "console-page"),
        *("cli-verb", "message", "backend"),
    }
)
FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
SUFFIXES = (".py", ".ts", ".tsx", ".md", ".json", ".yml", ".toml", ".proto", ".c")
PLACEHOLDER = re.compile(r"<\w+>")


def named_paths(text: str) -> list[str]:
    """Paths from the root, and lone names of files, in the code spans of a page. `<noun>` stands for any name."""
    folders = tuple(f"{path.name}/" for path in ROOT.iterdir() if path.is_dir())
    words = [word for span in CODE.findall(FENCED.sub("", text)) for word in span.split()]
    return [word for word in words if word.startswith(folders) or word.endswith(SUFFIXES)]


def lost_paths(text: str) -> list[str]:
    """Those of them that are not there."""
    known = {path.name for path in files(ROOT, *SUFFIXES)}
    return [
        word
        for word in named_paths(text)
        if not (any(ROOT.glob(PLACEHOLDER.sub("*", word))) if "/" in word else word in known)
    ]


def test_there_is_a_page_for_each_kind_of_change_and_it_is_linked() -> None:
    names = {path.name for path in PAGES.iterdir()}
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert names == {f"add-a-{kind}.md" for kind in EXPECTED}
    assert {name for name in names if f"(contributing/{name})" not in guide} == set()


@pytest.mark.parametrize("kind", sorted(EXPECTED))
def test_a_page_has_numbered_steps_and_names_paths_that_exist(kind: str) -> None:
    text = (PAGES / f"add-a-{kind}.md").read_text(encoding="utf-8")
    assert re.search(r"^1\. .*?^2\. ", text, re.MULTILINE | re.DOTALL)
    assert named_paths(text) != []
    assert lost_paths(text) == []


@pytest.mark.parametrize("path", ["master/windrow_master/gone.py", "master/<package>/gone.py", "gone.py"])
def test_a_path_that_is_gone_is_found(path: str) -> None:
    assert lost_paths(f"1. `{path}`: and `pytest tests/unit`.") == [path]


def test_the_changelog_is_short() -> None:
    lines = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) < 120
    assert [line for line in lines if len(line) > 120] == []
