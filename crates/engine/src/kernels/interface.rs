//! The parameters of kernels, declared once.
//!
//! [`parameters!`](crate::parameters) lists a kernel's parameters by name and kind. The one list
//! gives the values that the kernel sees ([`Interface::Parameters`]), the arguments that a launch
//! must give ([`Interface::Arguments`]), and the packing of the arguments into the parameter block
//! together with the ranges read and written. So order, types and number of arguments cannot differ
//! between a kernel and its launches.

use crate::kernels::argument_block::ArgumentBlock;
use crate::memory::range::AddressRange;
use dml_kernel::{Builder, DType, Pointer, Value};
use smallvec::SmallVec;
use std::marker::PhantomData;

/// A kind of parameter: its declaration in a kernel, and its argument in a launch.
pub trait Parameter {
    /// The part that the specialisation determines, such as the dtype. `()` if the kind determines
    /// everything.
    type Type;
    /// The argument of a launch.
    type Argument<'a>;
    /// The value in the kernel.
    type Declared<'b>;

    /// Declares it in a kernel.
    fn declare<'b>(b: &'b Builder, name: &str, of: &Self::Type) -> Self::Declared<'b>;
    /// Packs an argument, in the order in which parameters are declared.
    fn pass(argument: &Self::Argument<'_>, of: &Self::Type, block: &mut ArgumentBlock);
}

/// The parameters of the kernels of one specialisation. Made by [`parameters!`](crate::parameters).
pub trait Interface {
    /// The arguments of a launch, by name.
    type Arguments<'a>;
    /// The values in the kernel, by name.
    type Parameters<'b>;

    /// Declares the parameters.
    fn declare<'b>(&self, b: &'b Builder) -> Self::Parameters<'b>;
    /// Packs arguments.
    fn pass(&self, arguments: &Self::Arguments<'_>, block: &mut ArgumentBlock);
}

