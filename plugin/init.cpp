// The plugin's entry points. Nothing is registered before dml_plugin_init has checked both
// neighbours' versions.
#include <c10/util/Exception.h>
#include <torch/headeronly/version.h>

#include <mutex>
#include <string>

#include "core/backend.h"
#include "core/device.h"
#include "core/interrupt.h"
#include "core/json.h"
#include "core/library.h"
#include "core/register.h"
#include "core/table.h"
#include "core/trampoline.h"
#include "operators/register.h"
#include "profiler/register.h"
#include "quantized/register.h"
#include "sparse/register.h"

#define DML_STRING_(x) #x
#define DML_STRING(x) DML_STRING_(x)

namespace dml {
namespace {

constexpr const char* kBuiltFor = DML_STRING(TORCH_VERSION_MAJOR) "." DML_STRING(TORCH_VERSION_MINOR);

thread_local std::string last_error;

// "2.11.0+cpu" -> "2.11"
std::string minor_of(const std::string& version) {
  const size_t first = version.find('.');
  if (first == std::string::npos) return version;
  const size_t second = version.find_first_not_of("0123456789", first + 1);
  return version.substr(0, second);
}

void check_versions(const char* torch_version) {
  const std::string running = torch_version == nullptr ? "(none)" : torch_version;
  TORCH_CHECK(minor_of(running) == kBuiltFor, "this torch-dml plugin was built for torch ", kBuiltFor, " but torch ",
              running, " is running; install a torch-dml that supports it, or torch ", kBuiltFor);
  const uint32_t engine = dml_abi_version();
  TORCH_CHECK(engine == DML_ABI_VERSION, "this torch-dml plugin speaks version ", DML_ABI_VERSION,
              " of the engine's interface but the engine (", dml_version(), ") speaks version ", engine,
              "; the installation is mixed: reinstall torch-dml");
}

// Suppresses PyTorch's warning that a kernel replaces another one, which is intended here.
struct Silent final : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

// Runs `registering`; where the device is CUDA, without these warnings.
template <class Registering>
void silently(Registering registering) {
  Silent silent;
  std::optional<c10::WarningUtils::WarningHandlerGuard> guard;
  if (is_cuda()) guard.emplace(&silent);
  registering();
}

void register_all() {
  register_allocator();
  register_host_allocator();
  register_guard();
  if (is_cuda()) {
    register_cuda_hooks();
    replace_cuda("aten");
    replace_cuda("quantized");
    register_over_cuda();
  } else {
    register_hooks();
  }
  register_kineto();
  register_profiler();
  register_interrupts();
  torch::Library& aten = library("aten", backend.dense);
  Names taken;
  register_factories(aten, taken);
  register_views(aten, taken);
  register_copies(aten, taken);
  register_hot(aten, taken);
  register_table(aten, "aten", taken);
  register_fallback();
  register_host_reads();
  Names products;
  register_autocast_products(products);
  if (!is_cuda()) {  // for CUDA PyTorch has its own
    register_autocast(products);
    register_torchscript();
  }
  register_attention();
  register_stubs();
  register_nested();
  register_quantized();
  register_sparse();
  register_own();
  register_recurrent();
  register_cross_entropy();
  register_half_fft();
  register_quantized_linear();
}

void register_library(const char* name_space) {
  if (is_cuda()) {
    replace_cuda(name_space);
  } else {
    register_library_autocast(name_space);
  }
  register_table(library(name_space, backend.dense), name_space, {});
}

// The status of `registering`, with what it throws as the last error.
template <class Registering>
int32_t status_of(Registering registering) {
  try {
    registering();
    return DML_OK;
  } catch (const c10::Error& e) {
    last_error = e.what_without_backtrace();
  } catch (const std::exception& e) {
    last_error = e.what();
  }
  return DML_RUNTIME_ERROR;
}

void append_list(std::string& text, const char* key, const std::vector<std::string>& names) {
  text += ", ";
  append_quoted(text, key);
  text += ": [";
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += ", ";
    append_quoted(text, names[i]);
  }
  text += "]";
}

}  // namespace

}  // namespace dml

// Registers the device: as PyTorch's PrivateUse1, or in CUDA's place. Further calls change nothing.
// 0 when the plugin is ready; otherwise nothing was registered and dml_plugin_last_error() says
// why.
DML_EXPORT int32_t dml_plugin_init(const char* torch_version, int32_t as_cuda) {
  static std::mutex mutex;
  static bool done = false;
  const std::lock_guard<std::mutex> lock(mutex);
  return dml::status_of([&] {
    dml::check_versions(torch_version);
    if (done) return;
    dml_set_torch_minor(TORCH_VERSION_MINOR);
    if (as_cuda != 0) {
      dml::backend = dml::Backend::cuda();
      dml_stand_in_for_cuda();
    }
    dml::silently(dml::register_all);
    done = true;
  });
}

// Registers the engine's operators of a library that torch has loaded since, such as "torchvision":
// once, after dml_plugin_init.
DML_EXPORT int32_t dml_plugin_register_library(const char* name_space) {
  return dml::status_of([&] { dml::silently([&] { dml::register_library(name_space); }); });
}

DML_EXPORT const char* dml_plugin_torch_version() { return dml::kBuiltFor; }
DML_EXPORT const char* dml_plugin_last_error() { return dml::last_error.c_str(); }

// {"registered": n, "unknown": [names this torch lacks], "composite": [names this torch
// decomposes], "changed": [{"engine": schema, "torch": schema}]}
DML_EXPORT const char* dml_plugin_operators_json() {
  thread_local std::string text;
  const dml::TableCounts& counts = dml::table_counts();
  std::vector<std::string> unknown;
  std::vector<dml::ChangedOperator> differing;
  for (const dml::Table* table : dml::tables()) {
    unknown.insert(unknown.end(), table->unknown.begin(), table->unknown.end());
    differing.insert(differing.end(), table->changed.begin(), table->changed.end());
  }
  text = "{\"registered\": " + std::to_string(counts.registered);
  dml::append_list(text, "unknown", unknown);
  dml::append_list(text, "composite", counts.composite);
  text += ", \"changed\": [";
  const char* separator = "";
  for (const dml::ChangedOperator& changed : differing) {
    text += separator;
    text += "{\"engine\": ";
    dml::append_quoted(text, changed.engine);
    text += ", \"torch\": ";
    dml::append_quoted(text, changed.torch);
    text += "}";
    separator = ", ";
  }
  text += "]}";
  return text.c_str();
}
