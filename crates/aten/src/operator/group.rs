//! Arguments that belong together, taken by an operator's function as one struct: the sizes of a
//! window, the numbers of an optimizer.

use crate::operator::argument::Arguments;
use crate::operator::error::Result;
use crate::operator::schema;

/// A struct of arguments, declared by [`group!`](crate::group). Its fields have the names that
/// schemas give to these arguments.
pub trait Group<'a>: Sized {
    /// The fields, in their order.
    const FIELDS: &'static [Field];

    /// Takes the arguments at `positions`, one for each field; `None` is the value that the struct
    /// declares for an argument that the schema lacks.
    ///
    /// # Errors
    /// As [`Arguments::get`].
    fn take(arguments: Arguments<'a>, positions: &[Option<usize>]) -> Result<Self>;
}

/// A field of a [`Group`].
pub struct Field {
    /// The argument's name in schemas.
    pub name: &'static str,
    /// The struct declares a value for schemas that lack the argument.
    pub optional: bool,
}

/// Where a schema has the arguments of a group of `N` fields.
///
/// # Panics
/// If the schema lacks an argument that is not optional: at compile time, where both are constants.
pub const fn positions<const N: usize>(schema: &str, fields: &[Field]) -> [Option<usize>; N] {
    let mut positions = [None; N];
    let mut i = 0;
    while i < N {
        positions[i] = if fields[i].optional {
            schema::find(schema, fields[i].name)
        } else {
            Some(schema::position(schema, fields[i].name))
        };
        i += 1;
    }
    positions
}

/// A struct that is a [`Group`] of arguments, for functions of many arguments, or for arguments
/// that several functions take. `name: type = value` is an argument that some overloads lack, and
/// its value in them. In the lists of [`operators!`](crate::operators!), `{Window}` stands for the
/// arguments of the struct `Window`:
///
/// ```ignore
/// group! {
///     /// The numbers of a pooling.
///     struct Window<'a> {
///         kernel_size: &'a [i64],
///         dilation: &'a [i64] = &[1],
///     }
/// }
/// ```
///
/// `group!(for Arguments<'a> { stride, groups = 1 })` makes a group of a struct that exists.
#[macro_export]
macro_rules! group {
    (@optional) => { false };
    (@optional $absent:expr) => { true };
    (@absent) => { unreachable!("an argument that each schema has") };
    (@absent $absent:expr) => { $absent };
    ($(#[$doc:meta])* $visibility:vis struct $name:ident $(<$life:lifetime>)? {
        $($(#[$about:meta])* $field:ident: $type:ty $(= $absent:expr)?),* $(,)?
    }) => {
        $(#[$doc])*
        $visibility struct $name $(<$life>)? {
            $($(#[$about])* $visibility $field: $type,)*
        }

        $crate::group!(@of $name [$($life)?] { $($field $(= $absent)?,)* });
    };
    (for $name:ident $(<$life:lifetime>)? { $($field:ident $(= $absent:expr)?),* $(,)? }) => {
        $crate::group!(@of $name [$($life)?] { $($field $(= $absent)?,)* });
    };
    (@of $name:ident [] $fields:tt) => { $crate::group!(@impl 'a, $name, $name, $fields); };
    (@of $name:ident [$life:lifetime] $fields:tt) => { $crate::group!(@impl $life, $name, $name<$life>, $fields); };
    (@impl $life:lifetime, $name:ident, $struct:ty, { $($field:ident $(= $absent:expr)?,)* }) => {
        impl<$life> $crate::operator::group::Group<$life> for $struct {
            const FIELDS: &'static [$crate::operator::group::Field] = &[$($crate::operator::group::Field {
                name: stringify!($field),
                optional: $crate::group!(@optional $($absent)?),
            }),*];

            #[inline]
            fn take(
                arguments: $crate::operator::argument::Arguments<$life>,
                positions: &[Option<usize>],
            ) -> $crate::operator::error::Result<Self> {
                let mut positions = positions.iter().copied();
                Ok($name {
                    $($field: match positions.next().flatten() {
                        Some(i) => arguments.get(i)?,
                        None => $crate::group!(@absent $($absent)?),
                    },)*
                })
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::value::Arg;
    use dml_compute::scalar::Scalar;

    group! {
        struct Window<'a> {
            size: &'a [i64],
            ceil: bool = true,
        }
    }

    const SCHEMA: &str = "aten::pool(Tensor self, bool ceil, int[2] size) -> Tensor";
    const SHORT: &str = "aten::pool(int[2] size) -> Tensor";

    #[test]
    fn fields_are_found_by_name() {
        const POSITIONS: [Option<usize>; 2] = positions(SCHEMA, Window::FIELDS);
        assert_eq!(POSITIONS, [Some(2), Some(1)]);
        assert_eq!(positions::<2>(SHORT, Window::FIELDS), [Some(0), None]);
    }

    #[test]
    fn absent_arguments_have_the_declared_value() {
        let args = [Arg::None, Arg::Scalar(Scalar::Bool(false)), Arg::Ints(&[3, 4])];
        let arguments = Arguments { args: &args, name: "aten::pool", device: 0 };
        let all = Window::take(arguments, &[Some(2), Some(1)]).expect("both are given");
        assert_eq!((all.size, all.ceil), (&[3, 4][..], false));
        let short = Window::take(arguments, &[Some(2), None]).expect("one is given");
        assert_eq!((short.size, short.ceil), (&[3, 4][..], true));
        assert!(Window::take(arguments, &[Some(0), None]).is_err());
    }
}
