# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Hooks run in processes of their own: whatever a hook does, it ends in time, leaves nothing behind, and its result is known."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable, Optional, TypeVar

import pytest
from hook_runner.runs import KEEPER, KEEPER_GONE, Result, Runs
from hook_runner.sessions import is_locked, keeper_of

T = TypeVar("T")
Earlier = Callable[..., None]

LONG = 30.0
SOURCES = [str(Path(KEEPER).parents[1]), *filter(None, os.environ.get("PYTHONPATH", "").split(":"))]


def until(condition: Callable[[], T], what: str = "it", seconds: float = 20.0) -> T:
    """Wait until a condition holds, and return what it says."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.005)
    raise AssertionError("waited in vain for %s" % what)


def marked(mark: str) -> list[int]:
    """The living processes with this text in their environment or command line."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            texts = [Path("/proc", name, part).read_bytes() for part in ("environ", "cmdline")]
        except OSError:
            continue
        if any(mark.encode() in text for text in texts) and int(name) != os.getpid():
            found.append(int(name))
    return found


def zombies() -> list[int]:
    """Dead children of this process that nobody has waited for."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            state, parent = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state == "Z" and int(parent) == os.getpid():
            found.append(int(name))
    return found


class Daemon(Runs):
    def is_idle(self) -> bool:
        """Whether nothing runs, after collecting what has ended, and all keepers have been waited for."""
        return self.poll() == [] and not self.active() and not self._children


class Bench:
    """A run directory, hooks of a line or two, and a mark by which all their processes are found again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = "mark-%d-%s" % (os.getpid(), folder.name)
        self.daemons: list[Daemon] = []
        self.may_leave = False
        self.runs = self.restarted()

    def restarted(self, **changed: Any) -> Runs:
        """What a daemon has that is started anew."""
        given: dict[str, Any] = {"environment": {"MARK": self.mark}, "tail": 4096, "kill_after": 5.0, **changed}
        self.daemons.append(Daemon(str(self.folder / "run"), **given))
        return self.daemons[-1]

    def hook(self, script: str, name: str = "10-hook") -> str:
        path = self.folder / "hooks.d" / "prepare" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(script if script.startswith("#!") else "#!/bin/sh\n" + script)
        path.chmod(0o755)
        return str(path)

    def python(self, script: str) -> str:
        return self.hook("#!%s -IS\nimport os, sys, time, signal\n%s" % (os.path.realpath(sys.executable), script))

    def start(
        self, path: str, step: int = 1, input: bytes = b"{}", variables: Optional[dict[str, str]] = None, limit: float = LONG, runs: Optional[Runs] = None
    ) -> None:
        (runs or self.runs).start(step, path, input, variables or {}, limit)

    def result(self, step: int = 1, runs: Optional[Runs] = None) -> Result:
        ended = until(lambda: (runs or self.runs).poll(), "the result of %d" % step)
        assert [number for number, _result in ended] == [step]
        return ended[0][1]

    def run(self, path: str, **kwargs: Any) -> Result:
        self.start(path, **kwargs)
        return self.result()

    def wait_for(self, name: str) -> str:
        return until(lambda: (self.folder / name).read_text() if (self.folder / name).exists() else "", name)

    def keeper(self, step: int = 1) -> int:
        return until(lambda: keeper_of(str(self.folder / "run/runs" / str(step))) or 0, "the keeper")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    others = set(zombies())
    yield bench
    until(lambda: not [pid for pid in marked(bench.mark) if not bench.may_leave or pid in marked("keeper.py")], "the end of all processes", 3)
    for pid in marked(bench.mark):
        os.kill(pid, signal.SIGKILL)
    for daemon in bench.daemons:
        until(daemon.is_idle, "the end of all runs", 3)
    assert set(zombies()) <= others


def test_a_hook_gets_the_event_and_variables_and_its_output_and_status_are_kept(bench: Bench) -> None:
    path = bench.hook('cat; echo " $EVENT_ID"; echo err >&2; exit 3\n')
    result = bench.run(path, input=b'{"a": 1}', variables={"EVENT_ID": "ä b"})
    assert (result.exit_status, result.output, result.error) == (3, '{"a": 1} ä b\nerr\n', "")
    assert 0 <= result.seconds < 10
    assert bench.runs.active() == set()
    bench.runs.forget(1)
    assert os.listdir(bench.folder / "run/runs") == []


