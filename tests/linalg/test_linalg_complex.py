"""Linear algebra of complex matrices, compared with the CPU."""

from __future__ import annotations

import itertools

import pytest
import torch

from tests.support.compare import assert_same_error
from tests.support.matrices import COMPLEXES, assert_no_worse, general, positive_definite, triangular, wide

SQUARES = [(0, 0), (1, 1), (3, 3), (33, 33), (100, 100), (0, 3, 3), (2, 0, 0), (2, 3, 5, 5)]
LARGE = (300, 300)
OBLONGS = [(5, 3), (3, 5), (100, 17), (17, 100), (2, 40, 70), (3, 0), (0, 4), (2, 3, 1)]
FLAGS = list(itertools.product((False, True), repeat=2))


def laid_out(x):
    """The same matrices, contiguous, transposed, conjugated, and with gaps."""
    gaps = torch.zeros(*x.shape[:-1], 2 * x.shape[-1], dtype=x.dtype)[..., ::2]
    return [x, x.mT.contiguous().mT, x.mH.contiguous().mH, x.conj().resolve_conj().conj(), gaps.copy_(x)]


def on_both(function, *tensors):
    """The function's results on the device and the CPU, the device's copied to the CPU."""
    return [
        tuple(t.cpu() for t in result) if isinstance(result, tuple) else result.cpu()
        for result in (function(*(t.to(d) for t in tensors)) for d in ("dml", "cpu"))
    ]


def one(n):
    return torch.eye(n, dtype=torch.complex128)


def leaf(x):
    return x.to("dml").requires_grad_()


@pytest.mark.parametrize("upper,left", FLAGS)
@pytest.mark.parametrize("unit", [False, True])
@COMPLEXES
def test_solve_triangular(upper, left, unit, dtype):
    solve = lambda a, b: torch.linalg.solve_triangular(a, b, upper=upper, left=left, unitriangular=unit)  # noqa: E731
    for sizes in [*SQUARES, LARGE] if upper else SQUARES:
        n = sizes[-1]
        a = triangular(*sizes, upper=upper, dtype=dtype)
        whole = wide(a.triu() if upper else a.tril()).nan_to_num()
        if unit:
            whole = whole - torch.diag_embed(whole.diagonal(dim1=-2, dim2=-1)) + one(n)
        for k in (0, 5):
            b = general(*sizes[:-2], *((n, k) if left else (k, n)), dtype=dtype)
            dml, cpu = on_both(solve, a, b)
            assert dml.stride() == cpu.stride()
            residual = lambda x, b=b, t=whole: (t @ wide(x) if left else wide(x) @ t) - b  # noqa: E731
            assert_no_worse(residual(dml), residual(cpu), cpu, dtype)


@COMPLEXES
def test_triangular_layouts(dtype):
    a, b = triangular(40, 40, upper=True, dtype=dtype).nan_to_num(), general(40, 7, dtype=dtype)
    solve = lambda a, b: torch.linalg.solve_triangular(a, b, upper=True)  # noqa: E731
    for x, y in zip(laid_out(a), laid_out(b), strict=True):
        torch.testing.assert_close(*on_both(solve, x, y))
        torch.testing.assert_close(*on_both(lambda a, b: torch.linalg.solve_triangular(a.mH, b, upper=False), x, y))
    a = triangular(2, 1, 5, 5, upper=True, dtype=dtype).nan_to_num()
    torch.testing.assert_close(*on_both(solve, a, general(3, 5, 4, dtype=dtype)))
    for upper, transpose in FLAGS:
        a, b = triangular(2, 6, 6, upper=upper, dtype=dtype).nan_to_num(), general(2, 6, 3, dtype=dtype)
        results = on_both(lambda a, b, f=(upper, transpose): torch.triangular_solve(b, a, *f), a, b)
        torch.testing.assert_close(*results)


