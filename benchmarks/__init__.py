"""What aiodata costs, beside its peers and beside plain loops: `python -m benchmarks`.

- `workloads`: a file for each thing that people do with an input pipeline, a function for each library that does it.
- `parts`: what single stages, formats and hand-overs of aiodata cost, beside plain Python and numpy.
- `workload`, `rounds`, `passes`: how peers are declared, take turns, and run each in a process of its own.
- `measuring`: how competitors take turns within one process.
- `report`: the tables.
"""
