# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A separate program that runs one hook to its end and writes its result, also without the daemon.

`runs` starts it as ``python -I -S supervisor.py FOLDER`` with two descriptors: 3 is the run's lock,
which is held as long as this process lives; 4 is a pipe of requests to end the hook early. In its
own unit it gets the argument ``unit``, and the descriptors are 0 and 1; then all processes of its
control group belong to the hook and end with it.

It imports little before the hook runs, and nothing of this package: a hook often has only seconds,
and an upgrade may be replacing the package at that moment.
"""

from __future__ import annotations

import marshal
import os
import sys
import time

# as in typing, whose import takes longer than all others together
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LOCK, REQUESTS = 3, 4
# the same two if systemd started this process in its own unit
OF_A_UNIT = (0, 1)
UNITS = "azure-scheduled-events-hook-"
CGROUPS = "/sys/fs/cgroup"
CHUNK_SIZE = 65536
# limit for a hook's lines in the log: a flood must not push the daemon's own lines out of it
LINES_PER_SECOND = 200
JOURNAL = "/run/systemd/journal/socket"
# with the last field `journalctl --unit azure-scheduled-events` finds the lines of hooks too
FIELDS = b"PRIORITY=6\nSYSLOG_IDENTIFIER=azure-scheduled-events\nOBJECT_SYSTEMD_UNIT=azure-scheduled-events.service\n"
# bytes of an event's id in front of each line
MAX_ID = 64
# three times that, the most that replacement characters take, is still one write to a pipe
MAX_LINE = 1300
# seconds in which a daemon that the hook started may leave the hook's process group: daemon(3) does
# so a moment after the hook has ended
DAEMONISE_GRACE = 0.25
# seconds between TERM and KILL for the processes that remain in the group
GROUP_TERM_GRACE = 1.0
# most seconds between two attempts to write a result
MAX_POLL_TIMEOUT = 5.0
# bytes of the end of a hook's output that the result has
OUTPUT_TAIL = 4096
# characters of output that fit into the reserved space of the result, even if each is escaped
LITTLE_OUTPUT = 256
# all except KILL and STOP: in the hook they have their default effect
ORDINARY_SIGNALS = [number for number in range(1, 32) if number not in (9, 19)]
TERM, KILL, CONT, CHLD = 15, 9, 18, 17


def main(folder: str, is_unit: bool) -> None:
    """Run the hook of the folder's order, and write its result into the folder."""
    global LOCK, REQUESTS
    if is_unit:
        LOCK, REQUESTS = OF_A_UNIT
    if os.getsid(0) != os.getpid():
        os.setsid()
    home = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    cgroup = own_cgroup() if is_unit else ""
    os.write(LOCK, b"%d\n%s\n" % (os.getpid(), os.fsencode(cgroup)))
    hold_open(home)
    with open(os.open("order", os.O_RDONLY, dir_fd=home), "rb") as file:
        path, environment, limit, kill_after = marshal.load(file)
    began = time.monotonic()
    output = OutputCapture(path, environment.get(b"EVENT_ID", b""))
    status, cause, error = None, "", ""
    try:
        hook, output.descriptor = spawn_hook(path, environment, home)
    except (OSError, ValueError) as problem:
        cause, error = "not-started", start_error(path, problem)
    else:
        status, cause, error = HookSupervisor(hook, output, began, limit, kill_after, cgroup).wait()
    store_result(folder, home, status, output.text(), time.monotonic() - began, cause, error)


def own_cgroup() -> str:
    """Return the folder of this process's control group; "" if it is not that of a hook's unit."""
    with open("/proc/self/cgroup") as file:
        for line in file:
            _number, controllers, path = line.rstrip("\n").split(":", 2)
            if controllers in ("", "name=systemd") and path.rpartition("/")[2].startswith(UNITS):
                for tree in ("systemd",) if controllers else ("", "unified"):
                    folder = os.path.join(CGROUPS, tree, path.lstrip("/"))
                    if os.path.exists(folder + "/cgroup.procs"):
                        return folder
    return ""


def members(cgroup: str) -> list[int]:
    """Return the processes of a control group and of the groups below it, without this process."""
    found = []
    for folder, _folders, _files in os.walk(cgroup):
        try:
            with open(folder + "/cgroup.procs") as file:
                found += [int(line) for line in file]
        except OSError:
            pass  # it was removed
    return [number for number in found if number not in (0, os.getpid())]


def hold_open(home: int) -> None:
    """Open the pipe whose end of file reports the end of this process to the daemon."""
    # read and write: this does not wait for a reader
    os.open("alive", os.O_RDWR | os.O_NONBLOCK, dir_fd=home)


