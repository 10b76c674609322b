"""Does indomethacin help? Asked of four hospitals, none of which shows a patient."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dfmesh import Pipeline, Yield

if TYPE_CHECKING:
    from dfmesh import Federation


def build(federation: Federation) -> Pipeline:
    """Write the pipeline; it names hospitals for their patients only, all other sites follow from the rules."""
    trial = federation.ops.trial
    with Pipeline(name="trial") as pipeline:
        um, iu, uk, case = (
            trial.Counts(patients=trial.Patients(site=hospital)) for hospital in ("um", "iu", "uk", "case")
        )
        small = trial.Merge(counts=[uk, case])
        Yield(trial.Effect(counts=trial.Merge(counts=[um, iu, small])), place="effect")
    return pipeline


def peek(federation: Federation) -> Pipeline:
    """Write a pipeline that asks for patients, which is refused before anything runs."""
    with Pipeline(name="peek") as pipeline:
        Yield(federation.ops.trial.Patients(site="uk"), place="patients")
    return pipeline
