"""Discovery: sites advise on which operations they can run, and with which values."""

from dfmesh.engine.discovery.advice import (
    AdvisedDateRange,
    AdvisedDict,
    AdvisedError,
    AdvisedLiteral,
    AdvisedOneOf,
    AdvisedSubsetOf,
    AdvisedValue,
    Okay,
)
from dfmesh.engine.discovery.advisors import advisor_of, field_advisor
from dfmesh.engine.discovery.context import AdviceContext
from dfmesh.engine.discovery.paths import Branch, FieldAdvice, SiteAdvice, Step
from dfmesh.engine.discovery.site_discovery import GRACE, SiteDiscovery

__all__ = [
    "GRACE",
    "AdviceContext",
    "AdvisedDateRange",
    "AdvisedDict",
    "AdvisedError",
    "AdvisedLiteral",
    "AdvisedOneOf",
    "AdvisedSubsetOf",
    "AdvisedValue",
    "Branch",
    "FieldAdvice",
    "Okay",
    "SiteAdvice",
    "SiteDiscovery",
    "Step",
    "advisor_of",
    "field_advisor",
]
