"""A box: whose keys it takes, where it is entered, what it starts, and who is told so."""

import os
import subprocess
from dataclasses import replace

import pytest

from tests.unit.clusters.world import OPERATOR, STRANGER, market_world, principal
from windrow_master.clusters.kinds import box
from windrow_master.clusters.kinds.box import EntryPorts
from windrow_master.clusters.kinds.engines import BLOCK_PORTS, FIRST_PORT
from windrow_master.clusters.model import SSH_KEY_CHARS_MAX, SSH_KEYS_MAX, ClusterKind
from windrow_proto.errors import Conflict, InvalidInput, NotFound
from windrow_proto.service_names import forward_host

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB5zs5wHVMvVEMXQnRSpGdZSFmX0pjqnQvRZ3fyvUnOY me@home"
SECOND = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIL8dAWqWmlh1gU4vXQAbrx9fgSHFCS0oaTwI0YKpbYxN"


def host_of(view):
    """The name by which a browser comes to the notebook."""
    return forward_host(view.cluster.name, view.cluster.cluster_id)


@pytest.fixture
def m(tmp_path):
    with market_world(tmp_path) as made:
        yield made


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "ssh-ed25519",
        "ssh-dss AAAAB3NzaC1kc3MAAAA= old",
        f'command="rm -rf /" {KEY}',
        f"{KEY}\n{SECOND}",
        KEY.replace("AAAAC3", "AAAAD3"),
        "ssh-rsa " + KEY.split()[1],
        "ssh-ed25519 not*base64",
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        "ssh-rsa " + "A" * SSH_KEY_CHARS_MAX,
    ],
)
async def test_what_is_no_public_key_is_refused_by_the_name_of_its_field(m, wrong):
    with pytest.raises(InvalidInput) as refused:
        await m.create(argv=(), ssh_keys=(KEY, wrong))
    assert refused.value.subject == "ssh_keys"


@pytest.mark.parametrize(
    "more",
    [
        {"kind": ClusterKind.SERVICE, "ssh_keys": (KEY,), "ports": (80,)},
        {"kind": ClusterKind.GANG, "argv": ("true",), "notebook": True},
        {"ssh_keys": (KEY,) * (SSH_KEYS_MAX + 1)},
    ],
)
async def test_only_a_box_is_entered_and_by_so_many(m, more):
    with pytest.raises(InvalidInput):
        await m.create(**more)


async def test_a_container_has_ports_of_its_own_and_a_process_those_of_a_block(m):
    container = await m.create(argv=(), image="lab", ssh_keys=(KEY, SECOND), notebook=True)
    spec = m.spec()
    assert spec.argv == ("sh", "-c", 'eval "$WINDROW_BOX"', "windrow", "2222", "8888", "0.0.0.0", host_of(container))
    assert spec.env == {
        "WINDROW_BOX": box.SCRIPT,
        "WINDROW_SSH_KEYS": f"{KEY}\n{SECOND}",
        "JUPYTER_TOKEN": m.whole(container).secret,
    }
    assert (spec.await_members, container.cluster.first_port) == (False, None)
    secret = m.whole(container).secret
    assert len(secret) == 64 and secret not in repr(container)

    m.join("host_b")
    process = await m.create(ssh_keys=(KEY,), notebook=True, runtime="process", host_id="host_b", env={"A": "b"})
    first, spec = process.cluster.first_port, m.spec("host_b")
    assert first >= FIRST_PORT and (first - FIRST_PORT) % BLOCK_PORTS == 0
    assert spec.argv[4:] == (str(first), str(first + 1), "127.0.0.1", host_of(process), "true")
    assert spec.env["A"] == "b" and m.whole(process).secret not in (None, secret)


