//! Operators of lists of complex tensors: the operator of single tensors, on one after the other.

/// What the lists' names for an operand are, by that of single tensors.
pub fn names_in_lists(name: &str) -> &[&str] {
    match name {
        "other" => &["other", "scalar", "scalars"],
        "end" => &["tensors1"],
        "weight" => &["weight", "weights", "scalars"],
        "value" => &["value", "scalars"],
        "exponent" => &["exponent"],
        "self" => &["self"],
        "ord" => &["ord"],
        "dtype" => &["dtype"],
        "tensor1" => &["tensor1"],
        "tensor2" => &["tensor2"],
        "alpha" => &["alpha"],
        _ => &[],
    }
}
