"""The pages name what there is: commands, flags, environment variables and links, each compared with the code."""

import json
import re
import subprocess
from collections.abc import Iterator
from functools import cache

import pytest

from tests.support import documented
from tests.support.page_runs import ELSEWHERE, PAGES
from tests.support.pages import READ, ROOT, RUN, lost_links, plain_blocks, spans, steps, text_of
from windrow.cli.exits import table

FOREIGN_FLAGS = frozenset({"--userns-remap"})
"""The flags of other programs that a page names by themselves: of Docker's daemon."""
CODE = ("*.py", "*.sh", "*.yaml", "*.ts", "*.tsx", "Makefile", "Dockerfile", "windrow-agent-keep")
VARIABLE = re.compile(r"\b(WINDROW_[A-Z0-9_]+|CKPT_[A-Z]+)")


def lines(page: str) -> Iterator[str]:
    """Whatever may be a command on a page: lines of its blocks, and code spans."""
    yield from (step.text for step in steps(page) if step.language == "sh")
    yield from (re.split(r" {2,}", line)[0] for line in plain_blocks(page))
    yield from spans(page)


def refusals(line: str) -> list[str]:
    """Returns the reasons for which our programs refuse a line; what is no line of shell has none."""
    words = line.split()
    if len(words) > 1 and documented.is_group(words[0]) and re.fullmatch(r"[a-z-]+", words[1]):
        line = f"windrow {line}"  # a page that names a noun of `windrow` may leave the program out
    try:
        found = documented.commands_in(line)
    except ValueError:  # quotes that do not end
        return []
    return [f"{' '.join(words)}: {reason.strip()}" for words in found if (reason := documented.refusal(words))]


@pytest.mark.parametrize("page", READ)
def test_every_command_line_is_one_that_its_program_takes(page: str) -> None:
    assert [reason for line in lines(page) for reason in refusals(line)] == []


@pytest.mark.parametrize("page", RUN)
def test_every_flag_that_stands_alone_is_one_of_our_programs(page: str) -> None:
    named = {re.split(r"[ =]", span)[0] for span in spans(page) if re.match(r"--[a-z]", span)}
    assert named - documented.flags() - FOREIGN_FLAGS == set()


@pytest.mark.parametrize(
    "line",
    [
        *(
            "windrow cluster explode x",
            "windrow host ls --colour",
            "host explode x",
            "windrow nosuch",
        ),
        *("windrow cluster create --hosts many -- true", "windrow up --simulate", "sudo windrow-agent fence --gone"),
        *("windrow-access run --no-such", "windrow-master restore --all", "windrow-master rebuild-history x"),
        *("make nosuch", "make up COLOUR=1", "curl x | windrow host shows y"),
    ],
)
def test_a_command_line_that_is_wrong_is_found(line: str) -> None:
    assert len(refusals(line)) == 1


@pytest.mark.parametrize("line", ["windrow job wait", "cluster logs", "windrow-agent join", "windrow cluster logs ..."])
def test_a_verb_may_be_named_without_what_it_takes(line: str) -> None:
    assert refusals(line) == []


@cache
def variables() -> frozenset[str]:
    """The variables that the code reads or writes."""
    folders = ("proto", "agent", "access", "master", "sdk", "up", "tunnel", "deploy", "tests", "bench", "console/src")
    found = [path for folder in folders for name in CODE for path in (ROOT / folder).rglob(name)]
    own = ("node_modules", "unit/tooling/test_documents.py")
    texts = [path.read_text(encoding="utf-8") for path in found if not any(part in str(path) for part in own)]
    texts.append((ROOT / "Makefile").read_text(encoding="utf-8"))
    return frozenset(name for text in texts for name in VARIABLE.findall(text))


def is_known(name: str) -> bool:
    """True if the code reads or writes it; a name that ends with `_` stands for those that begin so, on either side."""
    known = variables()
    begun = tuple(one for one in known if one.endswith("_"))
    return (
        name in known or name.startswith(begun) or (name.endswith("_") and any(one.startswith(name) for one in known))
    )


@pytest.mark.parametrize("page", READ)
def test_every_variable_is_one_that_the_code_knows(page: str) -> None:
    assert {name for name in VARIABLE.findall(text_of(page)) if not is_known(name)} == set()


@cache
def operations() -> tuple[re.Pattern[str], ...]:
    """The operations of the API, as METHOD /path: any word may stand where the path has a parameter."""
    found = json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))["paths"]
    return tuple(
        re.compile(f"{method.upper()} {re.sub(r'{[^}]+}', '[^/]+', path)}") for path in found for method in found[path]
    )


@pytest.mark.parametrize("page", [page for page in READ if page != "docs/permissions.md"])
def test_every_operation_of_the_api_is_one(page: str) -> None:
    """docs/permissions.md is made from the routes, those that no description has included."""
    named = re.findall(r"\b((?:GET|POST|PUT|PATCH|DELETE) )(?:/api/v1)?(/[^\s?`]+)", "\n".join(spans(page)))
    asked = {f"{method}{path if path.startswith('/api/') else f'/api/v1{path}'}" for method, path in named}
    assert {one for one in asked if not any(known.fullmatch(one) for known in operations())} == set()


@pytest.mark.parametrize("page", READ)
def test_every_link_leads_somewhere(page: str) -> None:
    assert lost_links(page) == []


def test_the_readme_gives_the_exit_codes_of_the_command() -> None:
    assert table() in " ".join(text_of("README.md").split())


def test_every_line_that_runs_elsewhere_is_there_and_its_test_too() -> None:
    told = [f"{page}: {step.text}" for page in RUN for step in steps(page)]
    assert [pattern.pattern for pattern, _, _ in ELSEWHERE if not any(map(pattern.search, told))] == []
    assert [shown for _, _, shown in ELSEWHERE if shown and not (ROOT / "tests" / shown).is_file()] == []


def test_every_page_that_the_table_prepares_has_commands() -> None:
    assert [page for page in PAGES if not steps(page)] == []


@pytest.mark.parametrize("page", RUN)
def test_every_line_of_shell_is_one(page: str) -> None:
    script = "\n".join(step.text for step in steps(page) if step.language == "sh")
    checked = subprocess.run(["sh", "-n", "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")