def spawn_hook(path: bytes, environment: dict[bytes, bytes], home: int) -> tuple[int, int]:
    """Start the hook in its own process group; return its process id and the descriptor of its output."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            try:
                os.set_inheritable(int(name), False)
            except OSError:
                pass  # the descriptor of this listing
    os.chdir("/")
    os.umask(0o022)
    given = os.open("input", os.O_RDONLY, dir_fd=home)  # a file, which the hook may leave unread
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    try:
        descriptors = [
            (os.POSIX_SPAWN_DUP2, given, 0),
            (os.POSIX_SPAWN_DUP2, writer, 1),
            (os.POSIX_SPAWN_DUP2, writer, 2),
        ]
        hook = os.posix_spawn(
            path, [path], environment, file_actions=descriptors, setpgroup=0, setsigmask=(), setsigdef=ORDINARY_SIGNALS
        )
    finally:
        os.close(given)
        os.close(writer)
    return hook, reader


def start_error(path: bytes, problem: Exception) -> str:
    """Return why a hook could not be started, with the likely cause."""
    import errno

    number = getattr(problem, "errno", None)
    text = f"it could not be started: {os.strerror(number) if number else problem}"
    if number == errno.ENOEXEC:
        text += ": it does not begin with #! and an interpreter, and is not a program"
    elif number == errno.ENOENT and os.path.exists(path):
        text += ": the interpreter that its first line names is missing"
    elif number == errno.EACCES:
        text += (
            ": it, or the interpreter that its first line names, may not be executed,"
            " or its file system is mounted noexec"
        )
    return text


class HookSupervisor:
    """Waits for the end of a hook, and ends it on request or at its time limit."""

    def __init__(
        self, hook: int, output: OutputCapture, began: float, limit: float, kill_after: float, cgroup: str = ""
    ) -> None:
        self.hook = hook
        self.cgroup = cgroup
        self.output = output
        self.term_at = began + limit
        self.limit, self.kill_after = limit, kill_after
        self.kill_at: float | None = None
        self.cause = self.error = ""

    def wait(self) -> tuple[int, str, str]:
        """Wait for the end of the hook.

        Until the hook has ended, its output is read, and it is ended if the host's services end (TERM), if a
        request comes, or at its time limit. Then its remaining processes are ended, and the rest of the output
        is read.

        Returns:
            The exit status, or minus the number of the signal that ended the hook; the cause of an
            early end, or ""; the same as a text.
        """
        import select
        import signal

        woken, waker = os.pipe()
        for end in (woken, waker):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        for number in (CHLD, TERM):
            signal.signal(number, lambda _number, _frame: None)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (TERM,))  # blocked by spawn_supervisor
        waiting = select.poll()
        for descriptor in (woken, REQUESTS, self.output.descriptor):
            waiting.register(descriptor, select.POLLIN)
        while os.waitid(os.P_PID, self.hook, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            for descriptor, _event in waiting.poll(self.poll_timeout() * 1000):
                if descriptor == self.output.descriptor:
                    if self.output.read_chunk() == b"":
                        waiting.unregister(descriptor)
                elif descriptor == woken:
                    if TERM in os.read(woken, CHUNK_SIZE):
                        self.terminate("host-shutdown", "the host's services were ended", self.kill_after)
                else:
                    request = os.read(REQUESTS, CHUNK_SIZE).split()
                    self.terminate(
                        "ended-early", "it was ended early", float(request[-1]) if request else self.kill_after
                    )
            self.enforce_limit()
        self.terminate_group()
        self.output.finish()
        _pid, status = os.waitpid(self.hook, 0)
        return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status), self.cause, self.error

    def poll_timeout(self) -> float:
        """Return the seconds until the next TERM or KILL."""
        return min(
            3600.0, max(0.0, (self.term_at if self.kill_at is None else self.kill_at) - time.monotonic()) + 0.001
        )

    def enforce_limit(self) -> None:
        """End the hook if its time limit has passed; kill it if TERM did not end it in time."""
        now = time.monotonic()
        if self.kill_at is None and now >= self.term_at:
            self.terminate("time-limit", f"its time limit of {self.limit:g} s was up", self.kill_after)
        if self.kill_at is not None and now >= self.kill_at:
            self.signal_group(KILL)
            self.kill_at = now + 3600

    def terminate(self, cause: str, error: str, kill_after: float) -> None:
        """Send TERM to the hook's process group now, and KILL later. After a second call the earlier KILL holds."""
        kill_at = time.monotonic() + kill_after
        if self.kill_at is None:
            self.cause, self.error = cause, error
            self.signal_group(TERM)
            self.signal_group(CONT)  # a stopped process does not handle TERM
        self.kill_at = kill_at if self.kill_at is None else min(kill_at, self.kill_at)

    def signal_group(self, number: int) -> None:
        """Send a signal to the hook's process group and, if there is one, to its control group."""
        try:
            os.killpg(self.hook, number)
        except ProcessLookupError:
            os.kill(self.hook, number)  # it has left its own group
        except OSError:
            pass  # the hook runs as another user, whom a service without root cannot signal
        for process in members(self.cgroup) if self.cgroup else ():
            try:
                if os.getpgid(process) != self.hook:
                    os.kill(process, number)
            except OSError:
                pass  # it has ended

    def terminate_group(self) -> None:
        """End the remaining processes of the hook.

        The hook has not been waited for yet; therefore no other process can have its id.

        1. If the hook ended by itself, its processes have DAEMONISE_GRACE seconds to leave the group.
        2. Those that remain get TERM, and have `kill_after` seconds, at most GROUP_TERM_GRACE, to end.
        3. The last ones get KILL until none is left, for at most GROUP_TERM_GRACE.
        """
        leaving = [(0, DAEMONISE_GRACE)] if self.kill_at is None else []
        for number, seconds in (*leaving, (TERM, min(self.kill_after, GROUP_TERM_GRACE)), (KILL, GROUP_TERM_GRACE)):
            until = time.monotonic() + seconds
            if not self.group_has_members():
                return
            if number:
                self.signal_group(number)
                self.signal_group(CONT)
            while self.group_has_members() and time.monotonic() < until:
                if number == KILL:
                    self.signal_group(number)  # for processes that were started since
                self.output.read_chunk()
                time.sleep(0.01)

    def group_has_members(self) -> bool:
        """Return True if the hook's groups have processes other than the hook, which has ended."""
        if self.cgroup and any(process != self.hook for process in members(self.cgroup)):
            return True
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) != self.hook:
                try:
                    with open(f"/proc/{name}/stat", "rb") as file:
                        state, _parent, group = file.read().rpartition(b")")[2].split()[:3]
                except (OSError, ValueError):
                    continue
                if int(group) == self.hook and state not in (b"Z", b"X"):
                    return True
        return False