/// Declares what the kernels of a specialisation take:
///
/// ```
/// use dml_engine::{interface::{Index, ReadRange, WriteRange}, parameters};
/// use dml_kernel::{DType, ScalarType};
///
/// #[derive(Clone, Debug, PartialEq, Eq, Hash)]
/// struct Spec {
///     dtype: DType,
///     index: ScalarType,
/// }
///
/// parameters! {
///     /// Arguments of a copy.
///     Spec as s => CopyArguments, CopyParameters {
///         out: WriteRange = s.dtype,
///         input: ReadRange = s.dtype,
///         numel: Index = s.index,
///     }
/// }
/// ```
///
/// makes `CopyArguments<'_>`, which a launch fills in, `CopyParameters<'_>`, which the kernel gets,
/// and implements [`Interface`] for `Spec`. A field is `name: Kind` or `name: Kind = type`, where
/// the expression may use the specialisation (a reference). Generic specialisations: `impl<F:
/// Bound> Spec<F> as s => ...`.
#[macro_export]
macro_rules! parameters {
    ($(#[$meta:meta])* $vis:vis impl<$($g:ident : $bound:path),+> $spec:ty as $s:ident => $($rest:tt)*) => {
        $crate::parameters!(@declare [$(#[$meta])*] [$vis] [<$($g: $bound),+>] [$spec] $s $($rest)*);
    };
    ($(#[$meta:meta])* $vis:vis $spec:ty as $s:ident => $($rest:tt)*) => {
        $crate::parameters!(@declare [$(#[$meta])*] [$vis] [] [$spec] $s $($rest)*);
    };
    (
        @declare [$($meta:tt)*] [$vis:vis] [$($generics:tt)*] [$spec:ty] $s:ident $arguments:ident, $parameters:ident {
            $($(#[$doc:meta])* $field:ident : $kind:ty $(= $of:expr)?),* $(,)?
        }
    ) => {
        $($meta)*
        $vis struct $arguments<'a> {
            $($(#[$doc])* pub $field: <$kind as $crate::Parameter>::Argument<'a>,)*
        }

        $($meta)*
        $vis struct $parameters<'b> {
            $($(#[$doc])* pub $field: <$kind as $crate::Parameter>::Declared<'b>,)*
        }

        impl $($generics)* $crate::Interface for $spec {
            type Arguments<'a> = $arguments<'a>;
            type Parameters<'b> = $parameters<'b>;

            fn declare<'b>(&self, b: &'b dml_kernel::Builder) -> $parameters<'b> {
                let $s = self;
                let _ = $s;
                $parameters {
                    $($field: <$kind as $crate::Parameter>::declare(b, stringify!($field), &$crate::parameters!(@of $($of)?)),)*
                }
            }

            #[inline]
            fn pass(&self, arguments: &$arguments<'_>, block: &mut $crate::ArgumentBlock) {
                let $s = self;
                let _ = $s;
                $(<$kind as $crate::Parameter>::pass(&arguments.$field, &$crate::parameters!(@of $($of)?), block);)*
            }
        }
    };
    (@of) => { () };
    (@of $of:expr) => { $of };
}

macro_rules! scalars {
    ($($(#[$doc:meta])* $kind:ident $type:ty;)*) => {$(
        $(#[$doc])*
        pub struct $kind;

        impl Parameter for $kind {
            type Type = ();
            type Argument<'a> = $type;
            type Declared<'b> = Value<'b>;

            fn declare<'b>(b: &'b Builder, name: &str, (): &()) -> Value<'b> {
                b.param(name, dml_kernel::ScalarType::$kind)
            }

            #[inline]
            fn pass(argument: &$type, (): &(), block: &mut ArgumentBlock) {
                block.scalar(argument.to_ne_bytes());
            }
        }
    )*};
}

scalars! {
    /// A number of this type.
    U32 u32;
    /// A number of this type.
    I32 i32;
    /// A number of this type.
    U64 u64;
    /// A number of this type.
    I64 i64;
    /// A number of this type.
    F32 f32;
    /// A number of this type.
    F64 f64;
}

/// An integer whose width the specialisation determines: an index, a size, a stride.
pub struct Index;

impl Parameter for Index {
    /// u32 or u64, or the signed type of the same width.
    type Type = dml_kernel::ScalarType;
    type Argument<'a> = i64;
    type Declared<'b> = Value<'b>;

    fn declare<'b>(b: &'b Builder, name: &str, scalar: &dml_kernel::ScalarType) -> Value<'b> {
        b.param(name, *scalar)
    }

    #[inline]
    fn pass(argument: &i64, scalar: &dml_kernel::ScalarType, block: &mut ArgumentBlock) {
        if scalar.bytes() == 8 {
            block.scalar(argument.to_ne_bytes());
        } else {
            block.scalar((*argument as i32).to_ne_bytes());
        }
    }
}

/// Memory that the kernel reads, as elements of a dtype.
pub struct ReadRange;

impl Parameter for ReadRange {
    type Type = DType;
    type Argument<'a> = AddressRange;
    type Declared<'b> = Pointer<'b>;

    fn declare<'b>(b: &'b Builder, name: &str, dtype: &DType) -> Pointer<'b> {
        b.input(name, *dtype)
    }

    #[inline]
    fn pass(argument: &AddressRange, _: &DType, block: &mut ArgumentBlock) {
        block.reads(*argument);
        block.memory(argument.start);
    }
}

/// Memory that the kernel writes, and may read, as elements of a dtype.
pub struct WriteRange;

impl Parameter for WriteRange {
    type Type = DType;
    type Argument<'a> = AddressRange;
    type Declared<'b> = Pointer<'b>;

    fn declare<'b>(b: &'b Builder, name: &str, dtype: &DType) -> Pointer<'b> {
        b.pointer(name, *dtype)
    }

    #[inline]
    fn pass(argument: &AddressRange, _: &DType, block: &mut ArgumentBlock) {
        block.writes(*argument);
        block.memory(argument.start);
    }
}

/// The address of memory that needs no ordering against other work, such as the fault block, as
/// elements of a dtype.
pub struct Unordered;

impl Parameter for Unordered {
    type Type = DType;
    type Argument<'a> = u64;
    type Declared<'b> = Pointer<'b>;

    fn declare<'b>(b: &'b Builder, name: &str, dtype: &DType) -> Pointer<'b> {
        b.pointer(name, *dtype)
    }

    #[inline]
    fn pass(argument: &u64, _: &DType, block: &mut ArgumentBlock) {
        block.address(*argument);
    }
}

/// An optional [`Unordered`] address. If there is none, the kernel gets the launch's
/// [placeholder](ArgumentBlock::begin), and another parameter tells it not to use the address.
pub struct OptionalUnordered;

impl Parameter for OptionalUnordered {
    type Type = DType;
    type Argument<'a> = Option<u64>;
    type Declared<'b> = Pointer<'b>;

    fn declare<'b>(b: &'b Builder, name: &str, dtype: &DType) -> Pointer<'b> {
        b.pointer(name, *dtype)
    }

    #[inline]
    fn pass(argument: &Option<u64>, _: &DType, block: &mut ArgumentBlock) {
        block.memory(argument.unwrap_or(0));
    }
}

