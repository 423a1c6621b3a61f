"""Shared code of the tests: dtypes and layouts, comparison with a reference, threads and
processes.
"""
