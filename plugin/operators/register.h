// Operators that need C++.
#pragma once
#include "core/library.h"

namespace dml {

void register_views(torch::Library& aten, Names& taken);
void register_factories(torch::Library& aten, Names& taken);
void register_hot(torch::Library& aten, Names& taken);
void register_host_reads();
// Autocast's kernels for matrix products; adds their names to `taken`, which register_autocast
// skips.
void register_autocast_products(Names& taken);
void register_autocast(const Names& taken);
void register_library_autocast(const char* name_space);
void register_torchscript();
void register_attention();
void register_stubs();
void register_nested();
void register_recurrent();
void register_cross_entropy();
void register_half_fft();

}  // namespace dml