def test_a_hooks_environment_is_clean(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/x")
    monkeypatch.setenv("LC_ALL", "C")
    # cat shows what the kernel gave it, and then the hook itself; a shell would add variables of its own
    result = bench.run(bench.hook("#!/bin/cat /proc/self/environ\n"), variables={"EVENT_ID": "7"})
    found = dict(item.split("=", 1) for item in result.output.partition("?#!")[0].split("?"))
    assert set(found) == {"PATH", "LANG", "HOME", "MARK", "EVENT_ID"}
    assert found["PATH"].startswith("/usr/local/sbin:")
    assert found["LANG"] == "C.UTF-8"


def test_the_configured_environment_may_change_the_usual_variables_but_not_the_events(bench: Bench) -> None:
    runs = bench.restarted(environment={"MARK": bench.mark, "PATH": "/bin:/usr/bin", "EVENT_ID": "no"})
    bench.start(bench.hook('echo "$PATH $EVENT_ID"\n'), variables={"EVENT_ID": "yes"}, runs=runs)
    assert bench.result(runs=runs).output == "/bin:/usr/bin yes\n"


def test_a_hook_inherits_nothing_but_its_three_descriptors(bench: Bench) -> None:
    read, write = os.pipe()
    os.set_inheritable(write, True)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM})
    old_handler = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        result = bench.run(
            bench.python(
                "mask = os.umask(0)\n"
                "status = dict(line.split(':\\t', 1) for line in open('/proc/self/status').read().splitlines() if ':\\t' in line)\n"
                "fds = sorted(int(fd) for fd in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + fd))\n"
                "print(fds, os.getcwd(), oct(mask), status['SigBlk'], os.getpgrp() == os.getpid(), os.getsid(0) == os.getppid())\n"
            )
        )
    finally:
        signal.signal(signal.SIGHUP, old_handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, old)
        os.close(read)
        os.close(write)
    assert result.output == "[0, 1, 2] / 0o22 0000000000000000 True True\n"


def test_signals_have_their_ordinary_effect_in_a_hook(bench: Bench) -> None:
    old = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGHUP, signal.SIGUSR2, signal.SIGQUIT)}
    try:
        result = bench.run(bench.hook("exec grep -E '^Sig(Ign|Blk):' /proc/self/status\n"))
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
    assert {int(line.split()[1], 16) & 0x7FFFFFFF for line in result.output.splitlines()} == {0}


def test_a_hook_with_a_megabyte_on_stdin_need_not_read_it(bench: Bench) -> None:
    assert bench.run(bench.hook("exit 0\n"), input=b"x" * (1 << 20)).exit_status == 0
    assert bench.run(bench.hook("wc -c\n"), input=b"x" * (1 << 20)).output.strip() == "1048576"


def test_a_shell_sees_nothing_of_values(bench: Bench) -> None:
    nasty = "$(touch %s/pwned) `id`; exit 5 \"'" % bench.folder
    result = bench.run(bench.hook('printf "%s" "$EVENT_DESCRIPTION"\n'), variables={"EVENT_DESCRIPTION": nasty})
    assert (result.exit_status, result.output) == (0, nasty)
    assert not (bench.folder / "pwned").exists()


@pytest.mark.parametrize(
    "script, says",
    [
        ("#!/no/such/interpreter\n", "the interpreter that its first line names is missing"),
        ("#!\n", "does not begin with #!"),
        ("#!/\n", "may not be executed"),
    ],
)
def test_a_hook_that_cannot_be_started_has_a_result_that_says_why(bench: Bench, script: str, says: str) -> None:
    result = bench.run(bench.hook(script))
    assert result.exit_status is None
    assert result.error.startswith("it could not be started: ")
    assert says in result.error
    assert "keeper" not in result.error


def test_no_shell_guesses_what_a_file_without_interpreter_might_be(bench: Bench) -> None:
    path = bench.hook("#!/bin/sh\n")
    Path(path).write_text("touch %s/guessed\n" % bench.folder)
    assert "does not begin with #!" in bench.run(path).error
    assert not (bench.folder / "guessed").exists()
    Path(path).write_bytes(b"")
    assert bench.run(path).error
    Path(path).unlink()
    assert "No such file" in bench.run(path).error


