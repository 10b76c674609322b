"""Every fault of the validator: what a user may write, to be shown with the real messages in docs/faults.md.

A case is a title, the user's lines, and for each fault that is expected its line and a part of its message.
"""

from __future__ import annotations

import collections
from dataclasses import dataclass
from typing import Any

from dfmesh import FederationConfig, Pipeline, PipelineError, PlaceParam, Yield
from dfmesh.compiler import compile_pipeline, validate

FILE = "pipeline.py"

OPERATIONS: dict[str, Any] = {
    "weather.Read": {
        "parameters": {
            "hour": {"type": "integer", "minimum": 0, "maximum": 23, "description": "Hour of the day in UTC, 0 to 23."}
        },
        "required": ["hour"],
    },
    "weather.Bin": {
        "parameters": {"reports": {}, "step": {"type": "number", "description": "Size of a cell in degrees."}},
        "required": ["reports"],
    },
    "weather.Merge": {"parameters": {"left": {}, "right": {}}, "required": ["left", "right"]},
    "weather.Render": {
        "parameters": {"grid": {}, "colours": {"enum": ["heat", "grey"], "description": "Colour scale."}},
        "required": ["grid"],
    },
    "weather.Forecast": {"parameters": {"grid": {}}, "required": ["grid"]},
    "weather.Publish": {},
}


def _adapter(**exposed: str) -> dict[str, Any]:
    args: dict[str, Any] = {"reports": "reports", "step": "step"}
    for name, parameter in exposed.items():
        args[name] = {"const": 1, "expose-as": {"param": parameter, "type": "integer"}}
    return {"adapter": "builtins.dict", "args": args}


_PLAIN = {"adapter": "builtins.dict"}

FEDERATION: dict[str, Any] = {
    "dfm": "1.0.0",
    "operations": OPERATIONS,
    "sites": {
        "us": {"interface": {"weather.Read": _PLAIN, "weather.Bin": _adapter(k="least"), "weather.Merge": _PLAIN}},
        "ca": {"interface": {"weather.Read": _PLAIN, "weather.Bin": _adapter(m="most"), "weather.Merge": _PLAIN}},
        "app": {
            "interface": {"weather.Render": _PLAIN},
            "providers": {"gpu": {"interface": {"weather.Forecast": _PLAIN}}},
        },
    },
}


@dataclass(frozen=True)
class Case:
    """Something that is wrong.

    Attributes:
        title: What it is.
        code: The lines inside `with Pipeline() as p:`.
        expected: Line of the code and part of the message, per fault.
        parameters: Parameter set that the pipeline is given, if that is what is wrong.
        before: The lines of another pipeline, written before.
    """

    title: str
    code: str
    expected: tuple[tuple[int, str], ...]
    parameters: dict[str, Any] | None = None
    before: str = ""


def _case(title: str, code: str, *expected: tuple[int, str], **options: Any) -> Case:
    return Case(title, code.strip("\n"), expected, **options)


