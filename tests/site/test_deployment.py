"""Dockerfile, docker-compose.yml, the workflow and their scripts: valid, agreeing with each other and with the code.

No container engine is needed. The schemas are the published ones (tests/site/vendor/check-jsonschema).
"""

import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from pqadmin.conf import environment
from tests.programs import run_to_end

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = Path(__file__).parent / "vendor" / "check-jsonschema"
DEPLOY = ROOT / "deploy"
WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(text("docker-compose.yml"))
    return loaded


@pytest.fixture(scope="module")
def workflow() -> dict[str, Any]:
    # YAML 1.1 reads the key `on` as true; GitHub does not.
    loaded: dict[Any, Any] = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    return {("on" if key is True else key): value for key, value in loaded.items()}


def mounts(service: dict[str, Any]) -> dict[str, str]:
    """Return where a service sees its named volumes."""
    named = (volume.split(":") for volume in service.get("volumes", ()) if isinstance(volume, str))
    return {parts[0]: parts[1] for parts in named}


def instructions(stage: str = "") -> list[tuple[str, str]]:
    """Return the Dockerfile's instructions, those of one stage by its name; the last one's for "last"."""
    lines = re.sub(r"\\\n\s*", "", text("Dockerfile")).splitlines()
    parsed = [tuple(line.split(maxsplit=1)) for line in lines if line and not line.startswith("#")]
    stages: dict[str, list[tuple[str, str]]] = {}
    name = ""
    for keyword, rest in parsed:
        if keyword == "FROM":
            name = rest.split(" AS ")[1] if " AS " in rest else "last"
        stages.setdefault(name, []).append((keyword, rest))
    return stages[stage] if stage else [line for lines in stages.values() for line in lines]


# Schemas of files of this kind


@pytest.mark.parametrize(("schema", "file"), [("compose-spec", "compose"), ("github-workflows", "workflow")])
def test_it_follows_its_published_schema(schema: str, file: str, request: pytest.FixtureRequest) -> None:
    rules = json.loads((SCHEMAS / f"{schema}.json").read_text(encoding="utf-8"))
    validator = jsonschema.validators.validator_for(rules)(rules)
    assert [error.message for error in validator.iter_errors(request.getfixturevalue(file))] == []


# One version of FoundationDB


def test_server_client_and_binding_are_of_one_version(compose: dict[str, Any], workflow: dict[str, Any]) -> None:
    found = re.search(r"^foundationdb==(\S+)", text("requirements.lock"), re.MULTILINE)
    assert found
    image = f"foundationdb/foundationdb:{found.group(1)}"
    images = {unpinned(service["image"]) for service in compose["services"].values()}
    assert images == {image, "pqadmin"}
    assert ("FROM", f"{image} AS foundationdb") in [(keyword, unpinned(rest)) for keyword, rest in instructions()]
    assert workflow["jobs"]["foundationdb"]["env"]["FDB_VERSION"] == found.group(1)
    assert set(re.findall(r"_(7\.\S+?)-1_amd64", WORKFLOW.read_text(encoding="utf-8"))) == {found.group(1)}


def unpinned(image: str) -> str:
    return re.sub(r"@sha256:[0-9a-f]{64}", "", image)


def pin(folder: Path, answer: str) -> subprocess.CompletedProcess[str]:
    """Run deploy/pin-images.sh on a copy of the files, with a registry that gives this answer for every image."""
    for name in ("Dockerfile", "docker-compose.yml", "deploy/pin-images.sh"):
        (folder / name).parent.mkdir(exist_ok=True)
        if not (folder / name).exists():
            shutil.copy(ROOT / name, folder / name)
    (folder / "bin").mkdir(exist_ok=True)
    docker = folder / "bin" / "docker"
    docker.write_text(f"#!/bin/sh\necho '{answer}'\n", encoding="utf-8")
    docker.chmod(0o755)
    path = f"{docker.parent}:{os.environ['PATH']}"
    command = ["sh", folder / "deploy" / "pin-images.sh"]
    return subprocess.run(command, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False)


