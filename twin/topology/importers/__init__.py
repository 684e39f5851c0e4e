"""Wiring from what other tools say of a fabric or a host: one module a format, all through one sketch.

A format's module turns text into a `Sketch` (devices, cables, NVLink domains, as found) or, where it tells of
one host only, into `HostFacts`. `assemble` makes a Topology of a sketch: it decides what is a host, a plane, a
tier, a rail, and says why in the notes. `combine` reads the files and joins several sources.
"""