@pytest.mark.slow
@pytest.mark.parametrize("upper", [False, True])
@COMPLEXES
def test_cholesky(upper, dtype):
    for sizes in [*SQUARES, LARGE]:
        a = positive_definite(*sizes, dtype=dtype)
        dml, cpu = on_both(lambda a: torch.linalg.cholesky_ex(a, upper=upper), a)
        assert dml[0].stride() == cpu[0].stride() and torch.equal(dml[1], cpu[1])
        assert torch.equal(dml[0], dml[0].triu() if upper else dml[0].tril())
        residual = lambda x, a=a: (wide(x).mH @ wide(x) if upper else wide(x) @ wide(x).mH) - a  # noqa: E731
        assert_no_worse(residual(dml[0]), residual(cpu[0]), a, dtype)

        if sizes == LARGE:
            continue
        b = general(*sizes[:-1], 5, dtype=dtype)
        dml, x = on_both(lambda b, f: torch.cholesky_solve(b, f, upper), b, cpu[0])
        assert_no_worse(wide(a) @ wide(dml) - b, wide(a) @ wide(x) - b, x, dtype)
        dml, x = on_both(lambda f: torch.cholesky_inverse(f, upper), cpu[0])
        assert_no_worse(wide(a) @ wide(dml) - one(sizes[-1]), wide(a) @ wide(x) - one(sizes[-1]), x, dtype)


@COMPLEXES
def test_cholesky_reads_one_triangle(dtype):
    a = positive_definite(40, 40, dtype=dtype)
    expected = torch.linalg.cholesky(a.to("dml"))
    for x in laid_out(a):
        assert torch.equal(torch.linalg.cholesky(x.to("dml")), expected)
    nan = torch.full_like(a, torch.nan)
    # The imaginary part of the diagonal is ignored.
    odd = a.tril() + nan.triu(1) + 1j * torch.eye(40)
    assert torch.equal(torch.linalg.cholesky(odd.nan_to_num().to("dml")), expected)
    a[31, 31] = -1
    dml, cpu = on_both(torch.linalg.cholesky_ex, a)
    assert torch.equal(dml[1], cpu[1])
    assert_same_error(torch.linalg.cholesky, a)


@COMPLEXES
def test_lu(dtype):
    for sizes in SQUARES + OBLONGS + [LARGE]:
        a = general(*sizes, dtype=dtype)
        dml, cpu = on_both(torch.linalg.lu_factor_ex, a)
        assert dml[0].stride() == cpu[0].stride()
        assert torch.equal(dml[1], cpu[1]) and torch.equal(dml[2], cpu[2])

        def residual(x, a=a):
            p, lower, u = (wide(t) for t in torch.lu_unpack(x[0], x[1]))
            return p @ lower @ u - a

        assert_no_worse(residual(dml), residual(cpu), a, dtype)
        parts = torch.linalg.lu(a.to("dml")), torch.lu_unpack(*(t.to("dml") for t in dml[:2]))
        for x, y, z in zip(*parts, torch.lu_unpack(*dml[:2]), strict=True):
            assert torch.equal(x, y) and torch.equal(x.cpu(), z) and x.stride() == z.stride()
    a = general(2, 40, 40, dtype=dtype) + 40 * torch.eye(40)
    p, lower, u = torch.linalg.lu(a.to("dml"), pivot=False)
    assert p.numel() == 0
    assert_no_worse(wide(lower.cpu()) @ wide(u.cpu()) - a, torch.zeros(1, 1), a, dtype)


@pytest.mark.parametrize("left,adjoint", FLAGS)
@COMPLEXES
def test_lu_solve(left, adjoint, dtype):
    for sizes in SQUARES:
        n = sizes[-1]
        a = general(*sizes, dtype=dtype)
        b = general(*sizes[:-2], *((n, 3) if left else (3, n)), dtype=dtype)
        solve = lambda *t: torch.linalg.lu_solve(*t, left=left, adjoint=adjoint)  # noqa: E731
        dml, cpu = on_both(solve, *torch.linalg.lu_factor(a), b)
        turned = wide(a.mH if adjoint else a)
        residual = lambda x, t=turned, b=b: (t @ x if left else x @ t) - b  # noqa: E731
        assert_no_worse(residual(wide(dml)), residual(wide(cpu)), cpu, dtype)


@COMPLEXES
def test_solve(dtype):
    shapes = [((5, 5), (5,)), ((3, 5, 5), (3, 5)), ((3, 5, 5), (5, 2)), ((2, 1, 5, 5), (3, 5, 4)), ((0, 0), (0,))]
    for a, b in [*shapes, ((0, 5, 5), (0, 5, 2)), ((70, 70), (70, 0)), ((70, 70), (70, 3))]:
        a, b = general(*a, dtype=dtype), general(*b, dtype=dtype)
        tolerance = {} if dtype == torch.complex128 else {"rtol": 1e-3, "atol": 1e-3}
        for turned in (a, a.mT, a.mH, a.conj()):
            torch.testing.assert_close(*on_both(torch.linalg.solve, turned, b), **tolerance)
    a, b = general(4, 4, dtype=dtype), general(3, 4, dtype=dtype)
    torch.testing.assert_close(*on_both(lambda a, b: torch.linalg.solve(a, b, left=False), a, b))