def base_images(folder: Path) -> set[str]:
    found = re.findall(
        r"^FROM (\S+)|^ *image: (\S+)",
        "".join((folder / name).read_text(encoding="utf-8") for name in ("Dockerfile", "docker-compose.yml")),
        re.MULTILINE,
    )
    return {docker or compose for docker, compose in found} - {"pqadmin"}


def test_base_images_are_pinned_to_what_the_registry_says_and_again_later(tmp_path: Path) -> None:
    before = {unpinned(image) for image in base_images(ROOT)}
    for digest in ("sha256:" + "a1" * 32, "sha256:" + "b2" * 32):
        assert pin(tmp_path, digest).returncode == 0
        assert base_images(tmp_path) == {f"{image}@{digest}" for image in before}
    assert " AS foundationdb" in (tmp_path / "Dockerfile").read_text(encoding="utf-8")


@pytest.mark.parametrize("answer", ["", "sha256:abc", "error: no such host", "sha256:" + "A" * 64])
def test_an_answer_that_is_no_digest_pins_nothing(answer: str, tmp_path: Path) -> None:
    assert pin(tmp_path, answer).returncode == 1
    for name in ("Dockerfile", "docker-compose.yml"):
        assert (tmp_path / name).read_bytes() == (ROOT / name).read_bytes()


def test_every_base_image_is_pinned_by_one_whole_digest() -> None:
    images = base_images(ROOT)
    versions = [unpinned(image) for image in images]
    assert len(versions) == len(set(versions)), "one image by two digests"
    assert all(re.fullmatch(r"[^@]+:[^@]+@sha256:[0-9a-f]{64}", image) for image in images)


# docker-compose.yml


def test_the_server_is_where_the_cluster_file_says(compose: dict[str, Any]) -> None:
    services = compose["services"]
    server = services["foundationdb"]
    address = server["networks"]["cluster"]["ipv4_address"]
    assert f"--public-address={address}:4500" in server["command"]
    assert services["prepare"]["environment"]["FDB_COORDINATOR"] == f"{address}:4500"
    (pool,) = compose["networks"]["cluster"]["ipam"]["config"]
    assert ip_address(address) in ip_network(pool["subnet"])
    assert ip_address(address) not in ip_network(pool["ip_range"])
    assert ip_network(pool["ip_range"]).subnet_of(ip_network(pool["subnet"]))


def test_all_use_one_cluster_file(compose: dict[str, Any]) -> None:
    services = compose["services"]
    used = {
        **{
            name: services[name]["environment"]["FDB_CLUSTER_FILE"] for name in ("prepare", "foundationdb", "configure")
        },
        **{name: services[name]["environment"]["PQADMIN_STORE"].removeprefix("fdb:") for name in ("site", "load")},
    }
    assert f"--cluster-file={used['foundationdb']}" in services["foundationdb"]["command"]
    inside = {Path(path).relative_to(mounts(services[name])["cluster"]) for name, path in used.items()}
    assert len(inside) == 1


def test_the_site_has_time_to_drain(compose: dict[str, Any]) -> None:
    limits = dict(
        re.findall(
            r"^([A-Z_]+_WITHIN) = ([0-9.]+)",
            text("pqadmin/server/daphne_server.py") + text("pqadmin/server/management/commands/serve.py"),
            re.MULTILINE,
        )
    )
    assert set(limits) == {"REQUESTS_FINISH_WITHIN", "SOCKETS_CLOSE_WITHIN", "THREADS_END_WITHIN"}
    drain = sum(map(float, limits.values())) + float(limits["SOCKETS_CLOSE_WITHIN"])  # sockets, then the monitor
    assert float(compose["services"]["site"]["stop_grace_period"].removesuffix("s")) >= 1.5 * drain


