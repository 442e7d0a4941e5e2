"""Metrics, health, notifications, and the rules and the dashboard that are shipped: each tells the truth, and loads."""

from __future__ import annotations

import json
import os
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from jobs.scheduler.health import Health, served
from jobs.scheduler.metrics import METRICS
from jobs.scheduler.notify import Kind, Note, Notifier, notifier
from jobs.scheduler.telling import Telling
from jobs.scheduler.tick import tick
from leaderboard.errors import ConfigError, InputError, UnavailableError
from tests.ledger.support import await_that
from tests.support import watching
from tests.support.cli import World, finale, started
from tests.support.watching import get, metrics, told

MONITORING = Path(__file__).parents[2] / "docs" / "monitoring"
#: What a daemon tells of itself, beside what the ledger tells.
OWN = {"finale_rounds_total", "finale_boards_in_flight", "finale_server_up"}


@pytest.fixture
def ended(world: World) -> World:
    """A season that has ended an hour ago and is due."""
    return watching.ended_season(world)


def test_the_metrics_follow_the_season(ended: World) -> None:
    """Overdue, then done: state, boundary, rows, grants and the last success are what the ledger has."""
    seen = told(finale("metrics").ok().out)
    assert seen["finale_up",] == 1 and seen["finale_paused",] == 0
    assert 3_590 < seen["finale_season_overdue_seconds", "cup", "one", "open"] - 7_200 < 4_200
    finale("tick").ok()
    seen = told(finale("metrics").ok().out)
    assert seen["finale_season_state", "cup", "one", "delivered"] == 1
    assert 6 * 86_400 < seen["finale_season_boundary_seconds", "cup", "one", "clean"] < 7 * 86_400
    assert seen["finale_season_overdue_seconds", "cup", "one", "clean"] == 0
    assert seen["finale_season_rows", "cup", "one"] == 1
    assert seen["finale_season_drift_players", "cup", "one"] == 0
    assert seen["finale_grants", "cup", "delivered"] == 1
    assert abs(seen["finale_last_success_timestamp_seconds", "cup", "deliver"] - datetime.now(UTC).timestamp()) < 60
    assert ("finale_step_seconds", "cup", "snapshot") in seen
    finale("season", "hold", "cup", "one", "--because", "x", "--as", "ana").ok()
    finale("pause", "--because", "x", "--as", "ana").ok()
    seen = told(finale("metrics").ok().out)
    assert (seen["finale_season_held", "cup", "one"], seen["finale_paused",]) == (1, 1)


def test_the_textfile_is_written_whole(ended: World, tmp_path: Path) -> None:
    """cron's mode gives the same samples in a file, and says where it cannot write."""
    file = tmp_path / "finale.prom"
    finale("metrics", "--textfile", str(file)).ok()
    assert told(file.read_text()).keys() == told(finale("metrics").ok().out).keys()
    assert list(tmp_path.iterdir()) == [file]
    finale("metrics", "--textfile", str(tmp_path / "no" / "finale.prom")).refused(4, "there is no folder", "hint:")