@COMPLEXES
def test_inverse_and_determinants(dtype):
    for sizes in SQUARES:
        a = general(*sizes, dtype=dtype)
        dml, cpu = on_both(torch.linalg.inv, a)
        assert dml.stride() == cpu.stride()
        assert_no_worse(wide(a) @ wide(dml) - one(sizes[-1]), wide(a) @ wide(cpu) - one(sizes[-1]), cpu, dtype)
        rtol = 1e-3 if dtype == torch.complex64 else 1e-9
        for x in laid_out(a):
            torch.testing.assert_close(*on_both(torch.linalg.slogdet, x), rtol=rtol, atol=rtol)
            x = x / 4
            torch.testing.assert_close(*on_both(torch.linalg.det, x), rtol=rtol, atol=rtol)


@COMPLEXES
def test_singular(dtype):
    a = general(4, 20, 20, dtype=dtype)
    a[1, :, 0] = 0
    a[2, :, 17] = 0
    a[3] = 0
    for call in (torch.linalg.lu_factor_ex, torch.linalg.inv_ex):
        assert call(a.to("dml")).info.tolist() == call(a).info.tolist() == [0, 1, 18, 1]
    assert torch.linalg.det(a.to("dml")).tolist()[1:] == [0, 0, 0]
    sign, logarithm = torch.linalg.slogdet(a.to("dml"))
    assert sign.tolist()[1:] == [0, 0, 0] and logarithm.tolist()[1:] == [-torch.inf] * 3
    assert_same_error(torch.linalg.inv, a)
    assert_same_error(torch.linalg.solve, a, a)


def spread(q):
    """The deviation of columns from orthonormality."""
    return wide(q).mH @ wide(q) - one(q.shape[-1])


@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
@COMPLEXES
def test_qr(mode, dtype):
    for sizes in SQUARES + OBLONGS + [LARGE]:
        a = general(*sizes, dtype=dtype)
        dml, cpu = on_both(lambda a: tuple(torch.linalg.qr(a, mode)), a)
        assert dml[1].shape == cpu[1].shape and dml[0].shape == cpu[0].shape
        assert torch.equal(dml[1], dml[1].triu()) and not dml[1].diagonal(dim1=-2, dim2=-1).imag.any()
        if mode == "r":
            residual = lambda r: wide(r).mH @ wide(r) - wide(a).mH @ wide(a)  # noqa: B023, E731
            # Every rounding of R counts twice in its square.
            assert_no_worse(residual(dml[1]), residual(cpu[1]), a.mH @ a, dtype, roundings=8)
        else:
            assert [t.stride() for t in dml] == [t.stride() for t in cpu]
            assert_no_worse(spread(dml[0]), spread(cpu[0]), one(dml[0].shape[-1]), dtype)
            residual = lambda q, r: wide(q) @ wide(r) - a  # noqa: B023, E731
            assert_no_worse(residual(*dml), residual(*cpu), a, dtype)


@COMPLEXES
def test_reflections(dtype):
    tolerance = 1e-12 if dtype == torch.complex128 else 1e-4
    close = lambda results: torch.testing.assert_close(*results, rtol=tolerance, atol=tolerance)  # noqa: E731
    for sizes in SQUARES + OBLONGS:
        a = general(*sizes, dtype=dtype)
        (dml, dml_tau), (cpu, tau) = on_both(torch.geqrf, a)
        if sizes != (100, 100):  # Some LAPACKs leave the last element of a large R complex.
            close((dml_tau, tau))
            close((dml, cpu))
        if sizes[-2] >= sizes[-1]:
            close(on_both(torch.linalg.householder_product, cpu, tau))
        for left, transpose in FLAGS:
            c = general(*sizes[:-2], *((sizes[-2], 4) if left else (4, sizes[-2])), dtype=dtype)
            close(on_both(lambda *t, f=(left, transpose): torch.ormqr(*t, *f), cpu, tau, c))
    a = general(6, 4, dtype=dtype)
    a[:, 1] = 0
    a[1:, 0] = 0
    for x in laid_out(a):
        q, r = (t.cpu() for t in torch.linalg.qr(x.to("dml")))
        torch.testing.assert_close(q @ r, x.resolve_conj())
        assert_no_worse(spread(q), torch.zeros(1, 1), one(4), dtype)


