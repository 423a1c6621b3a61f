"""PyTorch's OpInfo database on the device: every sample of every operator, compared with the CPU.

`python -m tests.opinfo --help` runs it. A task is an operator and a dtype; tasks run in worker
processes, which are killed if they take too long and replaced if they crash.

- `tasks`: the tasks, and their shards
- `execution`: one sample of an operator on one device, forward and backward
- `judging`: whether the device's outcome agrees with the CPU's
- `trial`: all samples of a task, and their verdict
- `acceptance`: what an operator accepts, and the strides of its results, with every dtype; `known`:
  the known differences
- `worker`: the processes in which tasks run
- `results`: the results of a run, stored as JSON lines so that a run can be resumed
- `differences`: the known differences, with their reasons
- `page`: docs/reference/operators.md
"""
