// torch.fft of float16, computed in float32. PyTorch's composites refuse float16 on devices other
// than CUDA.
#include <ATen/core/Tensor.h>
#include <ATen/ops/fft_fft2_native.h>
#include <ATen/ops/fft_fft_native.h>
#include <ATen/ops/fft_fftn_native.h>
#include <ATen/ops/fft_hfft2_native.h>
#include <ATen/ops/fft_hfft_native.h>
#include <ATen/ops/fft_hfftn_native.h>
#include <ATen/ops/fft_ifft2_native.h>
#include <ATen/ops/fft_ifft_native.h>
#include <ATen/ops/fft_ifftn_native.h>
#include <ATen/ops/fft_ihfft2_native.h>
#include <ATen/ops/fft_ihfft_native.h>
#include <ATen/ops/fft_ihfftn_native.h>
#include <ATen/ops/fft_irfft2_native.h>
#include <ATen/ops/fft_irfft_native.h>
#include <ATen/ops/fft_irfftn_native.h>
#include <ATen/ops/fft_rfft2_native.h>
#include <ATen/ops/fft_rfft_native.h>
#include <ATen/ops/fft_rfftn_native.h>

#include <utility>

#include "core/backend.h"
#include "core/library.h"
#include "operators/register.h"

namespace dml {
namespace {

using at::Tensor;

// PyTorch's composite with conversions around it. All of these are differentiable operators.
template <auto composite>
struct Fft;

template <typename... Rest, Tensor (*composite)(const Tensor&, Rest...)>
struct Fft<composite> {
  static Tensor call(const Tensor& self, Rest... rest) {
    if (self.scalar_type() != at::kHalf) return composite(self, std::move(rest)...);
    const Tensor result = composite(self.to(at::kFloat), std::move(rest)...);
    return result.to(result.is_complex() ? at::kComplexHalf : at::kHalf);
  }
};

}  // namespace

void register_half_fft() {
  namespace native = at::native;
  // As with recurrent layers, one kernel serves both the dense and the autograd key.
  for (const c10::DispatchKey key : {backend.dense, backend.autograd}) {
    torch::Library& aten = library("aten", key);
#define DML_FFT(NAME) aten.impl("aten::" #NAME, TORCH_FN((Fft<&native::NAME##_symint>::call)))
    DML_FFT(fft_fft);
    DML_FFT(fft_ifft);
    DML_FFT(fft_rfft);
    DML_FFT(fft_irfft);
    DML_FFT(fft_hfft);
    DML_FFT(fft_ihfft);
    DML_FFT(fft_fft2);
    DML_FFT(fft_ifft2);
    DML_FFT(fft_rfft2);
    DML_FFT(fft_irfft2);
    DML_FFT(fft_hfft2);
    DML_FFT(fft_ihfft2);
    DML_FFT(fft_fftn);
    DML_FFT(fft_ifftn);
    DML_FFT(fft_rfftn);
    DML_FFT(fft_irfftn);
    DML_FFT(fft_hfftn);
    DML_FFT(fft_ihfftn);
#undef DML_FFT
  }
}

}  // namespace dml
