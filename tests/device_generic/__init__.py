"""PyTorch's device-generic tests on the device: what `instantiate_device_type_tests` makes of its
test classes.

`python -m tests.device_generic --help` runs them. PyTorch's wheels have the machinery and the
databases of operators, modules and optimizers, but not the files of tests: those come from a source
tree of the same release. Suites of this project, on the same machinery and databases, need none.

- `sources`: the files of tests, and the source tree that they are in
- `instantiation`: a file of tests, imported and instantiated for one kind of device
- `trial`: one test, and its verdict
- `worker`: the processes in which tests run
- `results`: what a run found, kept as JSON lines so that a run can be resumed
- `differences`: the failures that are known, with their reasons
- `page`: docs/reference/device_generic.md
- `suites`: tests of this project
"""
