// One loss and every gradient against PyTorch's in float64, at weights given element by element.

#include <algorithm>
#include <cmath>

#include "tests/reference/reference.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/stage_decorator.hpp"
#include "tests/support/trainings.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

// A gradient element is a sum of products along a path of some thirty layers, each of which rounds
// a few times: errors of a few dozen roundings of the largest element of the array.
constexpr double kRounding = 0x1p-24;
constexpr double kAllowed = 64 * kRounding;

/// Starts from the weights of a file and keeps the gradients. One rank, stage 0.
class FromFile : public StageDecorator {
 public:
  FromFile(std::unique_ptr<Stage> stage, Runtime& runtime, const nlohmann::json& reference,
           std::vector<std::vector<float>>& gradients)
      : StageDecorator(std::move(stage), runtime), reference_(reference), gradients_(gradients) {}

  void set_up(Model& model) override {
    StageDecorator::set_up(model);
    for (const OwnedSlice& slice : owned()) {
      const auto id = static_cast<std::size_t>(slice.parameter->id());
      const auto weights =
          reference_.at("parameters").at(id).at("weight").get<std::vector<float>>();
      std::copy_n(weights.begin(), slice.range.size(), slice.master);
    }
  }
  void finish_gradients() override {
    StageDecorator::finish_gradients();
    for (const OwnedSlice& slice : owned()) {
      const float* gradient = slice.gradient;
      gradients_.emplace_back(gradient, gradient + slice.range.size());
    }
  }

 private:
  const nlohmann::json& reference_;
  std::vector<std::vector<float>>& gradients_;
};

Training one_step(const nlohmann::json& reference, std::vector<std::vector<float>>& gradients) {
  const ModelDescription model = described_by(reference.at("model"));
  Training training = training_of(model, 0);
  training.steps = 1;
  training.settings.micro_batch = static_cast<Index>(reference.at("tokens").size());
  training.batches = [&reference](Index, Index, Index count, Index length, std::int32_t* tokens,
                                  std::int32_t* targets) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      for (std::size_t t = 0; t < static_cast<std::size_t>(length); ++t) {
        *tokens++ = reference.at("tokens").at(i).at(t).get<std::int32_t>();
        *targets++ = reference.at("targets").at(i).at(t).get<std::int32_t>();
      }
    }
  };
  return decorated<FromFile>(training, std::cref(reference), std::ref(gradients));
}

}  // namespace

TEST_CASE("N4: the loss and every gradient of a file are PyTorch's in float64") {
  for (const std::string name : {"gpt_gradients", "mlp_gradients"}) {
    const nlohmann::json reference = read_reference(name);
    std::vector<std::vector<float>> gradients;
    const auto reports = run(1, one_step(reference, gradients));
    const double loss = reports[0].steps[0].loss;
    CHECK(std::abs(loss / reference.at("loss").get<double>() - 1) <= 16 * kRounding);

    REQUIRE(gradients.size() == reference.at("parameters").size());
    for (std::size_t p = 0; p < gradients.size(); ++p) {
      const nlohmann::json& parameter = reference.at("parameters").at(p);
      const auto expected = parameter.at("gradient").get<std::vector<double>>();
      REQUIRE(gradients[p].size() == expected.size());
      double largest = 0;
      double worst = 0;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        largest = std::max(largest, std::abs(expected[i]));
        worst = std::max(worst, std::abs(gradients[p][i] - expected[i]));
      }
      INFO(name << ": " << parameter.at("name") << ", off by " << worst / largest / kRounding
                << " roundings of its largest element");
      CHECK(largest > 0);
      CHECK(worst <= kAllowed * largest);
    }
  }
}
