"""
Device-generic tests on PyTorch's databases, of which each sample is one of PyTorch's.

A class or a test that asks what one of PyTorch's own asks has that one's name: under it the
databases keep what is known of it, as tolerances and expected failures.
"""
