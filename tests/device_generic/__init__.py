"""PyTorch's device-generic tests on the device: its test classes, instantiated by
`instantiate_device_type_tests`.

`python -m tests.device_generic --help` runs them. PyTorch's wheels contain the machinery and the
databases of operators, modules and optimizers, but not the files of tests: those come from a source
tree of the same release. This project has further suites on the same machinery and databases, which
need no source tree.

- `sources`: the files of tests, and their source tree
- `instantiation`: a file of tests, imported and instantiated for one device type
- `trial`: one test, and its verdict
- `worker`: the processes in which tests run
- `results`: the results of a run, stored as JSON lines so that a run can be resumed
- `differences`: the known failures, with their reasons
- `page`: docs/reference/device_generic.md
- `suites`: tests of this project
"""
