//! The table of every operator. A family's file lists its overloads in a `pub const OPERATORS`; this file joins
//! them.

use crate::call::Call;
use crate::error::Result;

/// One overload: PyTorch's name for it and the function that runs it.
pub struct Operator {
    /// As in `aten::add.Tensor`.
    pub name: &'static str,
    /// Checks the arguments, enqueues kernels, and sets the results.
    pub run: fn(&mut Call) -> Result<()>,
}

/// One overload, for a family's list.
pub const fn op(name: &'static str, run: fn(&mut Call) -> Result<()>) -> Operator {
    Operator { name, run }
}

/// The families, in the order in which they are registered.
const FAMILIES: &[&[&[Operator]]] = &[
    // Products.
    crate::matmul::OPERATORS,
    &[crate::cross::OPERATORS],
    crate::attention::OPERATORS,
    crate::convolution::OPERATORS,
    // Creation and random numbers.
    crate::creation::OPERATORS,
    &[
        crate::dropout::OPERATORS,
        crate::multinomial::OPERATORS,
        crate::permutation::OPERATORS,
        crate::random::OPERATORS,
        crate::sampling::OPERATORS,
        crate::triangle::OPERATORS,
    ],
    // Movement.
    &[
        crate::concatenation::OPERATORS,
        crate::copy::OPERATORS,
        crate::embedding::OPERATORS,
        crate::embedding_bag::OPERATORS,
        crate::indexing::OPERATORS,
        crate::movement::OPERATORS,
        crate::nonzero::OPERATORS,
    ],
    crate::gather::OPERATORS,
    // Lists of tensors.
    crate::foreach::OPERATORS[0],
    crate::foreach::OPERATORS[1],
    crate::foreach::OPERATORS[2],
    &[crate::loss_scale::OPERATORS, crate::optimizer::OPERATORS],
    // Pointwise.
    crate::activation::OPERATORS,
    crate::rrelu::OPERATORS,
    crate::arithmetic::OPERATORS,
    &[crate::bessel::OPERATORS],
    crate::binary::OPERATORS,
    crate::comparison::COMPARISONS,
    crate::comparison::BINARIES,
    crate::division::OPERATORS,
    &[crate::glu::OPERATORS],
    crate::error_function::OPERATORS,
    &[crate::float_parts::OPERATORS],
    crate::gamma::OPERATORS,
    &[crate::orthogonal::OPERATORS],
    crate::piecewise::OPERATORS,
    crate::power::OPERATORS,
    crate::selection::OPERATORS,
    crate::smooth::OPERATORS,
    crate::special::OPERATORS,
    crate::ternary::OPERATORS,
    crate::unary::OPERATORS,
    &[
        crate::reduction::extremum::OPERATORS,
        crate::reduction::hash::OPERATORS,
        crate::reduction::logical::OPERATORS,
        crate::reduction::norm::OPERATORS,
        crate::reduction::sum::OPERATORS,
        crate::reduction::variance::OPERATORS,
    ],
    &[crate::scan::OPERATORS],
    &[crate::recurrent::OPERATORS],
    &[crate::grid_sampler::OPERATORS],
    crate::padding::OPERATORS,
    crate::pooling::OPERATORS,
    &[crate::unfold::OPERATORS],
    crate::upsample::OPERATORS,
    crate::loss::OPERATORS,
    crate::normalization::OPERATORS,
    &[crate::distance::OPERATORS, crate::softmax::OPERATORS],
    crate::sorting::OPERATORS,
    &[crate::histogram::OPERATORS, crate::search::OPERATORS, crate::unique::OPERATORS],
];

/// Every operator. The index of an overload in this list is its id at the C ABI.
pub fn operators() -> &'static [&'static Operator] {
    static ALL: std::sync::OnceLock<Vec<&'static Operator>> = std::sync::OnceLock::new();
    ALL.get_or_init(|| FAMILIES.iter().flat_map(|family| family.iter()).flat_map(|part| part.iter()).collect())
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_overload_is_listed_once() {
        let mut names: Vec<&str> = super::operators().iter().map(|operator| operator.name).collect();
        names.sort_unstable();
        let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        assert!(twice.is_empty(), "listed twice: {twice:?}");
    }
}