class OutputCapture:
    """Keeps the last part of a hook's output, and forwards its lines to the log up to a limit."""

    def __init__(self, path: bytes, event_id: bytes = b"") -> None:
        self.descriptor = -1
        self.event_id = event_id[:MAX_ID]
        self.label = b"/".join(path.split(b"/")[-2:]) + (b" " + self.event_id if event_id else b"") + b": "
        self.log = Log()
        self.kept = b""
        self.line = b""
        self.second, self.lines, self.dropped = 0, 0, 0

    def read_chunk(self) -> bytes | None:
        """Read and handle available output. Return b"" at the end of file, None if there is none now."""
        try:
            chunk = os.read(self.descriptor, CHUNK_SIZE)
        except BlockingIOError:
            return None
        self.kept = (self.kept + chunk)[-OUTPUT_TAIL:]
        self.forward(chunk)
        return chunk

    def finish(self) -> None:
        """Read the rest. Later output, of a process that has left the group, is discarded."""
        for _piece in range(16):
            if not self.read_chunk():
                break
        if self.line:
            self.log_line(self.line)
        self.log_dropped_lines()

    def forward(self, chunk: bytes) -> None:
        """Log the complete lines of a chunk; keep an incomplete one for the next chunk."""
        second = int(time.monotonic())
        if second != self.second:
            self.log_dropped_lines()
            self.second, self.lines = second, 0
        if self.lines >= LINES_PER_SECOND:
            self.dropped += chunk.count(b"\n")
            self.line = b""
            return
        *lines, self.line = (self.line + chunk).split(b"\n")
        for line in lines:
            self.log_line(line)
        self.line = self.line[:MAX_LINE]

    def log_dropped_lines(self) -> None:
        """Log how many lines were dropped since the last call."""
        if self.dropped:
            dropped, self.dropped, self.lines = self.dropped, 0, 0
            self.log_line(b"... and %d more lines" % dropped)

    def log_line(self, line: bytes) -> None:
        """Log one line, or count it as dropped."""
        self.lines += 1
        text = strip_control_characters((self.label + line)[:MAX_LINE].decode("utf-8", "replace")).replace("\n", "?")
        if self.lines > LINES_PER_SECOND or not self.log.takes(text.encode("utf-8"), self.event_id):
            self.dropped += 1

    def text(self) -> str:
        """Return the kept part without characters that control a terminal."""
        return strip_control_characters(self.kept.decode("utf-8", "replace")).lstrip("\ufffd")


