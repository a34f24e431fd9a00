# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Hooks of root in folders of another user, who must neither get root's rights or files, nor stop a hook.

The user `nobody` is real; the programs of the workloads are small scripts.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import signal
import socketserver
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ready_hooks.core.record import Record
from support.repository import REPOSITORY
from support.wait import wait_until

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("runuser"), reason="only root can work as another user"
)

HOOKS = REPOSITORY / "roles" / "ready_hooks" / "files"
USER = "nobody"
SECRET = "the secret of root\n"
VERSION = "99"  # of PostgreSQL; none of the host, so that the scripts are found
PATIENCE = 30.0  # for a busy machine
EVENT = {"EVENT_ID": "E1", "EVENT_TYPE": "Reboot", "EVENT_RESOURCE": "web1"}

PSQL = r"""#!/bin/sh
for target do :; done
sql=$(cat)
case $sql in
    *pg_is_in_recovery*) case $target in *host=db2*) echo f ;; *) echo t ;; esac ;;
    *pg_walfile_name*) echo 0000000TIMELINE ;;
    *pg_wal/*) ;;
    *_lsn*) echo 0/3000000 ;;
    *pg_stat_wal_receiver*) echo t ;;
    *) echo 1 ;;
esac
"""
CONTROL_DATA = """#!/bin/sh
id -u >>OUTPUT/controldata
cat <<END
Database system identifier:           77
Database cluster state:               shut down
Latest checkpoint location:           0/2000000
Latest checkpoint's TimeLineID:       1
Minimum recovery ending location:     0/0
wal_log_hints setting:                on
Data page checksum version:           0
END
"""


