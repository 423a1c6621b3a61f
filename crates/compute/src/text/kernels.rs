//! Kernels as text ([`dml_kernel::text`]) whose calls are of the
//! [catalogue](crate::catalogue)'s functions: `%y: f32 = call gelu %x`.

use crate::catalogue::named;
use crate::pointwise::function::Options;
use dml_kernel::{DType, Functions, Kernel, ParseError, Value};

/// The kernel of a text.
///
/// The functions are those of the page of elementwise functions, except those of complex numbers.
/// Options are `flag 2` (the third of the function's flags is set), `of bf16` (its dtype), and
/// `result 1` (the second of its results). Invalid operands are not reported.
pub fn kernel(text: &str) -> Result<Kernel, ParseError> {
    Kernel::from_text(text, &Catalogue)
}

struct Catalogue;

impl Functions for Catalogue {
    fn call<'b>(&self, name: &str, options: &[(&str, &str)], arguments: &[Value<'b>]) -> Result<Value<'b>, String> {
        let function = named(name).filter(|function| !function.is_complex());
        let function = function.ok_or_else(|| format!("no function is called {name}"))?;
        let wanted = function.arguments.map_or(arguments.len(), <[_]>::len);
        if wanted != arguments.len() {
            return Err(format!("{name} has {wanted} arguments"));
        }
        let first = arguments[0].scalar();
        if let Some(other) = arguments.iter().find(|argument| argument.scalar() != first) {
            return Err(format!("{name} takes arguments of one type, not {first} and {}", other.scalar()));
        }
        if function.integers && first.is_float() {
            return Err(format!("{name} takes no floats"));
        }
        let (mut chosen, mut result) = (Options::default(), 0);
        for &(word, of) in options {
            match word {
                "flag" => {
                    let flag = of.parse().ok().and_then(|flag: usize| chosen.flags.get_mut(flag));
                    *flag.ok_or("a flag is a number below 8")? = true;
                }
                "of" => chosen.dtype = DType::from_short_name(of).ok_or("this is no dtype")?,
                "result" => result = of.parse().map_err(|_| "a result is a number")?,
                _ => return Err(format!("no option is called {word}")),
            }
        }
        let results = function.results(arguments, &chosen);
        results.get(result).copied().ok_or_else(|| format!("{name} has {} results", results.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dml_kernel::interpret::{Argument, run};

    fn text(definition: &str) -> String {
        format!(
            "kernel k [1, 1, 1] {{ output @y: f32 input @x: f32 %x: f32 = load @x[0] {definition} store @y[0], %y }}"
        )
    }

    #[test]
    fn calls_are_of_the_catalogue() {
        for (call, expected) in [("relu %x", 0.0), ("leaky_relu %x, 0.5", -1.0), ("add %x, %x", -4.0)] {
            let kernel = kernel(&text(&format!("%y: f32 = call {call}"))).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(kernel.to_string().parse(), Ok(kernel.clone()), "{call}");
            let (mut y, mut x) = ([0; 4], (-2f32).to_le_bytes());
            run(&kernel, [1, 1, 1], 1, &mut [Argument::Memory(&mut y), Argument::Memory(&mut x)]);
            assert_eq!(f32::from_le_bytes(y), expected, "{call}");
        }
    }

    #[test]
    fn wrong_calls_name_the_place() {
        let error = |call: &str| match kernel(&text(&format!("\n%y: f32 = call {call}"))) {
            Ok(_) => panic!("{call} is accepted"),
            Err(error) => error.to_string(),
        };
        assert_eq!(error("rely %x"), "2:16: no function is called rely");
        assert_eq!(error("complex_exp %x"), "2:16: no function is called complex_exp");
        assert_eq!(error("add %x"), "2:16: add has 2 arguments");
        assert_eq!(error("add %x, 1:i32"), "2:16: add takes arguments of one type, not f32 and i32");
        assert_eq!(error("eq %x, %x"), "2:16: the result of eq is of type bool, and not f32");
        assert_eq!(error("relu [flag 8] %x"), "2:16: a flag is a number below 8");
        assert_eq!(error("relu [of f17] %x"), "2:16: this is no dtype");
        assert_eq!(error("relu [result 1] %x"), "2:16: relu has 1 results");
        assert_eq!(error("relu [colour red] %x"), "2:16: no option is called colour");
        assert_eq!(error("gcd %x, %x"), "2:16: gcd takes no floats");
        let plain = text("%y: f32 = call relu %x").parse::<Kernel>().map_err(|error| error.what);
        assert_eq!(plain, Err("no function is called relu".to_owned()));
    }
}
