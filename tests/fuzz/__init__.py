"""A fuzzer: random calls of the operators on the device, compared with the CPU.

`python -m tests.fuzz --help` says how to run it. A case is a number, which determines its call.

- `values`, `tensors`: random numbers, shapes and layouts
- `schemas`, `arguments`: the engine's overloads, and their possible arguments
- `elementwise`, `reductions`, `indexing`, `products`, `lists`: calls of families of overloads
- `networks`, `samples`: calls of torch.nn.functional; calls from OpInfo's samples
- `fourier`, `sparse`, `decompositions`, `draws`: calls of Fourier transforms, of sparse tensors, of
  linear algebra, and of random numbers; `families`: the ranges of case numbers of these, and of
  complex numbers
- `makers`, `subjects`, `cases`: how overloads are called; what is called; the call of a number
- `calls`, `outcome`: a call on a device, and its result
- `judging`: whether two outcomes agree
- `reference`: the CPU's side, in a process that may crash
- `trial`, `work`: one case; many in worker processes
- `coverage`: which overloads cases reach
- `known`, `report`, `snippet`: explained differences; groups of the others; a case as a program
"""