/// Words that are uploaded with the launch (see [`Launch::table`](crate::Launch::table)), as
/// elements of a dtype. Must be a kernel's first parameter.
pub struct Table;

impl Parameter for Table {
    type Type = DType;
    type Argument<'a> = &'a [u64];
    type Declared<'b> = Pointer<'b>;

    fn declare<'b>(b: &'b Builder, name: &str, dtype: &DType) -> Pointer<'b> {
        b.input(name, *dtype)
    }

    fn pass(argument: &&[u64], _: &DType, block: &mut ArgumentBlock) {
        if !block.params().is_empty() {
            block.mismatch("a table is not the kernel's first parameter");
        }
        for &word in *argument {
            block.table(word);
        }
    }
}

/// A parameter that only some specialisations have: those that give a type.
impl<P: Parameter> Parameter for Option<P> {
    type Type = Option<P::Type>;
    type Argument<'a> = Option<P::Argument<'a>>;
    type Declared<'b> = Option<P::Declared<'b>>;

    fn declare<'b>(b: &'b Builder, name: &str, of: &Self::Type) -> Self::Declared<'b> {
        of.as_ref().map(|of| P::declare(b, name, of))
    }

    #[inline]
    fn pass(argument: &Self::Argument<'_>, of: &Self::Type, block: &mut ArgumentBlock) {
        match (argument, of) {
            (Some(argument), Some(of)) => P::pass(argument, of, block),
            (None, None) => {}
            _ => block.mismatch("an argument is given that the kernel does not take, or the other way round"),
        }
    }
}

/// As many parameters of one type as the array has elements.
impl<P: Parameter, const N: usize> Parameter for [P; N] {
    type Type = P::Type;
    type Argument<'a> = [P::Argument<'a>; N];
    type Declared<'b> = [P::Declared<'b>; N];

    fn declare<'b>(b: &'b Builder, name: &str, of: &Self::Type) -> Self::Declared<'b> {
        std::array::from_fn(|i| P::declare(b, &format!("{name}{i}"), of))
    }

    #[inline]
    fn pass(arguments: &Self::Argument<'_>, of: &Self::Type, block: &mut ArgumentBlock) {
        for argument in arguments {
            P::pass(argument, of, block);
        }
    }
}

/// As many parameters as the specialisation gives types.
pub struct Each<P>(PhantomData<P>);

impl<P: Parameter> Parameter for Each<P> {
    type Type = SmallVec<[P::Type; 4]>;
    type Argument<'a> = SmallVec<[P::Argument<'a>; 4]>;
    type Declared<'b> = Vec<P::Declared<'b>>;

    fn declare<'b>(b: &'b Builder, name: &str, of: &Self::Type) -> Self::Declared<'b> {
        of.iter().enumerate().map(|(i, of)| P::declare(b, &format!("{name}{i}"), of)).collect()
    }

    #[inline]
    fn pass(arguments: &Self::Argument<'_>, of: &Self::Type, block: &mut ArgumentBlock) {
        if arguments.len() != of.len() {
            block.mismatch("more or fewer arguments are given than the kernel takes");
        }
        for (argument, of) in arguments.iter().zip(of) {
            P::pass(argument, of, block);
        }
    }
}
