#include "tests/support/given_weights.hpp"

#include <memory>
#include <utility>

#include "lab/failures/wrappers/stage_wrapper.hpp"

namespace zerolab::test {
namespace {

class Given : public StageWrapper {
 public:
  Given(std::unique_ptr<Stage> stage, Runtime& runtime, WeightRule values)
      : StageWrapper(std::move(stage), runtime), values_(std::move(values)) {}

  void set_up(Model& model) override {
    StageWrapper::set_up(model);
    for (const Parameter& parameter : model.parameters()) {
      if (parameter.data) write(parameter, {0, parameter.numel()}, parameter.data);
    }
    for (const OwnedSlice& slice : owned()) {
      write(*slice.parameter, slice.range, slice.weights);
      if (slice.master != nullptr) write(*slice.parameter, slice.range, slice.master);
    }
  }

 private:
  void write(const Parameter& parameter, Range range, Values out) {
    std::vector<float> values;
    for (Index i = range.begin; i < range.end; ++i) values.push_back(values_(parameter, i));
    runtime().device.copy(out, values.data(), range.size());
  }

  WeightRule values_;
};

}  // namespace

Training with_weights(Training training, const WeightRule& values) {
  return with_stage<Given>(std::move(training), values);
}

}  // namespace zerolab::test
