"""Unmodified programs of popular libraries, on the CPU and on the device:
`python -m tests.libraries`.
"""