def column(x):
    return x[..., None]


def check_eigh(a, uplo="L"):
    """Compares eigenvalues, residuals and orthogonality with the CPU's."""
    dml, cpu = on_both(lambda a: tuple(torch.linalg.eigh(a, uplo)), a)
    assert [t.stride() for t in dml] == [t.stride() for t in cpu]
    triangle = wide(a.tril() if uplo == "L" else a.triu().mH)
    whole = triangle.tril(-1) + triangle.tril(-1).mH + torch.diag_embed(triangle.diagonal(dim1=-2, dim2=-1).real)
    exact = torch.linalg.eigvalsh(whole)
    size = column(exact.abs().amax(-1, keepdim=True).expand(exact.shape)) if exact.numel() else column(exact)
    values = torch.linalg.eigvalsh(a.to("dml"), uplo).cpu()
    for w in (dml[0], values):
        assert w.dtype == cpu[0].dtype
        assert_no_worse(column(w - exact), column(cpu[0] - exact), size, a.dtype)
    residual = lambda w, v: whole @ wide(v) - wide(v) * w[..., None, :]  # noqa: E731
    assert_no_worse(residual(*dml), residual(*cpu), whole, a.dtype)
    assert_no_worse(spread(dml[1]), spread(cpu[1]), one(a.shape[-1]), a.dtype)


@pytest.mark.parametrize("uplo", ["L", "U"])
@COMPLEXES
def test_eigh(uplo, dtype):
    squares = [(0, 0), (1, 1), (2, 2), (3, 3), (16, 16), (17, 17), (33, 33), (66, 66)]
    for sizes in [*squares, (2, 0, 0), (0, 3, 3), (2, 2, 5, 5)]:
        check_eigh(general(*sizes, dtype=dtype), uplo)
    for x in laid_out(general(12, 12, dtype=dtype)):
        check_eigh(x, uplo)


@COMPLEXES
def test_eigh_of_special_matrices(dtype):
    check_eigh(torch.zeros(12, 12, dtype=dtype))
    check_eigh(torch.eye(12, dtype=dtype))
    check_eigh(torch.full((9, 9), 1j, dtype=dtype))
    check_eigh(torch.diag_embed(general(12, dtype=dtype)))
    x = general(12, 3, dtype=dtype)
    check_eigh(x @ x.mH)
    x = general(40, 3, dtype=dtype)
    check_eigh(x @ x.mH)
    check_eigh(torch.diag_embed(general(40, dtype=dtype)))
    check_eigh(torch.full((40, 40), 1j, dtype=dtype))
    if dtype == torch.complex128:
        check_eigh(general(100, 100, dtype=dtype))


def check_svd(a, full=False):
    """Compares singular values, residuals and orthogonality with the CPU's."""
    dml, cpu = on_both(lambda a: tuple(torch.linalg.svd(a, full)), a)
    assert [t.shape for t in dml] == [t.shape for t in cpu]
    assert [t.stride() for t in dml] == [t.stride() for t in cpu]
    exact = torch.linalg.svdvals(wide(a))
    size = column(exact.amax(-1, keepdim=True).expand(exact.shape)) if exact.numel() else column(exact)
    for values in (dml[1], torch.linalg.svdvals(a.to("dml")).cpu()):
        assert values.dtype == cpu[1].dtype
        assert_no_worse(column(values - exact), column(cpu[1] - exact), size, a.dtype)

    def residual(u, s, vh):
        k = s.shape[-1]
        return wide(u)[..., :k] * s[..., None, :] @ wide(vh)[..., :k, :] - a

    assert_no_worse(residual(*dml), residual(*cpu), a, a.dtype)
    assert_no_worse(spread(dml[0]), spread(cpu[0]), one(dml[0].shape[-1]), a.dtype)
    assert_no_worse(spread(dml[2].mH), spread(cpu[2].mH), one(dml[2].shape[-2]), a.dtype)


@pytest.mark.parametrize("full", [False, True])
@COMPLEXES
def test_svd(full, dtype):
    for sizes in [(0, 0), (1, 1), (3, 3), (33, 33), (40, 17), (17, 40), (0, 3, 3), (2, 3, 5, 4), (3, 0), (0, 4)]:
        check_svd(general(*sizes, dtype=dtype), full)
    for x in laid_out(general(7, 5, dtype=dtype)):
        check_svd(x, full)