def test_a_signal_of_its_own_is_told_as_such(bench: Bench) -> None:
    result = bench.run(bench.hook("kill -SEGV $$\n"))
    assert (result.exit_status, result.error) == (-signal.SIGSEGV, "")


def test_a_flood_of_output_is_bounded_and_its_end_is_kept(bench: Bench, capfd: pytest.CaptureFixture[str]) -> None:
    result = bench.run(bench.python("for _ in range(400): os.write(1, b'y\\n' * 65536)\nprint('last', flush=True)\n"))
    assert result.exit_status == 0
    assert len(result.output) <= 4096
    assert result.output.endswith("y\ny\nlast\n")
    log = capfd.readouterr().err
    assert log.startswith("prepare/10-hook: y\n")
    assert "more lines" in log
    assert log.count("\n") < 5000


def test_the_keepers_memory_stays_small_under_an_endless_line(bench: Bench) -> None:
    bench.start(bench.python("open('%s/up', 'w').write('1')\nwhile True: os.write(1, b'x' * 65536)\n" % bench.folder))
    bench.wait_for("up")
    keeper = bench.keeper()
    end = time.monotonic() + 1
    while time.monotonic() < end:
        status = Path("/proc/%d/status" % keeper).read_text()
        assert int(status.split("VmRSS:")[1].split()[0]) < 40000
        time.sleep(0.05)
    bench.runs.stop(1)
    assert bench.result().output.endswith("xxx")


def test_output_cannot_steer_a_terminal_or_fake_lines_of_the_log(bench: Bench, capfd: pytest.CaptureFixture[str]) -> None:
    result = bench.run(bench.python("os.write(1, b'a\\x1b[31mb\\rc\\x00\\xff\\xc2\\x9b\\td\\n\\xe2\\x80\\xae')\n"))
    assert result.output == "a?[31mb?c?\ufffd?\td\n?"
    assert capfd.readouterr().err == "prepare/10-hook: a?[31mb?c?\ufffd?\td\nprepare/10-hook: ?\n"


def test_no_output_is_kept_where_none_is_wanted(bench: Bench, capfd: pytest.CaptureFixture[str]) -> None:
    runs = bench.restarted(tail=0)
    bench.start(bench.hook("echo hello\n"), runs=runs)
    assert bench.result(runs=runs).output == ""
    assert "hello" in capfd.readouterr().err


def test_a_log_that_nobody_reads_holds_no_hook_up(bench: Bench) -> None:
    read, write = os.pipe()
    saved = os.dup(2)
    os.dup2(write, 2)
    try:
        bench.start(bench.hook("head -c 3000000 /dev/zero | tr '\\0' '\\n'; sleep 0.3; i=0; while [ $i -lt 3000 ]; do echo $i; i=$((i+1)); done\n"))
    finally:
        os.dup2(saved, 2)
        os.close(saved)
    result = bench.result()
    os.close(read)
    os.close(write)
    assert (result.exit_status, result.output[-5:]) == (0, "2999\n")


def test_a_log_whose_reader_has_gone_holds_no_hook_up(bench: Bench) -> None:
    read, write = os.pipe()
    saved = os.dup(2)
    os.dup2(write, 2)
    try:
        bench.start(bench.hook("echo a; echo b\n"))
    finally:
        os.dup2(saved, 2)
        for descriptor in (saved, read, write):
            os.close(descriptor)
    assert bench.result()[:2] == (0, "a\nb\n")


def test_a_hook_that_closes_its_output_is_waited_for(bench: Bench) -> None:
    result = bench.run(bench.hook("exec >&- 2>&- <&-; sleep 0.2; exit 4\n"))
    assert result.exit_status == 4
    assert result.seconds >= 0.2


def test_a_hook_is_ended_when_its_time_is_up(bench: Bench) -> None:
    result = bench.run(bench.hook("sleep 60\n"), limit=0.3)
    assert result.exit_status == -signal.SIGTERM
    assert result.error == "its time limit of 0.3 s was up"
    assert 0.3 <= result.seconds < 5


