"""Third pass: choose the site of every node, with a proof of how good the choice is.

`docs/placement.md` says what is minimised and why the proof holds.
"""

from dfmesh.compiler.placement.objective import Objective, ObjectiveName
from dfmesh.compiler.placement.place import alternatives, place
from dfmesh.compiler.placement.plan import Alternative, Certificate, Estimate, Placement

__all__ = ["Alternative", "Certificate", "Estimate", "Objective", "ObjectiveName", "Placement", "alternatives", "place"]
