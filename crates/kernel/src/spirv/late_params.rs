//! Parameters that only one of a kernel's branches uses, loaded where the branch begins, for
//! adapters with few registers: compilers load them where the module does, and a kernel with a
//! branch for each of many tensors would keep the parameters of all of them.

use super::emitter::Emitter;
use rspirv::spirv::StorageClass;

impl Emitter<'_> {
    /// Loads the parameters of the branch that has just begun.
    pub(super) fn load_late_params(&mut self) {
        let entering = std::mem::take(&mut self.entering);
        let Some((base, members)) = self.late_params.take_if(|_| !entering.is_empty()) else { return };
        let mut loaded = vec![None; members.len()];
        for param in entering {
            let member = members[param as usize];
            loaded[param as usize] =
                Some(self.first_load(base, StorageClass::PhysicalStorageBuffer, member, param, true));
        }
        self.set_params(&loaded);
        self.late_params = Some((base, members));
    }
}
