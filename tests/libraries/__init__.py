"""Programs of the libraries that people use, unmodified, on the CPU and on the device:
`python -m tests.libraries`.
"""