REFERENCES = [
    _case(
        "A name that does not exist",
        """
grid = ops.weather.Bin(reports=ops.weather.Read(hour=3, node_id="reports"))
Yield(NodeRef("report"))
""",
        (2, "Yield uses 'report', which is no statement of this pipeline"),
    ),
    _case(
        "A value of another pipeline",
        """
Yield(ops.weather.Bin(reports=reports))
Yield(hour, after=reports)
hour.collect(reports)
""",
        (1, "weather.Bin uses weather.Read (earlier.py:2), which belongs to another pipeline"),
        (2, "Yield comes after weather.Read (earlier.py:2), which belongs to another pipeline"),
        (2, "Yield uses ForEach (earlier.py:1), which belongs to another pipeline"),
        (3, "Collect uses ForEach (earlier.py:1), which belongs to another pipeline"),
        (3, "Collect uses weather.Read (earlier.py:2), which belongs to another pipeline"),
        before="""
with ForEach([1, 2]) as hour:
    reports = ops.weather.Read(hour=hour)
""".strip(),
    ),
    _case(
        "A value that comes later",
        """
Yield(NodeRef("reports"))
ops.weather.Read(hour=3, node_id="reports")
""",
        (1, "Yield uses weather.Read (pipeline.py:2), which stands behind it"),
    ),
    _case(
        "A statement without a value",
        """
with If(True, node_id="branch"):
    Yield(1)
Yield(NodeRef("branch"))
""",
        (3, "Yield uses If (pipeline.py:1), which has no value"),
    ),
    _case(
        "The element of a loop outside of the loop",
        """
with ForEach([1, 2, 3]) as hour:
    reports = ops.weather.Read(hour=hour)
Yield([hour, reports])
""",
        (3, "uses the element of ForEach (pipeline.py:1) outside of its block"),
        (3, "uses weather.Read (pipeline.py:2) outside of the ForEach in which that is made"),
    ),
    _case(
        "A value of one branch outside of the branch",
        """
with If(PlaceParam("early")):
    reports = ops.weather.Read(hour=3)
with Else():
    late = ops.weather.Read(hour=21)
Yield(reports)
Yield(Choose(PlaceParam("early"), reports, late))
""",
        (5, "uses weather.Read (pipeline.py:2) outside of the If in which that is made"),
    ),
    _case(
        "A value of a cached block outside of the block",
        """
with TryFromCache("maps") as image:
    grid = ops.weather.Read(hour=3)
    image.cache(grid)
Yield(grid)
Yield(image)
""",
        (4, "outside of the TryFromCache in which that is made"),
    ),
    _case(
        "The outcome of a loop inside of the loop",
        """
with ForEach([1, 2, 3]) as hour:
    reports = ops.weather.Read(hour=hour)
    Yield(hour.collect(reports))
""",
        (3, "Yield uses Collect (pipeline.py:3) in the loop that it gathers from"),
    ),
    _case(
        "A loop that gathers what came of it",
        """
with ForEach([1, 2, 3]) as hour:
    reports = ops.weather.Read(hour=hour)
total = hour.reduce(ops.weather.Merge, reports)
Yield(hour.collect([reports, total]))
""",
        (4, "Collect gathers reduce weather.Merge (pipeline.py:3), which is there only when its loop has ended"),
    ),
    _case(
        "A fold that starts from a value of its own loop",
        """
with ForEach([1, 2, 3]) as hour:
    reports = ops.weather.Read(hour=hour)
total = hour.reduce(ops.weather.Merge, reports, initial=reports)
""",
        (3, "outside of the ForEach in which that is made"),
    ),
    _case(
        "after= a statement that is not there, or not reachable",
        """
with ForEach([1, 2, 3]) as hour:
    reports = ops.weather.Read(hour=hour, after="cleanup")
ops.weather.Read(hour=3, after=reports)
""",
        (2, "comes after 'cleanup', which is no statement of this pipeline"),
        (3, "comes after weather.Read (pipeline.py:2), which stands in a block that has ended"),
    ),
    _case(
        "after= the block in which a statement stands",
        """
with ForEach([1, 2, 3]) as hour:
    ops.weather.Read(hour=hour, after=hour)
""",
        (2, "comes after ForEach (pipeline.py:1), in which it stands"),
    ),
]

IDS = [
    _case(
        "Two statements with the same id",
        """
ops.weather.Read(hour=3, node_id="reports")
ops.weather.Read(hour=4, node_id="reports")
""",
        (2, "the id 'reports' is used twice"),
    ),
    _case(
        "Ids that cannot be one",
        """
ops.weather.Read(hour=3, node_id="")
ops.weather.Read(hour=3, node_id="%3")
ops.weather.Read(hour=3, node_id=1.5)
ops.weather.Read(hour=3, node_id=-1)
""",
        (1, "'' cannot be an id"),
        (2, "'%3' cannot be an id"),
        (3, "1.5 cannot be an id"),
        (4, "between 0 and"),
    ),
    _case(
        "A place that is no name, or reserved",
        """
Yield(1, place=7)
Yield(1, place="_dfm_status_")
""",
        (1, "place=7 is no name"),
        (2, "place='_dfm_status_' is reserved"),
    ),
]

