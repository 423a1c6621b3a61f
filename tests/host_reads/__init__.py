"""PyTorch's operators that have no kernel of the engine's, called with tensors of the device.

A composite of PyTorch's that reads a tensor's memory by its address ends the process, since that is
an address of the GPU's. So this is for a GPU, or for a driver whose GPU is emulated with addresses
of its own. On Mesa's software adapter the GPU's addresses are the host's: there, `--late` has the
values arrive late, and who does not wait for them computes with zeros. To be run with each new
minor of torch: what it finds belongs into plugin/host_reads.cpp.
`python -m tests.host_reads --help` runs it.

- `registry`: PyTorch's operators, and those among them that are not the engine's
- `arguments`: random arguments for a schema
- `trial`: an operator's calls, on the CPU and on the device, and what came of them
- `judging`: whether the device gave what the CPU gave
"""
