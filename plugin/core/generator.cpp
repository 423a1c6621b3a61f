#include "core/generator.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/TensorBase.h>
#include <c10/core/GeneratorImpl.h>
#include <c10/util/CallOnce.h>

#include <array>
#include <cstring>

#include "core/backend.h"
#include "core/device.h"

namespace dml {
namespace {

class Generator final : public c10::GeneratorImpl {
 public:
  // `handle` 0 is the device's default generator, which the engine owns.
  Generator(c10::DeviceIndex device, uint64_t handle)
      : GeneratorImpl(c10::Device(backend.type, device), backend.keys), handle_(handle) {}

  ~Generator() override {
    if (handle_ != 0) dml_generator_free(handle_);
  }

  uint64_t handle() const { return handle_; }

  void set_current_seed(uint64_t seed) override { check(dml_generator_seed(handle_, device_.index(), seed)); }
  void set_offset(uint64_t offset) override { check(dml_generator_set(handle_, device_.index(), get().seed, offset)); }
  uint64_t get_offset() const override { return get().offset; }
  uint64_t current_seed() const override { return get().seed; }

  uint64_t seed() override {
    const uint64_t fresh = c10::detail::getNonDeterministicRandom();
    set_current_seed(fresh);
    return fresh;
  }

  void set_state(const c10::TensorImpl& state) override {
    TORCH_CHECK_TYPE(state.device().is_cpu() && state.dtype() == caffe2::TypeMeta::Make<uint8_t>(),
                     "RNG state must be a torch.ByteTensor on the CPU");
    TORCH_CHECK(state.numel() == sizeof(State) && state.is_contiguous(), "RNG state of a dml generator has ",
                sizeof(State), " bytes, got ", state.numel());
    State s{};
    std::memcpy(&s, state.data(), sizeof s);
    check(dml_generator_set(handle_, device_.index(), s.seed, s.offset));
  }

  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    const State s = get();
    at::TensorBase state = at::detail::empty_cpu({static_cast<int64_t>(sizeof s)}, c10::ScalarType::Byte);
    std::memcpy(state.mutable_data_ptr(), &s, sizeof s);
    return state.getIntrusivePtr();
  }

 private:
  struct State {
    uint64_t seed, offset;
  };

  State get() const {
    State s{};
    check(dml_generator_get(handle_, device_.index(), &s.seed, &s.offset));
    return s;
  }

  Generator* clone_impl() const override {
    uint64_t handle = 0;
    check(dml_generator_new(device_.index(), &handle));
    auto copy = std::make_unique<Generator>(device_.index(), handle);
    const State s = get();
    check(dml_generator_set(handle, device_.index(), s.seed, s.offset));
    return copy.release();
  }

  const uint64_t handle_;
};

c10::DeviceIndex checked(c10::DeviceIndex device) {
  if (device < 0) return current_device();
  check_device(device);
  return device;
}

}  // namespace

const at::Generator& default_generator(c10::DeviceIndex device) {
  static std::array<at::Generator, kMaxDevices>& all = *new std::array<at::Generator, kMaxDevices>;
  static std::array<c10::once_flag, kMaxDevices>& made = *new std::array<c10::once_flag, kMaxDevices>;
  device = checked(device);
  c10::call_once(made[device], [&] { all[device] = at::make_generator<Generator>(device, uint64_t{0}); });
  return all[device];
}

at::Generator new_generator(c10::DeviceIndex device) {
  device = checked(device);
  uint64_t handle = 0;
  check(dml_generator_new(device, &handle));
  at::Generator generator = at::make_generator<Generator>(device, handle);
  generator.set_current_seed(c10::default_rng_seed_val);
  return generator;
}

uint64_t generator_handle(const at::Generator& generator) {
  TORCH_CHECK(is_ours(generator.device()), "Expected a '", backend.type, "' device type for generator but found '",
              generator.device().type(), "'");
  return static_cast<const Generator*>(generator.unsafeGetGeneratorImpl())->handle();
}

}  // namespace dml
