"""Advice as values: what they allow, how they travel, and what does not pass for one."""

from __future__ import annotations

import asyncio
import datetime
from typing import Any

import numpy as np
import pytest

from dfmesh import (
    AdvisedDateRange,
    AdvisedDict,
    AdvisedError,
    AdvisedLiteral,
    AdvisedOneOf,
    AdvisedSubsetOf,
    Okay,
    advisor_of,
    field_advisor,
    values,
)
from dfmesh.engine.adapters import SiteAdapters
from dfmesh.engine.discovery import SiteAdvice, Step
from dfmesh.engine.discovery.advice import rebuild
from dfmesh.engine.discovery.advisors import find_advisors
from dfmesh.engine.discovery.asking import MAX_PATHS, Asking, Desk

KINDS = [
    AdvisedLiteral((1, "x")),
    AdvisedOneOf(["a", AdvisedDateRange("2000-01-01", "2000-12-31")]),
    AdvisedSubsetOf([1, 2, 3]),
    AdvisedDict({"k": AdvisedOneOf([1, 2]), 3: None}, allow_extras=True),
    AdvisedDateRange(datetime.date(1995, 3, 18), "1995-03-20T12:00+02:00"),
    AdvisedError("no"),
    Okay(),
]


@pytest.mark.parametrize("advice", KINDS, ids=lambda advice: advice.kind)
def test_every_kind_travels(advice: Any) -> None:
    assert rebuild(values.from_bytes(values.to_bytes(advice.describe()))) == advice


@pytest.mark.parametrize(
    "junk",
    [None, 3, "value", [], {}, {"kind": "value"}, {"kind": "os.system", "value": "x"}, {"kind": "one of", "values": 7},
     {"kind": "date range", "start": "1", "end": 2}, {"kind": "dictionary", "entries": [[[], {"kind": "anything"}]]}],
)  # fmt: skip
def test_junk_is_no_advice(junk: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        rebuild(junk)


@pytest.mark.parametrize(
    "junk",
    [None, {}, {"steps": [], "paths": [[0]], "reason": "", "failed": False},
     {"steps": [[]], "paths": [], "reason": "", "failed": False}, {"steps": 1, "paths": 2},
     {"steps": [["f", {"kind": "?"}, False, "", False]], "paths": [[0]], "reason": "", "failed": False}],
)  # fmt: skip
def test_junk_is_no_answer(junk: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        SiteAdvice.from_data(junk)


def test_advice_that_is_nested_too_deep() -> None:
    data: Any = {"kind": "anything"}
    for _ in range(5000):
        data = {"kind": "one of", "values": [data]}
    with pytest.raises(ValueError, match="too deep"):
        rebuild(data)


def test_an_answer_travels_with_its_shared_steps() -> None:
    first = Step("a", AdvisedOneOf([1, 2], break_on_advice=True))
    other = Step("b", None, "no", failed=True)
    back = SiteAdvice.from_data(SiteAdvice(((first, other), (first,))).to_data())
    assert back.paths[0][0] is back.paths[1][0]
    assert back.paths[0][0].partial
    assert back.paths[0][1].failed


@pytest.mark.parametrize(
    ("advice", "fits", "does_not"),
    [
        (AdvisedLiteral(1), 1, True),
        (AdvisedLiteral(1), 1.0, np.array([1, 2])),
        (AdvisedOneOf([True]), True, 1),
        (AdvisedSubsetOf(["ab", "c"]), "ab", "a"),
        (AdvisedSubsetOf([1, 2]), np.array([1, 2]), np.array([1, 3])),
        (AdvisedSubsetOf([1]), [], [2]),
        (AdvisedDict({"a": 1}), {"a": 1}, {"a": 2}),
        (AdvisedDict({"a": 1}, allow_extras=True), {"a": 1, "b": 2}, {"b": 2}),
        (AdvisedDateRange("1995-03-18", "1995-03-20"), "1995-03-20T23:59:59", "1995-03-21"),
        (AdvisedDateRange("1995-03-18", "1995-03-20"), datetime.date(1995, 3, 18), datetime.date(1995, 3, 17)),
        (AdvisedDateRange("1995-03-18", "1995-03-20"), datetime.datetime(1995, 3, 18, 1), 7),
    ],
)
def test_what_fits(advice: Any, fits: Any, does_not: Any) -> None:
    assert advice.validate(fits) is None
    assert isinstance(advice.validate(does_not), str)


def test_a_text_is_not_a_list_of_values() -> None:
    with pytest.raises(TypeError, match="takes a list of values"):
        AdvisedOneOf("abc")


def test_order_of_advisors() -> None:
    class Base:
        @field_advisor("last")
        def last(self): ...

        @field_advisor("second", order=1)
        def second(self): ...

        @field_advisor("dropped")
        def dropped(self): ...

    class Derived(Base):
        def dropped(self): ...

        @field_advisor("before last", order=-2)
        def before_last(self): ...

        @field_advisor("first", order=0)
        @staticmethod
        def first(value): ...

    @advisor_of(Derived, "attached", order=1)
    def attached(value, context): ...

    found = [advisor.field for advisor in find_advisors(Derived())]
    assert found == ["first", "second", "attached", "before last", "last"]


def test_very_many_branches_lose_nothing(fed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    sys.path.insert(0, str(fed.config.directory))
    import sky_adapters

    many = [str(number) for number in range(MAX_PATHS + 1)]
    monkeypatch.setattr(sky_adapters.Staged.region, "__code__", _one_of_many.__code__)

    async def go() -> SiteAdvice:
        loop = asyncio.get_running_loop()
        desk = Desk(SiteAdapters(fed.config, "north"), loop)
        asking = Asking(desk, "sky.Staged", None, loop.time() + 30)
        advice = await asking.advice(fed.config, {}, ("region", "station"), ())
        desk.close()
        return advice

    advice = asyncio.run(go())
    assert [option.value for option in advice.paths[0][0].advice.options()] == many
    assert "more than 1,000 branches" in advice.paths[0][1].error


def _one_of_many(self: Any, value: Any, context: Any) -> Any:
    return AdvisedOneOf([str(number) for number in range(1001)])
