//! A call of a cached operator makes no heap allocation.

use dml_aten::{Arg, Host, Result};
use dml_compute::{Environment, Location, MatmulPrecision, Policy, Scalar, View};
use dml_engine::{AddressRange, Device, KernelRef, device};
use dml_kernel::DType;
use dml_testing::{CountingAllocator, allocations};
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// A host that returns the same device memory for every tensor.
struct OnePlace {
    address: u64,
}

impl Policy for OnePlace {
    fn deterministic(&self) -> bool {
        false
    }

    fn matmul_precision(&self) -> MatmulPrecision {
        MatmulPrecision::Highest
    }

    fn product_dtype(&self) -> Option<DType> {
        None
    }
}

impl Environment for OnePlace {
    fn allocate(&self, device: u8, dtype: DType, sizes: &[i64], strides: &[i64]) -> dml_compute::Result<View> {
        Ok(tensor(self.address, device, dtype, sizes, strides))
    }

    fn policy(&self) -> &dyn Policy {
        self
    }

    fn probe(&self, _: &Device, _: &KernelRef, _: &[AddressRange]) -> dml_compute::Result<()> {
        Ok(())
    }
}

impl Host for OnePlace {
    fn resize(&self, _: &mut View, _: &[i64], _: &[i64]) -> Result<()> {
        unreachable!("nothing is resized")
    }

    fn view(&self, _: &View, _: &View) -> Result<View> {
        unreachable!("nothing is viewed")
    }

    fn warn(&self, _: &str) {}

    fn default_dtype(&self) -> DType {
        DType::F32
    }
}

fn tensor(data: u64, device: u8, dtype: DType, sizes: &[i64], strides: &[i64]) -> View {
    View {
        handle: 0,
        data,
        dtype,
        location: Location::Device(device),
        sizes: sizes.into(),
        strides: strides.into(),
        storage: AddressRange::new(data, 1 << 16),
        weak: false,
        negative: false,
        conjugate: false,
    }
}

/// The minimum number of heap allocations over several calls, since the queue's own lists may grow
/// in some of them.
fn least(device: &Arc<Device>, name: &str, args: &[Arg]) -> u64 {
    let operator = dml_aten::operators().iter().find(|o| o.name == name).expect("the operator exists");
    let host = OnePlace { address: device.allocate(1 << 16).expect("there is memory") };
    let mut least = u64::MAX;
    for _ in 0..50 {
        let mut call = operator.call(args, device, &host);
        let before = allocations();
        (operator.run)(&mut call).expect("it runs");
        least = least.min(allocations() - before);
    }
    device.synchronize().expect("it runs on the device");
    device.free(host.address);
    least
}

#[test]
fn a_cached_operator_allocates_nothing() {
    let device = device(0).expect("there is a Vulkan adapter");
    let address = device.allocate(1 << 16).expect("there is memory");
    let f32s = |sizes: &[i64], strides: &[i64]| Arg::Tensor(tensor(address, 0, DType::F32, sizes, strides));
    let (matrix, turned) = (f32s(&[64, 64], &[64, 1]), f32s(&[64, 64], &[1, 64]));
    let (row, one, flag) = (f32s(&[64], &[1]), Arg::Scalar(Scalar::Int(1)), Arg::Scalar(Scalar::Bool(false)));
    let none = Arg::None;
    let eps = Arg::Scalar(Scalar::Double(1e-5));
    let calls: [(&str, &[&Arg]); 17] = [
        ("aten::add.Tensor", &[&matrix, &matrix, &one]),
        ("aten::add.Tensor", &[&matrix, &row, &one]),
        ("aten::add_.Tensor", &[&matrix, &matrix, &one]),
        ("aten::relu", &[&turned]),
        ("aten::tanh_backward", &[&matrix, &turned]),
        ("aten::addmm", &[&row, &matrix, &turned, &one, &one]),
        ("aten::mm", &[&turned, &matrix]),
        ("aten::sum", &[&matrix, &none]),
        ("aten::sum.dim_IntList", &[&matrix, &Arg::Ints(&[0]), &flag, &none]),
        ("aten::mul.Tensor", &[&matrix, &matrix]),
        ("aten::threshold_backward", &[&matrix, &matrix, &one]),
        ("aten::mse_loss", &[&matrix, &matrix, &one]),
        ("aten::_softmax", &[&matrix, &one, &flag]),
        ("aten::_log_softmax_backward_data", &[&matrix, &matrix, &one, &none]),
        ("aten::native_layer_norm", &[&matrix, &Arg::Ints(&[64]), &row, &row, &eps]),
        ("aten::gelu", &[&matrix, &Arg::Str("none")]),
        ("aten::fill_.Scalar", &[&matrix, &one]),
    ];
    let mut allocating = Vec::new();
    for (name, args) in calls {
        let args: Vec<Arg> = args.iter().map(|&arg| arg.clone()).collect();
        let count = least(device, name, &args);
        if count > 0 {
            allocating.push((name, count));
        }
    }
    device.free(address);
    assert_eq!(allocating, []);
}
