# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Find uses of modules, functions and paths that one of the platforms of a file does not have.

Code is for one platform if it stands in a file ``posix_*.py`` or ``windows_*.py``, in a branch of a
comparison of ``sys.platform`` with "win32", or after an assertion of it. Other code is for both.
Only code for the same platform may import such a file.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import NamedTuple


class Platform(Enum):
    """The platforms for which code can be."""

    POSIX = "posix"
    WINDOWS = "windows"


class Use(NamedTuple):
    """A use that a platform of the code does not have.

    Attributes:
        line: number of its line.
        name: the module, the dotted name, the argument (``dir_fd=``) or the path.
    """

    line: int
    name: str


_MODULES = {
    Platform.POSIX: frozenset(
        {"crypt", "fcntl", "grp", "nis", "posix", "pty", "pwd", "resource", "spwd", "syslog", "termios", "tty"}
    ),
    Platform.WINDOWS: frozenset({"_winapi", "msvcrt", "winreg", "winsound"}),
}

# members of modules that both platforms have
POSIX_MEMBERS = frozenset(
    f"{module}.{name}"
    for module, names in {
        "os": (
            "O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK WEXITSTATUS WIFEXITED WIFSIGNALED WNOHANG WTERMSIG chown "
            "chroot fchmod fchown fork forkpty getegid geteuid getgid getgroups getloadavg getpgid getpgrp "
            "getpriority getsid getuid initgroups killpg lchown lockf mkfifo mknod nice openpty pidfd_open pipe2 "
            "posix_fallocate pread preadv pwrite pwritev readv sched_getaffinity sendfile setegid seteuid setgid "
            "setgroups setpgid setpriority setsid setuid statvfs sync sysconf uname wait wait3 wait4 waitid "
            "waitstatus_to_exitcode writev"
        ),
        "select": "epoll poll",
        "signal": (
            "SIGALRM SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGTSTP SIGUSR1 SIGUSR2 alarm pause"
            " pthread_kill pthread_sigmask setitimer siginterrupt sigpending sigtimedwait sigwait sigwaitinfo"
        ),
        "socket": "AF_NETLINK AF_PACKET AF_UNIX SO_PEERCRED recv_fds send_fds",
        "time": "CLOCK_BOOTTIME CLOCK_MONOTONIC clock_gettime clock_gettime_ns tzset",
    }.items()
    for name in names.split()
)

_POSIX_ARGUMENTS = frozenset(
    {"dir_fd", "dst_dir_fd", "pass_fds", "preexec_fn", "process_group", "src_dir_fd", "start_new_session"}
)

_POSIX_PATH = re.compile(r"/(?:bin|dev|etc|home|proc|root|run|sbin|srv|sys|tmp|usr|var)(?:/|$)")


def unportable_uses(file: Path) -> list[Use]:
    """Return the uses in a file that one of its platforms does not have, by their lines."""
    return unportable_uses_in(file.read_text(encoding="utf-8"), _platform_of(file.stem))


def unportable_uses_in(source: str, platform: Platform | None = None) -> list[Use]:
    """Return the uses in Python code that one of its platforms does not have, by their lines.

    Args:
        source: text of a file.
        platform: the only platform of the code, or None if it is for both.

    Returns:
        Each use once per line.
    """
    return sorted(set(_in_block(ast.parse(source).body, platform)))


def _in_block(body: Sequence[ast.stmt], platform: Platform | None) -> Iterator[Use]:
    for number, statement in enumerate(body):
        tested = _platform_where(statement.test) if isinstance(statement, (ast.Assert, ast.If)) else None
        if isinstance(statement, ast.If):
            yield from _in_node(statement.test, platform)
            yield from _in_block(statement.body, platform or tested)
            yield from _in_block(statement.orelse, platform or _other(tested))
            if platform is None and isinstance(statement.body[-1], (ast.Continue, ast.Raise, ast.Return)):
                platform = _other(tested)
        elif isinstance(statement, ast.Assert):
            platform = platform or tested
        elif not (number == 0 and _is_text(statement)):
            yield from _in_node(statement, platform)


def _in_node(node: ast.AST, platform: Platform | None) -> Iterator[Use]:
    yield from _at_node(node, platform)
    for _field, value in ast.iter_fields(node):
        parts = value if isinstance(value, list) else [value]
        if parts and isinstance(parts[0], ast.stmt):
            yield from _in_block(parts, platform)
        else:
            for part in parts:
                if isinstance(part, ast.AST):
                    yield from _in_node(part, platform)


def _at_node(node: ast.AST, platform: Platform | None) -> Iterator[Use]:
    """Yield the uses of one node, without those of its parts."""
    if isinstance(node, ast.Import):
        yield from (Use(node.lineno, alias.name) for alias in node.names if _is_foreign(alias.name, platform))
    elif isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        members = [f"{module.rstrip('.')}.{alias.name}" for alias in node.names]
        names = [module] if _is_foreign(module, platform) else members
        yield from (Use(node.lineno, name) for name in names if _is_foreign(name, platform))
    elif platform is Platform.POSIX:
        return
    elif isinstance(node, ast.Attribute) and ast.unparse(node) in POSIX_MEMBERS:
        yield Use(node.lineno, ast.unparse(node))
    elif isinstance(node, ast.keyword) and node.arg in _POSIX_ARGUMENTS:
        yield Use(node.lineno, f"{node.arg}=")
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _POSIX_PATH.match(node.value):
        yield Use(node.lineno, node.value)


def _is_foreign(name: str, platform: Platform | None) -> bool:
    """Return True if a module, or a member of one, is not for each platform of the code that imports it."""
    if name in POSIX_MEMBERS:
        return platform is not Platform.POSIX
    needed = next((each for each, modules in _MODULES.items() if name.partition(".")[0] in modules), None)
    needed = needed or next(filter(None, map(_platform_of, name.split("."))), None)
    return needed is not None and needed is not platform


def _platform_of(module: str) -> Platform | None:
    """Return the platform that the name of a file or module states."""
    return next((platform for platform in Platform if module.startswith(f"{platform.value}_")), None)


def _platform_where(test: ast.expr) -> Platform | None:
    """Return the only platform where a condition can be true; None if it can be on both."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return next(filter(None, map(_platform_where, test.values)), None)
    condition = ast.unparse(test)
    if condition == "sys.platform == 'win32'":
        return Platform.WINDOWS
    return Platform.POSIX if condition == "sys.platform != 'win32'" else None


def _other(platform: Platform | None) -> Platform | None:
    return {Platform.POSIX: Platform.WINDOWS, Platform.WINDOWS: Platform.POSIX, None: None}[platform]


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
