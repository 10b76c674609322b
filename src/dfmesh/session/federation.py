"""A federation, as a user's script meets it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from dfmesh.api import Pipeline
from dfmesh.compiler import CompiledPipeline, Explanation, ObjectiveName, compile_pipeline, explain
from dfmesh.compiler.what_if import what_if as change_figures
from dfmesh.config import FederationConfig
from dfmesh.session.compiling import chosen_homesite, compile_with
from dfmesh.session.cost_store import CostStore, costs_file, kept_costs
from dfmesh.session.offers import offers
from dfmesh.session.parameter_sets import ParameterSets
from dfmesh.session.session import Session
from dfmesh.session.site_output import Output
from dfmesh.text_tables import html_table

if TYPE_CHECKING:
    from dfmesh.session.prediction import Prediction


class Federation:
    """The sites and the operations they offer, read from a `*.dfm.yaml` file.

    It does not change. Pickling keeps the path of its file, which is read again where it is unpickled.

    Attributes:
        config: What the file says.
    """

    def __init__(self, config: FederationConfig) -> None:
        """Wrap a configuration.

        Args:
            config: What the file says.
        """
        self.config = config

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Federation:
        """Read a federation file.

        Args:
            path: The file.

        Raises:
            ConfigError: it has mistakes; `faults` lists all of them with their places.
        """
        return cls(FederationConfig.load(path))

    @property
    def ops(self) -> Any:
        """The operations as classes: `federation.ops.weather.Bin(...)`."""
        return self.config.ops

    @property
    def name(self) -> str:
        """Name of the federation."""
        return self.config.name

    @property
    def sites(self) -> list[str]:
        """Names of the sites, in declared order."""
        return list(self.config.sites)

    @property
    def operations(self) -> list[str]:
        """Names of the operations, in declared order."""
        return list(self.config.operations)

    def session(
        self,
        target: str = "local",
        *,
        homesite: str | None = None,
        measure: bool | None = None,
        output: Output = "stderr",
    ) -> Session:
        """Make a session; `with federation.session() as session:` starts and stops the sites.

        Args:
            target: `local`: one process per site on this machine; `inproc`: all sites in this process; `up`: what
                `dfmesh up FILE` runs (`up:NAME` where that has a name), which goes on without this session.
            homesite: Site to which the client talks; default: `info.homesite` of the file, else `app` if there is
                one, else the first site; in target `up` that of the host.
            measure: Whether pipelines are placed by what earlier jobs have cost, and jobs are measured for later
                ones; None leaves it to the environment (`DFMESH_MEASURE`), which says yes by default.
            output: Where the processes of sites say what they and their adapters print or log (target `local`):
                `stderr`, each line as `[us] text`; `none`; or a function `(site, line)`, called on a thread of its own.
                In target `inproc` adapters print where this process does; in target `up` the host keeps what they
                print (`dfmesh logs`).

        Raises:
            SessionError: there is no such target or site, or `output` is none of that.
        """
        return Session(self.config, target=target, homesite=homesite, measure=measure, output=output)

    @property
    def costs(self) -> CostStore:
        """What earlier runs have measured, and the file that keeps it."""
        return CostStore(costs_file(self.name))

    def compile(
        self,
        pipeline: Pipeline,
        *,
        homesite: str | None = None,
        restrict_to_sites: Iterable[str] | None = None,
        measure: bool | None = None,
        objective: ObjectiveName = "time",
    ) -> CompiledPipeline:
        """Compile a pipeline without running anything.

        Args:
            pipeline: What the user wrote.
            homesite: As in `session`.
            restrict_to_sites: Sites that may take part, besides the homesite; None for all.
            measure: Whether what earlier jobs have cost counts; None leaves it to the environment, as in `session`.
            objective: What the sites are chosen for: the least `time`, `bytes` moved, or `money`.

        Raises:
            PipelineError: the pipeline has faults; all of them are listed.
            SessionError: there is no such homesite.
            TypeError: `restrict_to_sites` is no list of names.
        """
        return compile_with(
            kept_costs(self.name, measure),
            pipeline,
            self.config,
            chosen_homesite(self.config, homesite),
            restrict_to_sites=restrict_to_sites,
            objective=objective,
        )

    def explain(
        self, pipeline: Pipeline, *, homesite: str | None = None, objective: ObjectiveName = "time"
    ) -> Explanation:
        """Tell where each operation of a pipeline would run, why, and what would move.

        Args:
            pipeline: What the user wrote.
            homesite: As in `session`.
            objective: As in `compile`.

        Raises:
            PipelineError: the pipeline has faults; all of them are listed.
        """
        return explain(self.compile(pipeline, homesite=homesite, objective=objective))

    def predict(
        self,
        pipeline: Pipeline | CompiledPipeline,
        parameters: ParameterSets = None,
        *,
        iterations: Mapping[str, float] | None = None,
        shares: Mapping[str, float] | None = None,
        cold: bool = False,
        what_if: Mapping[str, float | str] | None = None,
        homesite: str | None = None,
        measure: bool | None = None,
    ) -> Prediction:
        """Predict how a pipeline runs: time, bytes on every link, bottleneck. Nothing runs and no site is needed.

        Args:
            pipeline: What the user wrote, compiled or not.
            parameters: A parameter set, or several; they need not be complete, only lengths of sequences count.
            iterations: Iterations of loops, by statement (its `node_id`, or `%3`); others are known from the pipeline
                or from earlier runs, or assumed.
            shares: How often conditions are true and keys are found in the cache, 0 to 1, by statement.
            cold: Whether the sites have just been started, so that first calls load their libraries.
            what_if: Links, sites and operations that are different, such as `{"a.to.b.bandwidth": "x10"}`, as
                `dfmesh.compiler.what_if` takes them; the pipeline is compiled for those.
            homesite: As in `session`.
            measure: As in `compile`.

        Raises:
            PipelineError: the pipeline has faults, or iterations, shares or changes do not fit it.
        """
        from dfmesh.session.prediction import predict

        compiled = pipeline
        if not isinstance(compiled, CompiledPipeline):
            compiled = self.compile(compiled, homesite=homesite, measure=measure)
        changed = change_figures(self.config, compiled.costs.measured, what_if or {})
        if what_if:
            compiled = compile_pipeline(
                compiled.pipeline,
                changed.config,
                compiled.homesite,
                restrict_to_sites=[
                    site
                    for site in changed.config.sites
                    if site in compiled.costs.sites or site not in self.config.sites
                ],
                measured=changed.measured,
                objective=compiled.placement.certificate.objective,
            )
        return predict(
            compiled,
            changed.config,
            parameters,
            iterations=iterations,
            shares=shares,
            cold=cold,
            changes=changed.changes,
        )

    def __copy__(self) -> Federation:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Federation:
        return self  # Nothing in it changes.

    def __reduce__(self) -> tuple[Any, ...]:
        return Federation.load, (os.path.abspath(self.config.path),)

    def _repr_html_(self) -> str:
        """Show in notebooks which site offers what."""
        return html_table(*offers(self.config))

    def __repr__(self) -> str:
        return f"<Federation {self.name!r}: {len(self.sites)} sites, {len(self.operations)} operations>"
