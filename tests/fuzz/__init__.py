"""A fuzzer: random calls of the operators on the device, compared with the CPU.

`python -m tests.fuzz --help` says how to run it. A case is a number, from which its call follows.

- `values`, `tensors`: random numbers, shapes and layouts
- `schemas`, `arguments`: the engine's overloads, and what they may be given
- `elementwise`, `reductions`, `indexing`, `products`, `lists`: calls of families of overloads
- `networks`, `samples`: calls of torch.nn.functional; calls made of OpInfo's samples
- `fourier`, `sparse`, `decompositions`, `draws`: calls of Fourier transforms, of sparse tensors, of
  linear algebra, and of random numbers; `families`: those, and the others with complex numbers,
  with numbers of their own
- `makers`, `subjects`, `cases`: which overloads are called how; what is called; the call of a
  number
- `calls`, `outcome`: a call on a device, and what it did
- `judging`: whether two outcomes are the same
- `reference`: the CPU's side, in a process that may end
- `trial`, `work`: one case; many in worker processes
- `coverage`: which overloads cases reach
- `known`, `report`, `snippet`: explained differences; groups of the others; a case as a program
"""
