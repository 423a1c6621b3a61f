"""PyTorch's operators for which the engine has no kernel, called with tensors of the device.

A composite operator of PyTorch that reads a tensor's memory by its address crashes the process,
since that is a GPU address. So this is for a GPU, or for a driver that emulates a GPU with its own
addresses. On Mesa's software adapter GPU addresses are host addresses: there, `--late` delays the
values, and an operator that does not wait for them computes with zeros. To be run with each new
minor version of torch: findings belong into plugin/operators/host_reads.cpp.
`python -m tests.host_reads --help` runs it.

- `registry`: PyTorch's operators, and those for which the engine has no kernel
- `arguments`: random arguments for a schema
- `trial`: an operator's calls, on the CPU and on the device, and their results
- `judging`: whether the device's result agrees with the CPU's
"""
