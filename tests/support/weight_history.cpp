#include "tests/support/weight_history.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "lab/failures/wrappers/stage_wrapper.hpp"
#include "stages/engine/states.hpp"

namespace zerolab::test {
namespace {

/// Ranks write disjoint elements; where all own everything, rank 0 writes.
class Watched : public StageWrapper {
 public:
  Watched(std::unique_ptr<Stage> stage, Runtime& runtime, WeightHistory& history)
      : StageWrapper(std::move(stage), runtime), history_(history) {}

  void set_up(Model& model) override {
    StageWrapper::set_up(model);
    copy_to(history_.initial, [](const OwnedSlice& slice) { return slice.exact(); });
  }
  void publish() override {
    StageWrapper::publish();
    copy_to(history_.latest, [](const OwnedSlice& slice) { return slice.exact(); });
    copy_to(history_.gradient,
            [](const OwnedSlice& slice) -> ConstValues { return slice.gradient; });
  }

 private:
  template <typename Part>
  void copy_to(Weights& weights, Part part) {
    if (replicated() && runtime().rank() != 0) return;
    for (const OwnedSlice& slice : owned()) {
      if (!part(slice)) continue;  // the gradient of a frozen parameter
      std::vector<float>& values = weights[static_cast<std::size_t>(slice.parameter->id())];
      const std::vector<float> now = floats_on_host(runtime(), part(slice), slice.range.size());
      std::copy(now.begin(), now.end(), values.begin() + slice.range.begin);
    }
  }

  WeightHistory& history_;
};

}  // namespace

Training with_history(Training training, WeightHistory& history) {
  Weights unknown;
  for (const Index size : training.build()->parameters().sizes()) {
    unknown.emplace_back(static_cast<std::size_t>(size), std::numeric_limits<float>::quiet_NaN());
  }
  history = {unknown, unknown, unknown};
  return with_stage<Watched>(std::move(training), std::ref(history));
}

double largest_difference(const Weights& got, const Weights& want) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (got.size() != want.size()) return kInfinite;
  double difference = 0;
  double largest = 0;
  for (std::size_t p = 0; p < want.size(); ++p) {
    if (got[p].size() != want[p].size()) return kInfinite;
    for (std::size_t i = 0; i < want[p].size(); ++i) {
      const double off = std::abs(static_cast<double>(got[p][i]) - static_cast<double>(want[p][i]));
      if (std::isnan(off)) return kInfinite;
      difference = std::max(difference, off);
      largest = std::max(largest, std::abs(static_cast<double>(want[p][i])));
    }
  }
  return difference == 0 ? 0 : difference / largest;
}

}  // namespace zerolab::test
