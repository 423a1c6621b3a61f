// Loads the plugin and its engine, registers the device, and trains a small convolutional network
// on it and on the CPU.
#include <ATen/core/Tensor.h>
#include <ATen/TensorOperators.h>
#include <ATen/Context.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros_like.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_zero.h>
#include <cmath>
#include <ATen/ops/remainder.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/DeviceType.h>
#include <torch/headeronly/version.h>
#include <windows.h>
#include <cstdio>
#include <string>
#include <vector>

using at::Tensor;

// The network of `python -m torch_dml demo`, and Adam as torch.optim runs it on lists of tensors.
static std::vector<Tensor> train(const std::vector<Tensor>& start, const Tensor& images, const Tensor& labels, c10::Device device, double* loss) {
  std::vector<Tensor> w, m, v;
  for (const Tensor& t : start) {
    w.push_back(t.clone().to(device).detach().requires_grad_(true));
    m.push_back(at::zeros_like(w.back().detach()));
    v.push_back(at::zeros_like(w.back().detach()));
  }
  const Tensor x = images.to(device), y = labels.to(device);
  const double lr = 4e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  for (int step = 1; step <= 20; ++step) {
    Tensor h = at::max_pool2d(at::relu(at::conv2d(x, w[0], w[1], 1, 1)), 2);
    h = at::max_pool2d(at::relu(at::conv2d(h, w[2], w[3], 1, 1)), 2);
    const Tensor l = at::cross_entropy_loss(at::linear(h.flatten(1), w[4], w[5]), y);
    l.backward();
    std::vector<Tensor> g;
    for (const Tensor& t : w) g.push_back(t.grad());
    {
      c10::AutoGradMode off(false);
      at::_foreach_lerp_(m, g, 1 - beta1);
      at::_foreach_mul_(v, beta2);
      at::_foreach_addcmul_(v, g, g, 1 - beta2);
      std::vector<Tensor> root = at::_foreach_sqrt(v);
      at::_foreach_div_(root, std::sqrt(1 - std::pow(beta2, step)));
      at::_foreach_add_(root, eps);
      at::_foreach_addcdiv_(w, m, root, -lr / (1 - std::pow(beta1, step)));
      at::_foreach_zero_(g);
    }
    *loss = l.item<double>();
    if (step % 5 == 0) std::printf("  step %d loss %.6f\n", step, *loss);
  }
  return w;
}

static int run() {
  const std::string name = "torch_dml_" + std::to_string(TORCH_VERSION_MAJOR) + "_" + std::to_string(TORCH_VERSION_MINOR) + ".dll";
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  HMODULE plugin = LoadLibraryA(name.c_str());
  if (!plugin) { std::printf("the plugin does not load: %lu\n", GetLastError()); return 1; }
  auto init = (int (*)(const char*, int))GetProcAddress(plugin, "dml_plugin_init");
  auto last = (const char* (*)())GetProcAddress(plugin, "dml_plugin_last_error");
  auto fallbacks = (const char* (*)())GetProcAddress(plugin, "dml_plugin_fallbacks_json");
  c10::register_privateuse1_backend("dml");
  if (init(TORCH_VERSION, 0) != 0) { std::printf("init: %s\n", last()); return 1; }
  std::puts("registered");
  c10::Device dml(c10::DeviceType::PrivateUse1, 0), cpu(c10::kCPU);
  Tensor a = at::ones({2, 2}, at::TensorOptions().device(dml));
  Tensor b = (a + a).cpu();
  std::printf("1 + 1 = %g on %s\n", b.data_ptr<float>()[3], a.device().str().c_str());
  std::vector<Tensor> start = {at::randn({16, 1, 3, 3}) * 0.3, at::randn({16}) * 0.1, at::randn({32, 16, 3, 3}) * 0.1,
                               at::randn({32}) * 0.1, at::randn({10, 32 * 4}) * 0.1, at::randn({10}) * 0.1};
  Tensor images = at::randn({64, 1, 8, 8});
  Tensor labels = at::remainder(at::arange(64, at::TensorOptions().dtype(at::kLong)), 10);
  double on_cpu = 0, on_dml = 0;
  std::puts("cpu"); auto p = train(start, images, labels, cpu, &on_cpu);
  std::puts("dml"); auto q = train(start, images, labels, dml, &on_dml);
  double worst = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    c10::AutoGradMode off(false);
    const double d = at::abs(p[i] - q[i].cpu()).max().item<double>();
    worst = d > worst ? d : worst;
  }
  std::printf("largest difference of a weight: %g; losses %.8f, %.8f; fallbacks %s\n", worst, on_cpu, on_dml, fallbacks());
  try {
    at::mm(a, at::ones({3, 3}, at::TensorOptions().device(dml)));
    std::puts("no error");
    return 1;
  } catch (const c10::Error& e) {
    std::printf("caught: %s\n", e.what_without_backtrace());
  }
  return worst < 1e-4 ? 0 : 1;
}

int main() {
  try {
    return run();
  } catch (const std::exception& e) {
    std::printf("error: %s\n", e.what());
    return 1;
  }
}
