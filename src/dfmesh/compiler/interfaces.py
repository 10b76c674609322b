"""What a pipeline was compiled against, said in its nets so that sites can tell whether they mean the same."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from dfmesh.config import FederationConfig, interface_of
from dfmesh.netir import NetIR


def state_interfaces(nets: Mapping[str, NetIR], federation: FederationConfig) -> dict[str, NetIR]:
    """Add to each net the interfaces of the operations that its site is to call.

    Args:
        nets: By site.
        federation: As the client knows it.
    """
    called = {operation for net in nets.values() for operation, _ in net.operations()}
    texts = {operation: interface_of(federation.operations[operation]).to_text() for operation in sorted(called)}
    return {
        site: msgspec.structs.replace(
            net,
            interfaces={operation: texts[operation] for operation in sorted({name for name, _ in net.operations()})},
        )
        for site, net in nets.items()
    }
