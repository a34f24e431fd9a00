# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""Named tuples with annotations that are not compiled."""

from __future__ import annotations

import pickle

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.named_tuple import (
    NamedTuple,
)


class Point(NamedTuple):
    """A point."""

    x: int
    y: float = 2.0

    @property
    def sum(self) -> float:
        return self.x + self.y

    @classmethod
    def diagonal(cls, length: int) -> Point:
        return cls(length, length)


def test_fields_and_defaults_are_those_of_the_annotations() -> None:
    assert Point._fields == ("x", "y") and Point._field_defaults == {"y": 2.0}
    assert Point(1) == (1, 2.0) == Point(x=1, y=2.0) and repr(Point(1)) == "Point(x=1, y=2.0)"
    with pytest.raises(TypeError):
        Point()  # type: ignore[call-arg]


def test_methods_docstring_and_names_are_those_of_the_class() -> None:
    assert Point(1).sum == 3.0 and Point.diagonal(4) == (4, 4)
    assert (Point.__doc__, Point.__name__, Point.__qualname__, Point.__module__) == (
        "A point.",
        "Point",
        "Point",
        __name__,
    )
    assert Point(1)._replace(x=5)._asdict() == {"x": 5, "y": 2.0}


def test_value_survives_pickling() -> None:
    found = pickle.loads(pickle.dumps(Point(1)))
    assert isinstance(found, Point) and found == Point(1)
