//! The catalogue of elementwise functions: every [`Function`] of this crate.

use crate::pointwise::function::Function;
use crate::{
    attention, complex, indexing, linear_algebra, lists, loss, matmul, movement, normalization, pointwise,
    quantization, random, reduction, sorting,
};
use std::collections::HashMap;
use std::sync::LazyLock;

/// The functions by the files that declare them.
static FILES: &[&[&Function]] = &[
    attention::functions::FUNCTIONS,
    complex::functions::FUNCTIONS,
    complex::functions::COMPLEX_FUNCTIONS,
    indexing::functions::FUNCTIONS,
    linear_algebra::functions::FUNCTIONS,
    lists::functions::FUNCTIONS,
    matmul::functions::FUNCTIONS,
    loss::elementwise::FUNCTIONS,
    movement::functions::FUNCTIONS,
    normalization::functions::FUNCTIONS,
    pointwise::activation::FUNCTIONS,
    pointwise::arithmetic::FUNCTIONS,
    pointwise::bessel::FUNCTIONS,
    pointwise::binary::FUNCTIONS,
    pointwise::comparison::FUNCTIONS,
    pointwise::complex::COMPLEX_FUNCTIONS,
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
    pointwise::windows::FUNCTIONS,
    quantization::functions::FUNCTIONS,
    random::functions::FUNCTIONS,
    reduction::functions::FUNCTIONS,
    sorting::functions::FUNCTIONS,
];

/// The elementwise function with a name.
pub fn named(name: &str) -> Option<&'static Function> {
    static BY_NAME: LazyLock<HashMap<&str, &Function>> =
        LazyLock::new(|| catalogue().map(|function| (function.name, function)).collect());
    BY_NAME.get(name).copied()
}

/// All elementwise functions; their names are distinct.
pub fn catalogue() -> impl Iterator<Item = &'static Function> {
    FILES.iter().flat_map(|file| file.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pointwise::function::Options;
    use crate::pointwise::rule::{Dtypes, Rule};
    use dml_kernel::interpret::{Argument, run};
    use dml_kernel::{Builder, DType, Element, Kernel, ScalarType, Value};
    use std::collections::HashSet;

    /// Number of operands for functions whose arity depends on options.
    const MAX_ARITY: usize = 14;

    /// The types of a function's operands; a complex operand is two of them.
    fn types(function: &Function) -> Vec<ScalarType> {
        let scalar = if function.integers { ScalarType::I32 } else { ScalarType::F32 };
        let parts = if function.is_complex() { 2 } else { 1 };
        vec![scalar; function.arguments.map_or(MAX_ARITY, |names| parts * names.len())]
    }

    fn options(function: &Function) -> Options {
        Options { flags: [function.is_complex(); 8], ..Options::default() }
    }

    /// A kernel that stores the results of a function for one element of each operand.
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

    /// A cell of a table in Markdown.
    fn cell(text: &str) -> String {
        let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
        joined.replace("[`", "`").replace("`]", "`").replace('|', "\\|")
    }

    fn page() -> String {
        let mut page = "# Elementwise functions\n\n".to_owned();
        page += "Written by `make tables` from the catalogue of crates/compute; do not edit.\n\n";
        page += "Functions of one element of each operand, in the order of their names.\n\n";
        page += "- Result: *promoted* is the dtype in which the operands meet; *exact* the same, and `out=` of\n";
        page += "  another dtype is refused; *float* the same, and the default float dtype of integers; *real* the\n";
        page += "  dtype of a complex number's parts.\n";
        page += "- Takes: the dtypes of operands, where not all are taken.\n";
        page += "- Complex: the function of complex operands.\n\n";
        page += "| function | operands | what it computes | result | takes | complex |\n|---|---|---|---|---|---|\n";
        let mut functions: Vec<&Function> = catalogue().collect();
        functions.sort_by_key(|function| function.name);
        for function in functions {
            let Function { name, arguments, summary, rule, takes, complex, .. } = function;
            let arguments = arguments.map_or_else(|| "..".to_owned(), |names| names.join(", "));
            let rule = match rule {
                Rule::Promote => "promoted",
                Rule::Exact => "exact",
                Rule::Float => "float",
                Rule::Bool => "bool",
                Rule::Real => "real",
                Rule::As(_) => "option",
            };
            let takes = match takes {
                Dtypes::Any => "",
                Dtypes::Number | Dtypes::Signed => "no bools",
                Dtypes::Float => "floats",
                Dtypes::Integral => "integers, bools",
            };
            let complex = complex.map_or_else(String::new, |of| format!("`{}`", of.name));
            let summary = cell(summary);
            page += &format!("| `{name}` | {arguments} | {summary} | {rule} | {takes} | {complex} |\n");
        }
        page
    }

    /// `docs/reference/elementwise.md` lists the functions. `WRITE=1` writes it.
    #[test]
    fn the_page_is_what_the_table_says() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/elementwise.md");
        let page = page();
        if std::env::var_os("WRITE").is_some() {
            std::fs::write(&path, &page).expect("the folder of pages");
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
        assert!(found == page, "docs/reference/elementwise.md is not what the catalogue says: run `make tables`");
    }

    #[test]
    fn functions_of_complex_numbers_are_such() {
        for function in catalogue() {
            if let Some(complex) = function.complex {
                assert!(complex.is_complex() && !function.is_complex(), "{}", function.name);
            }
        }
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
            let mut x = bytes(&(1..=MAX_ARITY as u16).map(f32::from).collect::<Vec<f32>>());
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
