"""Adapters with advisors of all kinds, good and bad."""

import asyncio
import os
import sys
import time
from pathlib import Path

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
)


def _ran(name):
    """Leave a trace of a call of `body`, which discovery must never make."""
    if log := os.environ.get("SKY_LOG"):
        Path(log).write_text(name)


VARIABLES = {"gfs": ["wind", "rain"], "icon": ["wind", "snow"]}


class NorthRead:
    def __init__(self, site):
        self.site = site

    def body(self, model, variables, day, level=0):
        _ran("NorthRead")
        return {"site": self.site.name, "model": model, "variables": variables, "day": day}

    @field_advisor("variables", order=1)
    async def variables(self, value, context):
        await asyncio.sleep(0)
        return AdvisedSubsetOf(VARIABLES[context.get("model")])

    @field_advisor("model", order=0)
    async def model(self, value, context):
        return AdvisedOneOf(["gfs", "icon"])

    @field_advisor("day")
    def day(self, value, context):
        return AdvisedDateRange("1995-03-01", "1995-03-31")


def south_read(model, variables, day, level=0):
    _ran("south_read")
    return {"site": "south", "model": model, "variables": variables, "day": day}


@advisor_of(south_read, "model")
def south_model():
    return AdvisedOneOf(["gfs", "ifs"])


@advisor_of(south_read, "day")
def south_day(value):
    return AdvisedDateRange("1995-03-15", "1995-12-31")


class EastRead:
    def body(self, model, variables, day, level=0):
        _ran("EastRead")

    @field_advisor("model", order=0)
    def model(self, value, context):
        raise ConnectionError("the catalogue is down")

    @field_advisor("level", order=1)
    def level(self, value, context):
        return AdvisedOneOf([0, 10, 100])

    @field_advisor("variables", order=2)
    def variables(self, value, context):
        return AdvisedSubsetOf(["wind"])


def plot(data, projection, legend=False, title=""):
    _ran("plot")
    return f"{projection} {legend}"


class NorthTune:
    def body(self, speed, colour):
        _ran("NorthTune")

    @field_advisor("speed")
    def speed(self, value, context):
        return AdvisedOneOf([1, 2, 3])

    @field_advisor("colour")
    def colour(self, value, context):
        if context.get("speed") == 2:
            return AdvisedError("there is no paint at speed 2")
        return AdvisedLiteral("red")


class SouthTune:
    def body(self, speed, colour):
        _ran("SouthTune")

    @field_advisor("speed")
    def speed(self, value, context):
        return AdvisedError("the motor is being repaired")

    @field_advisor("colour")
    def colour(self, value, context):
        return AdvisedLiteral("blue")


class Unmakeable:
    def __init__(self):
        raise RuntimeError("no licence")

    def body(self, n):
        _ran("Unmakeable")


class Wait:
    def body(self, n, m):
        _ran("Wait")

    @field_advisor("n", order=0)
    def n(self, value, context):
        time.sleep(3)
        return Okay()

    @field_advisor("m", order=1)
    def m(self, value, context):
        return AdvisedLiteral(5)


def quick(n, m):
    _ran("quick")
    return n


class Fatal:
    def body(self, n):
        _ran("Fatal")

    @field_advisor("n")
    def n(self, value, context):
        os._exit(7)


class Odd:
    def body(self, kind, extra=""):
        _ran("Odd")

    @field_advisor("kind", order=0)
    def kind(self, value, context):
        return AdvisedOneOf(
            ["exit", "list", "empty", "unsendable", "unknown", "interrupt", "cancel", "stop", "wrong range", "good"]
        )

    @field_advisor("extra", order=1)
    def extra(self, value, context):
        kind = context["kind"]
        if kind == "unknown":
            return context["no such field"]
        if kind in ("interrupt", "cancel", "stop"):
            raise {"interrupt": KeyboardInterrupt, "cancel": asyncio.CancelledError, "stop": StopIteration}[kind]
        if kind == "wrong range":
            return AdvisedDateRange("yesterday", "today")
        return {
            "exit": lambda: sys.exit(3),
            "list": lambda: ["a"],
            "empty": lambda: AdvisedOneOf([]),
            "unsendable": lambda: AdvisedLiteral(object()),
            "good": lambda: AdvisedLiteral("x"),
        }[kind]()


class Options:
    def body(self, **given):
        _ran("Options")

    @field_advisor("literal")
    def literal(self, value, context):
        return AdvisedLiteral({"a": (1, 2)})

    @field_advisor("one")
    def one(self, value, context):
        return AdvisedOneOf(["x", AdvisedDateRange("2001-01-01", "2001-12-31")])

    @field_advisor("several")
    def several(self, value, context):
        return AdvisedSubsetOf({"q", "p"}, split_on_advice=True)

    @field_advisor("dates")
    def dates(self, value, context):
        return AdvisedDateRange("1995-03-18T06:00", "1995-03-20")

    @field_advisor("dictionary")
    def dictionary(self, value, context):
        return AdvisedDict({"unit": AdvisedOneOf(["K", "C"]), "version": 2})

    @field_advisor("fine")
    def fine(self, value, context):
        return Okay()


class Mapped:
    def body(self, color, width, depth):
        _ran("Mapped")

    @field_advisor("color", order=0)
    def color(self, value, context):
        return AdvisedOneOf(["red", "blue"])

    @field_advisor("width", order=1)
    def width(self, value, context):
        assert context.get("depth") == 7
        assert context.get("shade") == context["color"]
        return AdvisedLiteral(len(context.get("color")))


STATIONS = {"alps": ["zugspitze", "sonnblick"], "coast": ["sylt"]}


class Staged:
    def body(self, region, station):
        _ran("Staged")

    @field_advisor("region", order=0)
    def region(self, value, context):
        return AdvisedOneOf(list(STATIONS), break_on_advice=True)

    @field_advisor("station", order=1)
    def station(self, value, context):
        return AdvisedOneOf(STATIONS[context.get("region")])


def merge(left, right):
    _ran("merge")
    return {**left, **right}
