//! The table of every operator. A family's file lists its overloads in a `pub const OPERATORS`;
//! this file joins them.

use crate::operator::Operator;

/// The families, in the order in which they are registered.
const FAMILIES: &[&[&[Operator]]] = &[
    // Products.
    crate::matmul::OPERATORS,
    crate::linear_algebra::OPERATORS,
    crate::attention::OPERATORS,
    crate::convolution::OPERATORS,
    // Creation and random numbers.
    crate::creation::OPERATORS,
    crate::complex::OPERATORS,
    crate::fft::OPERATORS,
    crate::random::OPERATORS,
    // Movement.
    crate::movement::OPERATORS,
    crate::indexing::OPERATORS,
    // Lists of tensors.
    crate::lists::OPERATORS,
    // Pointwise.
    crate::pointwise::OPERATORS,
    crate::reduction::OPERATORS,
    crate::recurrent::OPERATORS,
    crate::spatial::OPERATORS,
    crate::spatial::pooling::OPERATORS,
    crate::loss::OPERATORS,
    crate::normalization::OPERATORS,
    crate::quantization::OPERATORS,
    crate::sorting::OPERATORS,
    crate::sparse::OPERATORS,
    // Of torchvision.
    crate::detection::OPERATORS,
];

/// Every operator. The index of an overload in this list is its id at the C ABI.
pub fn operators() -> &'static [&'static Operator] {
    static ALL: std::sync::OnceLock<Vec<&'static Operator>> = std::sync::OnceLock::new();
    ALL.get_or_init(|| FAMILIES.iter().flat_map(|family| family.iter()).flat_map(|part| part.iter()).collect())
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_schema_is_listed_once() {
        let mut schemas: Vec<&str> = crate::table::operators().iter().map(|operator| operator.schema).collect();
        schemas.sort_unstable();
        let twice: Vec<_> = schemas.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        assert!(twice.is_empty(), "listed twice: {twice:?}");
    }
}
