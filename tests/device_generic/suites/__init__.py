"""Device-generic tests on the samples of PyTorch's databases.

A class or a test that checks the same as one of PyTorch's has the same name, since the databases
use names for tolerances and expected failures.
"""