@COMPLEXES
def test_svd_of_special_matrices(dtype):
    check_svd(torch.zeros(9, 6, dtype=dtype))
    check_svd(torch.eye(9, dtype=dtype) * 1j)
    check_svd(general(20, 3, dtype=dtype) @ general(3, 20, dtype=dtype))
    check_svd(general(100, 100, dtype=dtype))


@COMPLEXES
def test_what_singular_values_are_for(dtype):
    a = general(2, 9, 6, dtype=dtype)
    for function in (torch.linalg.pinv, torch.linalg.matrix_rank, torch.linalg.cond):
        torch.testing.assert_close(*on_both(function, a), rtol=1e-4, atol=1e-4)
    for order in ("nuc", 2, -2):
        norm = lambda a, order=order: torch.linalg.matrix_norm(a, order)  # noqa: E731
        torch.testing.assert_close(*on_both(norm, a), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
@COMPLEXES
def test_least_squares(driver, dtype):
    tolerance = 1e-9 if dtype == torch.complex128 else 1e-3
    solve = lambda a, b: tuple(torch.linalg.lstsq(a, b, driver=driver))  # noqa: E731
    problems = [((5, 5), 2), ((9, 4), 3), ((4, 9), 3), ((3, 7, 2), 1), ((2, 3, 5, 6), 2), ((40, 30), 2), ((0, 3, 2), 2)]
    for sizes, k in problems:
        a = general(*sizes, dtype=dtype)
        for x in laid_out(a):
            b = general(*sizes[:-1], k, dtype=dtype)
            dml, cpu = (solve(x.to(d), b.to(d)) for d in ("dml", "cpu"))
            assert [t.stride() for t in dml] == [t.stride() for t in cpu]
            dml = tuple(t.cpu() for t in dml)
            torch.testing.assert_close(dml, cpu, rtol=tolerance, atol=tolerance)
    a = general(9, 2, dtype=dtype) @ general(2, 5, dtype=dtype)
    if driver != "gels":
        dml, cpu = on_both(solve, a, general(9, 2, dtype=dtype))
        torch.testing.assert_close(dml, cpu, rtol=tolerance, atol=tolerance)


@pytest.mark.allow_fallback
def test_least_squares_without_full_rank():
    a = general(9, 5, dtype=torch.complex64)
    a[:, 2] = 0
    assert_same_error(lambda a, b: torch.linalg.lstsq(a, b, driver="gels"), a, general(9, 2, dtype=torch.complex64))


@pytest.mark.parametrize("hermitian", [False, True])
@COMPLEXES
def test_ldl(hermitian, dtype):
    factor = lambda a: tuple(torch.linalg.ldl_factor_ex(a, hermitian=hermitian))  # noqa: E731
    solve = lambda *t: torch.linalg.ldl_solve(*t, hermitian=hermitian)  # noqa: E731
    for sizes in [(1, 1), (2, 2), (3, 3), (33, 33), (70, 70), (3, 9, 9), (2, 2, 5, 5), (0, 0), (2, 0, 0), (0, 3, 3)]:
        x = general(*sizes, dtype=dtype)
        a = x + (x.mH if hermitian else x.mT)
        # Small numbers on the diagonal lead to pivots of two columns.
        a = a - 0.75 * torch.diag_embed(a.diagonal(dim1=-2, dim2=-1))
        dml, cpu = on_both(factor, a)
        assert dml[0].stride() == cpu[0].stride() and torch.equal(dml[0], dml[0].tril())
        assert torch.equal(dml[1], cpu[1]) and torch.equal(dml[2], cpu[2])
        b = general(*sizes[:-1], 3, dtype=dtype)
        solutions = [solve(*(t.to("dml") for t in dml[:2]), b.to("dml")).cpu(), solve(*cpu[:2], b)]
        assert solutions[0].stride() == solutions[1].stride()
        if not a.numel():
            continue
        scale = cpu[0].abs().amax() * torch.finfo(dtype).eps
        assert (dml[0] - cpu[0]).abs().amax() <= 100 * sizes[-1] * scale
        size = torch.linalg.matrix_norm(wide(a), keepdim=True) * wide(solutions[1])
        errors = [wide(a) @ wide(x) - b for x in solutions]
        assert_no_worse(*errors, 2 * size, dtype)
    for x in laid_out(a.new_ones(5, 5) + torch.diag_embed(general(5, dtype=dtype))):
        torch.testing.assert_close(*on_both(factor, x))
    zero = torch.zeros(2, 3, 3, dtype=dtype)
    assert torch.equal(*(t[2] for t in on_both(factor, zero)))


def test_out():
    a = positive_definite(3, 6, 6, dtype=torch.complex64).to("dml")
    empty = lambda dtype=torch.complex64: torch.empty(0, dtype=dtype, device="dml")  # noqa: E731
    for function in (torch.linalg.cholesky, torch.linalg.inv, torch.linalg.det):
        assert torch.equal(function(a, out=empty()), function(a))
    assert torch.equal(torch.linalg.solve(a, a[0], out=empty()), torch.linalg.solve(a, a[0]))
    for function in (torch.linalg.lu, torch.linalg.qr, torch.linalg.eigh, torch.linalg.svd):
        expected = function(a)
        outs = function(a, out=tuple(empty(t.dtype) for t in expected))
        assert all(torch.equal(x, y) for x, y in zip(outs, expected, strict=True))
    same = a.clone()
    assert torch.equal(torch.linalg.inv(same, out=same), torch.linalg.inv(a))


def test_gradients():
    a = leaf(general(2, 4, 4, dtype=torch.complex128) + 3 * torch.eye(4))
    b = leaf(general(2, 4, 2, dtype=torch.complex128))
    check = torch.autograd.gradcheck
    assert check(lambda a, b: torch.linalg.solve_triangular(a.triu(), b, upper=True), (a, b))
    assert check(lambda a: torch.linalg.cholesky(a @ a.mH), a)
    assert check(lambda a, b: torch.cholesky_solve(b, torch.linalg.cholesky(a @ a.mH)), (a, b))
    assert check(lambda a: torch.cholesky_inverse(torch.linalg.cholesky(a @ a.mH)), a)
    for turn in (lambda x: x, lambda x: x.mH):
        assert check(lambda a, turn=turn: torch.linalg.det(turn(a)), a)
        assert check(lambda a, turn=turn: torch.linalg.slogdet(turn(a))[1], a)
        assert check(lambda a, b, turn=turn: torch.linalg.solve(turn(a), b), (a, b))
    assert check(torch.linalg.inv, a)
    assert check(lambda a: torch.linalg.lu(a)[1:], a)
    assert check(lambda a, b: torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b), (a, b))


