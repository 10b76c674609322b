"""Chaos on target `local`: see docs/chaos.md. `benchmarks/chaos.py` is the way in."""
