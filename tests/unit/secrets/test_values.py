"""Values of secrets: what is taken, how it is sealed, what a request names."""

import base64
from dataclasses import replace

import pytest

from windrow_master.clusters.model import ClusterRequest
from windrow_master.clusters.request import checked
from windrow_master.secrets import sealing
from windrow_master.secrets.model import (
    VALUE_BYTES_MAX,
    Secret,
    SecretKind,
    SecretUser,
    by_name,
    login_of,
    names_in,
    parsed,
    variable_of,
    variables_of,
)
from windrow_proto.data_keys import DataKey
from windrow_proto.errors import InvalidInput
from windrow_proto.ids import AccountId, ClusterId
from windrow_proto.sealed import RegistryLogin

ACCOUNT = AccountId("account_1")
CANARY = "hf_Canary9Sings7In5No3Row1"
KEY = DataKey(bytes(range(32)))


@pytest.mark.parametrize(
    ("kind", "value", "shown"),
    [
        (SecretKind.TEXT, CANARY, CANARY),
        (SecretKind.TEXT, "two\nlines\n", "two\nlines\n"),
        (SecretKind.TEXT, "量子", "量子"),
        (SecretKind.FILE, base64.b64encode(bytes(range(256))).decode(), base64.b64encode(bytes(range(256))).decode()),
    ],
)
def test_a_variable_holds_a_text_as_it_is_and_a_file_in_base64(kind: SecretKind, value: str, shown: str) -> None:
    assert variable_of(kind, parsed(kind, value)) == shown


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        (SecretKind.TEXT, "", "1 to 65,536 bytes"),
        (SecretKind.TEXT, f"{CANARY}\0", "without NUL"),
        (SecretKind.TEXT, CANARY + "x" * VALUE_BYTES_MAX, "1 to 65,536 bytes"),
        (SecretKind.TEXT, f"{CANARY}\ud800", "text in UTF-8"),
        (SecretKind.FILE, f"{CANARY}!", "base64"),
        (SecretKind.FILE, "量", "base64"),
        (SecretKind.REGISTRY_LOGIN, CANARY, "NAME:PASSWORD"),
        (SecretKind.REGISTRY_LOGIN, f":{CANARY}", "NAME:PASSWORD"),
        (SecretKind.REGISTRY_LOGIN, f"me:{CANARY}\nmore", "NAME:PASSWORD"),
        (SecretKind.REGISTRY_LOGIN, "me:" + "x" * 9_000, "NAME:PASSWORD"),
    ],
)
def test_what_is_no_value_is_refused_without_a_word_of_it(kind: SecretKind, value: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said) as refused:
        parsed(kind, value)
    assert CANARY not in str(refused.value) and refused.value.subject == "value"


def test_a_login_is_a_name_and_a_password_that_may_have_colons() -> None:
    raw = parsed(SecretKind.REGISTRY_LOGIN, "me:pass:word\n")
    assert login_of(raw) == RegistryLogin("me", "pass:word")


def _secret(raw: bytes = CANARY.encode(), key: DataKey = KEY) -> Secret:
    wrapped_key, sealed = sealing.sealed(key, ACCOUNT, "HF_TOKEN", SecretKind.TEXT, raw)
    return Secret(
        account_id=ACCOUNT,
        name="HF_TOKEN",
        kind=SecretKind.TEXT,
        wrapped_key=wrapped_key,
        sealed=sealed,
        created_at_ns=1,
        created_by="user/user_1",
        updated_at_ns=1,
        updated_by="user/user_1",
    )


def test_each_value_has_a_data_key_of_its_own_and_opens_again() -> None:
    one, other = _secret(), _secret()
    assert sealing.opened(KEY, one) == sealing.opened(KEY, other) == CANARY.encode()
    assert one.sealed != other.sealed and one.wrapped_key != other.wrapped_key
    assert CANARY not in repr(one) and CANARY.encode() not in one.sealed


@pytest.mark.parametrize(
    "changed",
    [
        {"account_id": AccountId("account_2")},
        {"name": "OTHER"},
        {"kind": SecretKind.FILE},
        {"sealed": b"x" * 40},
        {"wrapped_key": b""},
    ],
)
def test_a_row_that_was_moved_or_changed_opens_for_nobody(changed: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="Set it again: windrow secret set"):
        sealing.opened(KEY, replace(_secret(), **changed))  # type: ignore[arg-type]  # one field at a time


def test_another_key_opens_none_and_names_the_way_out() -> None:
    with pytest.raises(InvalidInput, match="Set it again: windrow secret set HF_TOKEN"):
        sealing.opened(DataKey(bytes(32)), _secret())


def _asked(*secrets: str, **more: object) -> ClusterRequest:
    return checked(ClusterRequest(argv=("true",), secrets=secrets, **more), ClusterId("cluster_1"))  # type: ignore[arg-type]  # fields by name


def test_a_request_names_secrets_and_their_variables() -> None:
    request = _asked("HF_TOKEN", "KEY=aws_key", "KEY=OTHER", image="lab", registry_secret="GHCR")
    assert variables_of(request) == (("HF_TOKEN", "HF_TOKEN"), ("aws_key", "KEY"), ("OTHER", "KEY"))
    assert names_in(request) == {"HF_TOKEN", "KEY", "GHCR"}
    user = SecretUser("job", "job_1", "train", True)
    assert by_name([(user, request), (user, _asked())]) == {"HF_TOKEN": [user], "KEY": [user], "GHCR": [user]}


@pytest.mark.parametrize(
    ("secrets", "more", "said"),
    [
        (("hf_token",), {}, "secrets must be"),
        (("A=1B",), {}, "secrets must be"),
        (("A=B=C",), {}, "secrets must be"),
        (("A\n",), {}, "secrets must be"),
        (("A" * 65,), {}, "secrets must be"),
        (tuple(f"A{n}" for n in range(33)), {}, "secrets must be at most 32"),
        (("A", "B=A"), {}, "another for A"),
        (("A=X",), {"env": {"X": "1"}}, "another for X"),
        ((), {"registry_secret": "GHCR"}, "registry_secret must be left out where no image is named"),
        ((), {"registry_secret": "ghcr", "image": "lab"}, "registry_secret must be"),
    ],
)
def test_what_no_request_can_name_is_refused(secrets: tuple[str, ...], more: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        _asked(*secrets, **more)
