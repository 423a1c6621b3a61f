//! The catalogue of elementwise functions: every [`Function`] of this crate.

use crate::pointwise::function::Function;
use crate::{
    attention, complex, indexing, linear_algebra, lists, loss, movement, normalization, pointwise, quantization,
    random, reduction, sorting,
};

/// The functions by the files that declare them.
static FILES: &[&[&Function]] = &[
    attention::functions::FUNCTIONS,
    complex::functions::FUNCTIONS,
    complex::functions::COMPLEX_FUNCTIONS,
    indexing::functions::FUNCTIONS,
    linear_algebra::functions::FUNCTIONS,
    lists::functions::FUNCTIONS,
    loss::elementwise::FUNCTIONS,
    movement::functions::FUNCTIONS,
    normalization::functions::FUNCTIONS,
    pointwise::activation::FUNCTIONS,
    pointwise::arithmetic::FUNCTIONS,
    pointwise::bessel::FUNCTIONS,
    pointwise::binary::FUNCTIONS,
    pointwise::comparison::FUNCTIONS,
    pointwise::division::FUNCTIONS,
    pointwise::error_function::FUNCTIONS,
    pointwise::exponential_activations::FUNCTIONS,
    pointwise::float_parts::FUNCTIONS,
    pointwise::gamma::FUNCTIONS,
    pointwise::glu::FUNCTIONS,
    pointwise::orthogonal_polynomials::FUNCTIONS,
    pointwise::piecewise_linear_activations::FUNCTIONS,
    pointwise::power::FUNCTIONS,
    pointwise::rrelu::FUNCTIONS,
    pointwise::selection::FUNCTIONS,
    pointwise::special::FUNCTIONS,
    pointwise::ternary::FUNCTIONS,
    pointwise::unary::FUNCTIONS,
    quantization::functions::FUNCTIONS,
    random::functions::FUNCTIONS,
    reduction::functions::FUNCTIONS,
    sorting::functions::FUNCTIONS,
];

/// All elementwise functions, each under a name of its own.
pub fn catalogue() -> impl Iterator<Item = &'static Function> {
    FILES.iter().flat_map(|file| file.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pointwise::function::Options;
    use dml_kernel::interpret::{Argument, run};
    use dml_kernel::{Builder, DType, Element, Kernel, ScalarType, Value};
    use std::collections::HashSet;

    /// Operands enough for functions whose number of arguments depends on options.
    const MOST: usize = 14;

    /// The types of a function's operands; a complex number is two.
    fn types(function: &Function) -> Vec<ScalarType> {
        let scalar = if function.integers { ScalarType::I32 } else { ScalarType::F32 };
        let parts = if function.is_complex() { 2 } else { 1 };
        vec![scalar; function.arguments.map_or(MOST, |names| parts * names.len())]
    }

    fn options(function: &Function) -> Options {
        Options { flags: [function.is_complex(); 8], ..Options::default() }
    }

    /// A kernel that writes the results of one element of each operand.
    fn kernel(function: &Function) -> Kernel {
        let types = types(function);
        let b = Builder::new(function.name, [1, 1, 1]);
        let (out, x) = (b.pointer("out", DType::F32), b.pointer("x", DType::F32));
        let operands: Vec<Value> = types.iter().zip(0..).map(|(&s, i)| x.load(i).cast(s)).collect();
        let element = Element::record(&types, |_, v| function.results(v, &options(function)));
        let results = element.expect("it only computes").inline(&b, &operands);
        for (value, i) in results.into_iter().zip(0..) {
            out.store(i, value.cast(ScalarType::F32));
        }
        b.finish()
    }

    #[test]
    fn names_are_unique() {
        let mut names = HashSet::new();
        for function in catalogue() {
            assert!(names.insert(function.name), "{} twice", function.name);
            assert!(!function.summary.is_empty(), "{}", function.name);
        }
    }

    #[test]
    fn every_function_is_recorded_and_evaluated() {
        for function in catalogue() {
            let kernel = kernel(function);
            kernel.emit().unwrap_or_else(|error| panic!("{}: {error}", function.name));
            let bytes = |x: &[f32]| x.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
            let unwritten = bytes(&[-1234.5; 4]);
            let mut out = unwritten.clone();
            let mut x = bytes(&(1..=MOST as u16).map(f32::from).collect::<Vec<f32>>());
            let memory = &mut [Argument::Memory(&mut out), Argument::Memory(&mut x)];
            run(&kernel, [1, 1, 1], 1, memory);
            assert_ne!(out, unwritten, "{}", function.name);
        }
    }

    #[test]
    fn functions_are_equal_to_themselves_alone() {
        use crate::pointwise::{activation, unary};
        let relu: &Function = &activation::RELU;
        assert_eq!(relu, &activation::RELU);
        assert_ne!(unary::SIGN, unary::SGN);
    }
}