SITES = [
    _case(
        "An operation that the federation does not have",
        """
ops["weather.Read"](hour=3)
Operation = operation_class("weather.Reed", [])
Operation()
""",
        (3, "the federation has no operation 'weather.Reed'"),
    ),
    _case("A site that the federation does not have", 'ops.weather.Read(hour=3, site="usa")', (1, "no site 'usa'")),
    _case(
        "A site that does not offer the operation",
        """
ops.weather.Read(hour=3, site="app")
ops.weather.Render(grid=1, site=BestOf(["us", "ca"]))
ops.weather.Publish()
""",
        (1, "weather.Read is not offered by 'app'"),
        (2, "weather.Render is not offered by 'us' or 'ca'"),
        (3, "weather.Publish is not offered by any site"),
    ),
    _case(
        "A provider that does not offer the operation",
        """
ops.weather.Forecast(grid=1)
ops.weather.Forecast(grid=1, provider="cpu")
""",
        (1, "weather.Forecast is not offered by any site"),
        (2, "weather.Forecast is not offered by provider 'cpu' of any site"),
    ),
    _case(
        "Several sites without BestOf",
        """
ops.weather.Read(hour=3, site=["us", "ca"])
ops.weather.Read(hour=3, site=BestOf("us"))
ops.weather.Read(hour=3, site=BestOf([]))
""",
        (1, "site=['us', 'ca'] is a list"),
        (2, "sites='us'"),
        (3, "BestOf([]) leaves no site"),
    ),
]