def test_what_ignores_term_is_killed_after_its_time(bench: Bench) -> None:
    runs = bench.restarted(kill_after=0.2)
    bench.start(bench.hook("trap '' TERM\nwhile :; do sleep 0.05; done\n"), limit=0.3, runs=runs)
    result = bench.result(runs=runs)
    assert result.exit_status == -signal.SIGKILL
    assert 0.5 <= result.seconds < 5


def test_stop_reaches_the_whole_group_at_once_and_kill_follows(bench: Bench) -> None:
    bench.start(bench.hook("trap 'echo got it' TERM\nsleep 60 & sleep 60 & echo up >%s/up\nwhile :; do wait; done\n" % bench.folder))
    bench.wait_for("up")
    began = time.monotonic()
    bench.runs.stop(1, 0.4)
    bench.runs.stop(1, 5)
    result = bench.result()
    assert (result.exit_status, result.error) == (-signal.SIGKILL, "it was ended early")
    assert "got it" in result.output
    assert 0.3 <= time.monotonic() - began < 3
    bench.runs.stop(1)
    bench.runs.stop(99)


def test_a_hook_may_tidy_up_on_term(bench: Bench) -> None:
    bench.start(bench.hook("trap 'echo tidy; exit 7' TERM\necho up >%s/up\nwhile :; do sleep 0.02; done\n" % bench.folder))
    bench.wait_for("up")
    bench.runs.stop(1)
    result = bench.result()
    assert result.exit_status == 7
    assert "tidy\n" in result.output


def test_a_stop_that_comes_before_the_hook_has_begun_is_not_lost(bench: Bench) -> None:
    bench.start(bench.hook("sleep 60\n"))
    bench.runs.stop(1)
    assert bench.result().error == "it was ended early"


def test_a_later_stop_can_only_be_more_urgent(bench: Bench) -> None:
    bench.start(bench.hook("trap '' TERM\necho up >%s/up\nwhile :; do sleep 0.05; done\n" % bench.folder))
    bench.wait_for("up")
    bench.runs.stop(1, 60)
    bench.runs.stop(1, 0)
    assert bench.result().exit_status == -signal.SIGKILL


@pytest.mark.parametrize("ends_by", ["term", "kill"])
def test_a_hook_that_stops_itself_is_ended(bench: Bench, ends_by: str) -> None:
    trap = "trap '' TERM\n" if ends_by == "kill" else ""
    bench.start(bench.hook("%secho up >%s/up\nkill -STOP $$\nwhile :; do sleep 0.05; done\n" % (trap, bench.folder)))
    bench.wait_for("up")
    bench.runs.stop(1, 0.3)
    assert bench.result().exit_status == (-signal.SIGTERM if ends_by == "term" else -signal.SIGKILL)


def test_what_a_hook_leaves_in_its_group_is_ended(bench: Bench) -> None:
    result = bench.run(bench.hook("sleep 60 &\n(trap '' TERM; while :; do sleep 0.05; done) &\nexit 0\n"))
    assert result.exit_status == 0
    assert result.seconds < 5
    assert not [pid for pid in marked(bench.mark) if b"keeper" not in Path("/proc/%d/cmdline" % pid).read_bytes()]


def test_a_daemon_that_leaves_the_group_is_left_alone_and_holds_nobody_up(bench: Bench) -> None:
    bench.may_leave = True
    script = "if os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0:\n    open('%s/up', 'w').write(str(os.getpid()))\n    time.sleep(60)\n  os._exit(0)\n"
    result = bench.run(bench.python(script % bench.folder))
    assert result.exit_status == 0
    assert result.seconds < 5
    os.kill(int(bench.wait_for("up")), 0)
    until(lambda: not is_locked(str(bench.folder / "run/runs/1")), "the keeper's end")


def test_a_hook_that_leaves_its_own_group_is_still_ended(bench: Bench) -> None:
    script = "child = os.fork()\nif not child:\n  os.setpgid(0, 0)\n  time.sleep(60)\ntime.sleep(0.05)\nos.setpgid(0, child)\nopen('%s/up', 'w').write('1')\ntime.sleep(60)\n"
    bench.may_leave = True
    bench.start(bench.python(script % bench.folder))
    bench.wait_for("up")
    bench.runs.stop(1)
    assert bench.result().exit_status == -signal.SIGTERM


