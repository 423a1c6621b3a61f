//! What tests and benchmarks of operators share: a host whose tensors are plain device memory.
#![allow(dead_code)]

pub mod matrix;

use dml_aten::{Arg, Host, Result, Ret};
use dml_compute::{Dims, Environment, Location, MatmulPrecision, Policy, Scalar, View};
use dml_engine::{AddressRange, Device, KernelRef};
use dml_kernel::DType;
pub use dml_testing::Random;
use std::sync::{Arc, Mutex, PoisonError};

/// Allocates tensors on one device; their memory is freed with the host.
pub struct TestHost {
    /// The device.
    pub device: Arc<Device>,
    blocks: Mutex<Vec<u64>>,
    /// Warnings of operators.
    pub warnings: Mutex<Vec<String>>,
    /// The dtype to which products round float32.
    pub product_dtype: Option<DType>,
}

impl TestHost {
    /// On device 0, or on the one that the environment variable `DML_TEST_DEVICE` names.
    pub fn new() -> TestHost {
        let index = std::env::var("DML_TEST_DEVICE").ok().and_then(|i| i.parse().ok()).unwrap_or(0);
        let device = dml_engine::device(index).expect("there is a Vulkan adapter").clone();
        TestHost { device, blocks: Mutex::default(), warnings: Mutex::default(), product_dtype: None }
    }

    /// A tensor with these bytes.
    pub fn tensor(&self, dtype: DType, sizes: &[i64], bytes: &[u8]) -> View {
        let t = self.allocate(0, dtype, sizes, &View::contiguous_strides(sizes)).expect("there is memory");
        assert_eq!(bytes.len() as i64, t.numel() * t.element_size() as i64);
        self.device.upload(t.data, bytes).expect("the device works");
        t
    }

    /// A tensor of any dtype, converted from doubles.
    pub fn of(&self, dtype: DType, sizes: &[i64], values: &[f64]) -> View {
        let bytes: Vec<u8> = values.iter().flat_map(|&v| encode(dtype, v)).collect();
        self.tensor(dtype, sizes, &bytes)
    }

    /// The elements of a contiguous tensor as doubles.
    pub fn read(&self, t: &View) -> Vec<f64> {
        assert!(t.is_contiguous(), "{t:?}");
        let mut bytes = vec![0; (t.numel() as u64 * t.element_size()) as usize];
        self.device.download(t.data, &mut bytes).expect("the device works");
        bytes.chunks(t.element_size() as usize).map(|b| decode(t.dtype, b)).collect()
    }

    /// Number of tensors.
    pub fn count(&self) -> usize {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Frees all tensors.
    pub fn clear(&self) {
        self.keep(0);
    }

    /// Frees all tensors but the first `count`.
    pub fn keep(&self, count: usize) {
        for block in self.blocks.lock().unwrap_or_else(PoisonError::into_inner).drain(count..) {
            self.device.free(block);
        }
    }

    /// A tensor with these bytes, as [`TestHost::tensor`].
    pub fn bytes(&self, dtype: DType, sizes: &[i64], bytes: &[u8]) -> View {
        self.tensor(dtype, sizes, bytes)
    }

    /// A float32 tensor.
    pub fn floats(&self, sizes: &[i64], values: &[f32]) -> View {
        self.tensor(DType::F32, sizes, &values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>())
    }

    /// The elements of a contiguous float32 tensor.
    pub fn read_floats(&self, t: &View) -> Vec<f32> {
        assert_eq!(t.dtype, DType::F32);
        self.read(t).into_iter().map(|x| x as f32).collect()
    }

    /// The elements of a contiguous int64 tensor.
    pub fn read_longs(&self, t: &View) -> Vec<i64> {
        assert_eq!(t.dtype, DType::I64);
        self.read(t).into_iter().map(|x| x as i64).collect()
    }

    /// Runs an overload by name; its results are tensors.
    pub fn run(&self, name: &str, args: &[Arg]) -> Result<Vec<View>> {
        let operator = dml_aten::operators().iter().find(|o| o.name == name).expect("the operator exists");
        let mut call = operator.call(args, &self.device, self);
        (operator.run)(&mut call)?;
        let tensors = call.returns.into_iter().map(|r| match r {
            Ret::Tensor(t) => t,
            other => panic!("{name} returned {other:?}"),
        });
        Ok(tensors.collect())
    }
}

/// A tensor argument.
pub fn tensor(t: &View) -> Arg<'static> {
    Arg::Tensor(t.clone())
}

/// A flag argument.
pub fn flag(x: bool) -> Arg<'static> {
    Arg::Scalar(Scalar::Bool(x))
}

/// A number argument.
pub fn number(x: f64) -> Arg<'static> {
    Arg::Scalar(Scalar::Double(x))
}

/// The error message of an operator that has to fail.
pub fn message(result: Result<Vec<View>>) -> String {
    result.expect_err("this must fail").to_string()
}

