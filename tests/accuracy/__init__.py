"""Errors of functions, reductions and products of floats, on the device, the CPU and CUDA: the
table of docs/reference/numerics.md.

`subjects.py` defines what is measured, `inputs.py` the inputs, `exact.py` the reference results,
`measure.py` the measure of errors, and `page.py` writes the table.
`python -m tests.accuracy --help`.
"""