def test_a_keeper_that_is_killed_takes_its_hook_with_it(bench: Bench) -> None:
    bench.start(bench.hook("trap '' TERM\nsleep 60 &\necho up >%s/up\nwhile :; do sleep 0.05; done\n" % bench.folder))
    bench.wait_for("up")
    os.kill(bench.keeper(), signal.SIGKILL)
    result = bench.result()
    assert (result.exit_status, result.error) == (None, KEEPER_GONE)
    until(lambda: not marked(bench.mark), "the hook's end")


def test_a_keeper_that_hangs_does_not_keep_its_hook_alive(bench: Bench) -> None:
    now = [0.0]
    runs = bench.restarted(clock=lambda: now[0])
    bench.start(bench.hook("echo up >%s/up\nsleep 60\n" % bench.folder), runs=runs)
    bench.wait_for("up")
    os.kill(bench.keeper(), signal.SIGSTOP)
    runs.stop(1, 2)
    assert runs.poll() == []
    now[0] = 60.0
    assert bench.result(runs=runs).error == KEEPER_GONE


def test_a_keeper_that_is_asked_to_end_ends_its_hook_and_tells(bench: Bench) -> None:
    bench.start(bench.hook("echo up >%s/up\nsleep 60\n" % bench.folder))
    bench.wait_for("up")
    until(lambda: int(Path("/proc/%d/status" % bench.keeper()).read_text().split("SigCgt:")[1].split()[0], 16) & 1 << 14, "its handler")
    os.kill(bench.keeper(), signal.SIGTERM)
    assert bench.result()[::3] == (-signal.SIGTERM, "the host's services were told to end")


