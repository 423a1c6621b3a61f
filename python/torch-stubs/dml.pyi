# What `torch.dml` is: PyTorch puts the module there when torch_dml registers the device.
from torch_dml.module import *  # noqa: F403
from torch_dml.module import __all__ as __all__
