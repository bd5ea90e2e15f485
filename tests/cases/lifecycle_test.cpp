// Kind a of docs/cases.md: what a parameter and its gradient live through in a step.

#include <algorithm>

#include "lab/failures/wrappers/stage_wrapper.hpp"
#include "stages/device/cpu/cpu_device.hpp"
#include "stages/model/transformer.hpp"
#include "stages/stages.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/chain.hpp"
#include "tests/support/layers.hpp"
#include "tests/support/run_ranks.hpp"
#include "tests/support/thrown.hpp"
#include "tests/support/weight_history.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

constexpr std::array kStages{0, 1, 2, 3};
constexpr Index kWidth = 8;
constexpr Index kVocabulary = 11;

// --- B01 -----------------------------------------------------------------------------------------

/// y = x (W + V)^T, W its own [8, 8] and V another module's.
class Borrower : public Module {
 public:
  Borrower(ParameterSet& parameters, std::string name, Parameter& borrowed)
      : Module(std::move(name)),
        own_(own(parameters.add(this->name() + ".weight", {kWidth, kWidth}, Initial::normal(0.5)))),
        borrowed_(borrowed) {}

 protected:
  Tensor do_forward(const Tensor& input) override {
    const Tensor sum = sum_of_weights();
    Tensor output = activation({input.rows(), kWidth}, "output");
    device().matmul(product(input.rows(), kWidth, {kWidth}, {kWidth, true}), input.floats(),
                    sum.floats(), nullptr, output.floats());
    if (keeps()) inputs_.push_back(input);
    return output;
  }

  Tensor do_backward(const Tensor& output_gradient) override {
    const Tensor input = std::move(inputs_.back());
    inputs_.pop_back();
    for (Parameter* parameter : {&own_, &borrowed_}) {
      add_gradient(*parameter, [&](float* out) {
        device().matmul(product(kWidth, input.rows(), {kWidth, true}, {kWidth}),
                        output_gradient.floats(), input.floats(), nullptr, out);
      });
    }
    const Tensor sum = sum_of_weights();
    Tensor input_gradient = activation(input.shape(), "input gradient");
    device().matmul(product(input.rows(), kWidth, {kWidth}, {kWidth}), output_gradient.floats(),
                    sum.floats(), nullptr, input_gradient.floats());
    return input_gradient;
  }

 private:
  static Product product(Index m, Index k, Operand a, Operand b) {
    return {.m = m, .n = kWidth, .k = k, .a = a, .b = b, .c = {kWidth}};
  }
  Tensor sum_of_weights() {
    Tensor sum = activation({kWidth, kWidth}, "sum of weights");
    device().copy(sum.floats(), weight(own_), own_.numel());
    device().add(sum.floats(), weight(borrowed_), borrowed_.numel());
    return sum;
  }

  Parameter& own_;
  Parameter& borrowed_;
  std::vector<Tensor> inputs_;
};

/// Three layers 8 -> 8; the second adds the first one's weight to its own.
Chain borrowing(bool declared) {
  return [declared](ParameterSet& parameters) {
    Links links{embedding(parameters, kVocabulary, kWidth),
                linear(parameters, "layers.0", kWidth, kWidth)};
    Parameter& lent = parameters.at("layers.0.weight");
    links.push_back(std::make_shared<Borrower>(parameters, "layers.1", lent));
    if (declared) register_external_parameter(*links.back(), lent);
    links.push_back(linear(parameters, "layers.2", kWidth, kWidth));
    links.push_back(linear(parameters, "head", kWidth, kVocabulary));
    return links;
  };
}

// --- B03 -----------------------------------------------------------------------------------------

/// A transformer that, in an evaluation, sees only the first five tokens of every sequence.
class ShorterEvaluation : public Module {
 public:
  explicit ShorterEvaluation(ParameterSet& parameters)
      : Module("shorter evaluation"), inner_(parameters, tiny_transformer()) {
    adopt(inner_);
  }

