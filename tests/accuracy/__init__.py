"""
Errors of functions, reductions and products of floats, beside the CPU's and CUDA's: the table of
docs/reference/numerics.md.

`subjects.py` says what is measured, `inputs.py` on which numbers, `exact.py` what they are compared
with, `measure.py` how far they are off, and `page.py` writes it down.
`python -m tests.accuracy --help`.
"""
