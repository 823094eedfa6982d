"""In the process of a call: what becomes of an exception that is too large to be sent."""

import pickle
from pathlib import Path

import pytest

from windrow.worker import calling


class Odd(Exception):
    """Of two arguments."""

    def __init__(self, what: str, much: bytes) -> None:
        super().__init__(what, much)
        self.kept = [much]


class Glued(Exception):
    """None that can be pickled."""

    def __reduce__(self) -> str:
        raise SystemExit(9)


@pytest.fixture
def result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(calling, "BODY_BYTES_MAX", 1 << 20)
    return tmp_path / "result"


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (ValueError("w" * (8 << 20)), "characters of this text were left out here"),
        (Odd("odd", bytes(8 << 20)), "odd"),
        (KeyError("key", list(range(1 << 20)), 3), "[windrow: of type list, left out]"),
    ],
    ids=["text", "bytes", "list"],
)
def test_an_exception_too_large_to_be_sent_keeps_its_type_and_says_what_is_missing(
    result: Path, error: Exception, shown: str
) -> None:
    calling.write_raised(error, str(result))
    found = pickle.loads(result.read_bytes())
    assert type(found) is type(error)
    assert shown in str(found)
    assert len(str(found)) < 40_000
    assert "this is not all of it" in found.__notes__[0]


def test_an_exception_that_fits_comes_whole(result: Path) -> None:
    calling.write_raised(ValueError("w" * (1 << 19)), str(result))
    found = pickle.loads(result.read_bytes())
    assert found.args == ("w" * (1 << 19),)
    assert not hasattr(found, "__notes__")


def test_an_exception_that_cannot_be_pickled_leaves_no_half_file(result: Path) -> None:
    calling.write_raised(Glued("w" * (8 << 20)), str(result))
    assert not result.exists()
