//! The parameters of kernels, declared once.
//!
//! [`parameters!`](crate::parameters) lists a kernel's parameters by name and kind. The one list
//! gives the values that the kernel sees ([`Interface::Parameters`]), the arguments that a launch
//! must give ([`Interface::Arguments`]), and the packing of the arguments into the parameter block
//! together with the ranges read and written. So order, types and number of arguments cannot differ
//! between a kernel and its launches.

use crate::error::Error;
use crate::kernels::kernel::KernelRef;
use crate::kernels::launch::{Launch, work_of};
use crate::memory::range::AddressRange;
use dml_kernel::{Builder, DType, Pointer, Value};
use smallvec::SmallVec;
use std::cell::Cell;
use std::marker::PhantomData;

/// The packed arguments of one launch: the parameter block, and the ranges read and written.
#[derive(Debug, Default)]
pub struct ArgumentBlock {
    params: Vec<u8>,
    table: Vec<u8>,
    reads: Vec<AddressRange>,
    writes: Vec<AddressRange>,
    mismatch: Option<&'static str>,
    /// As [`Launch::work`].
    work: u64,
    /// Replaces the address of memory without bytes.
    placeholder: u64,
}

thread_local! {
    /// The emptied block of the thread's last launch, for the next one.
    static SPARE: Cell<Option<Box<ArgumentBlock>>> = const { Cell::new(None) };
}

impl ArgumentBlock {
    /// Runs `run` with an empty block that the thread has used before, so that no launch allocates.
    #[inline]
    pub fn with_spare<R>(run: impl FnOnce(&mut Self) -> R) -> R {
        let mut block = SPARE.take().unwrap_or_default();
        let result = run(&mut block);
        block.clear();
        SPARE.set(Some(block));
        result
    }

    /// A scalar or an address, aligned to its own size, which is the layout of parameter blocks.
    #[inline]
    pub fn scalar<const N: usize>(&mut self, bytes: [u8; N]) {
        if !self.params.len().is_multiple_of(N) {
            self.params.resize(self.params.len().next_multiple_of(N), 0);
        }
        self.params.extend_from_slice(&bytes);
    }

    /// Begins the arguments of a launch. `placeholder` is a readable address. It replaces the
    /// address 0 of memory without bytes, which some drivers (Mesa 26.1's software adapter) load
    /// from even if no invocation uses the value.
    #[inline]
    pub fn begin(&mut self, placeholder: u64) {
        self.placeholder = placeholder;
    }

    /// An address. Accesses to its bytes are not ordered against other work: see
    /// [`reads`](Self::reads) and [`writes`](Self::writes).
    #[inline]
    pub fn address(&mut self, address: u64) {
        self.scalar(address.to_ne_bytes());
    }

    /// The address of a tensor or a range, or the placeholder if it has no bytes. Accesses are not
    /// ordered, as with [`address`](Self::address).
    #[inline]
    pub fn memory(&mut self, address: u64) {
        self.address(if address == 0 { self.placeholder } else { address });
    }

    /// Bytes that the kernel reads.
    #[inline]
    pub fn reads(&mut self, range: AddressRange) {
        self.work += work_of(range);
        self.reads.push(range);
    }

    /// Bytes that the kernel writes, and may read.
    #[inline]
    pub fn writes(&mut self, range: AddressRange) {
        self.work += work_of(range);
        self.writes.push(range);
    }

    /// Sets the number of operations of the kernel, if that exceeds the cost of its accesses. See
    /// [`Launch::work`].
    #[inline]
    pub fn operations(&mut self, operations: u64) {
        self.work = self.work.max(operations);
    }

    /// A word of the table (see [`Launch::table`]), whose address is the kernel's first parameter.
    pub fn table(&mut self, word: u64) {
        self.table.extend_from_slice(&word.to_ne_bytes());
    }

    /// Reports that an argument does not match the specialisation. The launch then fails instead of
    /// computing nonsense.
    #[cold]
    pub fn mismatch(&mut self, what: &'static str) {
        self.mismatch.get_or_insert(what);
    }

    /// The launch of `kernel` with these arguments.
    ///
    /// # Errors
    /// [`Error::InvalidLaunch`] after a [`mismatch`](Self::mismatch).
    #[inline]
    pub fn launch<'l>(
        &'l self,
        kernel: &'l KernelRef,
        groups: [u32; 3],
        operator: &'static str,
    ) -> Result<Launch<'l>, Error> {
        if let Some(what) = self.mismatch {
            return Err(mismatch(kernel, operator, what));
        }
        let Self { params, table, reads, writes, work, .. } = self;
        Ok(Launch { kernel, params, table, groups, reads, writes, work: *work, operator })
    }

    /// The parameter block so far.
    pub(crate) fn params(&self) -> &[u8] {
        &self.params
    }

    /// Removes the arguments, and keeps the memory for the next launch.
    #[inline]
    pub fn clear(&mut self) {
        self.params.clear();
        self.table.clear();
        self.reads.clear();
        self.writes.clear();
        self.mismatch = None;
        self.work = 0;
    }
}

#[cold]
fn mismatch(kernel: &KernelRef, operator: &'static str, what: &str) -> Error {
    Error::InvalidLaunch { operator, kernel: kernel.name().to_owned(), what: what.to_owned() }
}

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

/// Words that are uploaded with the launch (see [`Launch::table`]), as elements of a dtype. Must be
/// a kernel's first parameter.
pub struct Table;

impl Parameter for Table {
    type Type = DType;
    type Argument<'a> = &'a [u64];
    type Declared<'b> = Pointer<'b>;

    fn declare<'b>(b: &'b Builder, name: &str, dtype: &DType) -> Pointer<'b> {
        b.input(name, *dtype)
    }

    fn pass(argument: &&[u64], _: &DType, block: &mut ArgumentBlock) {
        if !block.params.is_empty() {
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
