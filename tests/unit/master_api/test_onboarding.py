"""A machine without an account gets the installer and its files, and nothing before they are ready."""

from tests.unit.master_api.conftest import Api


async def test_the_installer_is_served_to_anybody_and_makes_the_master_prepare_wheels(api: Api) -> None:
    answer = await api.stranger.get("/install.sh")
    assert answer.status_code == 200
    assert answer.text.startswith("#!/bin/sh") and answer.text.endswith('\nmain "$@"\n')


async def test_before_the_wheels_are_ready_the_answer_says_how_far_they_are(api: Api) -> None:
    answer = await api.stranger.get("/dl/manifest.json")
    assert (answer.status_code, answer.json()["retryable"]) == (503, True)
    assert "wheels" in answer.json()["detail"]


async def test_a_join_token_comes_with_the_line_that_uses_it(api: Api) -> None:
    api.services.https_url, api.services.https_pin = "https://gpu.example:8443", lambda: "sha256//abc="
    made = (await api.client.post("/api/v1/join-tokens", json={"role": "host"})).json()
    assert made["command"].startswith(
        "curl -fsSL -k --pinnedpubkey sha256//abc= https://gpu.example:8443/install.sh | "
    )
    assert made["join_token"] in made["command"]


async def test_a_path_out_of_the_folder_is_not_found(api: Api) -> None:
    answer = await api.stranger.get("/dl/..%2f..%2fidentity%2fca.key")
    assert answer.status_code in {404, 503}


async def test_packages_are_made_once_somebody_wants_one(api: Api) -> None:
    for name in ("SHA256SUMS", "packages.json"):
        answer = await api.stranger.get(f"/dl/{name}")
        assert (answer.status_code, answer.json()["retryable"]) == (503, True)


async def test_installer_and_cloud_config_name_the_master_they_came_from(api: Api) -> None:
    api.services.https_url, api.services.https_pin = "https://gpu.example:8443", lambda: "sha256//abc="
    script = (await api.stranger.get("/install.sh")).text
    assert "URL=https://gpu.example:8443 PIN=sha256//abc= " in script
    config = await api.stranger.get("/cloud-init.yaml")
    assert config.headers["content-type"].startswith("text/cloud-config")
    assert "https://gpu.example:8443/install.sh" in config.text and "@" not in config.text.replace("$@", "")