ARGUMENTS = [
    _case(
        "References where they are not looked for",
        """
grid = ops.weather.Read(hour=3)
Yield({grid})
Yield([collections.namedtuple("Pair", "left right")(grid, 1)])
Yield(sub(hour=3))
""",
        (2, "Yield is given a reference inside a set"),
        (3, "Yield is given a reference inside a Pair"),
        (4, "Yield is given all results of a sub-pipeline at once"),
    ),
    _case(
        "What has no value, in place of a value",
        """
with If(True) as branch:
    sent = Yield(1)
Yield([branch, sent])
Yield(ops.weather.Bin(reports=ops.weather.Read))
Yield(p)
""",
        (3, "Yield is given this If, which has no value"),
        (4, "weather.Bin is given the operation weather.Read itself"),
        (5, "Yield is given a pipeline"),
    ),
    _case(
        "A parameter that is missing, misspelled, or too much",
        """
ops.weather.Read()
ops.weather.Read(hours=3)
ops.weather.Read(3, 4)
ops.weather.Read(3, hour=4)
""",
        (1, "weather.Read needs the parameter 'hour'"),
        (2, "weather.Read has no parameter 'hours'"),
        (3, "weather.Read takes 1 argument, 2 were given by position"),
        (4, "weather.Read is given 'hour' twice"),
    ),
    _case(
        "A value of another type, or out of range",
        """
ops.weather.Read(hour="three")
ops.weather.Read(hour=24)
ops.weather.Render(grid=1, colours="red")
ops.weather.Read(hour=PlaceParam("hour", default="noon"))
""",
        (1, "hour is 'three' (str), expected integer"),
        (2, "hour is 24, above the maximum 23"),
        (3, "colours is 'red', expected one of 'heat', 'grey'"),
        (4, "the default of parameter 'hour', taken for 'hour', is 'noon'"),
    ),
    _case(
        "A part of a value of another type",
        """
times = PlaceParam("times", default={"first": "noon", "all": 24})
ops.weather.Read(hour=times["first"])
with ForEach(times["all"]) as hour:
    Yield(hour)
with ForEach([{"hour": 3}, {"hour": "noon"}]) as time:
    ops.weather.Read(hour=time["hour"])
""",
        (2, "the default of parameter 'times', taken for 'hour', ['first'] is 'noon' (str), expected integer"),
        (3, "ForEach cannot go over the default of parameter 'times', which ['all'] is 24 (int)"),
        (6, "weather.Read: hour ['hour'] is 'noon' (str), expected integer (element 1 of the loop)"),
    ),
    _case(
        "A list or dictionary where something else is wanted, whatever is in it",
        """
grid = ops.weather.Read(hour=3)
ops.weather.Read(hour=[grid])
ops.weather.Bin(reports=grid, step={"degrees": grid})
with ForEach({"early": 3, "late": 21}) as hour:
    ops.weather.Read(hour=hour)
""",
        (2, "weather.Read: hour is [%0] (list), expected integer"),
        (3, "weather.Bin: step is {'degrees': %0} (dict), expected number"),
        (5, "weather.Read: hour is ('early', 3) (tuple), expected integer (element 0 of the loop)"),
    ),
    _case(
        "Parameters that no single site has",
        """
ops.weather.Bin(reports=1, least=2, most=3)
ops.weather.Bin(reports=1, least=2, site="ca")
""",
        (1, "no site takes all of least, most for weather.Bin"),
        (2, "weather.Bin has no parameter 'least' at ca"),
    ),
    _case(
        "A value that cannot be sent",
        """
ops.weather.Bin(reports=open(__file__))
Yield([lambda: 1])
Yield(PlaceParam("x", default=object()))
""",
        (1, "weather.Bin is given a value that cannot be sent to a site"),
        (2, "Yield is given a value that cannot be sent to a site"),
        (3, "the default of parameter 'x' cannot be sent to a site"),
    ),
    _case(
        "A value that contains itself",
        """
names = ["us"]
names.append(names)
Yield(names)
grids = [ops.weather.Read(hour=3)]
grids.append(grids)
Yield(grids)
""",
        (3, "nested more than 100 levels deep"),
        (6, "Yield is given a value that is nested more than 100 levels deep"),
    ),
    _case(
        "A pickled object for sites that take none",
        """
ops.weather.Bin(reports=PickledObject({1, 2}))
ops.weather.Bin(reports=PickledObject({1, 2}), site="ca")
""",
        (1, "weather.Bin is given a PickledObject, which is not taken by us or ca"),
        (2, "weather.Bin is given a PickledObject, which is not taken by ca"),
    ),
    _case(
        "Two defaults for one parameter",
        """
ops.weather.Read(hour=PlaceParam("hour", default=3))
ops.weather.Read(hour=PlaceParam("hour", default=4))
Yield(PlaceParam("day", default=[PlaceParam("hour")]))
""",
        (2, "the parameter 'hour' has another default (4) here"),
        (3, "the default of parameter 'day' depends on the pipeline itself"),
    ),
    _case(
        "Options of a call",
        """
ops.weather.Read(hour=3, retries=-1, timeout=0)
ops.weather.Read(hour=3, retries="2", timeout="1 min")
ops.weather.Read(hour=3, retries=2**63)
""",
        (1, "retries=-1"),
        (1, "timeout=0"),
        (2, "retries='2'"),
        (2, "timeout='1 min'"),
        (3, "retries=9223372036854775808"),
    ),
]

BLOCKS = [
    _case(
        "Options of a loop",
        """
with ForEach([1, 2], window=0):
    Yield(1)
with ForEach([1, 2], on_error="ignore"):
    Yield(1)
""",
        (1, "window=0"),
        (3, "on_error='ignore'"),
    ),
    _case(
        "A loop over something that has no elements",
        """
with ForEach(24):
    Yield(1)
with ForEach("us"):
    Yield(1)
with ForEach(PlaceParam("hours", default=24)):
    Yield(1)
""",
        (1, "ForEach cannot go over 24"),
        (3, "ForEach cannot go over 'us'"),
        (5, "ForEach cannot go over the default of parameter 'hours', which is 24 (int)"),
    ),
    _case(
        "A fold with an operation that does not merge",
        """
with ForEach([1, 2]) as hour:
    reports = ops.weather.Read(hour=hour)
hour.reduce(ops.weather.Read, reports)
hour.reduce(ops.weather.Merge, reports, left=1)
""",
        (3, "weather.Read has fewer than two parameters and cannot reduce"),
        (4, "weather.Merge is given 'left' twice"),
    ),
    _case(
        "A cached block that stores nothing, or twice, or not in it",
        """
with TryFromCache("maps") as image:
    ops.weather.Read(hour=3)
with TryFromCache("maps", ttl=0) as other:
    other.cache(1)
    other.cache(2)
other.cache(3)
""",
        (1, "the block of TryFromCache stores nothing"),
        (3, "the block of TryFromCache stores 2 values"),
        (3, "ttl=0"),
        (6, "does not stand directly in the block of its TryFromCache"),
    ),
    _case(
        "A cached block that stores in a block inside",
        """
with TryFromCache("maps") as image:
    with If(PlaceParam("late")):
        image.cache(1)
""",
        (3, "cache(...) does not stand directly in the block of its TryFromCache"),
    ),
    _case(
        "A block without `with`",
        """
If(PlaceParam("late"))
Yield(ops.weather.Read(hour=3))
ForEach([1, 2])
with If(True):
    Yield(1)
Else()
Yield(2)
""",
        (1, "this If has no block"),
        (3, "this ForEach has no block"),
        (6, "this Else has no block"),
    ),
    _case("An empty pipeline", "pass", (0, "the pipeline is empty")),
]