 protected:
  Tensor do_forward(const Tensor& tokens) override {
    constexpr Index kLength = 5;
    if (context().pass != VisitKind::evaluate) return inner_.forward(tokens);
    const Tensor fewer = activation({tokens.rows(), kLength}, "fewer tokens", Dtype::int32);
    for (Index row = 0; row < tokens.rows(); ++row) {
      std::copy_n(tokens.ints() + row * tokens.width(), kLength, fewer.ints() + row * kLength);
    }
    return inner_.forward(fewer);
  }
  Tensor do_backward(const Tensor& logits_gradient) override {
    return inner_.backward(logits_gradient);
  }

 private:
  Transformer inner_;
};

/// What a rank holds between two passes.
struct Rest {
  std::vector<Status> statuses;
  Index gathered = 0;  // bytes

  bool operator==(const Rest&) const = default;
};

/// Notes what is at rest after every pass and every evaluation.
class Resting : public StageWrapper {
 public:
  Resting(std::unique_ptr<Stage> stage, Runtime& runtime, std::vector<Rest>& rests)
      : StageWrapper(std::move(stage), runtime), rests_(rests) {}

  void set_up(Model& model) override {
    StageWrapper::set_up(model);
    parameters_ = &model.parameters();
  }
  void end_pass() override {
    StageWrapper::end_pass();
    Rest rest{{}, runtime().ledger.live()[Category::gather_buffers]};
    for (const Parameter& parameter : *parameters_) rest.statuses.push_back(parameter.status());
    rests_.push_back(rest);
  }

 private:
  std::vector<Rest>& rests_;
  ParameterSet* parameters_ = nullptr;
};

struct Evaluated {
  RankReport report;
  std::vector<Rest> rests;
};

/// Three steps, perhaps an evaluation, two steps; and once more.
Evaluated three_and_two_steps(Communicator& communicator, int stage, bool evaluates) {
  const Training training = training_of(tiny_transformer(), stage);
  Recorder recorder(communicator.rank());
  Ledger ledger("device", recorder);
  CpuDevice device(ledger);
  CommStream comm(communicator, device, ledger, recorder);
  Runtime runtime{device, ledger, recorder, comm, training.settings, training.seed};
  ModelOf<ShorterEvaluation> model(Targets::every_position);
  Evaluated result;
  Engine engine(runtime, model,
                std::make_unique<Resting>(make_stage(runtime), runtime, result.rests),
                training.sequence_length);
  for (int step = 1; step <= 10; ++step) {
    result.report.steps.push_back(engine.step(training.batches));
    if (evaluates && step % 5 == 3) engine.evaluate(training.batches, 6);
  }
  return result;
}

// --- B15 -----------------------------------------------------------------------------------------

/// A linear layer that nobody calls before this step.
class Late : public Module {
 public:
  Late(ParameterSet& parameters, Index first_step)
      : Module("late"), first_step_(first_step), inner_(linear(parameters, "extra", kWidth, 5)) {
    adopt(*inner_);
  }

 protected:
  Tensor do_forward(const Tensor& input) override {
    if (is_used()) inner_->forward(input);
    return input;
  }
  Tensor do_backward(const Tensor& output_gradient) override {
    if (!is_used()) return output_gradient;
    // as if the mean over the rows of all its outputs were added to the loss
    const Tensor even = activation({output_gradient.rows(), 5}, "even");
    device().fill(even.floats(), even.numel(), 1.0F / static_cast<float>(even.rows()));
    Tensor input_gradient = inner_->backward(even);
    device().add(input_gradient.floats(), output_gradient.floats(), output_gradient.numel());
    return input_gradient;
  }

 private:
  bool is_used() const { return context().recorder.step() >= first_step_; }

  Index first_step_;
  std::shared_ptr<Linear> inner_;
};

/// Everything in one bucket, the extra layer's gradients (parameters 3 and 4) among them.
Training with_late_layer(int stage, Index first_step, Index steps) {
  Training training = training_of_chain(
      [first_step](ParameterSet& parameters) {
        return Links{embedding(parameters, kVocabulary, kWidth),
                     linear(parameters, "layer", kWidth, kWidth),
                     std::make_shared<Late>(parameters, first_step),
                     linear(parameters, "head", kWidth, kVocabulary)};
      },
      kVocabulary, stage);
  training.settings.zero.reduce_bucket_size = Index{1} << 40;
  training.steps = steps;
  return training;
}
constexpr std::size_t kExtraWeight = 3;
constexpr std::size_t kExtraBias = 4;

}  // namespace