def test_the_textfile_says_that_the_ledger_is_away(
    ended: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file of before is replaced by ``finale_up 0`` alone, on stdout too; the exit code is the ledger's."""
    file = tmp_path / "finale.prom"
    finale("metrics", "--textfile", str(file)).ok()
    monkeypatch.setenv("FINALE_POSTGRES", f"postgresql:///finale?host={tmp_path}")
    finale("metrics", "--textfile", str(file)).refused(10, "PostgreSQL")
    assert told(file.read_text()) == {("finale_up",): 0}
    answer = finale("metrics")
    assert (answer.code, told(answer.out)) == (10, {("finale_up",): 0})


def test_the_textfile_replaces_a_file_and_nothing_else(ended: World, tmp_path: Path) -> None:
    """A symbolic link is followed and stays one; a pipe, a device, a folder is refused and stays what it is."""
    file, link, pipe = tmp_path / "real" / "finale.prom", tmp_path / "finale.prom", tmp_path / "pipe"
    file.parent.mkdir()
    link.symlink_to(file)
    os.mkfifo(pipe)
    for _ in range(2):  # to where nothing is yet, and over what is there
        finale("metrics", "--textfile", str(link)).ok()
        assert link.readlink() == file and "finale_up 1" in file.read_text()
    assert list(file.parent.iterdir()) == [file]
    for other in (pipe, tmp_path, Path("/dev/null")):
        finale("metrics", "--textfile", str(other)).refused(4, "is no regular file", "left as it is", "hint:")
    assert pipe.is_fifo() and Path("/dev/null").is_char_device()


def test_health_and_readiness_tell_them_apart() -> None:
    """Alive but not ready while the ledger does not answer; not alive once rounds have stopped coming."""

    def look() -> Any:
        raise UnavailableError("no ledger")

    health = Health(patience=60)
    with served(health, look, "127.0.0.1", 0) as port:
        assert get(port, "/healthz")[0] == 200
        assert get(port, "/readyz")[0] == 503
        health.round(ready=True, in_flight=2)
        assert get(port, "/readyz")[0] == 200
        seen = told(get(port, "/metrics")[1])
        assert (seen["finale_up",], seen["finale_boards_in_flight",]) == (0, 2)
        assert seen["finale_rounds_total", "done"] == 1
        health.patience = 0
        assert [get(port, path)[0] for path in ("/healthz", "/readyz", "/other")] == [503, 503, 404]


@pytest.mark.parametrize("host", ["203.0.113.7", "::1", "300.1.1.1", "a..b", "b" * 70])
def test_an_address_that_is_not_this_machines_is_named_and_not_the_port(host: str) -> None:
    """What cannot be listened on for its host says which option is wrong, and what may be given."""
    refusal = pytest.raises(InputError, match=re.escape(f"--metrics-host {host!r} cannot be listened on: "))
    with refusal as told_of, served(Health(patience=60), pytest.fail, host, 0):
        pass
    assert "0.0.0.0" in told_of.value.hint


def test_a_port_that_is_taken_is_named() -> None:
    """The remedy is another port only where the port is at fault."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refusal = pytest.raises(InputError, match=re.escape(f"--metrics 127.0.0.1:{port} cannot be listened on: "))
        with refusal as told_of, served(Health(patience=60), pytest.fail, "127.0.0.1", port):
            pass
    assert told_of.value.hint == "choose another port"


@pytest.fixture
def webhook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The URL of a webhook, and what it has been sent."""
    with watching.webhook() as found:
        yield found


def test_a_daemon_serves_metrics_and_tells_the_webhook(
    ended: World, webhook: tuple[str, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """finale run as a process: ready, its metrics read, seal and delivery told once, the URL in no log."""
    url, bodies = webhook
    monkeypatch.setenv("FINALE_NOTIFY_URL", f"{url}/secret-path")
    with started("run", "--metrics", "0") as daemon, ExitStack() as stack:
        stack.callback(daemon.kill)
        assert daemon.stderr is not None
        port, lines = 0, []
        for line in daemon.stderr:
            lines.append(line.decode())
            event = json.loads(line)
            port = event.get("port", port)
            if event["event"] == "step.done" and event["step"] == "deliver":
                break
        assert get(port, "/healthz")[0] == 200
        await_that(lambda: get(port, "/readyz")[0] == 200)
        assert told(get(port, "/metrics")[1])["finale_season_state", "cup", "one", "delivered"] == 1
        await_that(lambda: len(bodies) == 2)
        daemon.terminate()
        rest = daemon.communicate(timeout=60)[1].decode()
    assert daemon.returncode == 0
    assert [(body["event"], body["season"], body["step"]) for body in bodies] == [
        ("season.done", "cup/one", "seal"),
        ("season.done", "cup/one", "deliver"),
    ]
    assert "secret-path" not in "".join(lines) + rest


def test_i4_drift_beyond_the_bound_holds_and_is_seen(
    ended: World, webhook: tuple[str, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """I4: a real daemon, players in Redis that the ledger never had: held, counted in the metrics, told once."""
    url, bodies = webhook
    monkeypatch.setenv("FINALE_NOTIFY_URL", url)
    ended.config.write_text('[runner]\ninterval = "1s"\n' + ended.config.read_text())
    ended.redis.zadd("leaderboard:cup:one", {f"nobody {number}": number for number in range(1, 4)})
    with started("run", "--metrics", "0") as daemon, ExitStack() as stack:
        stack.callback(daemon.kill)
        assert daemon.stderr is not None
        log = ""
        while "step.failed" not in log:
            log += daemon.stderr.readline().decode()
        port = watching.port_of(log)
        await_that(lambda: metrics(port).get(("finale_season_held", "cup", "one")) == 1)
        seen = metrics(port)
        assert seen["finale_season_drift_players", "cup", "one"] == 3
        assert seen["finale_season_state", "cup", "one", "snapshotted"] == 1
        assert seen["finale_season_overdue_seconds", "cup", "one", "reconcile"] == 0  # a person is waited for
        rounds = seen["finale_rounds_total", "done"]
        await_that(lambda: metrics(port)["finale_rounds_total", "done"] >= rounds + 2)
        daemon.terminate()
        daemon.communicate(timeout=60)
    (told_of,) = bodies
    assert (told_of["event"], told_of["season"], told_of["step"]) == ("season.hold", "cup/one", "reconcile")
    assert "differ in 3 players" in told_of["message"] and "finale season release cup one" in told_of["hint"]
    assert ended.sql("select count(*) from finale.grants") == [(0,)]


def test_the_same_trouble_is_told_once(webhook: tuple[str, list[dict[str, Any]]]) -> None:
    """A step that fails again with the same words is not told again; once something is done, trouble is news again."""
    url, bodies = webhook
    failure, done = Note("failure", "cup/one", "seal", "no <store>", "start it"), Note("done", "cup/one", "seal", "")
    with Notifier(url, "slack") as told_by:
        for note in (failure, failure, done, failure):
            told_by.tell(note)
    assert [body["text"].split()[0] for body in bodies] == ["*cup/one*"] * 3
    assert bodies[0]["text"] == "*cup/one* failed (seal): no &lt;store&gt;\n_start it_"


def test_a_hold_is_told_once_by_all_daemons(ended: World, webhook: tuple[str, list[dict[str, Any]]]) -> None:
    """Two daemons, one of them twice: a hold by hand comes once, with step and hint; held anew, it is news again."""
    url, bodies = webhook
    for because in ("cheaters?", "again"):
        finale("season", "hold", "cup", "one", "--because", because, "--as", "ana").ok()
        for _ in range(3):  # each a daemon that has just been started
            with Notifier(url, "generic") as told_by, ended.outside() as wired:
                observer = Telling(notifier=told_by)
                for _ in range(2):
                    observer.ticked(tick(wired, who="daemon", observer=observer))
                    observer.round_done(wired, 0)
        finale("season", "release", "cup", "one", "--as", "ana").ok()
    assert [(body["event"], body["season"], body["step"], body["message"]) for body in bodies] == [
        ("season.hold", "cup/one", "open", "cheaters?"),
        ("season.hold", "cup/one", "open", "again"),
    ]
    assert all("finale season release cup one" in body["hint"] for body in bodies)


def test_the_journal_tells_which_process_acted(ended: World) -> None:
    """Each step's entry has the process and the machine, so that two daemons of one name can be told apart."""
    finale("close", "cup", "one", "--until", "close", "--as", "root").ok()
    done = [detail for event, _, detail in ended.journal("cup", "one") if event == "done"]
    assert done and all(re.fullmatch(rf"root, process {os.getpid()} on \S+", detail["by"]) for detail in done)
    assert f"process {os.getpid()} on" in finale("journal", "cup", "one").ok().out


def test_a_webhook_that_is_broken_stops_nothing(webhook: tuple[str, list[dict[str, Any]]]) -> None:
    """Refused, or not there at all: it is told without the URL, and what comes after is sent."""
    url, _ = webhook
    for place, words in ((f"{url}/broken", "answered 500"), ("http://127.0.0.1:1/", "did not answer")):
        said: list[str] = []
        with Notifier(place, "generic", said.append) as told_by:
            told_by.tell(Note("hold", "cup/one", "clean", "why"))
        assert len(said) == 1 and words in said[0] and "127.0.0.1" not in said[0]


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"FINALE_NOTIFY_URL": "hooks.example/secret"}, "no http or https URL"),
        ({"FINALE_NOTIFY_URL": "https://hooks.example/secret", "FINALE_NOTIFY_FORMAT": "teams"}, "neither slack nor"),
        ({"FINALE_NOTIFY_URL_FILE": "/nowhere"}, "cannot be read"),
    ],
)
def test_a_webhook_that_cannot_be_is_refused_without_its_url(environ: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        notifier(environ, print)
    assert "secret" not in caught.value.message


def test_every_metric_and_event_is_in_the_docs() -> None:
    """docs/monitoring.md names each metric and notification, docs/operations.md each event that any code logs."""
    text = (MONITORING.parent / "monitoring.md").read_text()
    assert not [name for name in {*METRICS, *OWN} if name.removesuffix("_total") not in text]
    notes = {f"{'ledger' if kind in ('away', 'back') else 'season'}.{kind}" for kind in get_args(Kind)}
    assert not [event for event in notes if f"`{event}`" not in text]
    text = (MONITORING.parent / "operations.md").read_text()
    code = "".join(path.read_text() for path in (MONITORING.parents[1] / "jobs").rglob("*.py"))
    events = set(re.findall(r'\b(?:info|warning|error|heard)\(\s*"([a-z_]+\.[a-z_]+)"', code))
    assert {"delivery.dead", "step.failed", "tick.unforeseen", "results.read"} <= events
    assert not [event for event in events if f"`{event}`" not in text]


def spans_of(ended: World, monkeypatch: pytest.MonkeyPatch) -> list[ReadableSpan]:
    """Tick with OpenTelemetry's SDK configured, and return the spans that it was given."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    with ended.outside() as outside:
        tick(outside, who="test", observer=Telling())
    provider.shutdown()
    return list(exporter.get_finished_spans())


def test_each_step_is_a_span(ended: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step that was taken is one span, in order, with its season; none is left open, and none is an error."""
    spans = spans_of(ended, monkeypatch)
    taken = ["open", "close", "freeze", "snapshot", "reconcile", "seal", "reward", "deliver"]
    assert [span.name for span in spans] == [f"finale.{step}" for step in taken]
    assert {span.attributes["finale.season"] for span in spans if span.attributes} == {"cup/one"}
    assert not [span for span in spans if span.status.status_code is StatusCode.ERROR]
    assert all(one.end_time <= two.start_time for one, two in pairwise(spans) if one.end_time and two.start_time)


def test_a_step_that_fails_is_a_span_with_its_error(ended: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last span is an error in the words that an operator reads, with the exception in it."""
    ended.redis.delete("leaderboard:cup:one")
    ended.redis.hset("leaderboard:cup:one", "not", "a board")
    *_, last = spans_of(ended, monkeypatch)
    assert last.status.status_code is StatusCode.ERROR and last.status.description
    assert [event.name for event in last.events] == ["exception"]


def test_without_opentelemetry_nothing_is_missing(ended: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is an extra: where it cannot be imported, a tick does all the same."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "opentelemetry"]:
        monkeypatch.setitem(sys.modules, name, None)
    with ended.outside() as outside:
        tick(outside, who="test", observer=Telling())
    assert ended.state("cup", "one") == "delivered"
