"""Image names say their parts, and all hosts use one name for an image."""

import pytest

from windrow_proto.image_names import is_pinned, parsed, pinned

DIGEST = "sha256:" + "1f" * 32
OTHER = "sha256:" + "2e" * 32


@pytest.mark.parametrize(
    ("image", "repository", "tag", "digest", "asked", "reference"),
    [
        ("python", "python", "", "", "python", "latest"),
        ("python:3.12", "python", "3.12", "", "python:3.12", "3.12"),
        ("reg.example:5000/a/b", "reg.example:5000/a/b", "", "", "reg.example:5000/a/b", "latest"),
        ("reg.example:5000/a/b:1", "reg.example:5000/a/b", "1", "", "reg.example:5000/a/b:1", "1"),
        (f"python@{DIGEST}", "python", "", DIGEST, f"python@{DIGEST}", DIGEST),
        (f"h:5/a:1@{DIGEST}", "h:5/a", "1", DIGEST, f"h:5/a@{DIGEST}", DIGEST),
    ],
)
def test_a_name_in_its_parts(image: str, repository: str, tag: str, digest: str, asked: str, reference: str) -> None:
    name = parsed(image)

    assert (name.repository, name.tag, name.digest) == (repository, tag, digest)
    assert (name.asked, name.reference, str(name)) == (asked, reference, image)


def test_only_a_whole_digest_pins() -> None:
    assert is_pinned(f"a:1@{DIGEST}")
    assert not any(map(is_pinned, ("a:1", "a@sha256:12", "a@md5:" + "1f" * 16, f"a@{DIGEST}0", "")))


@pytest.mark.parametrize(
    ("image", "known"),
    [
        ("python:3.12", f"python@{DIGEST}"),
        ("python:3.12", f"docker.io/library/python@{DIGEST}"),
        ("docker.io/library/python:3.12", f"python@{DIGEST}"),
        ("me/tool:3.12", f"docker.io/me/tool@{DIGEST}"),
        ("reg.example/me/tool:3.12", f"reg.example/me/tool@{DIGEST}"),
    ],
)
def test_a_tag_is_named_by_the_digest_that_its_own_repository_has_for_it(image: str, known: str) -> None:
    others = (f"elsewhere.example/library/python@{OTHER}", f"pythons@{OTHER}", f"me/tools@{OTHER}", "<none>@<none>")

    assert pinned(image, (*others, known)) == f"{image}@{DIGEST}"
    assert pinned(image, others) == ""


def test_what_is_pinned_stays_as_it_is() -> None:
    assert pinned(f"a:1@{DIGEST}", [f"a@{OTHER}"]) == f"a:1@{DIGEST}"