def test_nothing_has_more_rights_than_it_needs(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert not service.get("privileged"), name
        if name == "prepare":  # root, but only to give volumes away
            assert (service["cap_add"], service["network_mode"]) == (["CHOWN"], "none")
        else:
            assert "cap_add" not in service
            assert not str(service.get("user", "image's own")).startswith("0"), name
    published = {name: service["ports"] for name, service in compose["services"].items() if "ports" in service}
    assert list(published) == ["site"]
    assert all(port.startswith("127.0.0.1:") for port in published["site"])


def test_it_sets_only_settings_that_exist_and_no_secret(compose: dict[str, Any]) -> None:
    known = {setting.name for setting in environment.SETTINGS}
    for service in compose["services"].values():
        for name, value in service.get("environment", {}).items():
            assert name in known or not name.startswith(("PQ", "DATABASE")), name
            assert not re.search("password|secret|token", f"{name} {value}", re.IGNORECASE), name
    site = compose["services"]["site"]["environment"]
    plain = {name: re.sub(r"\$\{\w+:-(.*?)\}", r"\1", value) for name, value in site.items()}
    read = environment.read(plain)  # what compose sets when the shell sets nothing
    assert (read.store, str(read.data), read.host) == (plain["PQADMIN_STORE"], "/var/lib/pqadmin", "0.0.0.0")


# Dockerfile


def test_the_image_has_no_special_user_and_serves() -> None:
    last = dict(instructions("last"))  # of an instruction given twice, the last counts
    assert re.fullmatch(r"[1-9][0-9]+:[1-9][0-9]+", last["USER"])
    assert (json.loads(last["ENTRYPOINT"]), json.loads(last["CMD"])) == (["pqadmin"], ["serve"])
    assert (last["STOPSIGNAL"], last["EXPOSE"]) == ("SIGTERM", "8000")
    copied = [rest for keyword, rest in instructions("last") if keyword == "COPY"]
    assert "--from=foundationdb /usr/lib/libfdb_c.so /usr/lib/libfdb_c.so" in copied


def test_the_image_installs_what_is_locked() -> None:
    installs = [rest for keyword, rest in instructions("build") if keyword == "RUN" and "-m pip " in rest]
    assert installs
    for line in " && ".join(installs).split("&&"):
        assert re.search(r"--require-hashes --requirement requirements(-build)?\.lock$", line.strip()) or (
            "--no-deps" in line
        ), line


def test_what_the_image_copies_is_there_and_not_ignored() -> None:
    allowed = [line[1:] for line in text(".dockerignore").splitlines() if line.startswith("!")]
    assert next(line for line in text(".dockerignore").splitlines() if not line.startswith("#")) == "*"
    assert not {"var", ".git", ".venv"} & set(allowed)
    sources = [
        source
        for keyword, rest in instructions()
        if keyword == "COPY" and not rest.startswith("--from")
        for source in rest.split()[:-1]
    ]
    assert sources
    for source in sources:
        assert (ROOT / source).exists(), source
        assert source.split("/")[0] in allowed, source


def test_the_health_check_is_the_same_in_both(compose: dict[str, Any]) -> None:
    check = dict(instructions("last"))["HEALTHCHECK"]
    command = json.loads(check.partition(" CMD ")[2])
    assert ["CMD", *command] == compose["services"]["site"]["healthcheck"]["test"]
    assert f"COPY deploy/ready.py {command[1]}" in text("Dockerfile")


# The workflow


def test_the_workflow_trusts_nothing_more_than_needed(workflow: dict[str, Any]) -> None:
    assert workflow["permissions"] == {"contents": "read"}
    uses = re.findall(r"uses: (.*)", WORKFLOW.read_text(encoding="utf-8"))
    assert uses
    for use in uses:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use), use
    for name, job in workflow["jobs"].items():
        assert job["timeout-minutes"], name
        checkouts = [step for step in job["steps"] if step.get("uses", "").startswith("actions/checkout@")]
        assert [step["with"]["persist-credentials"] for step in checkouts] == [False], name


# The scripts, run


