"""PyTorch's OpInfo database on the device: every sample of every operator, compared with the CPU.

`python -m tests.opinfo --help` runs it. A task is an operator and a dtype; tasks run in worker
processes, which are killed when they take too long and replaced when they crash.

- `tasks`: which tasks there are, and their shards
- `execution`: one sample of an operator on one device, forward and backward
- `judging`: whether what the device gave is what the CPU gave
- `trial`: all samples of a task, and their verdict
- `acceptance`: what an operator accepts, and the strides of its results, with every dtype; `known`:
  what differs there
- `worker`: the processes in which tasks run
- `results`: what a run found, kept as JSON lines so that a run can be resumed
- `differences`: the differences that are known, with their reasons
- `page`: docs/reference/operators.md
"""
