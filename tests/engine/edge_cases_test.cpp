// Sizes, uses and data that a stage must not take for granted.

#include <set>

#include "tests/support/catch.hpp"
#include "tests/support/run_ranks.hpp"
#include "tests/support/sandwich.hpp"
#include "tests/support/weight_history.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

constexpr std::array kStages{0, 1, 2, 3};

/// Owns parameters of these sizes and makes up their gradients, the last one's first.
class Sized : public Module {
 public:
  Sized(ParameterSet& parameters, const std::vector<Index>& sizes) : Module("sized") {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      own(parameters.add("sized." + std::to_string(i), {sizes[i]}, Initial::normal(1)));
    }
  }

 protected:
  Tensor do_forward(const Tensor& input) override {
    for (Parameter* parameter : reads()) weight(*parameter);
    return input;
  }
  Tensor do_backward(const Tensor& output_gradient) override {
    for (auto parameter = reads().rbegin(); parameter != reads().rend(); ++parameter) {
      add_gradient(**parameter,
                   [&](float* out) { device().fill(out, (*parameter)->numel(), 0.5F); });
    }
    return output_gradient;
  }
};

/// A linear layer that every other micro-step leaves out, on all ranks alike.
class Sometimes : public Module {
 public:
  explicit Sometimes(ParameterSet& parameters)
      : Module("sometimes"),
        inner_(parameters, "inner", kSandwichWidth, kSandwichWidth, Initial::normal(1)) {
    adopt(inner_);
  }

 protected:
  Tensor do_forward(const Tensor& input) override {
    return runs_++ % 2 == 0 ? input : inner_.forward(input);
  }
  Tensor do_backward(const Tensor& output_gradient) override {
    return runs_ % 2 == 1 ? output_gradient : inner_.backward(output_gradient);
  }

 private:
  Linear inner_;
  Index runs_ = 0;
};

/// Has a parameter and never reads it.
class Idler : public Module {
 public:
  explicit Idler(ParameterSet& parameters) : Module("idler") {
    parameters.add("idler.weight", {5}, Initial::normal(1));
  }

 protected:
  Tensor do_forward(const Tensor& input) override { return input; }
  Tensor do_backward(const Tensor& output_gradient) override { return output_gradient; }
};

template <typename Middle>
Filling filled_with() {
  return [](ParameterSet& parameters) { return std::make_unique<Middle>(parameters); };
}

/// The elements of every reduction that rank 0 made in one step.
std::vector<Index> reductions(const std::vector<Index>& sizes, int stage, Index bucket) {
  Training training = training_of_sandwich(
      [sizes](ParameterSet& parameters) { return std::make_unique<Sized>(parameters, sizes); },
      stage);
  training.steps = 1;
  training.settings.zero.reduce_bucket_size = bucket;
  return run_ranks(4, [&](Communicator& communicator) {
    Recorder recorder(communicator.rank());
    std::vector<Index> elements;
    recorder.observe([&](const Stamp&, const Event& event) {
      const auto* comm = std::get_if<CommEvent>(&event);
      if (comm != nullptr && (comm->op == "reduce_scatter" || comm->op == "all_reduce")) {
        elements.push_back(comm->elements);
      }
    });
    train(communicator, recorder, training);
    return elements;
  })[0];
}

/// Every rank gets what rank 0 would get.
BatchSource same_for_all(const BatchSource& batches, Index micro_batch) {
  return [=](Index step, Index position, Index count, Index length, std::int32_t* tokens,
             std::int32_t* targets) {
    batches(step, position % micro_batch, count, length, tokens, targets);
  };
}

}  // namespace

TEST_CASE("with more ranks than most parameters have elements all stages agree with one rank") {
  const std::vector<std::string> expected = bits(run(8, training_of_odd_sizes(0))[0]);
  for (const int stage : kStages) {
    INFO("stage " << stage);
    if (stage != 0) CHECK(bits(run(8, training_of_odd_sizes(stage))[0]) == expected);
    Training alone = training_of_odd_sizes(stage);
    alone.settings.gradient_accumulation_steps = 8;
    CHECK(bits(run(1, alone)[0]) == expected);
  }
}

