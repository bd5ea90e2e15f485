#include "tests/support/accident.hpp"

#include <utility>

#include "lab/failures/wrappers/stage_wrapper.hpp"
#include "tests/support/sandwich.hpp"

namespace zerolab::test {
namespace {

struct Fate {
  Occasion occasion;
  int rank;
  Accident accident;

  void at(Occasion now, const Recorder& recorder, Ledger& ledger) const {
    const bool in_time = now == Occasion::set_up || recorder.step() == kFatefulStep;
    if (now == occasion && recorder.rank() == rank && in_time) accident(ledger);
  }
};

class FatefulModule : public Module {
 public:
  FatefulModule(ParameterSet& parameters, Fate fate)
      : Module("fateful"),
        fate_(std::move(fate)),
        inner_(parameters, "inner", kSandwichWidth, kSandwichWidth, Initial::normal(1)) {
    adopt(inner_);
  }

 protected:
  Tensor do_forward(const Tensor& input) override {
    fate_.at(Occasion::forward, context().recorder, context().ledger);
    return inner_.forward(input);
  }
  Tensor do_backward(const Tensor& output_gradient) override {
    Tensor input_gradient = inner_.backward(output_gradient);
    fate_.at(Occasion::backward, context().recorder, context().ledger);
    return input_gradient;
  }

 private:
  Fate fate_;
  Linear inner_;
};

class FatefulStage : public StageWrapper {
 public:
  FatefulStage(std::unique_ptr<Stage> stage, Runtime& runtime, Fate fate)
      : StageWrapper(std::move(stage), runtime), fate_(std::move(fate)) {}

  void set_up(Model& model) override {
    StageWrapper::set_up(model);
    fate_.at(Occasion::set_up, runtime().recorder, runtime().ledger);
  }
  std::vector<OwnedSlice> owned() override {
    if (runtime().recorder.phase() == Phase::step) {
      fate_.at(Occasion::step, runtime().recorder, runtime().ledger);
    }
    return StageWrapper::owned();
  }

 private:
  Fate fate_;
};

}  // namespace

std::string_view name_of(Occasion occasion) {
  switch (occasion) {
    case Occasion::set_up:
      return "set_up";
    case Occasion::forward:
      return "forward";
    case Occasion::backward:
      return "backward";
    case Occasion::step:
      return "step";
  }
  return "?";
}

Training training_with_accident(Occasion occasion, int rank, const Accident& accident, int stage) {
  const Fate fate{occasion, rank, accident};
  Training training = training_of_sandwich(
      [=](ParameterSet& parameters) { return std::make_unique<FatefulModule>(parameters, fate); },
      stage);
  training.settings.zero.overlap_comm = true;
  training.settings.zero.reduce_bucket_size = 1;
  return with_stage<FatefulStage>(training, fate);
}

}  // namespace zerolab::test