def test_gradients_of_orthogonal_factors():
    check = torch.autograd.gradcheck
    for sizes in ((2, 4, 3), (3, 3), (3, 5)):
        a = leaf(general(*sizes, dtype=torch.complex128))
        assert check(lambda a: torch.linalg.qr(a), a)
        assert check(torch.linalg.svdvals, a)
        assert check(torch.linalg.pinv, a)
    a, tau = leaf(general(4, 3, dtype=torch.complex128)), leaf(general(3, dtype=torch.complex128))
    assert check(torch.linalg.householder_product, (a, tau))
    a = leaf(general(4, 4, dtype=torch.complex128))
    assert check(lambda a: torch.linalg.eigvalsh(a + a.mH), a)
    a, b = leaf(general(5, 3, dtype=torch.complex128)), leaf(general(5, 2, dtype=torch.complex128))
    assert check(lambda a, b: torch.linalg.lstsq(a, b).solution, (a, b))
    a = leaf(general(4, 4, dtype=torch.complex128))
    # Vectors may have any phase; results that do not depend on it are differentiable.
    assert check(lambda a: torch.linalg.eigh(a + a.mH)[1].abs(), a)
    assert check(lambda a: torch.linalg.svd(a)[0].abs(), a)


def test_errors():
    half = torch.eye(3, dtype=torch.complex64).to(torch.complex32)
    calls = [torch.linalg.inv, torch.linalg.det, torch.linalg.slogdet, torch.linalg.lu, torch.linalg.lu_factor]
    for call in [*calls, torch.linalg.cholesky, torch.linalg.cholesky_ex]:
        assert_same_error(call, half, words=False)
        assert_same_error(call, torch.ones(3, dtype=torch.complex64))
    assert_same_error(lambda a: torch.linalg.solve_triangular(a, a, upper=True), half, words=False)
    one = torch.eye(3, dtype=torch.complex64)
    assert_same_error(torch.linalg.solve, one, torch.ones(3, 2), words=False)
    assert_same_error(lambda a: torch.linalg.inv(a, out=torch.empty(0, device=a.device)), one, words=False)