TEST_CASE(
    "a gradient larger than the bucket is reduced alone, small ones together, empty ones not") {
  // The order is head.bias 11, head.weight 33, then 1000, 3, 0, 3, 1000, then the embedding's 33.
  // Stages 0 to 2 pad the last parameter, head.bias, to make 2083 a multiple of 8; stage 3 pads
  // each to a multiple of 4.
  const std::vector<Index> sizes{1000, 3, 0, 3, 1000};
  for (const int stage : {0, 1, 2}) {
    CHECK(reductions(sizes, stage, 10) == std::vector<Index>{16, 33, 1000, 6, 1000, 33});
  }
  CHECK(reductions(sizes, 3, 10) == std::vector<Index>{12, 36, 1000, 8, 1000, 36});
}

TEST_CASE("a layer that some micro-steps leave out gets a zero gradient there, in every stage") {
  for (const Index accumulation : {Index{1}, Index{2}}) {
    std::vector<std::vector<std::string>> by_stage;
    std::vector<Weights> weights;
    for (const int stage : kStages) {
      Training training = training_of_sandwich(filled_with<Sometimes>(), stage);
      training.settings.gradient_accumulation_steps = accumulation;
      WeightHistory history;
      by_stage.push_back(bits(run(3, with_history(training, history))[0]));
      CHECK(history.initial[1] != history.latest[1]);  // it does learn
      weights.push_back(history.latest);
    }
    CHECK(by_stage[1] == by_stage[0]);
    CHECK(by_stage[3] == by_stage[2]);
    if (accumulation == 1) CHECK(by_stage[2] == by_stage[0]);
    CHECK(weights[1] == weights[0]);
    CHECK(weights[3] == weights[2]);
  }
}

TEST_CASE("a parameter that is never used keeps its bits, in every stage") {
  for (const int stage : kStages) {
    for (const Index accumulation : {Index{1}, Index{2}}) {
      Training training = training_of_sandwich(filled_with<Idler>(), stage);
      training.settings.gradient_accumulation_steps = accumulation;
      training.settings.optimizer.weight_decay = 0;
      WeightHistory history;
      run(4, with_history(training, history));
      INFO("stage " << stage << ", " << accumulation << " micro-steps");
      REQUIRE(history.initial[1].size() == 5);
      CHECK(history.latest[1] == history.initial[1]);
      CHECK(history.latest[0] != history.initial[0]);
    }
  }
}

TEST_CASE("every rank's own data counts") {
  for (const int stage : kStages) {
    INFO("stage " << stage);
    Training training = training_of_odd_sizes(stage);
    const std::vector<std::string> own_data = bits(run(4, training)[0]);
    const std::vector<std::string> of_rank_0 = bits(run(1, training)[0]);
    training.batches = same_for_all(training.batches, training.settings.micro_batch);
    const std::vector<std::string> same_data = bits(run(4, training)[0]);
    CHECK(own_data != same_data);
    // four times the same, divided by four, is exact
    CHECK(same_data == of_rank_0);
  }
}

TEST_CASE(
    "exchanging the data of two ranks changes the loss, which is summed in rank order, little") {
  // what a rank computes depends on its data, not on its number
  for (const int stage : kStages) {
    Training training = training_of_odd_sizes(stage);
    training.steps = 1;
    const StepResult before = run(3, training)[0].steps[0];
    training.batches = [inner = training.batches](Index step, Index position, Index count,
                                                  Index length, std::int32_t* tokens,
                                                  std::int32_t* targets) {
      inner(step, position < 6 ? 3 - position : position, count, length, tokens, targets);
    };
    const StepResult after = run(3, training)[0].steps[0];
    CHECK(std::abs(after.loss / before.loss - 1) < 1e-12);
    CHECK(std::abs(after.grad_norm / before.grad_norm - 1) < 1e-6);
  }
}