async def test_a_notebook_has_an_address_with_its_token_and_answers_under_that_name(m):
    plain = await m.create(argv=("train",))
    asked = replace(plain.cluster, request=replace(plain.cluster.request, notebook=True), secret="s" * 64)
    label = f"p8888-{asked.cluster_id.removeprefix('cluster_')}.svc.example"
    assert box.page_url(asked, "docker", "svc.example:7743") == (8888, f"https://{label}:7743/?token={'s' * 64}")
    assert box.command(asked, "docker", "svc.example:7743")[7] == f"{host_of(plain)}','{label}"
    chosen = replace(asked, request=replace(asked.request, env={box.TOKEN: "1234"}))
    for cluster, runtime, place in (
        (asked, "docker", ""),
        (asked, "simulated", "svc.example:7743"),
        (chosen, "docker", "svc.example:7743"),
        (plain.cluster, "docker", "svc.example:7743"),
    ):
        with pytest.raises(Conflict):
            box.page_url(cluster, runtime, place)


async def test_what_was_not_asked_for_is_not_started(m):
    plain = await m.create(argv=("train",))
    assert (m.spec().argv, m.spec().env, plain.cluster.secret) == (("train",), {}, None)
    assert box.entry_ports(plain.cluster, "docker") == EntryPorts()
    asked = replace(plain.cluster, request=replace(plain.cluster.request, notebook=True), secret="s" * 64)
    assert box.entry_ports(asked, "docker") == EntryPorts(None, 8888, "0.0.0.0")
    assert box.command(asked, "docker")[4:] == ("0", "8888", "0.0.0.0", host_of(plain), "train")
    assert box.entry_ports(asked, "simulated") == EntryPorts()
    assert box.command(asked, "simulated") == ("train",)


async def test_the_renters_own_token_wins_and_is_the_one_that_is_told(m):
    view = await m.create(image="lab", notebook=True, env={"JUPYTER_TOKEN": "mine"})
    assert m.spec().env["JUPYTER_TOKEN"] == box.token(m.whole(view)) == "mine"


async def test_only_its_renter_is_told_how_to_enter(m):
    view = await m.create(argv=(), image="lab", notebook=True)
    assert (await m.clusters.get_own(principal(), view.cluster.cluster_id)).whole.secret
    for other in (OPERATOR, principal(STRANGER)):
        with pytest.raises(NotFound):
            await m.clusters.get_own(other, view.cluster.cluster_id)


@pytest.mark.parametrize("argv", [["sh", "-c", "exit 7"], ["sh", "-c", "kill -TERM $PPID; exec sleep 100"]])
def test_the_renters_command_ends_the_box_with_its_own_code_and_is_asked_to_end_first(tmp_path, argv):
    """Without SSH and a notebook there is the command alone."""
    command = ["sh", "-c", 'eval "$WINDROW_BOX"', "windrow", "0", "0", "", "", *argv]
    env = {"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path), "WINDROW_BOX": box.SCRIPT}
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert done.returncode == (7 if "exit 7" in argv[-1] else 143), done.stderr


def test_what_is_missing_is_said_in_the_log_and_the_command_runs(tmp_path):
    """On a path with no SSH server and no Jupyter."""
    for name in ("id", "grep", "cat", "mkdir"):
        (tmp_path / name).symlink_to(f"/bin/{name}")
    script = box.SCRIPT.replace("/usr/sbin/sshd /usr/local/sbin/sshd", "")
    env = {"PATH": str(tmp_path), "TMPDIR": str(tmp_path), "WINDROW_BOX": script, "WINDROW_SSH_KEYS": KEY}
    command = [
        "/bin/sh",
        "-c",
        'eval "$WINDROW_BOX"',
        "windrow",
        "2222",
        "8888",
        "127.0.0.1",
        "lab.localhost",
        "/bin/sh",
        "-c",
    ]
    done = subprocess.run(
        [*command, 'echo "$WINDROW_BOX$WINDROW_SSH_KEYS"here; pwd'],
        env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, f"here\n{tmp_path}\n")
    assert "no SSH: there is no OpenSSH server here" in done.stderr
    assert "no notebook: there is no Jupyter here" in done.stderr
