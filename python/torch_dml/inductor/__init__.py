"""torch.compile for the device: the loops that Inductor has fused become kernels of the engine,
written as text.
"""