class Log:
    """Writes lines to journald, with the event as a field, or to standard error. It never waits for a reader."""

    def __init__(self) -> None:
        self.is_open = False
        self.journal: Any = None

    def takes(self, text: bytes, event_id: bytes) -> bool:
        """Write a line; return False if the reader does not take it now."""
        if not self.is_open:
            self.is_open, self.journal = True, journal_of_standard_error()
        if self.journal is not None:
            event = b"AZURE_EVENT_ID=%s\n" % event_id if event_id else b""
            try:
                self.journal.send(b"MESSAGE=%s\n%s%s" % (text, event, FIELDS))
                return True
            except BlockingIOError:
                return False
            except OSError:
                pass  # journald restarts; standard error still reaches it
        if not stderr_is_writable():
            return False
        try:
            os.write(2, text + b"\n")
        except OSError:
            pass  # the reader has ended; the output is still in the result
        return True


def journal_of_standard_error() -> Any:
    """Return a socket to journald if standard error leads there, or None."""
    found = os.fstat(2)
    if os.environ.get("JOURNAL_STREAM") != f"{found.st_dev}:{found.st_ino}":
        return None
    import socket

    try:
        journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        journal.setblocking(False)
        journal.connect(JOURNAL)
    except OSError:
        return None
    return journal


def stderr_is_writable() -> bool:
    """Return True if a line can be written to standard error without waiting for its reader."""
    import select

    log = select.poll()
    log.register(2, select.POLLOUT)
    return bool(log.poll(0))


def strip_control_characters(text: str) -> str:
    """Return the text with "?" for each control character other than newline and tab."""
    return "".join(character if character.isprintable() or character in "\n\t" else "?" for character in text)


def store_result(
    folder: str, home: int, status: int | None, output: str, seconds: float, cause: str, error: str
) -> None:
    """Write the result; try again for as long as the file system does not take it."""
    import signal

    pause = 1.0
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    while True:
        try:
            return leave_result(folder, home, status, output, seconds, cause, error)
        except FileNotFoundError:
            return  # the run directory and the folder above it were removed
        except OSError:
            time.sleep(pause)
            pause = min(2 * pause, MAX_POLL_TIMEOUT)


def leave_result(
    folder: str, home: int, status: int | None, output: str, seconds: float, cause: str, error: str
) -> None:
    """Write the result into the run's folder, which is created again if it was removed.

    It is not created where other users could have put a folder or a link in its place; then there is no result.
    """
    try:
        was_removed = not os.path.samestat(os.stat(folder), os.fstat(home))
    except FileNotFoundError:
        was_removed = True
    if not was_removed:
        write_result(home, status, output, seconds, cause, error)
        return
    # under another name until it has the result: a folder without lock and result would look like
    # that of a killed supervisor
    draft, runs = folder + ".new", os.path.dirname(folder)
    if not is_trusted(os.path.dirname(os.path.dirname(runs))):
        return
    os.makedirs(os.path.dirname(runs), 0o755, exist_ok=True)
    for path in (runs, draft):
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            pass
    write_result(os.open(draft, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW), status, output, seconds, cause, error)
    os.rename(draft, folder)


def is_trusted(folder: str) -> bool:
    """Return True if no other user can create a folder or a link there."""
    found = os.stat(folder)
    return found.st_uid in (0, os.geteuid()) and not found.st_mode & 0o022


def write_result(home: int, status: int | None, output: str, seconds: float, cause: str, error: str) -> None:
    """Write the result under its final name in one step. Raises OSError.

    Before the hook began, the daemon reserved space in ``result.new`` for a result with little
    output; therefore a full file system loses only output.
    """
    import json

    for name in ("input", "order"):
        try:
            os.unlink(name, dir_fd=home)  # space for the output, in case the file system is full
        except OSError:
            pass
    for most in (len(output), LITTLE_OUTPUT):
        kept = output[len(output) - min(most, len(output)) :]
        result = {"exit_status": status, "output": kept, "seconds": round(seconds, 3), "cause": cause, "error": error}
        try:
            write_in_place(home, json.dumps(result).encode("ascii"))
        except OSError:
            if most <= LITTLE_OUTPUT:
                raise
        else:
            break
    os.rename("result.new", "result", src_dir_fd=home, dst_dir_fd=home)


def write_in_place(home: int, data: bytes) -> None:
    """Write ``result.new`` in place, which keeps its reserved space. Raises OSError."""
    descriptor = os.open("result.new", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=home)
    try:
        written = 0
        while written < len(data):
            written += os.write(descriptor, data[written:])
        os.ftruncate(descriptor, len(data))
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:] == ["unit"])
