"""`dfmesh bench`: how fast dfmesh is on this machine, beside what two bare processes can do.

`system` says what can be asked of a system under measurement, `measures` how it is measured; both need nothing but the
standard library, so that the benchmarks of this repository measure other systems with the same code.
"""
