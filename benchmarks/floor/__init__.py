"""The floor: two bare processes, a Unix domain socket, msgspec, and no framework."""