def run(script: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    clean = {"PATH": os.environ["PATH"], **variables}
    return run_to_end(["bash", str(DEPLOY / script), *arguments], env=clean)


def test_preparing_keeps_a_cluster_file_that_is_there(tmp_path: Path) -> None:
    for name in ("cluster", "data", "logs"):
        (tmp_path / name).mkdir()
    file = tmp_path / "cluster" / "fdb.cluster"
    variables = {
        "FDB_CLUSTER_FILE": str(file),
        "FDB_COORDINATOR": "172.30.73.10:4500",
        "FDB_OWNER": f"{os.getuid()}:{os.getgid()}",
    }
    folders = (str(tmp_path / "data"), str(tmp_path / "logs"))
    assert run("prepare-volumes.sh", *folders, **variables).returncode == 0
    assert file.read_text() == "pqadmin:pqadmin@172.30.73.10:4500\n"
    assert file.stat().st_mode & 0o777 == 0o644
    file.write_text("pqadmin:moved@172.30.73.11:4500\n")
    assert run("prepare-volumes.sh", *folders, **variables).returncode == 0
    assert file.read_text() == "pqadmin:moved@172.30.73.11:4500\n"
    assert [path.name for path in file.parent.iterdir()] == ["fdb.cluster"]


@pytest.fixture
def fdbcli(tmp_path: Path) -> Path:
    """A folder with a fake fdbcli that says line by line what a file holds, and keeps what it was asked.

    The words are those of fdbcli 7.3.79. Only configuring a new cluster needs it: with a real one, that is done once.
    """
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "fdbcli"
    program.write_text(
        f"#!{sys.executable}\n"
        "import pathlib, sys\n"
        "here = pathlib.Path(__file__).parent\n"
        "with (here / 'asked').open('a') as asked:\n"
        "    asked.write(sys.argv[-1] + '\\n')\n"
        "said, _, rest = (here / 'says').read_text().partition('\\n')\n"
        "(here / 'says').write_text(rest)\n"
        "print(said)\n"
        "sys.exit('ERROR' in said)\n"
    )
    program.chmod(0o755)
    return folder


AVAILABLE = "The database is available."
UNAVAILABLE = "The database is unavailable; type `status' for more information."
CREATED = "Database created"
EXISTS = "ERROR: Database already exists! To change configuration, don't say `new'"


@pytest.mark.parametrize(
    ("says", "asked"),
    [
        ([AVAILABLE], ["status minimal"]),
        (["The database is available, but has issues (type 'status' for more information)."], ["status minimal"]),
        ([UNAVAILABLE, CREATED, AVAILABLE], ["status minimal", "configure new single ssd", "status minimal"]),
        ([UNAVAILABLE, EXISTS, AVAILABLE], ["status minimal", "configure new single ssd", "status minimal"]),
    ],
)
def test_configuring_ends_well_when_the_database_is_available(fdbcli: Path, says: list[str], asked: list[str]) -> None:
    (fdbcli / "says").write_text("\n".join(says) + "\n")
    done = run("configure-cluster.sh", FDB_CLUSTER_FILE="any", PATH=f"{fdbcli}:{os.environ['PATH']}")
    assert (done.returncode, done.stderr) == (0, "")
    assert (fdbcli / "asked").read_text().splitlines() == asked


def test_configuring_gives_up_and_says_what_the_cluster_said(fdbcli: Path) -> None:
    (fdbcli / "says").write_text(f"{UNAVAILABLE}\n{EXISTS}\n" * 5)
    variables = {"FDB_CLUSTER_FILE": "any", "CONFIGURE_WITHIN": "0", "PATH": f"{fdbcli}:{os.environ['PATH']}"}
    done = run("configure-cluster.sh", **variables)
    assert (done.returncode, done.stdout) == (1, "")
    assert UNAVAILABLE in done.stderr
    assert (fdbcli / "asked").read_text() == "status minimal\n"


@contextmanager
def answering(status: int) -> Iterator[int]:
    """Answer every request with a status; yields the port."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/readyz" else 404)
            self.end_headers()
            self.wfile.write(b'{"status": "so"}')

        def log_message(self, *arguments: Any) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def ready(port: int) -> subprocess.CompletedProcess[str]:
    variables = os.environ | {"PQADMIN_PORT": str(port), "http_proxy": "http://192.0.2.1:9"}
    return run_to_end([sys.executable, DEPLOY / "ready.py"], env=variables)


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1), (404, 1)])
def test_the_health_check_believes_readyz_alone(status: int, code: int) -> None:
    with answering(status) as port:
        done = ready(port)
    assert done.returncode == code
    assert done.stdout == f'{status} {{"status": "so"}}\n'