PARAMETERS = [
    _case(
        "A parameter set that does not fit",
        """
ops.weather.Read(hour=PlaceParam("hour"))
Yield([PlaceParam("day"), PlaceParam("note")])
""",
        (0, "the pipeline has no parameter 'hours'"),
        (1, "the parameter 'hour' is 42, above the maximum 23"),
        (0, "the parameter 'day' is not given"),
        (0, "the parameter 'note' cannot be sent to a site"),
        parameters={"hours": 3, "hour": 42, "note": print},
    ),
    _case(
        "A parameter of which a part does not fit",
        """
Yield(ops.weather.Read(hour=PlaceParam("options")["hours"][0]))
""",
        (1, "the parameter 'options' ['hours'][0] is 42, above the maximum 23"),
        parameters={"options": {"hours": [42]}},
    ),
    _case(
        "A parameter that a loop cannot go over",
        """
with ForEach(PlaceParam("hours")) as hour:
    Yield(ops.weather.Read(hour=hour))
""",
        (1, "the parameter 'hours' is 24 (int), and a loop goes over lists, arrays and the like"),
        parameters={"hours": 24},
    ),
    _case(
        "A parameter for a pipeline that has none",
        'Yield("hello")',
        (0, "the pipeline has no parameter 'hour'"),
        parameters={"hour": 3},
    ),
]

SECTIONS = {
    "References": REFERENCES,
    "Names": IDS,
    "Operations and sites": SITES,
    "Arguments": ARGUMENTS,
    "Blocks": BLOCKS,
    "Parameter sets": PARAMETERS,
}

CASES = [case for cases in SECTIONS.values() for case in cases]


def write(code: str, config: FederationConfig, before: str = "") -> Pipeline:
    """Run the lines of a user as if they stood in a file of their own."""
    import dfmesh
    from dfmesh import api

    names = {name: getattr(dfmesh, name) for name in dfmesh.__all__}
    names |= {"NodeRef": api.NodeRef, "operation_class": api.operation_class, "TryFromCache": api.TryFromCache}
    with Pipeline() as sub:
        Yield(config.ops.weather.Read(hour=PlaceParam("hour")), place="reports")
    names |= {"sub": sub, "collections": collections}
    names |= {"ops": config.ops, "__file__": __file__}
    with Pipeline():
        exec(compile(before, "earlier.py", "exec"), names)
    with Pipeline() as pipeline:
        exec(compile(code, FILE, "exec"), names | {"p": pipeline})
    return pipeline


def error_of(case: Case, config: FederationConfig) -> PipelineError:
    """Give what a user would be told.

    Raises:
        AssertionError: nothing is wrong.
    """
    try:
        pipeline = write(case.code, config, case.before)
        if case.parameters is None:
            validate(pipeline, config)
        else:
            compile_pipeline(pipeline, config, "app").parameter_set(case.parameters)
    except PipelineError as error:
        return error
    raise AssertionError(f"{case.title}: there is no fault")
