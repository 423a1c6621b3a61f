//! Prints the catalogue of elementwise functions as a Markdown table:
//! `cargo run -p dml-compute --example catalogue`.

use dml_compute::catalogue::catalogue;

fn main() {
    println!("| Function | Arguments | Result |\n|---|---|---|");
    for function in catalogue() {
        let arguments = function.arguments.map_or("by its options".to_owned(), |names| names.join(", "));
        let summary = function.summary.split_whitespace().collect::<Vec<_>>().join(" ");
        println!("| `{}` | {} | {} |", function.name, arguments.replace('_', ""), summary.replace('|', "\\|"));
    }
}
