//! Which way each operator of complex tensors takes.

use crate::view::View;

/// The operators whose own function takes complex tensors.
pub fn takes_complex(name: &str) -> bool {
    name.starts_with("_fft_")
        || matches!(
            name,
            "linalg_solve_triangular"
                | "triangular_solve"
                | "linalg_cholesky_ex"
                | "cholesky"
                | "_cholesky_solve_helper"
                | "cholesky_inverse"
                | "linalg_lu_factor_ex"
                | "linalg_lu"
                | "lu_unpack"
                | "linalg_lu_solve"
                | "_linalg_solve_ex"
                | "linalg_inv_ex"
                | "_linalg_det"
                | "_linalg_slogdet"
                | "geqrf"
                | "linalg_householder_product"
                | "ormqr"
                | "linalg_qr"
                | "_linalg_eigh"
                | "_linalg_svd"
                | "linalg_lstsq"
                | "linalg_ldl_factor_ex"
                | "linalg_ldl_solve"
        )
}

pub fn has_bits(t: &View) -> bool {
    t.conjugate || t.negative
}
