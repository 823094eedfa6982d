"""What documents say of times, settings and packages is what the code does; each need of a stranger has its page."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.mission.sentences import BY_ID
from windrow_master.storage import s3_store
from windrow_master.storage.retention_rules import KEPT_DAYS

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[2]


def _page(path: str) -> str:
    """A text file in one line."""
    return " ".join((ROOT / path).read_text(encoding="utf-8").split())


@pytest.mark.case("M-31")
@pytest.mark.parametrize(
    "path", ["docs/jobs.md", "master/windrow_master/jobs/README.md", "docs/architecture/leases.md"]
)
def test_the_time_for_which_ended_work_is_kept_is_the_same_everywhere(path: str) -> None:
    text = _page(path)

    assert f"{KEPT_DAYS} days" in text
    assert "until somebody takes them away" not in text


@pytest.mark.case("M-32")
def test_a_store_needs_packages_that_can_be_had() -> None:
    published = _page("docs/artefacts.md") + Path(s3_store.__file__).read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extra = project["optional-dependencies"]["s3"]
    named = re.findall(r"pip install ([a-z0-9 ]+)", published)

    assert "windrow-all[" not in published
    assert {word for line in named for word in line.split()} >= {"boto3", "obstore"}
    assert {"boto3", "obstore"} <= {re.split("[>=<]", one)[0] for one in extra}


@pytest.mark.case("M-33")
def test_the_url_of_a_metrics_store_is_described_as_it_is_read() -> None:
    assert "with or without `/api/v1`" in _page("docs/metrics.md")


@pytest.mark.case("M-34")
def test_who_joins_a_host_is_asked_for_no_python_that_is_not_needed_and_doctor_has_its_purpose() -> None:
    page, document = _page("console/src/hosts/JoinPage.tsx"), _page("docs/join-a-host.md")

    assert "The host needs Linux;" in page and "Python" not in page
    assert "with a Python of its own" in document
    assert "`windrow doctor`, and on a host `windrow-agent doctor` |" in _page("README.md")


@pytest.mark.case("M-36")
@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("docs/architecture/leases.md", "**A command that ends** by itself makes its cluster `Finished`"),
        ("docs/machines.md", "the machine ends with the command"),
        ("docs/operating.md", "windrow-master backup market.tar"),
        ("docs/operating.md", "## Upgrade"),
        ("docs/renting-from-elsewhere.md", "pip install ./tunnel ./sdk"),
        ("docs/renting-from-elsewhere.md", "windrow login --ca-file ca.pem"),
        ("docs/README.md", "renting-from-elsewhere.md"),
    ],
)
def test_each_need_has_its_page(path: str, words: str) -> None:
    assert words in _page(path)


@pytest.mark.case("M-37")
def test_the_sentences_of_the_mission_are_told_as_they_are() -> None:
    assert "--priority" in BY_ID["fair"].shows and not BY_ID["fair"].missing
    assert "jobs have priorities" in BY_ID["distribution"].missing
    assert BY_ID["functions"].shows.startswith("the first script of the talk")
    assert "windrow account add" in BY_ID["many-users"].shows
