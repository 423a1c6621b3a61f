"""Every adapter with a Vulkan driver as a device of TensorFlow.

TensorFlow loads the device by itself; this package needs to be imported only to ask which operators
ran on the CPU (`fallbacks`).
"""

from tensorflow_dml._version import __version__
from tensorflow_dml.fallback import fallbacks, reset_fallbacks, watch_fallbacks

__all__ = ["__version__", "fallbacks", "reset_fallbacks", "watch_fallbacks"]
