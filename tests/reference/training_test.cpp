// N4: twenty steps against what a plain PyTorch program computes (README.md).

#include <bit>
#include <cmath>

#include "tests/reference/reference.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/trainings.hpp"
#include "tests/support/weight_history.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

constexpr std::array kTrainings{"gpt_nano",      "gpt_nano_adam_l2", "gpt_tiny_tied",
                                "mlp_small",     "mlp_small_sgd",    "gpt_nano_bf16",
                                "gpt_tiny_bf16", "mlp_small_bf16",   "mlp_small_sgd_bf16"};

struct Way {
  int ranks;
  int stage;
};

// What is rounded to 16 bits depends on the number of ranks, so those files name it.
std::vector<Way> ways_of(const nlohmann::json& reference) {
  if (!reference.contains("ranks")) return {{4, 0}, {3, 3}};
  const int ranks = reference.at("ranks").get<int>();
  return {{ranks, 0}, {ranks, 1}, {ranks, 2}, {ranks, 3}};
}

Initial::Kind kind_of(const std::string& name) {
  if (name == "normal") return Initial::Kind::normal;
  return name == "ones" ? Initial::Kind::ones : Initial::Kind::zeros;
}

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

void check_steps(const std::vector<StepResult>& steps, const nlohmann::json& reference) {
  const nlohmann::json& tolerance = reference.at("tolerance");
  REQUIRE(steps.size() == reference.at("losses").size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto loss = reference.at("losses").at(i).get<double>();
    const auto norm = reference.at("gradient_norms").at(i).get<double>();
    INFO("step " << i << ": loss " << steps[i].loss << ", norm " << steps[i].grad_norm);
    CHECK(std::abs(steps[i].loss / loss - 1) <= tolerance.at("loss").at(i).get<double>());
    CHECK(std::abs(steps[i].grad_norm / norm - 1) <=
          tolerance.at("gradient_norm").at(i).get<double>());
  }
}

void check_spots(const WeightHistory& history, const nlohmann::json& reference) {
  const auto tolerance = reference.at("tolerance").at("weight").get<double>();
  for (std::size_t p = 0; p < history.initial.size(); ++p) {
    const nlohmann::json& spots = reference.at("spot_weights").at(p);
    for (std::size_t i = 0; i < spots.at("index").size(); ++i) {
      const auto element = spots.at("index").at(i).get<std::size_t>();
      INFO(spots.at("name") << " element " << element);
      CHECK(same_bits(history.initial[p][element], spots.at("initial").at(i).get<float>()));
      const double final = history.latest[p][element];
      CHECK(std::abs(final - spots.at("final").at(i).get<double>()) <= tolerance);
    }
  }
}

}  // namespace

TEST_CASE("N4: the reference's parameters are the model's, by position") {
  for (const std::string name : kTrainings) {
    const nlohmann::json reference = read_reference(name);
    const auto model = build_model(described_by(reference.at("model")));
    REQUIRE(model->parameters().size() == reference.at("parameters").size());
    for (const Parameter& parameter : model->parameters()) {
      const nlohmann::json& expected =
          reference.at("parameters").at(static_cast<std::size_t>(parameter.id()));
      INFO(name << ": " << parameter.name() << " is the reference's " << expected.at("name"));
      CHECK(parameter.shape() == expected.at("shape").get<Shape>());
      CHECK(parameter.initial().kind == kind_of(expected.at("init")));
      CHECK(parameter.initial().deviation == expected.at("deviation").get<float>());
    }
  }
}

TEST_CASE("N4: the rules for text and batches give the reference's") {
  for (const std::string name : kTrainings) {
    const nlohmann::json reference = read_reference(name);
    const auto beginning = reference.at("text").at("beginning").get<std::string>();
    CHECK(text_of(reference).substr(0, beginning.size()) == beginning);
    Index step = 0;
    for (const nlohmann::json& starts : reference.at("batch").at("starts_of_first_steps")) {
      for (std::size_t position = 0; position < starts.size(); ++position) {
        CHECK(batch_start(reference, step, static_cast<Index>(position)) == starts[position]);
      }
      ++step;
    }
  }
}

TEST_CASE("N4: losses, gradient norms and weights are PyTorch's over 20 steps") {
  for (const std::string name : kTrainings) {
    const nlohmann::json reference = read_reference(name);
    const auto sequences = reference.at("batch").at("sequences").get<Index>();
    for (const Way& way : ways_of(reference)) {
      REQUIRE(sequences % way.ranks == 0);
      Training training = training_of(reference);
      training.settings.micro_batch = sequences / way.ranks;
      training.settings.zero.stage = way.stage;
      training.settings.zero.overlap_comm = way.stage == 3;
      training.settings.zero.reduce_bucket_size = 10'000;
      WeightHistory history;
      const auto reports = run(way.ranks, with_history(training, history));
      INFO(name << ", stage " << way.stage << ", " << way.ranks << " ranks");
      check_steps(reports[0].steps, reference);
      check_spots(history, reference);
    }
  }
}
