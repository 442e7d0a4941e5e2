"""The files in docs/deploy: each parses, its command lines are Finale's, its variables are read. None was run here."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from archive.buckets import S3
from config.settings import Runner
from jobs.cli import app
from leaderboard.errors import FinaleError
from tests.support.cli import REPOSITORY
from tests.support.holds import FOLDERS

DEPLOY = REPOSITORY / "docs/deploy"
UNITS = ("finale.service", "finale-tick.service", "finale-tick.timer")
#: What an image, or PostgreSQL's or MinIO's, reads itself.
FOREIGN = {"PATH", "PYTHONDONTWRITEBYTECODE", "POSTGRES_USER", "POSTGRES_PASSWORD", "POSTGRES_DB"}
FOREIGN |= {"MINIO_ROOT_USER", "MINIO_ROOT_PASSWORD"}


class _Unit(configparser.ConfigParser):
    """A unit of systemd, whose keys may come several times: each then holds all its lines."""

    def __init__(self) -> None:
        super().__init__(strict=False, interpolation=None, dict_type=_Repeated)
        self.optionxform = str  # type: ignore[assignment,method-assign]  # how configparser is told to keep capitals


class _Repeated(dict[str, Any]):
    def __setitem__(self, key: str, value: Any) -> None:
        if isinstance(value, list) and key in self and isinstance(self[key], list):
            value = [*self[key], *value]
        super().__setitem__(key, value)


def unit(name: str) -> configparser.ConfigParser:
    parser = _Unit()
    parser.read_string((DEPLOY / name).read_text("utf-8"))
    return parser


def lines(name: str, key: str) -> list[str]:
    return re.findall(rf"^{key}=-?(.+)$", (DEPLOY / name).read_text("utf-8"), re.MULTILINE)


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / name).read_text("utf-8")))


def pods() -> Iterator[dict[str, Any]]:
    """Return the pods of the Kubernetes file: job, deployment, cron job."""
    for document in documents("kubernetes.yaml"):
        spec = document["spec"]
        spec = spec["jobTemplate"]["spec"] if document["kind"] == "CronJob" else spec
        yield spec["template"]["spec"]


def dockerfile(word: str) -> list[str]:
    text = (DEPLOY / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    return re.findall(rf"^{word} (.+)$", text, re.MULTILINE)


def command_lines() -> Iterator[list[str]]:
    """Return the arguments of every call of Finale in the files and their README."""
    for name in ("finale.service", "finale-tick.service"):
        for key in ("ExecStart", "ExecStopPost"):
            for line in lines(name, key):
                program, *arguments = shlex.split(line)
                assert program == "/opt/finale/bin/finale"
                yield arguments
    for service in documents("compose.yaml")[0]["services"].values():
        if service.get("image") == "finale":
            yield service["command"]
    for pod in pods():
        for container in pod["containers"]:
            yield container["args"]
    assert json.loads(dockerfile("ENTRYPOINT")[0]) == ["finale"]
    yield json.loads(dockerfile("CMD")[0])
    for line in re.findall(r"`finale ([^`]+)`", (DEPLOY / "README.md").read_text("utf-8")):
        yield shlex.split(line)


def check(arguments: list[str]) -> None:
    """Fail unless Finale has that command, with those options."""
    command: Any = typer.main.get_command(app)
    rest = list(arguments)
    while hasattr(command, "commands"):
        assert rest and rest[0] in command.commands, arguments
        command = command.commands[rest.pop(0)]
    assert all(isinstance(one, str) for one in rest), arguments
    command.make_context("finale", rest).close()


def test_every_command_line_is_one_of_finales() -> None:
    """Commands, options and the types of their values are as the command line has them."""
    found = list(command_lines())
    assert len(found) >= 12
    for arguments in found:
        check(arguments)
    with pytest.raises(Exception, match="No such option"):
        check(["run", "--metric-port", "1"])


def variables() -> Iterator[str]:
    for name in UNITS[:2]:
        for line in lines(name, "Environment"):
            yield line.partition("=")[0]
    for service in documents("compose.yaml")[0]["services"].values():
        yield from service.get("environment", {})
    for pod in pods():
        for container in pod["containers"]:
            yield from (one["name"] for one in container["env"])
    for line in dockerfile("ENV"):
        yield from re.findall(r"([A-Z_]+)=", line)


def test_every_variable_is_read_by_finale() -> None:
    """A variable is in the source, is one of the store's, or is named by a server of another."""
    source = "\n".join(path.read_text("utf-8") for folder in FOLDERS for path in (REPOSITORY / folder).rglob("*.py"))
    known = {*re.findall(r"\bFINALE_[A-Z]+\b", source), *S3.variables, *S3.endpoints, *FOREIGN}
    known |= {f"FINALE_{name}" for name in ("REDIS", "POSTGRES", "STORE")}
    found = set(variables())
    assert {"FINALE_CONFIG", "FINALE_POSTGRES_FILE", "AWS_ENDPOINT_URL"} <= found
    assert {name for name in found if name.removesuffix("_FILE") not in known} == set()


