"""Pipelines as JSON documents: what they look like, and that nothing is lost on the way."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dfmesh import (
    And,
    BestOf,
    Choose,
    Else,
    FederationConfig,
    ForEach,
    If,
    Not,
    Pipeline,
    PipelineError,
    PlaceParam,
    Yield,
    simulate,
)
from dfmesh.api import Advise, NodeRef, Reduce, TryFromCache
from dfmesh.compiler import compile_pipeline
from dfmesh.netir import Port
from dfmesh.values import to_bytes

CALC = Path(__file__).resolve().parents[1] / "federations" / "calc"

sys.path.insert(0, str(CALC))
import calc_plain  # noqa: E402

DFM = Path(__file__).parent / "dfm_documents"


def again(pipeline: Pipeline) -> Pipeline:
    text = pipeline.model_dump_json()
    read = Pipeline.load(text)
    assert read.model_dump_json() == text
    return read


def node(ident: Any) -> dict[str, Any]:
    return {"tag": "@dfm-node", "ident": ident}


def whole(ident: Any) -> dict[str, Any]:
    return {"id": node(ident), "sel": None, "issubs": True}


# What is written


def test_an_operation_as_dfm_writes_it(ops: Any) -> None:
    with Pipeline(name="n", api_version="1.2.3", mode="discovery") as pipeline:
        first = ops.calc.Add(a=PlaceParam("x"), b=2, site="a")
        ops.calc.Mix(values=[first, (first["k"],), {"n": first[3]}], site=BestOf(["a", "b"]), node_id="m", after=first)
        Yield(first.field("f"), place="out")
    assert pipeline.to_document() == {
        "dfm_body": [
            {
                "dfm_class_name": "calc.Add",
                "dfm_node_id": node(0),
                "dfm_after": None,
                "site": "a",
                "provider": None,
                "a": {"tag": "@dfm-place-param", "place": "x", "multiuse": True},
                "b": 2,
            },
            {
                "dfm_class_name": "calc.Mix",
                "dfm_node_id": node("m"),
                "dfm_after": node(0),
                "site": {"tag": "@dfm-best-of", "sites": ["a", "b"]},
                "provider": None,
                "values": [
                    whole(0),
                    {"@value": "tuple", "of": [{"id": node(0), "sel": "k", "issubs": True}]},
                    {"n": {"id": node(0), "sel": 3, "issubs": True}},
                ],
            },
            {
                "dfm_class_name": "dfmesh.Yield",
                "dfm_node_id": node(1),
                "dfm_after": None,
                "place": "out",
                "value": {"id": node(0), "sel": "f", "issubs": False},
                "multiuse": True,
            },
        ],
        "api_version": "1.2.3",
        "mode": "discovery",
        "name": "n",
    }
    read = again(pipeline)
    assert (read.name, read.api_version, read.mode) == ("n", "1.2.3", "discovery")


def test_what_dfm_has_no_form_for(ops: Any) -> None:
    with Pipeline() as pipeline:
        first = ops.calc.Numbers(n=3, retries=2, timeout=1.5)
        with ForEach(first["a"]["b"].field("c"), window=3, on_error="skip") as item:
            ops.calc.Add(a=item, b=item.index, after=[first, item])
        item.reduce(ops.calc.Add, item, initial=first, site="b", retries=1)
        Yield(PlaceParam("day", default="x")["k"][0])
    [numbers, loop, folded, result] = pipeline.to_document()["dfm_body"]
    assert (numbers["retries"], numbers["timeout"]) == (2, 1.5)
    assert loop["seq"]["selectors"] == [
        {"sel": "a", "issubs": True},
        {"sel": "b", "issubs": True},
        {"sel": "c", "issubs": False},
    ]
    assert (loop["window"], loop["on_error"]) == (3, "skip")
    [inner] = loop["dfm_body"]
    assert inner["a"] == whole(1)  # DFM refers to the element in this way, too
    assert inner["b"] == {**whole(1), "port": "index"}
    assert inner["dfm_after"] == [node(0), node(1)]
    assert (folded["loop"], folded["operation"], folded["initial"], folded["site"]) == (
        node(1),
        "calc.Add",
        whole(0),
        "b",
    )
    assert result["value"] == {
        "tag": "@dfm-place-param",
        "place": "day",
        "multiuse": True,
        "default": "x",
        "selectors": [{"sel": "k", "issubs": True}, {"sel": 0, "issubs": True}],
    }
    again(pipeline)


def test_conditions_as_dfm_writes_them(ops: Any) -> None:
    with Pipeline() as pipeline:
        value = ops.calc.Numbers(n=3)
        with If(And(value == 3, Not(value["k"] > [1, 2]))):
            Yield(1)
        with Else():
            Yield(value > 1)
    branch = pipeline.to_document()["dfm_body"][1]
    assert branch["cond"] == {
        "operator": "and",
        "exp": [
            {"operator": "==", "left": whole(0), "right": 3},
            {
                "operator": "not",
                "exp": {"operator": ">", "left": {"id": node(0), "sel": "k", "issubs": True}, "right": [1, 2]},
            },
        ],
    }
    assert branch["dfm_else"][0]["value"] == {
        "tag": "@dfmesh-condition",
        "of": {"operator": ">", "left": whole(0), "right": 1},
    }
    read = again(pipeline)
    assert [statement.label for statement in read.statements()] == ["calc.Numbers", "If", "Yield", "Yield"]


LOOKALIKES = [
    {"tag": "@dfm-place-param", "place": "x"},
    {"tag": "@dfm-node", "ident": 1},
    {"tag": "__dfm__pickled__", "value": ""},
    {"id": {"tag": "@dfm-node", "ident": 0}},
    {"operator": "==", "left": 1, "right": 2},
    {"@value": "tuple", "of": []},
    {"dfm_node_id": {"tag": "@dfm-node", "ident": 0}},
    {1: "one", (2, 3): None, None: 4},
    {"tag": "plain", "id": 3},
    [({"tag": "@dfm-advise"},)],
    math.nan,
    b"\x00\xff",
    {1, 2},
    2**70,
]


@pytest.mark.parametrize("value", LOOKALIKES, ids=repr)
def test_a_constant_is_never_taken_for_a_mark(value: Any, ops: Any) -> None:
    with Pipeline() as pipeline:
        Yield(value)
        Yield([value, {"k": (value,)}])
        Choose(PlaceParam("p", default=value) == value, value, value)
    read = again(pipeline)
    first, second, third = read.body
    assert to_bytes(first.value) == to_bytes(value)
    assert to_bytes(second.value) == to_bytes([value, {"k": (value,)}])
    assert to_bytes([third.cond.right, third.then, third.cond.left.default]) == to_bytes([value] * 3)


def test_a_pipeline_read_again_can_be_continued(ops: Any) -> None:
    with Pipeline() as pipeline:
        ops.calc.Numbers(n=3, node_id="x")
        Yield(1, node_id=7)
    read = again(pipeline)
    with read:
        statement = Yield(2)
    assert statement.node_id == 8
    assert read.location is None
    assert {s.location for s in read.body[:2]} == {None}


def test_a_pipeline_may_be_read_while_another_is_written(ops: Any) -> None:
    with Pipeline() as outer:
        with ForEach([1]):
            text = '{"dfm_body": [], "name": null}'
            assert Pipeline.load(text).body == []
            Yield(1)
        Yield(2)
    assert len(list(outer.statements())) == 3


def test_pipelines_in_files(tmp_path: Path, ops: Any) -> None:
    with Pipeline(name="saved") as pipeline:
        Yield(ops.calc.Add(a=1, b=2))
    path = tmp_path / "pipeline.json"
    pipeline.save(path)
    assert Pipeline.load(path).model_dump_json() == Pipeline.load(str(path)).model_dump_json()
    assert path.read_text().endswith("}\n")
    text = path.read_text("utf-8")
    path.write_text(text, "utf-8-sig")  # as editors of Windows do
    assert Pipeline.load(path).model_dump_json() == Pipeline.load(f"\ufeff{text}").model_dump_json()
    assert Pipeline.load(path).to_document() == Pipeline.load(text).to_document()
    with pytest.raises(PipelineError, match="cannot read"):
        Pipeline.load(tmp_path / "missing.json")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(PipelineError, match="cannot read"):
        Pipeline.load(path)
    path.write_text('{"dfm_body": [\n  1,, 2]}')
    with pytest.raises(PipelineError) as raised:
        Pipeline.load(path)
    assert str(raised.value.faults[0].location) == f"{path}:2:5"


def test_what_cannot_be_written_is_a_fault_with_the_line(ops: Any) -> None:
    class Own:
        pass

    with Pipeline() as pipeline:
        Yield(Own())
        ops.calc.Add(1, 2, 3)
    with pytest.raises(PipelineError) as raised:
        pipeline.to_document()
    messages = [fault.message for fault in raised.value.faults]
    assert "cannot be written" in messages[0]
    assert "3 were given by position" in messages[1]
    assert {fault.location.file for fault in raised.value.faults} == {__file__}


def test_a_value_too_deep_is_a_fault() -> None:
    value: Any = 1
    for _ in range(150):
        value = [value]
    with Pipeline() as pipeline:
        Yield(value)
    with pytest.raises(PipelineError, match="levels deep"):
        pipeline.to_document()


# What DFM writes


def test_a_document_that_dfm_wrote(calc: FederationConfig) -> None:
    read = Pipeline.load(DFM / "calc.json")
    assert read.name == "written by DFM"
    first, second, mixed, optional, _, branch, numbers, loop, item, constant = read.body
    assert [s.operation for s in (first, second, mixed, optional)] == [
        "calc.Add",
        "calc.Add",
        "calc.Mix",
        "calc.Optional",
    ]
    assert (first.site, second.site, mixed.site.sites) == ("a", "b", ["c", "d"])
    assert second.node_id == "second"
    assert second.after == (0,)
    # DFM wrote the statement inside the dictionary out in full; it means the statement.
    assert isinstance(mixed.arguments["values"][2]["k"], NodeRef)
    # and null for what was not given
    assert list(optional.arguments) == ["x"]
    assert repr(branch.cond) == "((%0 == 3) and not (second > 100))"
    assert loop.body[0].arguments["a"].port is Port.ELEMENT
    assert repr(item.value) == f"%{numbers.node_id}[1]"
    assert constant.value == [1, "two", {"three": None}]
    again(read)
    result = simulate(read, calc, "app", [{"n": 2}])
    assert result.status == "finished", result.errors
    second_value = calc_plain.add(calc_plain.add(2, 1), 2)
    assert list(result.results["each"]) == [calc_plain.add(number, second_value) for number in calc_plain.numbers(3)]
    assert list(result.results["constant"]) == [[1, "two", {"three": None}]]


def test_a_cache_that_dfm_wrote() -> None:
    read = Pipeline.load(DFM / "cache.json")
    cache = read.body[1]
    assert isinstance(cache, TryFromCache)
    assert cache.body[1].cached == cache.node_id
    again(read)


def test_a_pickle_is_not_read() -> None:
    with pytest.raises(PipelineError) as raised:
        Pipeline.load(DFM / "pickled.json")
    [fault] = raised.value.faults
    assert fault.path == "dfm_body[0].a"
    assert "pickled" in fault.message


def statement(class_name: str, **fields: Any) -> str:
    body = [{"dfm_class_name": class_name, "dfm_node_id": node(0), **fields}]
    return json.dumps({"dfm_body": body})


@pytest.mark.parametrize(
    ("class_name", "fields", "operation"),
    [
        ("weather.Bin", {}, "weather.Bin"),
        ("myfed.fed.api.weather.Bin", {}, "weather.Bin"),
        ("org.my.fed.api.weather.fed.Bin", {}, "weather.fed.Bin"),
        ("myfed.fed.site.us.weather.Bin", {"site": "us"}, "weather.Bin"),
        ("myfed.fed.site.us.noaa.weather.Bin", {"site": "us", "provider": "noaa"}, "weather.Bin"),
        ("myfed.fed.site.us.weather.Bin", {}, "us.weather.Bin"),
        ("somewhere.weather.Bin", {}, "somewhere.weather.Bin"),
        ("os.system", {}, "os.system"),
    ],
)
def test_class_names_of_operations(class_name: str, fields: dict[str, Any], operation: str) -> None:
    read = Pipeline.load(statement(class_name, **fields))
    assert read.body[0].operation == operation


def test_an_operation_is_found_by_the_end_of_its_name(calc: FederationConfig) -> None:
    read = Pipeline.load(statement("other.package.calc.Add", a=1, b=2))
    compiled = compile_pipeline(read, calc, "app")
    assert compiled.graph.nodes[0].action.operation == "calc.Add"


@pytest.mark.parametrize("package", ["dfmesh", "nv_dfm_core.api", "dfm.api", "nv_dfm_core"])
def test_class_names_of_constructs(package: str) -> None:
    read = Pipeline.load(statement(f"{package}.Yield", value=1))
    assert isinstance(read.body[0], Yield)


def test_advice_is_read(ops: Any) -> None:
    with Pipeline() as pipeline:
        ops.calc.Add(a=Advise(), b=[Advise()], site=Advise())
    statement = again(pipeline).body[0]
    assert isinstance(statement.site, Advise)
    assert statement.arguments == {"a": Advise(), "b": [Advise()]}


# Random pipelines

names = st.one_of(
    st.text(min_size=1, max_size=5), st.sampled_from(["self", "class", "tag", "id", "@value", "dfm_x", "-"])
)
atoms = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), names, st.binary(max_size=4))
constants = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.one_of(names, st.integers()), inner, max_size=3),
    ),
    max_leaves=8,
)


class Drawing:
    """Draws a pipeline over the calc federation."""

    def __init__(self, data: st.DataObject, ops: Any) -> None:
        self.draw = data.draw
        self.ops = ops
        self.number = 0

    def block(self, visible: list[Any], depth: int) -> None:
        visible = list(visible)
        for _ in range(self.draw(st.integers(1, 4))):
            self.statement(visible, depth)

    def statement(self, visible: list[Any], depth: int) -> None:
        kinds = ["call", "call", "yield", "choose", *(["if", "loop", "cache"] if depth < 2 else [])]
        kind = self.draw(st.sampled_from(kinds))
        self.number += 1
        own: dict[str, Any] = {}
        if self.draw(st.booleans()):
            prefix = self.draw(st.one_of(st.just("n"), names.filter(lambda text: not text.startswith("%"))))
            own["node_id"] = f"{prefix}{self.number}"
        if kind == "call":
            visible.append(self.call(visible, own))
        elif kind == "yield":
            Yield(self.value(visible), place=self.draw(names), **own)
        elif kind == "choose":
            visible.append(Choose(self.condition(visible), self.value(visible), self.value(visible), **own))
        elif kind == "if":
            with If(self.condition(visible), **own):
                self.block(visible, depth + 1)
            if self.draw(st.booleans()):
                with Else():
                    self.block(visible, depth + 1)
        elif kind == "cache":
            with TryFromCache(self.value(visible), ttl=self.draw(st.sampled_from([None, 3, 0.5])), **own) as cache:
                self.block(visible, depth + 1)
                cache.cache(self.value(visible))
            visible.append(cache)
        else:
            self.loop(visible, depth, own)

    def call(self, visible: list[Any], own: dict[str, Any]) -> Any:
        site = self.draw(st.sampled_from([None, "a", BestOf(["b", "c"]), BestOf()]))
        after = (
            self.draw(st.lists(st.sampled_from(visible), max_size=2)) if visible and self.draw(st.booleans()) else []
        )
        after = [each for each in after if not isinstance(each, ForEach)]
        retries, timeout = self.draw(st.integers(0, 2)), self.draw(st.sampled_from([None, 1.5, 7]))
        options = {"site": site, "after": after, "retries": retries, "timeout": timeout, **own}
        return self.ops.calc.Mix(values=self.value(visible), **options)

    def loop(self, visible: list[Any], depth: int, own: dict[str, Any]) -> None:
        sequence = self.draw(st.sampled_from([[1, 2], PlaceParam("seq"), *visible]))
        with ForEach(sequence, window=self.draw(st.sampled_from([None, 1, 5])), **own) as item:
            self.block([*visible, item], depth + 1)
            inner = self.ops.calc.Mix(values=[item, item.index])
        visible.append(item.collect([inner, self.draw(constants)]))
        initial = {"initial": self.value(visible)} if self.draw(st.booleans()) else {}
        visible.append(item.reduce(self.ops.calc.Add, inner, **initial))

    def condition(self, visible: list[Any]) -> Any:
        compared = self.value(visible) if not visible else self.draw(st.sampled_from(visible))
        if not visible:
            return compared
        operator = self.draw(st.sampled_from(["==", "<", "and", "not"]))
        if operator == "==":
            return compared == self.value(visible)
        if operator == "<":
            return compared < self.value(visible)
        return And(compared > 1, self.value(visible)) if operator == "and" else Not(compared)

    def value(self, visible: list[Any]) -> Any:
        choice = self.draw(st.integers(0, 4))
        if choice == 0 or (choice in (1, 2) and not visible):
            return self.draw(constants)
        if choice == 1:
            return self.selected(self.draw(st.sampled_from(visible)))
        if choice == 2:
            return [self.value(visible), (self.draw(st.sampled_from(visible)),), {"k": self.value(visible)}]
        if choice == 3:
            return self.selected(PlaceParam(self.draw(st.sampled_from(["p", "q ü"]))))
        return {self.draw(names): self.value(visible), 3: self.draw(constants)}

    def selected(self, value: Any) -> Any:
        for _ in range(self.draw(st.integers(0, 2))):
            key = self.draw(st.one_of(names, st.integers(-3, 3)))
            value = value.field(key) if isinstance(key, str) and self.draw(st.booleans()) else value[key]
        return value


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_nothing_is_lost_on_the_way(data: st.DataObject, calc: FederationConfig, ops: Any) -> None:
    with Pipeline(name=data.draw(st.one_of(st.none(), names))) as pipeline:
        Drawing(data, ops).block([], 0)
    read = again(pipeline)
    for written in pipeline.statements():
        written.location = None
    first, second = (compile_pipeline(each, calc, "app").encoded_nets for each in (pipeline, read))
    assert first == second


def test_reduce_keeps_its_options(ops: Any) -> None:
    with Pipeline() as pipeline:
        with ForEach([1]) as item:
            pass
        item.reduce(
            ops.calc.Add, item, initial=None, site=BestOf(["a"]), provider="p", timeout=2, node_id="r", x=[item]
        )
    folded = again(pipeline).body[1]
    assert isinstance(folded, Reduce)
    assert (folded.initial, folded.site.sites, folded.provider, folded.timeout) == (None, ["a"], "p", 2)
    assert isinstance(folded.arguments["x"][0], NodeRef)
