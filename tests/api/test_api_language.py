"""The language as a user meets it while writing a pipeline."""

from __future__ import annotations

import contextlib
import inspect
import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

import dfmesh
from dfmesh import (
    And,
    BestOf,
    Choose,
    Else,
    Equal,
    FederationConfig,
    ForEach,
    GreaterThan,
    If,
    LessThanOrEqual,
    Not,
    NotEqual,
    Or,
    Pipeline,
    PipelineError,
    PlaceParam,
    Yield,
)
from dfmesh.api import NO_DEFAULT, Comparison, Logic, NodeRef, Parameter, Reduce, find_references, operation_class
from dfmesh.compiler import validate
from dfmesh.netir import Field, Item, Port


def here() -> int:
    frame = sys._getframe(1)
    return frame.f_lineno


# Operations


def test_operations_have_a_signature_and_a_docstring(ops: Any) -> None:
    signature = inspect.signature(ops.calc.Add)
    assert list(signature.parameters) == ["a", "b", "site", "provider", "after", "retries", "timeout", "node_id"]
    assert signature.parameters["a"].annotation == "integer"
    assert signature.parameters["a"].default is inspect.Parameter.empty
    assert inspect.signature(ops.calc.Optional).parameters["y"].default is None
    assert ops.calc.Add.__doc__.startswith("The operation calc.Add of the tests.")
    assert "a (integer)" in ops.calc.Add.__doc__
    assert ops.calc.Add.__name__ == "Add"
    assert ops.calc.Add.__module__ == "dfmesh.ops"


def test_parameters_may_have_any_name() -> None:
    names = ["self", "from", "class", "operation", "positional", "cls", "arguments", "not an identifier", "Größe"]
    made = operation_class("odd.Names", [Parameter(name) for name in names])
    assert inspect.signature(made)
    with Pipeline():
        statement = made(**dict.fromkeys(names, 1))
    assert statement.arguments == dict.fromkeys(names, 1)


def test_arguments_by_position_and_by_name(ops: Any) -> None:
    with Pipeline():
        assert ops.calc.Add(1, 2).arguments == ops.calc.Add(1, b=2).arguments == {"a": 1, "b": 2}


def test_mistakes_in_the_call_are_kept_for_the_validator_with_the_line(ops: Any) -> None:
    with Pipeline():
        line = here() + 1
        many = ops.calc.Add(1, 2, 3)
        twice = ops.calc.Add(1, a=2)
    assert [(fault.message, fault.location.line) for fault in many.faults] == [
        ("calc.Add takes 2 arguments, 3 were given by position", line)
    ]
    assert many.faults[0].hint == "its parameters are a, b"
    assert many.faults[0].location.file == __file__
    assert twice.faults[0].message == "calc.Add is given 'a' twice"


def test_statements_know_their_line(ops: Any) -> None:
    def wrapper() -> Any:
        return ops.calc.Add(a=1, b=2)

    with Pipeline() as pipeline:
        with ForEach([1]) as item:
            wrapper()
        line = here()
        item.collect(1)
        Yield(1)
    assert [statement.location.line - line for statement in pipeline.statements()] == [-2, -5, 1, 2]
    assert {statement.location.file for statement in pipeline.statements()} == {__file__}


# References


def test_statements_become_references_at_any_depth(ops: Any) -> None:
    with Pipeline():
        first = ops.calc.Numbers(n=3, node_id="first")
        nested = ops.calc.Mix(values=[first, (first[0], {"k": first["x"].field("y"), first: 1})])
        argument = nested.arguments["values"]
    assert isinstance(argument[0], NodeRef)
    assert [str(reference) for reference in find_references(argument)] == [
        "first",
        "first[0]",
        "first['x'].y",
        "first",
    ]
    assert argument[1][1]["k"].select == (Item("x"), Field("y"))


def test_given_lists_are_copied(ops: Any) -> None:
    values = [1]
    with Pipeline():
        statement = ops.calc.Mix(values=values)
        values.append(2)
    assert statement.arguments["values"] == [1]


def test_loops_have_element_and_index() -> None:
    with Pipeline(), ForEach([1], node_id="loop") as item:
        assert item.to_reference().port is Port.ELEMENT
        assert item.index.port is Port.INDEX
        assert repr(item["x"]) == "loop.element['x']"


def test_parameters_keep_default_and_multiuse_when_selected() -> None:
    chosen = PlaceParam("day", default={"k": 1}, multiuse=False)["k"]
    assert isinstance(chosen, PlaceParam)
    assert (chosen.default, chosen.multiuse, chosen.select) == ({"k": 1}, False, (Item("k"),))
    assert PlaceParam("day").default is NO_DEFAULT


