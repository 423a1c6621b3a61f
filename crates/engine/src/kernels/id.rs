//! The identity of kernels: their content.

use crate::kernels::pointwise::Pointwise;
use dml_kernel::Module;
use std::fmt::{Debug, Display, Formatter};
use std::hash::{Hash, Hasher};
use twox_hash::XxHash3_128;

/// A hash of a kernel's content with 128 bits. Within one process, equal ids are equal kernels.
///
/// The content is the emitted module, and so depends on the target; the interface: parameters,
/// workgroup size, and the dimensions along which launches may be split; the description for
/// fusion; and the kernel's name, which messages, profiles and the files of `TORCH_DML_SPIRV_DIR`
/// show.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelId(u128);

impl KernelId {
    pub(super) fn of(module: &Module, pointwise: Option<&Pointwise>) -> Self {
        let Module { words, name, push_bytes, param_bytes, indirect, workgroup_size, counts, .. } = module;
        let mut content = Content(XxHash3_128::new());
        (words, name, push_bytes, param_bytes, indirect, workgroup_size, counts).hash(&mut content);
        // A pointwise kernel is written from its element, so the words determine what the element
        // computes.
        pointwise.map(|Pointwise { element, outs, inputs }| (element.len(), outs, inputs)).hash(&mut content);
        Self(content.0.finish_128())
    }

    /// The hash as 32-bit words, the low one first.
    pub(crate) fn words(self) -> [u32; 4] {
        [0, 32, 64, 96].map(|shift| (self.0 >> shift) as u32)
    }
}

impl Display for KernelId {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl Debug for KernelId {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "KernelId({self})")
    }
}

/// Adapter of the 128-bit hash to the standard library's hashing traits.
struct Content(XxHash3_128);

impl Hasher for Content {
    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    /// The low half.
    fn finish(&self) -> u64 {
        self.0.finish_128() as u64
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::kernels::pointwise::PointwiseInput;
    use dml_kernel::{Builder, DType, Element, ScalarType};
    use smallvec::smallvec;

    /// A kernel that stores a number at an index.
    fn stores(name: &str, index: u32, number: u32) -> Module {
        let b = Builder::new(name, [1, 1, 1]);
        b.pointer("out", DType::U32).store(b.u32(index), b.u32(number));
        b.finish().emit().unwrap()
    }

    #[test]
    fn equal_kernels_have_one_id_and_others_have_others() {
        let id = |module: &Module| KernelId::of(module, None);
        let one = id(&stores("store", 0, 1));
        assert_eq!(one, id(&stores("store", 0, 1)));
        let mut others = vec![one, id(&stores("store", 0, 2)), id(&stores("store", 1, 1)), id(&stores("other", 0, 1))];
        let interface = |change: fn(&mut Module)| {
            let mut module = stores("store", 0, 1);
            change(&mut module);
            id(&module)
        };
        others.push(interface(|module| module.push_bytes += 8));
        others.push(interface(|module| module.param_bytes += 8));
        others.push(interface(|module| module.indirect = true));
        others.push(interface(|module| module.workgroup_size = [2, 1, 1]));
        let count = others.len();
        others.sort_unstable();
        others.dedup();
        assert_eq!(others.len(), count, "{others:?}");
    }

    #[test]
    fn what_fusion_is_told_belongs_to_the_kernel() {
        let module = stores("store", 0, 1);
        let pointwise = |dtype| Pointwise {
            element: Element::record(&[ScalarType::F32], |_, v| vec![v[0]]).unwrap(),
            outs: smallvec![dtype],
            inputs: smallvec![PointwiseInput::Tensor { dtype, constant: false }],
        };
        let ids = [None, Some(pointwise(DType::F32)), Some(pointwise(DType::F16))]
            .map(|pointwise| KernelId::of(&module, pointwise.as_ref()));
        assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2], "{ids:?}");
    }
}
