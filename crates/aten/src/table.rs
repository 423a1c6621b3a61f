//! The table of all operators. A family's file lists its overloads in a `pub const OPERATORS`; this
//! file concatenates the lists.

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
    // torchvision's operators.
    crate::detection::OPERATORS,
];

/// Every operator. The index of an overload in this list is its id in the C ABI.
pub fn operators() -> &'static [&'static Operator] {
    static ALL: std::sync::OnceLock<Vec<&'static Operator>> = std::sync::OnceLock::new();
    ALL.get_or_init(|| FAMILIES.iter().flat_map(|family| family.iter()).flat_map(|part| part.iter()).collect())
}

#[cfg(test)]
mod tests {
    use crate::operator::Operator;
    use std::collections::BTreeSet;
    use std::fmt::Write as _;

    /// The list of the plugin's wrappers of hot operators, by their types in `at::_ops`.
    fn hot_header(hot: &BTreeSet<&str>) -> String {
        let types = hot.iter().map(|name| name.trim_start_matches("aten::"));
        let file = |name: &str| match name.split('.').next() {
            Some(base) => base.trim_end_matches('_').to_owned(),
            None => String::new(),
        };
        let files: BTreeSet<String> = types.clone().map(file).collect();
        let mut text = "// Written by `make tables` from the table of operators in crates/aten.\n".to_owned();
        text += "// clang-format off\n#pragma once\n";
        for file in files {
            writeln!(text, "#include <ATen/ops/{file}_ops.h>").expect("a string");
        }
        text += "\nnamespace dml {\n\ntemplate <class... Op>\nstruct Operators {};\n\nusing HotOperators = Operators<";
        let types: Vec<String> = types.map(|name| format!("\n    at::_ops::{}", name.replace('.', "_"))).collect();
        text + &types.join(",") + ">;\n\n}  // namespace dml\n"
    }

    /// `plugin/operators/hot_operators.h` is what the table says. `WRITE=1` writes it.
    #[test]
    fn the_list_of_wrappers_is_what_the_table_says() {
        let is_hot = |operator: &&&Operator| operator.hot;
        let hot = crate::table::operators().iter().filter(is_hot).map(|operator| operator.name).collect();
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugin/operators/hot_operators.h");
        let text = hot_header(&hot);
        if std::env::var_os("WRITE").is_some() {
            std::fs::write(&path, &text).expect("the plugin's folder");
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
        assert!(found == text, "plugin/operators/hot_operators.h is not what the table says: run `make tables`");
    }

    #[test]
    fn every_schema_is_listed_once() {
        let mut schemas: Vec<&str> = crate::table::operators().iter().map(|operator| operator.schema).collect();
        schemas.sort_unstable();
        let twice: Vec<_> = schemas.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        assert!(twice.is_empty(), "listed twice: {twice:?}");
    }
}