def test_parameters_of_a_pipeline_in_order_with_their_defaults(ops: Any) -> None:
    with Pipeline() as pipeline:
        with If(PlaceParam("on") == 1):
            ops.calc.Add(a=PlaceParam("x"), b=1)
        with ForEach(PlaceParam("seq")) as item:
            ops.calc.Add(a=item, b=PlaceParam("x", default=None))
        folded = item.reduce(ops.calc.Add, item, initial=PlaceParam("start"))
        Yield([folded, {"k": PlaceParam("last")}])
    assert list(pipeline.parameters()) == ["on", "x", "seq", "start", "last"]
    assert pipeline.parameters()["x"].default is None


# Conditions


def test_comparisons_and_logic_make_conditions(ops: Any) -> None:
    with Pipeline():
        value = ops.calc.Numbers(n=3, node_id="v")
        operators = [value == 1, value != 1, value < 1, value <= 1, value > 1, value >= 1]
        assert [condition.operator for condition in operators] == ["==", "!=", "<", "<=", ">", ">="]
        assert repr((value > 3) & ~(value["k"] == "x") | value) == "(((v > 3) and not (v['k'] == 'x')) or v)"
        assert repr(And(value > 1, Or(value, Not(value < 2)))) == "((v > 1) and (v or not (v < 2)))"
        assert repr(And([value, 1])) == "(v and 1)"
        assert isinstance(value > 3, Comparison)
        assert repr(Choose(Equal(value, 1), 1, 2).cond) == "(v == 1)"
        assert isinstance(~value, Logic)
        assert [type(c).__name__ for c in (NotEqual(1, 2), GreaterThan(1, 2), LessThanOrEqual(1, 2))] == [
            "NotEqual",
            "GreaterThan",
            "LessThanOrEqual",
        ]


@pytest.mark.parametrize(
    ("use", "way_out"),
    [
        (lambda value: bool(value), "If(...)"),
        (lambda value: bool(value > 1), "If(...)"),
        (lambda value: 1 < value < 3, "And, Or, Not"),
        (lambda value: value and 1, "And, Or, Not"),
        (lambda value: not value, "If(...)"),
        (lambda value: list(value), "ForEach(...)"),
        (lambda value: len(value), "operation"),
        (lambda value: value[1:2], "operation"),
        (lambda value: value[True], "string or an integer"),
        (lambda value: [x for x in value], "ForEach(...)"),  # noqa: C416
        (lambda value: 1 in value, "ask in an operation"),
        (lambda value: value[1.5], "string or an integer"),
    ],
)
def test_a_value_that_is_not_there_yet_says_what_to_write_instead(use: Any, way_out: str, ops: Any) -> None:
    with Pipeline():
        value = ops.calc.Numbers(n=3)
        for each in (value, value["k"], PlaceParam("p")):
            with pytest.raises(TypeError) as raised:
                use(each)
            assert way_out in str(raised.value)


# Blocks


def test_statements_belong_into_a_pipeline(ops: Any) -> None:
    makers = [lambda: ops.calc.Add(a=1, b=2), lambda: Yield(1), lambda: ForEach([1]), lambda: If(True), Else]
    for make in makers:
        with pytest.raises(PipelineError) as raised:
            make()
        [fault] = raised.value.faults
        assert "outside of a pipeline" in fault.message
        assert fault.location.file == __file__
        assert "with Pipeline() as p:" in fault.hint


def test_pipelines_do_not_nest() -> None:
    with Pipeline(), pytest.raises(PipelineError, match="inside another"), Pipeline():
        pass


def test_a_pipeline_may_be_written_in_each_thread() -> None:
    made = []

    def write() -> None:
        with Pipeline() as pipeline:
            Yield(1)
        made.append(pipeline)

    with Pipeline() as pipeline:
        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
        Yield(1)
        Yield(2)
    assert [len(each.body) for each in [*made, pipeline]] == [1, 2]


def test_an_error_inside_a_block_closes_it(ops: Any) -> None:
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), Pipeline(), ForEach([1]), If(True):
            1 / 0
    with pytest.raises(PipelineError):
        Yield(1)


def test_a_pipeline_can_be_continued() -> None:
    with Pipeline() as pipeline:
        Yield(1)
    with pipeline:
        Yield(2)
    assert [statement.node_id for statement in pipeline.body] == [0, 1]


def test_a_block_is_written_in_one_piece() -> None:
    with Pipeline() as pipeline:
        with ForEach([1]) as item:
            with pytest.raises(PipelineError, match=r"this ForEach \(.*\) has its statements already"), item:
                Yield(1)
            Yield(2)
        Yield(3)
    assert [type(statement) for statement in pipeline.body] == [ForEach, Yield]


def test_a_pipeline_that_was_left_by_an_error_is_not_run(calc: FederationConfig) -> None:
    with contextlib.suppress(ZeroDivisionError), Pipeline() as pipeline:
        Yield(1)
        1 / 0
    with pytest.raises(PipelineError, match=r"test_api_language.py:\d+: the pipeline was left here by an error"):
        validate(pipeline, calc)
    with pytest.raises(PipelineError, match="was left here"), Pipeline():
        pipeline()
    with pytest.raises(PipelineError, match="was left here"):
        pipeline.model_dump_json()


