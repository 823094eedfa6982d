"""A person's words become the request that they meant, or a sentence that says how to write it."""

from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pytest

from windrow.cli.request import (
    body,
    name_from,
    parse_array,
    parse_begin,
    parse_env,
    parse_gpu,
    parse_size,
    read_requirements,
)
from windrow.errors import InvalidInput, WindrowClientError
from windrow.fields import CLUSTER, JOB


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("24GB", {"gpus": 1, "gpu_memory_bytes": 24 * 10**9}),
        ("24GiB:2", {"gpus": 2, "gpu_memory_bytes": 24 * 2**30}),
        ("H100", {"gpus": 1, "gpu_model": "H100"}),
        ("H100:8", {"gpus": 8, "gpu_model": "H100"}),
        ("RTX 4090", {"gpus": 1, "gpu_model": "RTX 4090"}),
        ("2", {"gpus": 2}),
    ],
)
def test_gpu_wishes_are_understood(text: str, expected: dict[str, object]) -> None:
    assert parse_gpu(text) == expected


@pytest.mark.parametrize("text", ["H100:0", "H100:x", "", "H100;rm", "24GB:99999", "²", "٣", "H100:²", "9" * 5000])
def test_a_gpu_wish_nobody_can_mean_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(WindrowClientError, match="--gpu"):
        parse_gpu(text)


def test_an_array_may_say_how_many_of_it_run_at_once() -> None:
    assert parse_array("1000") == {"array_size": 1000}
    assert parse_array("1000%20") == {"array_size": 1000, "array_at_once": 20}
    for text in ("", "ten", "-1", "5%", "0", "0%2"):
        with pytest.raises(InvalidInput, match="--array"):
            parse_array(text)


def test_a_clock_time_to_begin_is_the_next_one_here() -> None:
    now = datetime(2030, 5, 6, 17, 30).astimezone()
    assert datetime.fromisoformat(parse_begin("18:00", now)) == datetime(2030, 5, 6, 18).astimezone()
    assert datetime.fromisoformat(parse_begin("7:05", now)) == datetime(2030, 5, 7, 7, 5).astimezone()
    assert parse_begin("2030-01-31T18:00:00Z", now) == "2030-01-31T18:00:00Z"
    for text in ("25:00", "18:00:00", "soon"):
        with pytest.raises(InvalidInput, match="Write for example 18:00, or"):
            parse_begin(text, now)


def test_sizes_tell_powers_of_1000_from_powers_of_1024() -> None:
    assert (parse_size("1GB"), parse_size("1GiB"), parse_size("1.5M")) == (10**9, 2**30, 1_500_000)
    with pytest.raises(WindrowClientError, match="not a size"):
        parse_size("much")


def test_environment_pairs_need_a_name() -> None:
    assert parse_env(["A=1", "B=x=y"]) == {"A": "1", "B": "x=y"}
    with pytest.raises(WindrowClientError, match="NAME=value"):
        parse_env(["=1"])


def test_what_was_not_said_is_left_out_of_the_request() -> None:
    assert body(CLUSTER, {"argv": ["true"], "image": None}) == {"argv": ["true"]}


def test_values_may_be_written_as_people_do() -> None:
    said = {"memory_bytes": "8GB", "max_duration_seconds": "8h", "budget": Decimal("1E+1"), "volumes": ("a:/data",)}
    meant = {"memory_bytes": 8 * 10**9, "max_duration_seconds": 28_800, "budget": "10", "volumes": ["a:/data"]}
    assert body(CLUSTER, said) == meant
    assert body(JOB, {"checkpoint_every_seconds": "0"}) == {"checkpoint_every_seconds": 0}
    with pytest.raises(WindrowClientError, match="'gpu' is no field"):
        body(JOB, {"gpu": 1})


def test_an_empty_value_is_refused_and_not_taken_for_none() -> None:
    with pytest.raises(InvalidInput, match="--memory has no value"):
        body(CLUSTER, {"memory_bytes": ""})
    with pytest.raises(InvalidInput, match="--gpu has no value"):
        parse_gpu("")
    assert body(CLUSTER, {"entrypoint": ""}) == {"entrypoint": ""}, "it says that there is none"


@pytest.mark.parametrize("text", ["tomorrow", "2030-02-31T18:00:00Z", "2030-01-31T18:00:00"])
@pytest.mark.case("B-F11")
def test_a_deadline_that_is_no_moment_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidInput, match="2030-01-31T18:00:00Z"):
        body(JOB, {"deadline": text})


def test_a_name_is_made_of_the_programs_and_may_be_one() -> None:
    found = [name_from(one) for one in ("/usr/bin/python", "my script.py", "L\u00e4b", "\u65e5\u672c", "x" * 80)]
    assert found == ["python", "my-script.py", "L-b", None, "x" * 40]


def test_a_byte_order_mark_is_no_part_of_a_package(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_bytes(b"\xef\xbb\xbfnumpy\n")
    assert read_requirements(tmp_path / "requirements.txt") == ["numpy"]