/// `n` floats in [-1, 1).
pub fn noise(n: usize, seed: u64) -> Vec<f32> {
    let mut random = Random(seed);
    (0..n).map(|_| random.signed_unit() as f32).collect()
}

impl Drop for TestHost {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Policy for TestHost {
    fn deterministic(&self) -> bool {
        false
    }

    fn matmul_precision(&self) -> MatmulPrecision {
        MatmulPrecision::Highest
    }

    fn product_dtype(&self) -> Option<DType> {
        self.product_dtype
    }
}

impl Environment for TestHost {
    fn allocate(&self, device: u8, dtype: DType, sizes: &[i64], strides: &[i64]) -> dml_compute::Result<View> {
        let last: i64 = sizes.iter().zip(strides).map(|(n, s)| (n - 1).max(0) * s).sum();
        let empty = sizes.contains(&0);
        let bytes = if empty { 0 } else { (last as u64 + 1) * dtype.bytes() };
        let data = if bytes == 0 { 0 } else { self.device.allocate(bytes)? };
        if bytes > 0 {
            self.blocks.lock().unwrap_or_else(PoisonError::into_inner).push(data);
        }
        Ok(View {
            handle: 0,
            data,
            dtype,
            location: Location::Device(device),
            sizes: Dims::from_slice(sizes),
            strides: Dims::from_slice(strides),
            storage: AddressRange::new(data, bytes),
            weak: false,
            negative: false,
            conjugate: false,
        })
    }

    fn policy(&self) -> &dyn Policy {
        self
    }

    fn probe(&self, _: &Device, _: &KernelRef, _: &[AddressRange]) -> dml_compute::Result<()> {
        Ok(())
    }
}

impl Host for TestHost {
    fn resize(&self, tensor: &mut View, sizes: &[i64], strides: &[i64]) -> Result<()> {
        *tensor = self.allocate(self.device.index() as u8, tensor.dtype, sizes, strides)?;
        Ok(())
    }

    fn view(&self, _: &View, view: &View) -> Result<View> {
        Ok(view.clone())
    }

    fn warn(&self, message: &str) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(message.to_owned());
    }

    fn default_dtype(&self) -> DType {
        DType::F32
    }
}

/// Reproducible elements for tensors.
pub trait Values {
    /// A uniform number in [-1, 1).
    fn signed_unit(&mut self) -> f64;
    /// `n` values for a dtype: floats in [-1, 1), small integers.
    fn values(&mut self, dtype: DType, n: usize) -> Vec<f64>;
}

impl Values for Random {
    fn signed_unit(&mut self) -> f64 {
        2.0 * self.unit() - 1.0
    }

    fn values(&mut self, dtype: DType, n: usize) -> Vec<f64> {
        (0..n)
            .map(|_| {
                let x = self.signed_unit();
                if dtype.is_float() { decode(dtype, &encode(dtype, x)) } else { (x * 6.0).floor().max(low(dtype)) }
            })
            .collect()
    }
}

fn low(dtype: DType) -> f64 {
    if dtype.is_signed_integer() { f64::MIN } else { 0.0 }
}

/// Encodes a double as an element of a dtype; integers wrap around.
pub fn encode(dtype: DType, x: f64) -> Vec<u8> {
    let i = x as i64;
    match dtype {
        DType::Bool => vec![u8::from(x != 0.0)],
        DType::U8 | DType::I8 => vec![i as u8],
        DType::I16 | DType::U16 => (i as u16).to_le_bytes().to_vec(),
        DType::I32 | DType::U32 => (i as u32).to_le_bytes().to_vec(),
        DType::I64 | DType::U64 => i.to_le_bytes().to_vec(),
        DType::F16 => half::f16::from_f64(x).to_le_bytes().to_vec(),
        DType::BF16 => half::bf16::from_f64(x).to_le_bytes().to_vec(),
        DType::F32 => (x as f32).to_le_bytes().to_vec(),
        DType::F64 => x.to_le_bytes().to_vec(),
        _ => unreachable!("elements of common reals"),
    }
}

/// Decodes an element of a dtype.
pub fn decode(dtype: DType, bytes: &[u8]) -> f64 {
    let mut eight = [0; 8];
    eight[..bytes.len()].copy_from_slice(bytes);
    let i = u64::from_le_bytes(eight);
    match dtype {
        DType::Bool | DType::U8 | DType::U16 | DType::U32 | DType::U64 => i as f64,
        DType::I8 => f64::from(i as i8),
        DType::I16 => f64::from(i as i16),
        DType::I32 => f64::from(i as i32),
        DType::I64 => i as i64 as f64,
        DType::F16 => half::f16::from_bits(i as u16).to_f64(),
        DType::BF16 => half::bf16::from_bits(i as u16).to_f64(),
        DType::F32 => f64::from(f32::from_bits(i as u32)),
        DType::F64 => f64::from_bits(i),
        _ => unreachable!("elements of common reals"),
    }
}