def test_a_pipeline_is_not_called_in_itself(ops: Any) -> None:
    with Pipeline() as pipeline:
        ops.calc.Add(a=1, b=2)
        with pytest.raises(PipelineError, match="is called in itself"):
            pipeline()


def test_else_belongs_to_the_if_before_it() -> None:
    with Pipeline() as pipeline:
        with If(True) as branch:
            Yield(1)
        with Else():
            Yield(2)
        for expected in ("has an Else already", "no If right before it"):
            with pytest.raises(PipelineError, match=expected):
                Else()
            Yield(3)
    assert branch.otherwise is not None
    assert [s.value for s in pipeline.statements() if isinstance(s, Yield)] == [1, 2, 3, 3]


def test_what_comes_out_of_a_loop_stands_behind_it(ops: Any) -> None:
    with Pipeline() as pipeline:
        with ForEach([1], node_id="loop") as item:
            inside = item.collect(item)
            ops.calc.Add(a=item, b=1)
        later = ops.calc.Add(a=1, b=1, node_id="later")
        behind = item.reduce(ops.calc.Add, item, initial=later, node_id="behind")
        with If(True):
            branch = item.collect(item, node_id="branch")
    ids = [statement.node_id for statement in pipeline.body if not isinstance(statement, If)]
    assert ids == ["loop", inside.node_id, "later", "behind", "branch"]
    assert any(statement is branch for statement in pipeline.body)
    assert isinstance(behind, Reduce)
    assert behind.initial.node == "later"


def test_reduce_takes_any_further_arguments(ops: Any) -> None:
    with Pipeline(), ForEach([1]) as item:
        folded = item.reduce(ops.calc.Add, item, value=1, operation=2)
        assert folded.arguments == {"value": 1, "operation": 2}
        with pytest.raises(TypeError, match=r"such as ops\.calc\.Add"):
            item.reduce(max, item)


def test_after_takes_statements_ids_and_lists(ops: Any) -> None:
    with Pipeline():
        first = ops.calc.Add(a=1, b=2)
        second = Yield(1, node_id="y", dfm_after=first)
        third = ops.calc.Add(a=1, b=2, after=[first, "y", 0, first["k"]])
        assert second.after == (0,)
        assert third.after == (0, "y", 0, 0)
        with pytest.raises(TypeError, match="after= takes a statement"):
            Yield(1, after=[2.5])


def test_the_names_of_dfm_are_taken(ops: Any) -> None:
    with Pipeline():
        statement = ops.calc.Add(a=1, b=2, dfm_node_id="n", site=BestOf(sites=["a"]))
        Yield(value=statement, place="out", multiuse=True, dfm_after=statement)
        assert statement.node_id == "n"


def test_statements_are_found_by_id(ops: Any) -> None:
    with Pipeline(name="day") as pipeline:
        with If(True):
            ops.calc.Add(a=1, b=2, node_id="x")
        Yield(1)
    assert pipeline.node("x").label == "calc.Add"
    assert pipeline.node(1).label == "Yield"
    with pytest.raises(KeyError):
        pipeline.node(True)
    assert repr(pipeline) == "<Pipeline day with 3 statements>"


# The package


def test_all_names_of_the_package_can_be_imported() -> None:
    for name in dfmesh.__all__:
        assert getattr(dfmesh, name) is not None
    assert set(dfmesh.__all__) <= set(dir(dfmesh))
    with pytest.raises(AttributeError):
        _ = dfmesh.Nothing


def test_importing_dfmesh_imports_nothing_heavy() -> None:
    heavy = ["numpy", "pyarrow", "pydantic", "rich", "yaml", "xarray", "msgspec", "asyncio", "dfmesh.engine"]
    code = f"import sys, dfmesh; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_language_alone_imports_nothing_heavy() -> None:
    heavy = ["numpy", "pyarrow", "pydantic", "rich", "yaml", "xarray", "asyncio", "dfmesh.engine"]
    code = f"import sys; from dfmesh import Pipeline, Yield; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_cells_of_a_notebook_are_named_as_their_author_sees_them(monkeypatch: pytest.MonkeyPatch) -> None:
    file = "/tmp/ipykernel_77/1234.py"
    code = compile("with Pipeline():\n    statement = Yield(1)", file, "exec")
    names: dict[str, Any] = {"Pipeline": Pipeline, "Yield": Yield}
    exec(code, names)
    assert str(names["statement"].location) == f"{file}:2"
    shell = SimpleNamespace(compile=SimpleNamespace(format_code_name=lambda name: ("Cell", "In[3]")))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))  # type: ignore[arg-type]
    exec(code, names)
    assert str(names["statement"].location) == "Cell In[3]:2"
