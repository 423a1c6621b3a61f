"""flex_attention: kernels whose scores exist in registers and shared memory only, and in which the
functions of scores and masks are inlined.
"""