def test_the_units_are_whole() -> None:
    """Sections and keys that systemd needs; a stop may last as long as the runner's own."""
    daemon, tick, timer = map(unit, UNITS)
    assert {"Unit", "Service", "Install"} == set(daemon.sections())
    assert int(daemon["Service"]["TimeoutStopSec"]) > Runner().stop_within.total_seconds()
    assert daemon["Service"]["User"] == tick["Service"]["User"] == "finale"
    assert tick["Service"]["Type"] == "oneshot"
    assert timer["Timer"]["OnCalendar"] == "minutely"
    for name in UNITS[:2]:  # of any outcome, and a configuration that cannot be used ends the main process itself
        assert not lines(name, "ExecStartPre") and not lines(name, "ExecStartPost")
    assert len(lines(UNITS[1], "ExecStopPost")) == 1
    codes = {kind.exit_code for kind in _all(FinaleError)}
    for name in UNITS[:2]:
        for key in ("SuccessExitStatus", "RestartPreventExitStatus"):
            assert {int(code) for line in lines(name, key) for code in line.split()} <= codes


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd's own checker is not on this machine")
def test_systemd_finds_nothing_in_the_units(tmp_path: Path) -> None:
    """systemd-analyze verify has nothing to say of the units, with a program in place of Finale's that is there."""
    for name in UNITS:
        (tmp_path / name).write_text((DEPLOY / name).read_text("utf-8").replace("/opt/finale/bin/finale", "/bin/true"))
    asked = ["systemd-analyze", "verify", *(str(tmp_path / name) for name in UNITS)]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_image_is_built_from_what_it_needs() -> None:
    """Everything that the build copies from is in the repository, and nothing that it needs is left out of it."""
    ignored = {line for line in (DEPLOY / "Dockerfile.dockerignore").read_text("utf-8").splitlines() if line[0] != "#"}
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {*wheel["packages"], project["project"]["readme"], "requirements.lock", "pyproject.toml"}
    assert not ignored & needed and all((REPOSITORY / name).exists() for name in needed)
    locked = (REPOSITORY / "requirements.lock").read_text("utf-8")
    for name in project["build-system"]["requires"]:
        assert re.search(rf"^{name}==", locked, re.MULTILINE), "built without isolation, so it must be installed"


def _all(kind: type[FinaleError]) -> set[type[FinaleError]]:
    return {kind}.union(*map(_all, kind.__subclasses__()))


def test_containers_are_not_root_and_write_nowhere_else() -> None:
    """In the image, in compose and in Kubernetes: a user, a read-only root, a place for FINALE_HOME and the tables."""
    assert dockerfile("USER") == ["10001:10001"]
    services = documents("compose.yaml")[0]["services"]
    for service in services.values():
        if service.get("image") == "finale":
            assert service["read_only"] and "home:/var/lib/finale" in service["volumes"]
    for pod in pods():
        assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] == 10001
        for container in pod["containers"]:
            assert container["securityContext"]["readOnlyRootFilesystem"]
            mounted = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
            assert mounted.keys() == {volume["name"] for volume in pod["volumes"]}
            assert mounted["home"] == "/var/lib/finale"


def test_dependencies_of_services_exist_and_probes_ask_what_is_served() -> None:
    """compose's depends_on and volumes are defined; the probes' paths are those of the daemon's port."""
    (compose,) = documents("compose.yaml")
    for service in compose["services"].values():
        assert set(service.get("depends_on", ())) <= compose["services"].keys()
        named = {one.partition(":")[0] for one in service.get("volumes", ()) if not one.startswith(".")}
        assert named <= compose["volumes"].keys()
    deployment = next(one for one in documents("kubernetes.yaml") if one["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    served = (REPOSITORY / "jobs/scheduler/health.py").read_text("utf-8")
    for probe in ("livenessProbe", "readinessProbe"):
        assert f'"{container[probe]["httpGet"]["path"]}"' in served
    assert deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > 25