class Host:
    """A folder with a part of root, a part of the user, and programs."""

    def __init__(self, folder: Path) -> None:
        self.root, self.home, self.programs = folder / "root", folder / "home", folder / "bin"
        self.output = folder / "output"
        for each in (folder, self.root, self.home, self.programs):
            each.mkdir(exist_ok=True)
            each.chmod(0o755)
        self.output.mkdir()
        self.output.chmod(0o777)
        self.secret = self.root / "secret"
        self.secret.write_text(SECRET, encoding="utf-8")
        self.secret.chmod(0o600)
        self.give(self.home)

    @staticmethod
    def give(*paths: Path) -> None:
        """Make the user the owner."""
        entry = pwd.getpwnam(USER)
        for path in paths:
            os.chown(path, entry.pw_uid, entry.pw_gid, follow_symlinks=False)

    def program(self, name: str, script: str = "#!/bin/sh\n") -> None:
        path = self.programs / name
        path.write_text(script.replace("OUTPUT", str(self.output)), encoding="utf-8")
        path.chmod(0o755)

    def user(self, script: str) -> None:
        """Run a script as the user."""
        subprocess.run(["runuser", "-u", USER, "--", "sh", "-ec", script], check=True, cwd="/", timeout=20)

    def hook(self, use: str, verb: str, options: dict[str, Any], seconds: float = 20.0) -> tuple[int, str]:
        """Run a hook as root; return its status, and its output. It has to end itself."""
        given = {"state_directory": str(self.root / "records"), **options}
        done = subprocess.run(
            [str(HOOKS / use), verb, "--json", json.dumps(given)],
            env={
                **EVENT,
                "PATH": f"{self.programs}:{os.environ['PATH']}",
                "READY_HOOKS_PYTHON": sys.executable,
                "HOOK_SECONDS": f"{seconds:g}",
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=min(seconds, PATIENCE) + PATIENCE,
        )
        return done.returncode, done.stdout + done.stderr

    def is_untouched(self) -> bool:
        """Return True if root's file has its content, its owner and its mode, and the user has no copy of it."""
        info = self.secret.stat()
        copies = [
            path
            for path in (*self.home.rglob("*"), *self.output.rglob("*"))
            if path.is_file()
            and not path.samefile(self.secret)
            and SECRET.strip() in path.read_text("utf-8", "replace")
        ]
        return (self.secret.read_text("utf-8"), info.st_uid, info.st_mode & 0o777, copies) == (SECRET, 0, 0o600, [])


@pytest.fixture
def host() -> Iterator[Host]:
    # the user may not enter the folders of pytest
    with tempfile.TemporaryDirectory(prefix="u", dir="/tmp") as folder:
        yield Host(Path(folder))


class Database:
    """A data directory of the user whose server has handed over to db2, and waits for recover."""

    def __init__(self, host: Host) -> None:
        self._host, self.data = host, host.home / "data"
        self.data.mkdir(mode=0o700)
        (self.data / "PG_VERSION").write_text(VERSION + "\n", encoding="utf-8")
        (self.data / "postgresql.auto.conf").write_text("own = yes\n", encoding="utf-8")
        host.give(self.data, *self.data.iterdir())
        host.program("systemctl")
        host.program("pg_controldata", CONTROL_DATA)
        self.set_timeline(1)
        self.set_rewind(0)

    def set_timeline(self, number: int) -> None:
        """Set the timeline of db2; with another one than 1, this server has diverged."""
        self._host.program("psql", PSQL.replace("TIMELINE", str(number)))

    def set_rewind(self, status: int) -> None:
        """Let pg_rewind end with this status, after it has taken the files of db2."""
        script = f"cd '{self.data}' && rm -f standby.signal && echo other >postgresql.auto.conf && exit {status}"
        self._host.program("pg_rewind", f"#!/bin/sh\nid -u >OUTPUT/rewind\n{script}\n")

    def recover(self, seconds: float = 20.0, again: bool = False) -> tuple[int, str]:
        if not again:
            record = Record(str(self._host.root / "records"), "postgresql", "postgresql")
            record.save({"phase": "promoted", "other": "host=db2"})
        options = {"user": USER, "data_directory": str(self.data), "unit": "db.service"}
        return self._host.hook("postgresql", "recover", options, seconds)


@pytest.fixture
def database(host: Host) -> Database:
    return Database(host)


@pytest.mark.parametrize("timeline", [1, 2], ids=["", "rewind"])
def test_postgresql_rejoins_and_leaves_all_files_to_their_owner(host: Host, database: Database, timeline: int) -> None:
    database.set_timeline(timeline)
    assert database.recover()[0] == 0
    assert {(path.name, path.owner()) for path in database.data.iterdir()} == {
        ("PG_VERSION", USER),
        ("postgresql.auto.conf", USER),
        ("standby.signal", USER),
    }
    assert (database.data / "postgresql.auto.conf").read_text(encoding="utf-8") == "own = yes\n"
    assert [path.name for path in host.home.iterdir()] == ["data"]
    uid = str(pwd.getpwnam(USER).pw_uid)
    assert {word for path in host.output.iterdir() for word in path.read_text(encoding="utf-8").split()} == {uid}


def test_postgresql_restores_its_settings_after_a_rewind_that_did_not_end(host: Host, database: Database) -> None:
    database.set_timeline(2)
    database.set_rewind(1)
    assert database.recover()[0] == 1
    assert not (database.data / "standby.signal").exists()
    database.set_rewind(0)
    assert database.recover(again=True)[0] == 0
    assert (database.data / "postgresql.auto.conf").read_text(encoding="utf-8") == "own = yes\n"


# pg_rewind removes the file
TIMELINES = {"standby.signal": 1}


def link(host: Host, database: Database, name: str) -> None:
    host.user(f"ln -sf '{host.secret}' '{database.data}/{name}'")


def hard_link(host: Host, database: Database, name: str) -> None:
    (database.data / name).unlink(missing_ok=True)
    os.link(host.secret, database.data / name)


@pytest.mark.parametrize("place", ["standby.signal", "postgresql.auto.conf", "postmaster.pid", "PG_VERSION"])
@pytest.mark.parametrize("make", [link, hard_link])
def test_postgresql_neither_changes_nor_copies_a_file_of_root(
    host: Host, database: Database, make: Callable[[Host, Database, str], None], place: str
) -> None:
    database.set_timeline(TIMELINES.get(place, 2))
    make(host, database, place)
    database.recover()
    assert host.is_untouched()


def test_postgresql_takes_no_file_beside_the_data_directory_for_its_own(host: Host, database: Database) -> None:
    host.user(f"ln -s '{host.secret}' '{database.data}.postgresql.auto.conf.before-rewind'")
    database.recover()
    assert host.is_untouched()


def test_postgresql_does_not_follow_the_data_directory_into_a_folder_of_root(host: Host, database: Database) -> None:
    host.user(f"mv '{database.data}' '{database.data}.moved'; ln -s '{host.root}' '{database.data}'")
    (host.root / "PG_VERSION").write_text(VERSION, encoding="utf-8")
    assert database.recover()[0] == 1
    assert not (host.root / "standby.signal").exists()


@pytest.mark.parametrize("version", ["../../x", "15/../../x", "", "99 x"])
def test_postgresql_accepts_a_version_of_digits_only(database: Database, version: str) -> None:
    (database.data / "PG_VERSION").write_text(version, encoding="utf-8")
    status, output = database.recover()
    assert (status, "PG_VERSION" in output) == (1, True), output


@pytest.mark.parametrize("place", ["standby.signal", "postgresql.auto.conf", "postmaster.pid", "PG_VERSION"])
def test_postgresql_ends_itself_where_a_file_is_a_named_pipe(host: Host, database: Database, place: str) -> None:
    database.set_timeline(TIMELINES.get(place, 2))
    host.user(f"rm -f '{database.data}/{place}'; mkfifo '{database.data}/{place}'")
    status, output = database.recover(2)
    assert (status, "unexpected" in output) in ((0, False), (1, False)), output


def test_postgresql_reads_no_more_than_a_part_of_an_endless_file(host: Host, database: Database) -> None:
    host.user(f"ln -s /dev/zero '{database.data}/postmaster.pid'")
    assert database.recover()[0] == 0


def test_postgresql_runs_programs_that_read_files_of_the_user_as_the_user(host: Host) -> None:
    """The configuration of Patroni, and those of Debian's clusters, belong to the owner of the server."""
    configuration = host.home / "patroni.yml"
    configuration.write_text("name: db1\n", encoding="utf-8")
    host.give(configuration)
    host.program("patronictl", "#!/bin/sh\nid -u >OUTPUT/patronictl\necho '[]'\n")
    assert "db1" in host.hook("postgresql", "check", {"user": USER, "patroni": str(configuration)})[1]
    host.program("pg_lsclusters", "#!/bin/sh\nid -u >OUTPUT/lsclusters\n")
    host.hook("postgresql", "check", {"user": USER})
    uid = str(pwd.getpwnam(USER).pw_uid)
    found = {path.name: path.read_text(encoding="utf-8").strip() for path in host.output.iterdir()}
    assert found == {"patronictl": uid, "lsclusters": uid}


def test_postgresql_ends_itself_where_the_configuration_of_patroni_is_a_named_pipe(host: Host) -> None:
    host.user(f"mkfifo '{host.home}/patroni.yml'")
    host.program("patronictl", "#!/bin/sh\necho '[]'\n")
    options = {"user": USER, "patroni": f"{host.home}/patroni.yml"}
    assert host.hook("postgresql", "check", options, 2)[0] == 1


class Probe:
    """The file of a health probe in a folder of the user."""

    def __init__(self, host: Host) -> None:
        self._host, self.folder = host, host.home / "public"
        self.path = self.folder / "ready"
        host.user(f"mkdir '{self.folder}'; echo up >'{self.path}'; chmod 640 '{self.path}'")

    def hook(self, verb: str, **more: Any) -> tuple[int, str]:
        return self._host.hook("health-file", verb, {"path": str(self.path), "wait": 0, **more})

    def lead_to(self, folder: Path) -> None:
        """Let the user put a link in the place of the folder."""
        self._host.user(f"mv '{self.folder}' '{self.folder}.moved'; ln -s '{folder}' '{self.folder}'")


@pytest.fixture
def probe(host: Host) -> Probe:
    return Probe(host)


def test_health_file_in_a_folder_of_the_user_comes_back_as_it_was(host: Host, probe: Probe) -> None:
    assert probe.hook("prepare")[0] == 0
    assert not probe.path.exists()
    assert probe.hook("recover")[0] == 0
    info = probe.path.stat()
    assert (probe.path.read_text(encoding="utf-8"), probe.path.owner(), info.st_mode & 0o7777) == ("up\n", USER, 0o640)


def test_health_file_is_reached_by_a_link_of_the_user_to_a_folder_of_the_user(host: Host, probe: Probe) -> None:
    """As the link `current` to the latest release."""
    host.user(f"mkdir '{host.home}/release'; cp '{probe.path}' '{host.home}/release/ready'")
    probe.lead_to(host.home / "release")
    assert probe.hook("prepare")[0] == 0
    assert not (host.home / "release" / "ready").exists()
    assert probe.hook("recover")[0] == 0
    assert (host.home / "release" / "ready").read_text(encoding="utf-8") == "up\n"


@pytest.mark.parametrize("verb", ["prepare", "check"])
def test_health_file_is_not_taken_from_a_folder_of_root(host: Host, probe: Probe, verb: str) -> None:
    (host.root / "ready").write_text("of root", encoding="utf-8")
    probe.lead_to(host.root)
    assert probe.hook(verb)[0] == 1
    assert (host.root / "ready").read_text(encoding="utf-8") == "of root"


def test_health_file_is_not_restored_to_a_folder_of_root(host: Host, probe: Probe) -> None:
    assert probe.hook("prepare")[0] == 0
    probe.lead_to(host.root)
    assert probe.hook("recover")[0] == 1
    assert not (host.root / "ready").exists()


def test_health_file_that_is_restored_changes_no_user(host: Host, probe: Probe) -> None:
    os.chown(probe.path, 0, 0)
    probe.path.chmod(0o6755)
    assert probe.hook("prepare")[0] == 0
    assert probe.hook("recover")[0] == 0
    assert probe.path.stat().st_mode & 0o7777 == 0o755


def log_to(host: Host, path: Path, verb: str = "prepare", seconds: float = 20.0) -> tuple[int, str]:
    return host.hook("log", verb, {"journal": False, "file": str(path)}, seconds)


def test_log_is_written_to_a_file_in_a_folder_of_the_user(host: Host) -> None:
    path = host.home / "events.jsonl"
    host.user(f"touch '{path}'")
    log_to(host, path)
    assert [json.loads(line)["event_id"] for line in path.read_text(encoding="utf-8").splitlines()] == ["E1"]


@pytest.mark.parametrize("verb", ["prepare", "check"])
@pytest.mark.parametrize("make", ["ln -s SECRET PATH", "ln SECRET PATH", "mkfifo PATH"])
def test_log_writes_neither_to_a_link_nor_to_a_named_pipe(host: Host, make: str, verb: str) -> None:
    path = host.home / "events.jsonl"
    script = make.replace("SECRET", str(host.secret)).replace("PATH", str(path))
    subprocess.run(["sh", "-ec", script], check=True)
    status, output = log_to(host, path, verb)
    assert (status, str(path) in output) == (1 if verb == "check" else 0, True)
    assert host.is_untouched()


@pytest.mark.parametrize("verb", ["prepare", "check"])
def test_log_creates_no_file_in_a_folder_of_root_that_the_user_has_chosen(host: Host, verb: str) -> None:
    host.user(f"ln -s '{host.root}' '{host.home}/log'")
    _status, output = log_to(host, host.home / "log" / "events.jsonl", verb)
    assert f"{host.home}/log" in output
    assert not (host.root / "events.jsonl").exists()


def test_log_in_a_folder_that_others_can_move_is_not_led_away(host: Host) -> None:
    """As below the /var/log of Ubuntu, which the group syslog can write."""
    folder = host.root / "shared" / "app"
    folder.mkdir(parents=True)
    folder.parent.chmod(0o777)
    log_to(host, folder / "events.jsonl")
    assert (folder / "events.jsonl").exists()
    host.user(f"mv '{folder}' '{folder}.moved'; ln -s '{host.root}' '{folder}'")
    _status, output = log_to(host, folder / "events.jsonl")
    assert (str(folder) in output, (host.root / "events.jsonl").exists()) == (True, False)


def test_log_waits_a_few_seconds_for_a_file_that_a_user_has_locked(host: Host) -> None:
    """A reader of the file can lock it, and must not delay the preparation of the other hooks."""
    path = host.root / "events.jsonl"
    path.write_text("", encoding="utf-8")
    holder = subprocess.Popen(["runuser", "-u", USER, "--", "flock", str(path), "sleep", "300"], start_new_session=True)
    try:
        wait_until(lambda: subprocess.run(["flock", "-n", str(path), "true"], check=False).returncode == 1, "the lock")
        status, output = log_to(host, path, seconds=3600)
        assert (status, "locked" in output) == (0, True)
    finally:
        os.killpg(holder.pid, signal.SIGTERM)
        holder.wait(10)


def test_postgresql_sends_the_name_of_a_database_as_a_name(host: Host, database: Database) -> None:
    """A PgBouncer, perhaps of another host, must not have psql run a program."""
    script = PSQL.replace("case $sql in", 'printf "%s\\n" "$sql" >>OUTPUT/sql\ncase $sql in\n*DATABASES*) echo ROW ;;')
    host.program("psql", script.replace("ROW", r"""'a"; \\! id|0|0'"""))
    (database.data / "postmaster.pid").unlink(missing_ok=True)
    with subprocess.Popen(["sleep", "60"], cwd=database.data) as server_process:
        (database.data / "postmaster.pid").write_text(f"{server_process.pid}\n", encoding="utf-8")
        host.give(database.data / "postmaster.pid")
        options = {"user": USER, "data_directory": str(database.data), "unit": "db.service", "pgbouncer": "host=pool"}
        status, output = host.hook("postgresql", "prepare", options)
        server_process.kill()
    assert (status, 'PAUSE "a""; \\! id";' in (host.output / "sql").read_text(encoding="utf-8")) == (0, True), output


@pytest.fixture(params=["own", "writable", "below a writable folder"])
def own_file(host: Host, request: pytest.FixtureRequest) -> Path:
    """A file that the user can change or replace: its own one, or one of root."""
    if request.param == "own":
        path = host.home / "config"
        host.user(f"umask 077; echo own >'{path}'")
        return path
    path = host.root / "above" / "folder" / "config"
    path.parent.mkdir(parents=True)
    path.write_text("own", encoding="utf-8")
    path.chmod(0o666 if request.param == "writable" else 0o600)
    if request.param != "writable":
        (host.root / "above").chmod(0o777)
    return path


@pytest.mark.parametrize("verb", ["check", "prepare"])
def test_kubectl_does_not_run_with_a_kubeconfig_that_others_can_change(host: Host, own_file: Path, verb: str) -> None:
    host.program("kubectl", "#!/bin/sh\nid -u >>OUTPUT/kubectl\n")
    status, output = host.hook("kubernetes", verb, {"kubeconfig": str(own_file), "node": "node1"})
    assert (status, str(own_file) in output, list(host.output.iterdir())) == (1, True, []), output


def test_check_warns_of_a_program_of_root_that_others_can_change(host: Host, own_file: Path) -> None:
    own_file.chmod(own_file.stat().st_mode | 0o755)
    options = {"prepare": [str(own_file)], "recover": ["true"]}
    assert str(own_file) in host.hook("command", "check", options)[1]
    assert host.hook("command", "check", {**options, "user": USER}) == (0, "")


@contextlib.contextmanager
def endless_server(path: Path, answer: bytes) -> Iterator[None]:
    """A server at a socket, which sends this answer again and again."""
    ended = threading.Event()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError):
                while not ended.wait(0.05):
                    self.request.send(answer)

    with socketserver.ThreadingUnixStreamServer(str(path), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield
        ended.set()
        server.shutdown()


@pytest.mark.parametrize("answer", [b"x", b"\n"])
@pytest.mark.parametrize(
    ("use", "option", "more"), [("haproxy", "socket", {"server": "web/web1"}), ("redis", "address", {"save": True})]
)
def test_answer_that_never_ends_does_not_stop_a_hook(
    host: Host, use: str, option: str, more: dict[str, Any], answer: bytes
) -> None:
    path = host.home / "server.sock"
    with endless_server(path, answer):
        assert host.hook(use, "check", {option: str(path), **more}, 2)[0] == 1