TEST_CASE("B01: a weight borrowed without a declaration is refused before any arithmetic",
          "[cases]") {
  const auto error = thrown_by([] { run(2, training_of_chain(borrowing(false), kVocabulary, 3)); });
  REQUIRE(error);
  INFO(error->what());
  CHECK(error->code() == Code::parameter_not_available);
  CHECK(contains(error->what(), "module 'layers.1'"));
  CHECK(contains(error->what(), "parameter 'layers.0.weight', which is NOT_AVAILABLE (step 1"));
  CHECK(contains(error->way_out(), "register_external_parameter(layers.1, layers.0.weight)"));

  const Training declared = plain(training_of_chain(borrowing(true), kVocabulary, 3));
  WeightHistory expected;
  run(1, with_history(alone(declared, 2), expected));
  const std::vector<std::string> of_stage_0 =
      bits(run(2, plain(training_of_chain(borrowing(true), kVocabulary, 0)))[0]);
  WeightHistory history;
  CHECK(bits(run(2, with_history(declared, history))[0]) == of_stage_0);
  CHECK(largest_difference(history.latest, expected.latest) < 1e-6);
}

TEST_CASE("B03: an evaluation between steps changes neither a state nor a loss", "[cases]") {
  for (const int stage : kStages) {
    INFO("stage " << stage);
    const auto with = run_ranks(2, [&](Communicator& communicator) {
      return three_and_two_steps(communicator, stage, true);
    });
    const auto without = run_ranks(2, [&](Communicator& communicator) {
      return three_and_two_steps(communicator, stage, false);
    });
    for (const std::size_t rank : {0U, 1U}) {
      CHECK(bits(with[rank].report) == bits(without[rank].report));
      REQUIRE(with[rank].rests.size() == 12);  // ten passes, two evaluations
      REQUIRE(without[rank].rests.size() == 10);
      const Status at_rest = stage == 3 ? Status::not_available : Status::available;
      const Rest expected{std::vector<Status>(28, at_rest), 0};
      for (const Rest& rest : with[rank].rests) CHECK(rest == expected);
    }
  }
}

TEST_CASE("B15: gradients of an unused layer are zero and hold no bucket back", "[cases]") {
  std::vector<Weights> unused;
  for (const int stage : kStages) {
    INFO("stage " << stage);
    WeightHistory history;
    const auto reports = run(2, with_history(with_late_layer(stage, 100, 3), history));
    const Op op = stage == 0 ? Op::all_reduce : Op::reduce_scatter;
    for (const RankReport& report : reports) CHECK(report.comm.traffic.at(op).calls == 3);
    CHECK(history.gradient[kExtraWeight] == std::vector<float>(kWidth * 5, 0));
    CHECK(history.gradient[kExtraBias] == std::vector<float>(5, 0));
    CHECK(*std::max_element(history.gradient[1].begin(), history.gradient[1].end()) > 0);

    // AdamW with a gradient of zero still decays: three times w - lr wd w
    Weights decayed{history.initial[kExtraWeight]};
    for (float& value : decayed[0]) value *= (1 - 1e-4F) * (1 - 1e-4F) * (1 - 1e-4F);
    CHECK(largest_difference({history.latest[kExtraWeight]}, decayed) < 1e-6);
    CHECK(history.latest[kExtraWeight] != history.initial[kExtraWeight]);
    unused.push_back(history.latest);
  }
  for (const Weights& weights : unused) CHECK(weights == unused[0]);
}

TEST_CASE("B15: a layer that was unused learns as soon as it is used", "[cases]") {
  WeightHistory expected;
  run(1, with_history(alone(plain(with_late_layer(0, 4, 5)), 2), expected));
  for (const int stage : kStages) {
    INFO("stage " << stage);
    WeightHistory history;
    run(2, with_history(plain(with_late_layer(stage, 4, 5)), history));
    CHECK(largest_difference(history.latest, expected.latest) < 1e-6);
    CHECK(largest_difference({history.gradient[kExtraBias]}, {std::vector<float>(5, 1)}) < 1e-6);
  }
}
