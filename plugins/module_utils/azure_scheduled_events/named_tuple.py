# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""``typing.NamedTuple`` for files with ``from __future__ import annotations``, at a third of its memory.

Before Python 3.14, typing compiles the annotation of each field and keeps the code, 2 KB per field:
0.3 MiB in a daemon. The types of this file keep their annotations as texts.
"""

from __future__ import annotations

import collections
import sys
from typing import TYPE_CHECKING

__all__ = ["NamedTuple"]

if TYPE_CHECKING or sys.version_info >= (3, 14):
    from typing import NamedTuple
else:

    class _Maker(type):
        """Makes a named tuple of each class that derives from `NamedTuple`."""

        def __new__(cls, name, bases, members):
            fields = members["__annotations__"]
            defaults = [members.pop(field) for field in fields if field in members]
            made = collections.namedtuple(name, fields, defaults=defaults, module=members["__module__"])
            for member, value in members.items():
                setattr(made, member, value)
            return made

    NamedTuple = type.__new__(_Maker, "NamedTuple", (), {})
