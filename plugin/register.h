// What dml_plugin_init registers, one function a subject. Nothing registers itself in a static initialiser: a plugin
// that refuses its torch must leave no trace.
#pragma once
#include <torch/library.h>

#include <set>
#include <string>

namespace dml {

void register_allocator();
void register_host_allocator();
void register_guard();
void register_hooks();
void register_kineto();
void register_profiler();

// A library that stays registered until the process ends.
torch::Library& library(const char* ns, c10::DispatchKey key);

// Each of these adds to the set of names ("aten::view") that the boxed trampoline must leave alone.
using Names = std::set<std::string>;
void register_views(torch::Library& aten, Names& taken);
void register_factories(torch::Library& aten, Names& taken);
void register_copies(torch::Library& aten, Names& taken);
void register_hot(torch::Library& aten, Names& taken);
void register_table(torch::Library& aten, const Names& taken);
void register_fallback();
void register_autocast();
void register_attention();
void register_nested();

}  // namespace dml
