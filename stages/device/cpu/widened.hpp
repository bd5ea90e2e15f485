#pragma once

#include <algorithm>

#include "stages/device/cpu/cpu_device.hpp"
#include "stages/device/cpu/typed.hpp"

namespace zerolab {

/// Rows that are widened at a time, so that what a call holds beside its tensors stays small, and
/// in the cache; all rows where nothing has to be.
inline Index rows_at_a_time(Dtype dtype, Index rows, Index width) {
  constexpr Index kElements = Index{1} << 14;
  return dtype == Dtype::fp32 ? rows : std::clamp(kElements / width, Index{1}, rows);
}

/// Values as floats, for up to `most` of them at a time: these themselves where they are fp32, else
/// in workspace.
class CpuDevice::Widened {
 public:
  Widened(CpuDevice& device, Dtype dtype, Index most) : device_(device) {
    if (dtype != Dtype::fp32) wide_ = device.workspace(most);
  }

  /// To read.
  const float* read(ConstValues in, Index n) {
    if (!wide_) return in.floats();
    widen(in, n, wide_.floats());
    return wide_.floats();
  }
  /// To write; `store` then rounds what is there into `out`.
  float* place(Values out) { return wide_ ? wide_.floats() : out.floats(); }
  /// To change.
  float* load(Values values, Index n) {
    if (wide_) widen(values, n, wide_.floats());
    return place(values);
  }
  void store(Values out, Index n) {
    if (wide_) device_.store(wide_.floats(), n, out);
  }

  /// change(block, first, count) changes rows [first, first + count) of `values`, a block of them
  /// at a time.
  template <typename Change>
  static void change_rows(CpuDevice& device, Values values, Index rows, Index width,
                          Change change) {
    if (rows == 0 || width == 0) return;
    const Index most = rows_at_a_time(values.dtype(), rows, width);
    Widened wide(device, values.dtype(), most * width);
    for (Index first = 0; first < rows; first += most) {
      const Index count = std::min(most, rows - first);
      const Values part = values + first * width;
      change(wide.load(part, count * width), first, count);
      wide.store(part, count * width);
    }
  }

 private:
  CpuDevice& device_;
  Buffer wide_;
};

}  // namespace zerolab
