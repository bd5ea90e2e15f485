// A parameter that other modules read: registered, found by itself, or gathered by the layer;
// behaviour 19.

#include <fmt/format.h>

#include "stages/model/model.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/described_training.hpp"
#include "tests/support/layers.hpp"
#include "tests/support/observed.hpp"
#include "tests/support/sandwich.hpp"
#include "tests/support/thrown.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

constexpr std::array kStages{0, 1, 2, 3};

/// The gain of one norm is read by three modules beside it, one of them twice.
DescribedModel three_readers() {
  DescribedModel model{.vocabulary = 7, .width = 5, .tied = true};
  model.parts = {norm_part("lender", 5),
                 scale_part("a", 5, "lender"),
                 linear_part("up", 5, 3),
                 linear_part("down", 3, 5),
                 scale_part("b", 5, "lender"),
                 scale_part("a", 5, "lender"),
                 group_part("inside", {scale_part("c", 5, "lender")})};
  return model;
}

void find_by_itself(Training& training) {
  training.build = [] { return build_described(three_readers(), false); };
  training.settings.zero.auto_register_external_parameters = true;
}

/// Returns its bias for somebody else to add (as Megatron-LM's linear layers do).
class ReturnsItsBias : public Module {
 public:
  explicit ReturnsItsBias(ParameterSet& parameters)
      : Module("inner"),
        bias_(own(parameters.add("inner.bias", {kSandwichWidth}, Initial::normal(1)))) {}

  Parameter& bias() { return bias_; }

 protected:
  Tensor do_forward(const Tensor& input) override { return input; }
  Tensor do_backward(const Tensor& output_gradient) override { return output_gradient; }

 private:
  Parameter& bias_;
};

/// x + b, with the bias that the module inside has returned.
class AddsWhatIsReturned : public Module {
 public:
  explicit AddsWhatIsReturned(ParameterSet& parameters) : Module("outer"), inner_(parameters) {
    adopt(inner_);
  }

 protected:
  Tensor do_forward(const Tensor& input) override {
    const Tensor x = inner_.forward(input);
    const float* bias = weight(inner_.bias());
    Tensor output = activation(x.shape(), "output");
    for (Index i = 0; i < x.numel(); ++i) output.floats()[i] = x.floats()[i] + bias[i % x.width()];
    return output;
  }
  Tensor do_backward(const Tensor& output_gradient) override {
    add_gradient(inner_.bias(), [&](float* out) {
      device().sum_rows(output_gradient.rows(), output_gradient.width(), output_gradient.floats(),
                        out);
    });
    return inner_.backward(output_gradient);
  }

 private:
  ReturnsItsBias inner_;
};

Training training_of_returned(int stage) {
  return training_of_sandwich(
      [](ParameterSet& parameters) { return std::make_unique<AddsWhatIsReturned>(parameters); },
      stage);
}

using Texts = std::vector<std::string>;

/// "forward fetch by norm" for each all-gather of one parameter.
Texts gathers(const std::string& parameter, const Training& training) {
  return observed<Texts>(3, training, [&](Texts& texts, const Stamp& stamp, const Event& event) {
    const auto* moved = std::get_if<ParamEvent>(&event);
    if (moved == nullptr || moved->parameter != parameter || moved->to != "INFLIGHT") return;
    texts.push_back(fmt::format("{} {} by {}", name_of(stamp.phase), moved->cause, moved->module));
  })[0];
}

}  // namespace

TEST_CASE("a parameter that three modules read has one gradient, in every stage", "[engine]") {
  CHECK(wrong_in_any_stage(three_readers()).empty());
  Training training = training_of_described(three_readers(), 3);
  training.steps = 1;
  CHECK(gathers("lender.weight", training) ==
        Texts{"forward fetch by lender", "forward external by a", "forward external by b",
              "forward external by a", "forward external by c", "backward external by c",
              "backward external by a", "backward external by b", "backward external by a",
              "backward fetch by lender"});
}

TEST_CASE("behaviour 19: a foreign parameter is registered at its first read, where it is read",
          "[engine]") {
  CHECK(wrong_in_any_stage(three_readers(), find_by_itself).empty());
  Training training = training_of_described(three_readers(), 3);
  find_by_itself(training);
  training.steps = 1;
  // each module's first read is a gather in its middle; later visits fetch as if it had been told
  Training told = training_of_described(three_readers(), 3);
  told.steps = 1;
  CHECK(gathers("lender.weight", training) == gathers("lender.weight", told));
  CHECK(gathers("embedding.weight", training) == gathers("embedding.weight", told));

  // and from the second step on it is prefetched as if it had been told
  training.steps = told.steps = 4;
  for (Training* each : {&training, &told}) each->settings.zero.prefetch_bucket_size = 20;
  const RankReport found = run(2, training)[0];
  const RankReport expected = run(2, told)[0];
  for (std::size_t step = 1; step < 4; ++step) {
    CHECK(found.steps[step].fetches == expected.steps[step].fetches);
  }
  CHECK(found.steps[1].fetches.hits > 0);
}

TEST_CASE("behaviour 19: a parameter returned out of its module is registered with who reads it",
          "[engine]") {
  for (const int ranks : {1, 2, 3, 4}) {
    const auto expected = bits(run(ranks, training_of_returned(0))[0]);
    for (const int stage : kStages) {
      INFO("stage " << stage << ", " << ranks << " ranks");
      Training training = training_of_returned(stage);
      training.settings.zero.auto_register_external_parameters = true;
      CHECK(bits(run(ranks, training)[0]) == expected);
    }
  }
  Training training = training_of_returned(3);
  training.settings.zero.auto_register_external_parameters = true;
  training.steps = 2;
  CHECK(gathers("inner.bias", training) ==
        Texts{"forward fetch by inner", "forward external by outer", "backward external by outer",
              "forward external by outer", "backward external by outer"});
}

TEST_CASE("without registration a returned parameter is refused where it is read", "[engine]") {
  const auto error = thrown_by([&] { run(3, training_of_returned(3)); });
  REQUIRE(error);
  CHECK(error->code() == Code::parameter_not_available);
  CHECK(error->what_happened() ==
        "module 'outer' on rank 0 reads parameter 'inner.bias', which is NOT_AVAILABLE (step 1, "
        "forward)");
  CHECK(error->way_out().find("register_external_parameter(outer, inner.bias)") !=
        std::string::npos);
}

TEST_CASE("in a leaf nothing registers itself: what is read there may differ by rank", "[engine]") {
  DescribedModel model{.vocabulary = 7, .width = 5};
  Part leaf = group_part("leaf", {scale_part("borrower", 5, "lender")});
  leaf.leaf = true;
  model.parts = {norm_part("lender", 5), leaf, linear_part("head", 5, 7)};
  CHECK(wrong_in_any_stage(model).empty());
  Training training = training_of_described(model, 3);
  training.build = [model] { return build_described(model, false); };
  training.settings.zero.auto_register_external_parameters = true;
  const auto error = thrown_by([&] { run(3, training); });
  REQUIRE(error);
  CHECK(error->code() == Code::parameter_not_available);
  CHECK(error->way_out().find("leaf") != std::string::npos);
}
