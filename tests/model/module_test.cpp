#include "stages/model/module.hpp"

#include <optional>

#include "stages/model/layers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/layer_harness.hpp"
#include "tests/support/thrown.hpp"

namespace zerolab::test {
namespace {

constexpr Index kRows = 4;
constexpr Index kVocabulary = 7;
constexpr Index kWidth = 3;
const std::vector<std::int32_t> kTokens{2, 6, 2, 0};  // one of them twice

/// An embedding and a head that reads the same table.
struct Tied {
  LayerHarness harness;
  ParameterSet parameters;
  Embedding embedding{parameters, "embedding", kVocabulary, kWidth, Initial::zeros()};
  TiedHead head{"head", embedding.table()};
  Floats output_gradient = random_floats(kRows * kVocabulary, 3);
  Floats middle_gradient = random_floats(kRows * kWidth, 4);

  explicit Tied(int rank = 0) : harness(rank) {
    harness.attach(embedding);
    harness.attach(head);
    register_external_parameter(head, embedding.table());
  }

  Tensor tokens() { return harness.tensor({kRows}, kTokens); }
  Tensor into_head() { return harness.tensor({kRows, kVocabulary}, output_gradient); }
  Tensor into_embedding() { return harness.tensor({kRows, kWidth}, middle_gradient); }
  Floats gradient() { return harness.gradient(embedding.table()); }
};

Floats sum(Floats a, const Floats& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

TEST_CASE("a weight that is not here is named with its module, its rank and the way out",
          "[model]") {
  Tied tied(2);
  unregister_external_parameter(tied.head, tied.embedding.table());
  const Tensor input = tied.harness.tensor({kRows, kWidth}, random_floats(kRows * kWidth, 1));
  const auto foreign = thrown_by([&] { tied.head.forward(input); });
  REQUIRE(foreign);
  CHECK(foreign->code() == Code::parameter_not_available);
  CHECK(contains(foreign->what(), "module 'head' on rank 2"));
  CHECK(contains(foreign->what(), "parameter 'embedding.weight', which is NOT_AVAILABLE"));
  CHECK(contains(foreign->way_out(), "register_external_parameter(head, embedding.weight)"));

  const auto own = thrown_by([&] { tied.embedding.forward(tied.tokens()); });
  REQUIRE(own);
  CHECK(own->code() == Code::parameter_not_available);
  CHECK(contains(own->way_out(), "run the module through forward() or backward()"));
}

TEST_CASE("the gradient of a weight used twice is the sum of both uses, to the bit", "[model]") {
  Floats of_head;
  Floats of_embedding;
  Floats of_both;
  for (Floats* result : {&of_head, &of_embedding, &of_both}) {
    Tied tied;
    tied.harness.provide(tied.parameters);
    tied.harness.begin_micro_step(tied.parameters);
    const bool head = result != &of_embedding;
    const bool embedding = result != &of_head;
    // the head's input is the same in all three runs
    const Floats middle = random_floats(kRows * kWidth, 1);
    if (embedding) tied.embedding.forward(tied.tokens());
    if (head) tied.head.forward(tied.harness.tensor({kRows, kWidth}, middle));
    tied.harness.begin_backward();
    if (head) tied.head.backward(tied.into_head());
    CHECK(tied.harness.times_ready(tied.embedding.table()) == (embedding ? 0 : 1));
    if (embedding) tied.embedding.backward(tied.into_embedding());
    CHECK(tied.harness.times_ready(tied.embedding.table()) == 1);
    *result = tied.gradient();
  }
  CHECK_FALSE(same_bits(of_both, of_head));
  CHECK_FALSE(same_bits(of_both, of_embedding));
  CHECK(same_bits(of_both, sum(of_head, of_embedding)));
}

TEST_CASE("what a forward has left inside is what its backward needs, without input and output",
          "[model]") {
  LayerHarness harness;
  ParameterSet parameters;
  LayerNorm norm(parameters, "norm", 4);
  harness.attach(norm);
  harness.provide(parameters);
  harness.begin_micro_step(parameters);
  const Tensor input = harness.tensor({3, 4}, random_floats(12, 1));
  CHECK_FALSE(norm.keeps_a_forward());
  for (const Index forwards : {1, 2}) {
    const Tensor output = norm.forward(input);
    CHECK(norm.keeps_a_forward());
    CHECK(norm.kept_inside() == forwards * 2 * 3 * 4);  // mean and variance of three rows
  }
  harness.begin_backward();
  norm.backward(harness.tensor({3, 4}, random_floats(12, 2)));
  CHECK(norm.kept_inside() == 2 * 3 * 4);
}

TEST_CASE("a module that runs twice undoes its latest forward first", "[model]") {
  const Floats x1 = random_floats(kRows * kWidth, 1), x2 = random_floats(kRows * kWidth, 2);
  const Floats dy1 = random_floats(kRows * 5, 3), dy2 = random_floats(kRows * 5, 4);
  const auto gradients = [&](bool first, bool second) {
    LayerHarness harness;
    ParameterSet parameters;
    Linear linear(parameters, "linear", kWidth, 5, Initial::zeros());
    harness.attach(linear);
    harness.provide(parameters);
    harness.begin_micro_step(parameters);
    if (first) linear.forward(harness.tensor({kRows, kWidth}, x1));
    if (second) linear.forward(harness.tensor({kRows, kWidth}, x2));
    harness.begin_backward();
    if (second) linear.backward(harness.tensor({kRows, 5}, dy2));
    if (first) linear.backward(harness.tensor({kRows, 5}, dy1));
    return harness.gradient(parameters.at("linear.weight"));
  };
  CHECK(same_bits(gradients(true, true), sum(gradients(false, true), gradients(true, false))));
}

TEST_CASE("a second backward for one forward is refused by every layer", "[model]") {
  const Index length = 2;
  ParameterSet parameters;
  LayerHarness harness;
  Embedding embedding(parameters, "embedding", kVocabulary, 3, Initial::zeros());
  Linear linear(parameters, "linear", 3, 3, Initial::zeros());
  LayerNorm norm(parameters, "norm", 3);
  Gelu gelu("gelu");
  TiedHead head("head", parameters.at("linear.weight"));
  for (Module* module : std::initializer_list<Module*>{&embedding, &linear, &norm, &gelu, &head}) {
    harness.attach(*module);
  }
  harness.provide(parameters);
  for (Module* module : std::initializer_list<Module*>{&embedding, &linear, &norm, &gelu, &head}) {
    INFO(module->name());
    harness.begin_micro_step(parameters);
    module->forward(module == &embedding ? harness.tensor({length}, std::vector<std::int32_t>{1, 2})
                                         : harness.tensor({length, 3}, random_floats(6, 1)));
    harness.begin_backward();
    const Tensor dy = harness.tensor({length, 3}, random_floats(6, 2));
    module->backward(dy);
    const auto error = thrown_by([&] { module->backward(dy); });
    REQUIRE(error);
    CHECK(error->code() == Code::gradient_state);
    CHECK(contains(error->what(), "'" + module->name() + "'"));
    CHECK(contains(error->way_out(), "backward once for every forward"));
  }
}

/// Gives so many gradients for one use.
class Giver : public Module {
 public:
  Giver(ParameterSet& parameters, std::string name, int gradients)
      : Module(std::move(name)),
        gradients_(gradients),
        weight_(own(parameters.add("w", {5}, Initial::zeros()))) {}

 protected:
  Tensor do_forward(const Tensor& input) override {
    weight(weight_);
    return input;
  }
  Tensor do_backward(const Tensor& output_gradient) override {
    for (int i = 0; i < gradients_; ++i) {
      add_gradient(weight_, [&](float* out) { device().fill(out, weight_.numel(), 1); });
    }
    return output_gradient;
  }

 private:
  int gradients_;
  Parameter& weight_;
};

std::optional<Error> error_of(const std::string& name, int gradients) {
  LayerHarness harness(1);
  ParameterSet parameters;
  Giver giver(parameters, name, gradients);
  harness.attach(giver);
  harness.provide(parameters);
  harness.begin_micro_step(parameters);
  const Tensor x = harness.tensor({1}, Floats{1});
  giver.forward(x);
  harness.begin_backward();
  return thrown_by([&] { giver.backward(x); });
}

TEST_CASE("more gradients than uses are refused, and fewer", "[model]") {
  CHECK_FALSE(error_of("fair", 1));
  const auto more = error_of("generous", 2);
  REQUIRE(more);
  CHECK(more->code() == Code::gradient_state);
  CHECK(contains(more->what(), "'generous' gives a gradient for 'w' on rank 1"));
  const auto fewer = error_of("stingy", 0);
  REQUIRE(fewer);
  CHECK(fewer->code() == Code::gradient_state);
  CHECK(contains(fewer->what(), "'stingy' on rank 1 read 1 weight(s) in forward and gave 0"));
}

TEST_CASE("registering twice does nothing more, taking back what was not registered is an error",
          "[model]") {
  Tied tied;
  Parameter& table = tied.embedding.table();
  register_external_parameter(tied.head, table);
  register_external_parameter(tied.embedding, table);  // which owns it
  CHECK(tied.head.reads() == std::vector<Parameter*>{&table});
  CHECK(tied.embedding.reads() == std::vector<Parameter*>{&table});

  unregister_external_parameter(tied.head, table);
  CHECK(tied.head.reads().empty());
  for (Module* module : std::initializer_list<Module*>{&tied.head, &tied.embedding}) {
    const auto error = thrown_by([&] { unregister_external_parameter(*module, table); });
    REQUIRE(error);
    CHECK(error->code() == Code::usage);
    CHECK(contains(error->what(), "'embedding.weight'"));
    CHECK(contains(error->what(), "'" + module->name() + "'"));
  }
  CHECK(tied.embedding.reads() == std::vector<Parameter*>{&table});
}

}  // namespace
}  // namespace zerolab::test
