// One loss and every gradient against PyTorch's, at weights given element by element.

#include <algorithm>
#include <cmath>

#include "tests/reference/reference.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/given_weights.hpp"
#include "tests/support/trainings.hpp"
#include "tests/support/weight_history.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

// A gradient element is a sum of products along a path of some thirty layers, each of which rounds
// a few times: errors of a few dozen roundings of the largest element of the array.
constexpr double kRounding = 0x1p-24;
constexpr double kAllowed = 64 * kRounding;

/// From the weights of the file, which it must not outlive. It ends with an update, behind which
/// `history` tells the gradient.
Training one_step(const nlohmann::json& reference, int ranks, int stage, WeightHistory& history) {
  Training training = training_of(described_by(reference.at("model")), stage);
  training.steps = 1;
  if (reference.contains("dtype")) training.settings.dtype = Dtype::bf16;
  training.settings.micro_batch = static_cast<Index>(reference.at("tokens").size()) / ranks;
  training.batches = [&reference](Index, Index position, Index count, Index length,
                                  std::int32_t* tokens, std::int32_t* targets) {
    for (Index i = 0; i < count; ++i) {
      const auto sequence = static_cast<std::size_t>(position + i);
      for (std::size_t t = 0; t < static_cast<std::size_t>(length); ++t) {
        *tokens++ = reference.at("tokens").at(sequence).at(t).get<std::int32_t>();
        *targets++ = reference.at("targets").at(sequence).at(t).get<std::int32_t>();
      }
    }
  };
  training = with_weights(training, [&reference](const Parameter& parameter, Index element) {
    return reference.at("parameters")
        .at(static_cast<std::size_t>(parameter.id()))
        .at("weight")
        .at(static_cast<std::size_t>(element))
        .get<float>();
  });
  return with_history(training, history);
}

bool same_loss(double loss, const nlohmann::json& reference) {
  return std::abs(loss / reference.at("loss").get<double>() - 1) <= 16 * kRounding;
}

}  // namespace

TEST_CASE("N4: the loss and every gradient of a file are PyTorch's in float64") {
  for (const std::string name : {"gpt_gradients", "mlp_gradients"}) {
    const nlohmann::json reference = read_reference(name);
    WeightHistory history;
    const auto reports = run(1, one_step(reference, 1, 0, history));
    CHECK(same_loss(reports[0].steps[0].loss, reference));

    REQUIRE(history.gradient.size() == reference.at("parameters").size());
    for (std::size_t p = 0; p < history.gradient.size(); ++p) {
      const nlohmann::json& parameter = reference.at("parameters").at(p);
      const auto expected = parameter.at("gradient").get<std::vector<double>>();
      REQUIRE(history.gradient[p].size() == expected.size());
      double largest = 0;
      double worst = 0;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        largest = std::max(largest, std::abs(expected[i]));
        worst = std::max(worst, std::abs(history.gradient[p][i] - expected[i]));
      }
      INFO(name << ": " << parameter.at("name") << ", off by " << worst / largest / kRounding
                << " roundings of its largest element");
      CHECK(largest > 0);
      CHECK(worst <= kAllowed * largest);
    }
  }
}

// The files are chosen so that no sum comes near the middle between two bf16 numbers.
TEST_CASE("N4: in bf16 every gradient of a file is PyTorch's to the bit, in all stages") {
  for (const std::string name : {"gpt_gradients_bf16", "mlp_gradients_bf16"}) {
    const nlohmann::json reference = read_reference(name);
    const int ranks = reference.at("ranks").get<int>();
    for (int stage = 0; stage <= 3; ++stage) {
      WeightHistory history;
      const auto reports = run(ranks, one_step(reference, ranks, stage, history));
      INFO(name << ", stage " << stage);
      CHECK(same_loss(reports[0].steps[0].loss, reference));
      REQUIRE(history.gradient.size() == reference.at("parameters").size());
      for (std::size_t p = 0; p < history.gradient.size(); ++p) {
        const nlohmann::json& parameter = reference.at("parameters").at(p);
        INFO(parameter.at("name"));
        CHECK(history.gradient[p] == parameter.at("gradient").get<std::vector<float>>());
      }
    }
  }
}
