"""What a workgroup does with its rows: which columns they meet, and what becomes of a score.

The result is `softmax(scores) @ values`, with a softmax that is updated as columns arrive (Milakov
and Gimelshein, "Online normalizer calculation for softmax", 2018). Gradients compute the weights
again, from the sums of exponentials that were saved (Dao et al., "FlashAttention: fast and
memory-efficient exact attention with IO-awareness", 2022). A workgroup adds to its own rows alone,
so that results are the same in each run.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch._inductor.ir import IRNode

from torch_dml.inductor.flex_attention.functions import BATCH, GRADIENT, HEAD, KEY, QUERY, SCORE
from torch_dml.inductor.flex_attention.kernel import FlexKernel
from torch_dml.inductor.flex_attention.problem import Role
from torch_dml.inductor.flex_attention.tile import COLUMNS, PATCH, Patch, Tile
from torch_dml.inductor.types import computed, is_narrow


@dataclass(frozen=True)
class Scores:
    """The positions of a patch's scores, of one head of queries."""

    batch: str
    head: str
    # Rows and columns of the patch; those outside of the matrix are the last in it.
    rows: Sequence[str]
    columns: Sequence[str]
    # Whether a score is of the matrix, and not masked.
    visible: Patch


class Rows:
    """Writes the work of one workgroup."""

    def __init__(self, kernel: FlexKernel, tile: Tile, end: str, block: str, is_first: str) -> None:
        """The tile's rows end before `end` and are of a block of the mask; `is_first` is whether
        the workgroup's columns of the result are the first.
        """
        self.kernel, self.tile, self.end, self.block, self.is_first = kernel, tile, end, block, is_first
        self.problem, self.role, self.statements = kernel.problem, kernel.role, kernel.statements
        self.kind = kernel.kind

    def _float(self, instruction: str) -> str:
        return self.statements.value(self.kind, instruction)

    def _number(self, number: float) -> str:
        return f"{number!r}:{self.kind}"

    # ---- columns

    @contextlib.contextmanager
    def _columns(self, batch: str, head: str) -> Iterator[tuple[str, str, str | None]]:
        """Write a loop over the tiles of columns that the rows meet: the first column, the end of
        its block, and whether the mask function applies, if it does not always.
        """
        s, kernel, blocks, index = self.statements, self.kernel, self.kernel.blocks, self.kernel.index
        partial = self._listed(blocks.partial[0], batch, head)
        total = partial
        if blocks.full is not None:
            total = s.value(index, f"add {partial}, {self._listed(blocks.full[0], batch, head)}")
        with s.loop(index, kernel.size(0), total, kernel.size(1)) as number:
            is_partial = None
            if blocks.full is None:
                block = self._listed(blocks.partial[1], batch, head, number)
            else:
                is_partial = s.value("bool", f"lt {number}, {partial}")
                listed = s.variable(index, kernel.size(0))
                with s.when(is_partial):
                    s.line(f"store {listed}, {self._listed(blocks.partial[1], batch, head, number)}")
                with s.when(s.value("bool", f"not {is_partial}")):
                    of_full = s.value(index, f"sub {number}, {partial}")
                    s.line(f"store {listed}, {self._listed(blocks.full[1], batch, head, of_full)}")
                block = s.value(index, f"load {listed}")
            first = s.value(index, f"mul {block}, {kernel.size(blocks.columns)}")
            end = s.value(index, f"add {first}, {kernel.size(blocks.columns)}")
            end = s.value(index, f"min {end}, {kernel.size(kernel.sizes[QUERY if self.role.rows_are_keys else KEY])}")
            with s.loop(index, first, end, kernel.size(COLUMNS)) as column0:
                yield column0, end, is_partial

    def _listed(self, node: IRNode, batch: str, head: str, *number: str) -> str:
        """Return a number of a mask's lists for the block of rows. A mask that is the same for all
        batches or heads has one of them.
        """
        s, kernel = self.statements, self.kernel
        sizes = [kernel.size(size) for size in node.get_size()[:2]]
        plane = [s.value(kernel.index, f"rem {at}, {size}") for at, size in zip((batch, head), sizes, strict=True)]
        found = kernel.element(node, [*plane, self.block, *number])
        kind = computed(node.get_dtype())
        return found if kind == kernel.index else s.value(kernel.index, f"convert {found}")

    # ---- scores

    def _scores(self, batch: str, head: str, column0: str, end: str, only: str | None) -> Scores:
        """Return the positions of the patch's scores from a column on. `only` is whether the mask
        function applies, if it does not always.
        """
        s = self.statements
        rows, columns = self.tile.rows, self.tile.columns(column0)
        of_row = [s.value("bool", f"lt {row}, {self.end}") for row in rows]
        of_column = [s.value("bool", f"lt {column}, {end}") for column in columns]
        inside = [[s.value("bool", f"and {row}, {column}") for column in of_column] for row in of_row]
        scores = Scores(batch, head, self._held(rows, self.end), self._held(columns, end), inside)
        if only is None:
            masks = self._masks(scores)
        else:
            bits = s.variable("u32", f"{(1 << PATCH * PATCH) - 1}:u32")
            with s.when(only):
                seen = [mask for row in self._masks(scores) for mask in row]
                words = [s.value("u32", f"select {mask}, {1 << n}:u32, 0:u32") for n, mask in enumerate(seen)]
                s.line(f"store {bits}, {s.chain('u32', 'or', words)}")
            word = s.value("u32", f"load {bits}")
            masks = [[self._bit(word, i * PATCH + j) for j in range(PATCH)] for i in range(PATCH)]
        for row, masks_of_row in zip(inside, masks, strict=True):
            row[:] = [s.value("bool", f"and {x}, {mask}") for x, mask in zip(row, masks_of_row, strict=True)]
        return scores

    def _held(self, positions: Sequence[str], end: str) -> list[str]:
        s, index = self.statements, self.kernel.index
        last = s.value(index, f"sub {end}, {self.kernel.size(1)}")
        return [s.value(index, f"min {at}, {last}") for at in positions]

    def _bit(self, word: str, n: int) -> str:
        bit = self.statements.value("u32", f"and {word}, {1 << n}:u32")
        return self.statements.value("bool", f"ne {bit}, 0:u32")

    def _masks(self, scores: Scores) -> Patch:
        """Return what the mask function does."""

        def mask(i: int, j: int) -> str:
            self._give_position(scores, i, j)
            return self.kernel.result(self.problem.mask, torch.bool)

        return [[mask(i, j) for j in range(PATCH)] for i in range(PATCH)]

    def _give_position(self, scores: Scores, i: int, j: int) -> None:
        """Give the functions the position of a score of the patch."""
        names = (KEY, QUERY) if self.role.rows_are_keys else (QUERY, KEY)
        positions = (scores.batch, scores.head, scores.rows[i], scores.columns[j])
        for name, at in zip((BATCH, HEAD, *names), positions, strict=True):
            self.kernel.give(name, at)

    def _modified(self, scores: Scores, i: int, j: int, product: str) -> str:
        """Return what the score function makes of a product of query and key."""
        self._give_position(scores, i, j)
        self.kernel.give(SCORE, self._float(f"mul {product}, {self._number(self.problem.scale)}"))
        return self.kernel.result(self.problem.score, self.kernel.dtype)

    def _exp(self, x: str) -> str:
        """Return an exponential. Where matrices have 16 bits it is the adapter's own power of two,
        as in the operator for attention.
        """
        if not is_narrow(self.problem.query.get_dtype()):
            return self._float(f"exp {x}")
        return self._float(f"fast_exp2 {self._float(f'mul {x}, {self._number(math.log2(math.e))}')}")

    # ---- the forward pass

    def write_output(self, batch: str, head: str, key_batch: str, key_head: str) -> None:
        """Write the result of a head, and what is saved of it."""
        s, kernel, tile, kind = self.statements, self.kernel, self.tile, self.kind
        query = kernel.plane(self.problem.query, batch, head)
        key = kernel.plane(self.problem.key, key_batch, key_head)
        value = kernel.plane(self.problem.value, key_batch, key_head)
        # For each row the largest score, and this invocation's part of the sum of exponentials.
        largest = [s.variable(kind, f"-inf:{kind}") for _ in range(PATCH)]
        shares = [s.variable(kind, f"0.0:{kind}") for _ in range(PATCH)]
        with self._columns(batch, head) as (column0, end, only):
            products = tile.product(query, key, column0)
            scores = self._scores(batch, head, column0, end, only)
            patch = [
                [
                    self._float(f"select {scores.visible[i][j]}, {self._modified(scores, i, j, product)}, -inf:{kind}")
                    for j, product in enumerate(row)
                ]
                for i, row in enumerate(products)
            ]
            now = tile.reduced([s.chain(kind, "maximum", row) for row in patch], "maximum")
            weights = [self._update(i, patch[i], now[i], largest[i], shares[i]) for i in range(PATCH)]
            tile.accumulate(weights, value, column0, end)
        totals = tile.reduced([self._float(f"load {share}") for share in shares], "add")
        self._save(batch, head, totals, largest)
        self.store(batch, head, totals)

    def _update(self, i: int, scores: Sequence[str], now: str, largest: str, share: str) -> list[str]:
        """Update a row's softmax, and return its weights."""
        s, kind = self.statements, self.kind
        before = self._float(f"load {largest}")
        top = self._float(f"maximum {before}, {now}")
        # As long as all columns are masked the largest is -inf, and no usable base.
        none = s.value("bool", f"eq {top}, -inf:{kind}")
        base = self._float(f"select {none}, 0.0:{kind}, {top}")
        shrink = self._exp(self._float(f"sub {before}, {base}"))
        weights = [self._exp(self._float(f"sub {score}, {base}")) for score in scores]
        kept = self._float(f"mul {self._float(f'load {share}')}, {shrink}")
        s.line(f"store {share}, {s.chain(kind, 'add', [kept, *weights])}")
        s.line(f"store {largest}, {top}")
        self.tile.shrink(i, shrink)
        return weights

    def _save(self, batch: str, head: str, totals: Sequence[str], largest: Sequence[str]) -> None:
        """Store the logarithms of the rows' sums, and the rows' largest scores."""
        s, kind, outputs = self.statements, self.kind, self.kernel.outputs
        assert outputs.saved is not None and outputs.largest is not None
        saves = s.value("bool", f"and {s.value('bool', f'eq {self.tile.patch_column}, 0')}, {self.is_first}")
        for row, total, memory in zip(self.tile.rows, totals, largest, strict=True):
            inside = s.value("bool", f"lt {row}, {self.end}")
            with s.when(s.value("bool", f"and {saves}, {inside}")):
                top = self._float(f"load {memory}")
                log = self._float(f"add {self._float(f'log {total}')}, {top}")
                none = s.value("bool", f"eq {total}, 0.0:{kind}")
                log = self._float(f"select {none}, -inf:{kind}, {log}")
                for node, number in ((outputs.saved, log), (outputs.largest, top)):
                    number = self._float(f"mul {number}, {self._number(math.log2(math.e))}")
                    self.kernel.put(node, [batch, head, row], number)

    # ---- gradients

    def add_gradients(self, batch: str, head: str, key_batch: str, key_head: str) -> None:
        """Add what one head of queries contributes to the gradient of the rows."""
        kernel, problem, tile, role = self.kernel, self.problem, self.tile, self.role
        assert problem.gradient is not None
        gradient = kernel.plane(problem.gradient, batch, head)
        query = kernel.plane(problem.query, batch, head)
        key = kernel.plane(problem.key, key_batch, key_head)
        value = kernel.plane(problem.value, key_batch, key_head)
        (left, right), (left_of_slopes, right_of_slopes) = (query, key), (gradient, value)
        if role.rows_are_keys:
            (left, right), (left_of_slopes, right_of_slopes) = (key, query), (value, gradient)
        x = {Role.QUERY_GRADIENT: key, Role.KEY_GRADIENT: query, Role.VALUE_GRADIENT: gradient}[role]
        with self._columns(batch, head) as (column0, end, only):
            products = tile.product(left, right, column0)
            slopes = tile.product(left_of_slopes, right_of_slopes, column0) if role.needs_score_gradients else None
            scores = self._scores(batch, head, column0, end, only)
            queries = scores.columns if role.rows_are_keys else scores.rows
            logs = [self._float(f"mul {x}, {self._number(math.log(2))}") for x in self._saved(batch, head, queries)]
            deltas = self._of_queries(problem.deltas, batch, head, queries)
            weights: Patch = [[] for _ in range(PATCH)]
            for i in range(PATCH):
                for j in range(PATCH):
                    n = j if role.rows_are_keys else i
                    slope = None if slopes is None else (slopes[i][j], deltas[n])
                    weights[i].append(self._weight(scores, i, j, products[i][j], logs[n], slope))
            tile.accumulate(weights, x, column0, end)

    def _saved(self, batch: str, head: str, queries: Sequence[str]) -> list[str]:
        return self._of_queries(self.problem.saved, batch, head, queries)

    def _of_queries(self, node: IRNode | None, batch: str, head: str, queries: Sequence[str]) -> list[str]:
        """Return numbers of queries."""
        assert node is not None
        numbers = [self.kernel.element(node, [batch, head, query]) for query in queries]
        return numbers if node.get_dtype() == self.kernel.dtype else [self._float(f"convert {x}") for x in numbers]

    def _weight(self, scores: Scores, i: int, j: int, product: str, log: str, slope: tuple[str, str] | None) -> str:
        """Return the weight of a score; or with a slope, which is the weight's gradient and what is
        subtracted from it, the gradient of the product of query and key.
        """
        s, kernel, zero = self.statements, self.kernel, self._number(0.0)
        weight = self._exp(self._float(f"sub {self._modified(scores, i, j, product)}, {log}"))
        # A query that attends to no key has no gradients.
        attends = s.value("bool", f"gt {log}, -inf:{self.kind}")
        seen = s.value("bool", f"and {attends}, {scores.visible[i][j]}")
        if slope is not None:
            weight = self._float(f"mul {weight}, {self._float(f'sub {slope[0]}, {slope[1]}')}")
            kernel.give(GRADIENT, self._float(f"select {seen}, {weight}, {zero}"))
            weight = zero
            if self.problem.score_gradient is not None:
                of_score = kernel.result(self.problem.score_gradient, kernel.dtype)
                weight = self._float(f"mul {of_score}, {self._number(self.problem.scale)}")
            self._contribute([scores.batch, scores.head, scores.rows[i], scores.columns[j]], seen)
        return self._float(f"select {seen}, {weight}, {zero}")

    def _contribute(self, position: Sequence[str], seen: str) -> None:
        """Store what a score adds to gradients of captured tensors, and where."""
        for contribution, values, places in self.kernel.outputs.contributions:
            value = self.kernel.result(contribution.value, self.kernel.dtype)
            place = self.kernel.position_in(contribution)
            with self.statements.when(self.statements.value("bool", f"and {seen}, {self.is_first}")):
                self.kernel.put(values, position, value)
                self.kernel.put(places, position, place)

    # ---- results

    def store(self, batch: str, head: str, totals: Sequence[str]) -> None:
        """Store the rows of the result, divided by their totals if there are some."""
        out = self.kernel.outputs.out

        def store(row: str, column: str, value: str) -> None:
            self.kernel.put(out, [batch, head, row, column], value)

        self.tile.store(self.end, int(out.get_size()[3]), store, totals)
