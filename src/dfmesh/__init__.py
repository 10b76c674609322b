"""dfmesh: a data federation mesh.

Several organisations, the *sites*, keep their own data, code, secrets and rules; together they offer typed
*operations*. A user writes one *pipeline* of operations; dfmesh decides where each runs, moves what has to move, and
streams the results back while the job runs.

    from dfmesh import Federation, ForEach, Pipeline, Yield

    federation = Federation.load("weather.dfm.yaml")
    ops = federation.ops
    with Pipeline() as pipeline:
        Yield(ops.weather.Hours(day="1995-03-18"), place="hours")
    with federation.session() as session:
        print(session.run(pipeline)["hours"])
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dfmesh.api import (
        Advise,
        And,
        BestOf,
        Choose,
        Else,
        Equal,
        ForEach,
        GreaterThan,
        GreaterThanOrEqual,
        If,
        LessThan,
        LessThanOrEqual,
        NodeRef,
        Not,
        NotEqual,
        Operation,
        Or,
        Pipeline,
        PlaceParam,
        TryFromCache,
        Yield,
    )
    from dfmesh.compiler import CompiledPipeline, Explanation
    from dfmesh.config import FederationConfig
    from dfmesh.engine.adapters import CallStopped, Provider, Site, ThisCall, this_call
    from dfmesh.engine.discovery import (
        AdvisedDateRange,
        AdvisedDict,
        AdvisedError,
        AdvisedLiteral,
        AdvisedOneOf,
        AdvisedSubsetOf,
        AdvisedValue,
        Okay,
        advisor_of,
        field_advisor,
    )
    from dfmesh.errors import (
        ConfigError,
        DfmeshError,
        Fault,
        IterationError,
        JobCancelledError,
        JobError,
        OperationFailure,
        PipelineError,
        SessionError,
        SourceLocation,
        ValueDecodingError,
        ValueEncodingError,
    )
    from dfmesh.session import (
        DiscoveryResult,
        ErrorToken,
        Federation,
        Host,
        Job,
        JobLog,
        JobProgress,
        JobStatus,
        JobSummary,
        LogLine,
        NodeDiscovery,
        Prediction,
        ResultItem,
        Results,
        Session,
        SimulationResult,
        StopToken,
        simulate,
    )
    from dfmesh.values import PickledObject, empty_array, from_json, register_type, to_json

__version__ = "0.1.0"

_HOME = {
    "dfmesh.api": (
        "Advise And BestOf Choose Else Equal ForEach GreaterThan GreaterThanOrEqual If LessThan LessThanOrEqual "
        "NodeRef Not NotEqual Operation Or Pipeline PlaceParam TryFromCache Yield"
    ),
    "dfmesh.compiler": "CompiledPipeline Explanation",
    "dfmesh.config": "FederationConfig",
    "dfmesh.engine.adapters": "CallStopped Provider Site ThisCall this_call",
    "dfmesh.engine.discovery": (
        "AdvisedDateRange AdvisedDict AdvisedError AdvisedLiteral AdvisedOneOf AdvisedSubsetOf AdvisedValue Okay "
        "advisor_of field_advisor"
    ),
    "dfmesh.errors": (
        "ConfigError DfmeshError Fault IterationError JobCancelledError JobError OperationFailure PipelineError "
        "SessionError SourceLocation ValueDecodingError ValueEncodingError"
    ),
    "dfmesh.session": (
        "DiscoveryResult ErrorToken Federation Host Job JobLog JobProgress JobStatus JobSummary LogLine NodeDiscovery "
        "Prediction ResultItem Results Session SimulationResult StopToken simulate"
    ),
    "dfmesh.values": "PickledObject empty_array from_json register_type to_json",
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names.split()}

__all__ = [
    "Advise",
    "AdvisedDateRange",
    "AdvisedDict",
    "AdvisedError",
    "AdvisedLiteral",
    "AdvisedOneOf",
    "AdvisedSubsetOf",
    "AdvisedValue",
    "And",
    "BestOf",
    "CallStopped",
    "Choose",
    "CompiledPipeline",
    "ConfigError",
    "DfmeshError",
    "DiscoveryResult",
    "Else",
    "Equal",
    "ErrorToken",
    "Explanation",
    "Fault",
    "Federation",
    "FederationConfig",
    "ForEach",
    "GreaterThan",
    "GreaterThanOrEqual",
    "Host",
    "If",
    "IterationError",
    "Job",
    "JobCancelledError",
    "JobError",
    "JobLog",
    "JobProgress",
    "JobStatus",
    "JobSummary",
    "LessThan",
    "LessThanOrEqual",
    "LogLine",
    "NodeDiscovery",
    "NodeRef",
    "Not",
    "NotEqual",
    "Okay",
    "Operation",
    "OperationFailure",
    "Or",
    "PickledObject",
    "Pipeline",
    "PipelineError",
    "PlaceParam",
    "Prediction",
    "Provider",
    "ResultItem",
    "Results",
    "Session",
    "SessionError",
    "SimulationResult",
    "Site",
    "SourceLocation",
    "StopToken",
    "ThisCall",
    "TryFromCache",
    "ValueDecodingError",
    "ValueEncodingError",
    "Yield",
    "__version__",
    "advisor_of",
    "empty_array",
    "field_advisor",
    "from_json",
    "register_type",
    "simulate",
    "this_call",
    "to_json",
]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that `import dfmesh` costs next to nothing."""
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'dfmesh' has no attribute {name!r}")
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