DAEMON = """
import os, sys
sys.path[:0] = %r
from hook_runner.runs import Runs
runs = Runs(sys.argv[1], {"MARK": sys.argv[2]}, 4096, 5.0)
runs.start(1, sys.argv[3], b"in", {}, float(sys.argv[4]))
print("started", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def earlier(bench: Bench) -> Earlier:
    """Starts a hook by a daemon of its own, which is then killed."""

    def run(path: str, limit: float = LONG, wait: str = "") -> None:
        command = [sys.executable, "-c", DAEMON % SOURCES, str(bench.folder / "run"), bench.mark, path, str(limit)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as daemon:
            assert daemon.stdout is not None and daemon.stdout.readline() == b"started\n"
            if wait:
                bench.wait_for(wait)
            daemon.kill()

    return run


def test_a_hook_outlives_its_daemon_and_the_next_one_gets_its_result(bench: Bench, earlier: Earlier) -> None:
    earlier(bench.hook("echo up >%s/up\nwhile [ ! -e %s/go ]; do sleep 0.02; done\necho done; exit 6\n" % (bench.folder, bench.folder)), wait="up")
    assert bench.runs.poll() == []
    assert bench.runs.adopt(1)
    assert bench.runs.active() == {1}
    assert bench.runs.poll() == []
    (bench.folder / "go").touch()
    result = bench.result()
    assert (result.exit_status, result.output, result.error) == (6, "done\n", "")


def test_the_result_of_a_hook_that_ended_while_no_daemon_lived_is_found(bench: Bench, earlier: Earlier) -> None:
    earlier(bench.hook("exit 6\n"))
    until(lambda: (bench.folder / "run/runs/1/result").exists(), "the result")
    assert bench.runs.adopt(1)
    assert bench.result().exit_status == 6
    # told again to a daemon that was killed before it could write it down
    again = bench.restarted()
    assert again.adopt(1)
    assert bench.result(runs=again).exit_status == 6
    again.forget(1)
    assert not bench.restarted().adopt(1)


def test_a_hook_is_ended_in_time_even_if_no_daemon_lives(bench: Bench, earlier: Earlier) -> None:
    earlier(bench.hook("sleep 60\n"), limit=0.3)
    until(lambda: (bench.folder / "run/runs/1/result").exists(), "the result")
    assert bench.runs.adopt(1)
    assert bench.result().error == "its time limit of 0.3 s was up"


def test_an_adopted_hook_can_be_ended(bench: Bench, earlier: Earlier) -> None:
    earlier(bench.hook("trap '' TERM\necho up >%s/up\nwhile :; do sleep 0.05; done\n" % bench.folder), wait="up")
    assert bench.runs.adopt(1)
    bench.runs.stop(1, 0.2)
    assert bench.result().exit_status == -signal.SIGKILL


def test_an_adopted_hook_whose_keeper_was_killed_is_ended(bench: Bench, earlier: Earlier) -> None:
    earlier(bench.hook("echo up >%s/up\nsleep 60\n" % bench.folder), wait="up")
    os.kill(bench.keeper(), signal.SIGKILL)
    until(lambda: not is_locked(str(bench.folder / "run/runs/1")), "the keeper's end")
    assert bench.runs.adopt(1)
    assert bench.result().error == KEEPER_GONE


def test_nothing_is_adopted_after_a_reboot_or_where_nothing_began(bench: Bench) -> None:
    assert not bench.runs.adopt(7)
    folder = bench.folder / "run/runs/7"
    folder.mkdir(parents=True)
    assert not bench.runs.adopt(7)
    # a run directory that is no tmpfs: the number that the keeper had means nothing any more
    innocent = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        (folder / "lock").write_text("another-boot\n%d\n" % innocent.pid)
        assert not bench.runs.adopt(7)
        bench.runs.clean_one(7)
        assert innocent.poll() is None
    finally:
        innocent.kill()
        innocent.wait()
    assert bench.runs.poll() == []


def test_a_number_that_was_given_away_since_is_not_killed(bench: Bench) -> None:
    from hook_runner.sessions import boot_id

    folder = bench.folder / "run/runs/7"
    folder.mkdir(parents=True)
    innocent = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        (folder / "lock").write_bytes(boot_id() + b"\n%d\n" % innocent.pid)
        assert bench.runs.adopt(7)
        assert bench.result(7).error == KEEPER_GONE
        assert innocent.poll() is None
    finally:
        innocent.kill()
        innocent.wait()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"exit_status": "0", "output": "", "seconds": 0, "error": ""}', "\xff"])
def test_a_result_that_cannot_be_read_is_an_error_and_not_a_success(bench: Bench, text: str) -> None:
    folder = bench.folder / "run/runs/7"
    folder.mkdir(parents=True)
    (folder / "result").write_text(text, encoding="latin-1")
    assert bench.runs.adopt(7)
    result = bench.result(7)
    assert result.exit_status is None
    assert "cannot be read" in result.error


def test_runs_of_nobody_are_ended_and_removed(bench: Bench, earlier: Earlier) -> None:
    earlier(bench.hook("echo up >%s/up\nsleep 60\n" % bench.folder), wait="up")
    for name in ("5", "6", "other"):
        (bench.folder / "run/runs" / name).mkdir()
    bench.runs.clean({6})
    assert bench.runs.active() == set()
    until(lambda: bench.runs.poll() == [] and sorted(os.listdir(bench.folder / "run/runs")) == ["6", "other"], "their end")


def test_a_number_that_a_lost_journal_gives_again_ends_the_old_run_first(bench: Bench, earlier: Earlier) -> None:
    earlier(bench.hook("trap '' TERM\necho up >%s/up\nsleep 60\n" % bench.folder), wait="up")
    result = bench.run(bench.hook("echo new\n", "20-new"))
    assert (result.exit_status, result.output) == (0, "new\n")


def test_folders_and_files_of_a_run_are_for_their_owner_only(bench: Bench) -> None:
    bench.start(bench.hook("echo up >%s/up\nsleep 60\n" % bench.folder))
    bench.wait_for("up")
    folder = bench.folder / "run/runs/1"
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
    assert b"EVENT" not in Path("/proc/%d/cmdline" % bench.keeper()).read_bytes()
    bench.runs.stop(1)
    bench.result()


def test_a_run_that_cannot_be_made_raises_and_leaves_nothing(bench: Bench) -> None:
    (bench.folder / "run").write_text("a file where a folder should be")
    with pytest.raises(OSError):
        bench.start(bench.hook("exit 0\n"))
    assert bench.runs.active() == set()


def test_a_missing_python_raises_and_leaves_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/python")
    with pytest.raises(FileNotFoundError):
        bench.start(bench.hook("exit 0\n"))
    assert os.listdir(bench.folder / "run/runs") == []


def test_a_folder_that_is_removed_under_a_run_is_an_error_and_not_a_crash(bench: Bench) -> None:
    bench.start(bench.hook("echo up >%s/up\nsleep 0.2\n" % bench.folder))
    bench.wait_for("up")
    bench.runs.forget(1)
    assert bench.runs.active() == set()
    until(lambda: not marked(bench.mark), "the hook's end")


def test_a_variable_with_a_nul_is_an_error_of_that_hook(bench: Bench) -> None:
    assert "it could not be started" in bench.run(bench.hook("exit 0\n"), variables={"EVENT_ID": "a\0b"}).error


def test_hooks_run_beside_each_other(bench: Bench) -> None:
    path = bench.hook("echo up >%s/$STEP\nsleep 60\n" % bench.folder)
    for step in range(1, 6):
        bench.start(path, step, variables={"STEP": "up-%d" % step})
    for step in range(1, 6):
        bench.wait_for("up-%d" % step)
        bench.runs.stop(step)
    ended: dict[int, Result] = {}

    def all_ended() -> bool:
        ended.update(bench.runs.poll())
        return len(ended) == 5

    until(all_ended, "all five")
    assert {result.exit_status for result in ended.values()} == {-signal.SIGTERM}


def test_fifty_runs_in_a_row_take_seconds_and_leave_nothing(bench: Bench) -> None:
    path = bench.hook("exit 0\n")
    began = time.monotonic()
    descriptors = len(os.listdir("/proc/self/fd"))
    for step in range(1, 51):
        bench.start(path, step)
        assert bench.result(step).exit_status == 0
        bench.runs.forget(step)
    assert time.monotonic() - began < 25
    assert os.listdir(bench.folder / "run/runs") == []
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_the_keeper_imports_little_before_the_hook_runs(bench: Bench) -> None:
    code = "import sys; sys.argv = ['keeper', '/nowhere']; exec(compile(open(%r).read().replace('__main__', 'no'), 'keeper', 'exec')); print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code % KEEPER], capture_output=True, text=True, check=True)
    modules = set(json.loads(done.stdout.replace("'", '"')))
    assert not modules & {"json", "re", "enum", "signal", "subprocess", "typing", "hook_runner"}


DOOMED = """
import sys
sys.path[:0] = %r
from hook_runner.runs import Runs
runs = Runs(sys.argv[1], {"MARK": sys.argv[2]}, 4096, 5.0)
print("ready", flush=True)
sys.stdin.readline()
runs.start(1, sys.argv[3], b"in", {}, 30.0)
sys.stdin.read()
"""


def test_whenever_the_daemon_is_killed_a_hook_has_run_once_and_is_known_or_has_not_run_at_all(bench: Bench) -> None:
    path = bench.hook("echo x >>%s/ran\nexit 5\n" % bench.folder)
    found = []
    for delay in [number * 0.0002 for number in range(15)] + [0.005, 0.01, 0.02, 0.03]:
        command = [sys.executable, "-IS", "-c", DOOMED % SOURCES, str(bench.folder / "run"), bench.mark, path]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as daemon:
            assert daemon.stdin is not None and daemon.stdout is not None and daemon.stdout.readline() == b"ready\n"
            daemon.stdin.write(b"\n")
            daemon.stdin.flush()
            time.sleep(delay)
            daemon.kill()
        later = bench.restarted()
        found.append(later.adopt(1))
        if found[-1]:
            assert bench.result(runs=later).exit_status == 5
        # what was not adopted must not begin later
        until(lambda: not marked(bench.mark), "the end")
        assert (bench.folder / "ran").exists() is found[-1]
        if found[-1]:
            assert (bench.folder / "ran").read_text() == "x\n"
            (bench.folder / "ran").unlink()
        later.clean(set())
        until(lambda: later.poll() == [] and not list(bench.folder.glob("run/runs/*")), "the folder's end")
    assert found[-1] is True
