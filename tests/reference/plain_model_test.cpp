// The plain model is what zerolab is compared with, so it is held here by what it cannot get wrong
// in the same way: numbers worked out by hand and finite differences.

#include "tests/support/plain_model.hpp"

#include <array>
#include <cmath>
#include <numeric>
#include <set>
#include <stdexcept>
#include <utility>

#include "tests/support/catch.hpp"

using namespace zerolab::test;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

namespace {

using Tokens = std::vector<std::int32_t>;
using Sizes = std::map<std::string, std::size_t>;

Part group(const std::vector<Part>& parts, When when, bool residual = false) {
  Part group = group_part("group", parts);
  group.when = when;
  group.residual = residual;
  return group;
}

DescribedModel every_kind(bool tied) {
  DescribedModel model{.vocabulary = 5, .width = 3, .tied = tied};
  model.parts = {
      linear_part("shared", 3, 3),
      group({norm_part("norm", 3), linear_part("up", 3, 4), gelu_part("gelu", 4),
             linear_part("down", 4, 3)},
            When::always, true),
      linear_part("shared", 3, 3),
      scale_part("scale", 3, "norm"),
      group({norm_part("even", 3)}, When::even_batch, true),
      group({linear_part("odd", 3, 3), gelu_part("gelu", 3)}, When::odd_batch),
      group({group({linear_part("first", 3, 3)}, When::odd_steps, true)}, When::always),
      group({linear_part("never", 3, 3)}, When::never),
  };
  if (!tied) model.parts.push_back(linear_part("head", 3, 5));
  return model;
}

Sizes sizes_of_every_kind(bool tied) {
  Sizes sizes{{"embedding.weight", 15}, {"shared.weight", 9}, {"shared.bias", 3},
              {"norm.weight", 3},       {"norm.bias", 3},     {"up.weight", 12},
              {"up.bias", 4},           {"down.weight", 12},  {"down.bias", 3},
              {"even.weight", 3},       {"even.bias", 3},     {"odd.weight", 9},
              {"odd.bias", 3},          {"first.weight", 9},  {"first.bias", 3},
              {"never.weight", 9},      {"never.bias", 3}};
  if (!tied) {
    sizes["head.weight"] = 15;
    sizes["head.bias"] = 5;
  }
  return sizes;
}

NamedWeights any_weights(const Sizes& sizes) {
  NamedWeights weights;
  double phase = 0;
  for (const auto& [name, size] : sizes) {
    for (std::size_t i = 0; i < size; ++i) weights[name].push_back(0.9 * std::sin(phase += 1.7));
  }
  return weights;
}
NamedWeights any_weights(bool tied) { return any_weights(sizes_of_every_kind(tied)); }

void any_batches(std::int64_t step, std::int64_t position, std::int64_t count, std::int64_t length,
                 std::int32_t* tokens, std::int32_t* targets) {
  for (std::int64_t i = 0; i < count * length; ++i) {
    const std::int64_t place = position * length + i;
    tokens[i] = static_cast<std::int32_t>((place * place + 3 * step) % 5);
    targets[i] = static_cast<std::int32_t>((place + step) % 5);
  }
}

constexpr std::int64_t kMicroBatch = 2, kLength = 3, kRanks = 3, kMicroSteps = 2;

PlainTraining any_training() {
  return {.micro_batch = kMicroBatch,
          .sequence_length = kLength,
          .ranks = kRanks,
          .micro_steps = kMicroSteps,
          .steps = 3,
          .learning_rate = 0.3,
          .weight_decay = 0.1,
          .batches = any_batches};
}

const Tokens kEven{0, 3, 1, 0}, kOdd{0, 3, 2, 0}, kTargets{4, 1, 1, 2};

double square_sum(const NamedWeights& gradients) {
  double sum = 0;
  for (const auto& [name, gradient] : gradients) {
    for (const double each : gradient) sum += each * each;
  }
  return sum;
}

bool all_zero(const std::vector<double>& values) {
  for (const double each : values) {
    if (each != 0) return false;
  }
  return true;
}

void check_nearly_equal(double value, double expected) {
  CHECK_THAT(value, WithinRel(expected, 1e-12) || WithinAbs(expected, 1e-13));
}

void check_nearly_equal(const std::vector<double>& values, const std::vector<double>& expected) {
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    INFO("element " << i);
    check_nearly_equal(values[i], expected[i]);
  }
}

/// What the parts make of one row of width 2, read from losses: with logits (x, 0) and target 0,
/// loss = log(1 + e^-x).
std::vector<double> output_of(const std::vector<Part>& parts, const std::vector<double>& row,
                              NamedWeights weights) {
  DescribedModel model{.vocabulary = 2, .width = 2, .parts = parts};
  model.parts.push_back(linear_part("head", 2, 2));
  weights["embedding.weight"] = {7, 7, row[0], row[1]};
  weights["head.bias"] = {0, 0};
  std::vector<double> output;
  for (const bool second : {false, true}) {
    weights["head.weight"] = {second ? 0.0 : 1.0, second ? 1.0 : 0.0, 0, 0};
    output.push_back(
        -std::log(std::expm1(differentiate_plainly(model, weights, 1, {1}, {0}).loss)));
  }
  return output;
}

template <typename Action>
std::string complaint_of(const Action& action) {
  try {
    action();
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("each plain part computes what one works out by hand", "[reference]") {
  const auto check = [](const std::vector<Part>& parts, const std::vector<double>& row,
                        const NamedWeights& weights, const std::vector<double>& expected) {
    const std::vector<double> output = output_of(parts, row, weights);
    for (std::size_t i = 0; i < 2; ++i) CHECK_THAT(output[i], WithinRel(expected[i], 1e-11));
  };
  const NamedWeights of_linear{{"a.weight", {0.1, 0.2, 0.3, -0.4}}, {"a.bias", {0.5, -0.5}}};
  const NamedWeights of_norm{{"n.weight", {0.5, -0.5}}, {"n.bias", {0.25, 1}}};
  const Part a = linear_part("a", 2, 2);

  check({}, {1, 3}, {}, {1, 3});
  // 0.1 1 + 0.2 3 + 0.5 and 0.3 1 - 0.4 3 - 0.5
  check({a}, {1, 3}, of_linear, {1.2, -1.4});
  // 0.1 1.2 - 0.2 1.4 + 0.5 and 0.3 1.2 + 0.4 1.4 - 0.5
  check({a, a}, {1, 3}, of_linear, {0.34, 0.42});
  check({group({a}, When::always)}, {1, 3}, of_linear, {1.2, -1.4});
  check({group({a}, When::always, true)}, {1, 3}, of_linear, {1 + 1.2, 3 - 1.4});
  check({group({a, a}, When::always, true)}, {1, 3}, of_linear, {1 + 0.34, 3 + 0.42});
  // Mean 2, variance 1.
  const double one = 1 / std::sqrt(1 + 1e-5);
  check({norm_part("n", 2)}, {1, 3}, of_norm, {0.25 - 0.5 * one, 1 - 0.5 * one});
  // A narrow row, where epsilon is a tenth of the variance 1e-4: deviations of 0.01.
  const double narrow = 0.01 / std::sqrt(1.1e-4);
  check({norm_part("n", 2)}, {0.99, 1.01}, of_norm, {0.25 - 0.5 * narrow, 1 - 0.5 * narrow});
  // Without the norm itself, only with what it lends.
  check({scale_part("scale", 2, "n"), group({norm_part("n", 2)}, When::never)}, {1, 3}, of_norm,
        {0.5, -1.5});
  // PyTorch's gelu(x, approximate='tanh') in float64.
  check({gelu_part("gelu", 2)}, {1, -1}, {}, {0.8411919906082768, -0.15880800939172324});
  check({gelu_part("gelu", 2)}, {0.5, 2}, {}, {0.34571400982514394, 1.954597694087775});
}

TEST_CASE("a plain tied model takes the step that one works out by hand", "[reference]") {
  // The table is the column (s, 0) with s^2 = ln 3. Token 0 has the logits (s s, s 0) = (ln 3, 0),
  // so probabilities (3/4, 1/4); token 1 has (0, 0), so (1/2, 1/2). With targets 1 and 0:
  //   loss = (ln 4 + ln 2) / 2
  //   by the logits, over 2 rows: (3/8, -3/8) and (-1/4, 1/4)
  //   by the table as head, sum over rows of that times x:  3/8 s + 0       and  -3/8 s + 0
  //   by the table as embedding, that times the table:      3/8 s - 3/8 0   and  -1/4 s + 1/4 0
  //   together (3/4 s, -5/8 s), whose norm is s sqrt(36 + 25) / 8
  const DescribedModel model{.vocabulary = 2, .width = 1, .tied = true};
  const double s = std::sqrt(std::log(3.0)), length = s * std::sqrt(61.0) / 8;
  PlainTraining training{.sequence_length = 2, .learning_rate = 0.5, .weight_decay = 0.2};
  training.batches = [](auto, auto, auto, auto, std::int32_t* tokens, std::int32_t* targets) {
    tokens[0] = targets[1] = 0;
    tokens[1] = targets[0] = 1;
  };
  for (const double clipping : {0.0, 0.5, 2.0}) {
    INFO("clipping " << clipping);
    training.clipping = clipping;
    const PlainResult result = train_plainly(model, {{"embedding.weight", {s, 0}}}, training);
    REQUIRE(result.steps.size() == 1);
    check_nearly_equal(result.steps[0].loss, 1.5 * std::log(2.0));
    check_nearly_equal(result.steps[0].gradient_norm, length);
    check_nearly_equal(result.gradients.at("embedding.weight"), {0.75 * s, -0.625 * s});
    // The norm is 1.02: 0.5 cuts it about in half, 2 lets it pass.
    const double factor = clipping == 0.5 ? 0.5 / (length + 1e-6) : 1;
    check_nearly_equal(result.weights.at("embedding.weight"),
                       {s - 0.5 * (factor * 0.75 * s + 0.2 * s), 0.5 * factor * 0.625 * s});
  }
}

TEST_CASE("the plain gradients are the finite differences of the plain loss", "[reference]") {
  constexpr double kStep = 1e-5;  // error about kStep^2 + 1e-16 / kStep
  for (const bool tied : {false, true}) {
    const DescribedModel model = every_kind(tied);
    for (const std::int64_t step : {1, 2}) {
      for (const Tokens& tokens : {kEven, kOdd}) {
        NamedWeights weights = any_weights(tied);
        const auto [loss, gradients] =
            differentiate_plainly(model, weights, step, tokens, kTargets);
        REQUIRE(gradients.size() == weights.size());
        for (auto& [name, values] : weights) {
          REQUIRE(gradients.at(name).size() == values.size());
          for (std::size_t i = 0; i < values.size(); ++i) {
            const double before = std::exchange(values[i], values[i] + kStep);
            const double above = differentiate_plainly(model, weights, step, tokens, kTargets).loss;
            values[i] = before - kStep;
            const double below = differentiate_plainly(model, weights, step, tokens, kTargets).loss;
            values[i] = before;
            INFO(name << " element " << i << ", step " << step << (tied ? ", tied" : ""));
            const double slope = (above - below) / (2 * kStep);
            CHECK_THAT(gradients.at(name)[i], WithinRel(slope, 1e-6) || WithinAbs(slope, 1e-9));
          }
        }
      }
    }
  }
}

TEST_CASE("a plain parameter has a gradient just where its group runs", "[reference]") {
  const DescribedModel model = every_kind(false);
  for (const std::int64_t step : {1, 2, 3}) {
    for (const Tokens& tokens : {kEven, kOdd}) {
      const auto gradients =
          differentiate_plainly(model, any_weights(false), step, tokens, kTargets).gradients;
      for (const auto& [name, gradient] : gradients) {
        INFO(name << ", step " << step);
        const bool unused = name.starts_with("never.") ||
                            (name.starts_with("first.") && step == 2) ||
                            (name.starts_with("even.") && tokens == kOdd) ||
                            (name.starts_with("odd.") && tokens == kEven);
        CHECK(all_zero(gradient) == unused);
      }
      // Rows of the table that no token asked for.
      const std::vector<double>& table = gradients.at("embedding.weight");
      CHECK(all_zero({table.begin() + 4 * 3, table.end()}));
    }
  }
}

TEST_CASE("a plain group that does not run might as well not be there", "[reference]") {
  struct Case {
    When when;
    std::int64_t step;
    Tokens tokens;
    bool runs;
  };
  const std::vector<Case> cases{
      {When::always, 2, kEven, true},     {When::never, 1, kEven, false},
      {When::odd_steps, 0, kEven, false}, {When::odd_steps, 1, kEven, true},
      {When::odd_steps, 2, kOdd, false},  {When::odd_steps, 3, kOdd, true},
      {When::even_batch, 1, kEven, true}, {When::even_batch, 1, kOdd, false},
      {When::odd_batch, 2, kEven, false}, {When::odd_batch, 2, kOdd, true}};
  const NamedWeights weights =
      any_weights(Sizes{{"embedding.weight", 15}, {"a.weight", 9}, {"a.bias", 3}});
  for (const Case& each : cases) {
    for (const bool residual : {false, true}) {
      const auto loss = [&](const std::vector<Part>& parts) {
        const DescribedModel model{.vocabulary = 5, .width = 3, .parts = parts, .tied = true};
        NamedWeights needed = weights;
        if (parts.empty()) needed = {{"embedding.weight", weights.at("embedding.weight")}};
        return differentiate_plainly(model, needed, each.step, each.tokens, kTargets).loss;
      };
      INFO("When " << static_cast<int>(each.when) << ", step " << each.step);
      const double present = loss({group({linear_part("a", 3, 3)}, When::always, residual)});
      const double absent = loss({});
      REQUIRE(present != absent);
      CHECK(loss({group({linear_part("a", 3, 3)}, each.when, residual)}) ==
            (each.runs ? present : absent));
    }
  }
}

TEST_CASE("a plain step is the mean over the micro-batches of all ranks", "[reference]") {
  const DescribedModel model = every_kind(true);
  std::vector<std::array<std::int64_t, 4>> asked, expected;
  PlainTraining training = any_training();
  training.batches = [&asked](std::int64_t step, std::int64_t position, std::int64_t count,
                              std::int64_t length, std::int32_t* tokens, std::int32_t* targets) {
    asked.push_back({step, position, count, length});
    any_batches(step, position, count, length, tokens, targets);
  };
  const PlainResult result = train_plainly(model, any_weights(true), training);

  NamedWeights weights = any_weights(true);
  REQUIRE(result.steps.size() == 3);
  for (const std::int64_t step : {1, 2, 3}) {
    double loss = 0;
    NamedWeights gradients;
    std::set<std::int64_t> parities;
    for (const std::int64_t position : {0, 2, 4, 6, 8, 10}) {  // ranks 0 1 2, ranks 0 1 2
      expected.push_back({step, position, kMicroBatch, kLength});
      Tokens tokens(6), targets(6);
      any_batches(step, position, kMicroBatch, kLength, tokens.data(), targets.data());
      parities.insert(std::accumulate(tokens.begin(), tokens.end(), 0) % 2);
      const PlainGradients one = differentiate_plainly(model, weights, step, tokens, targets);
      loss += one.loss / 6;
      for (const auto& [name, gradient] : one.gradients) {
        gradients[name].resize(gradient.size());
        for (std::size_t i = 0; i < gradient.size(); ++i) gradients[name][i] += gradient[i] / 6;
      }
    }
    REQUIRE(parities.size() == 2);  // ranks differ in what runs
    for (const auto& [name, gradient] : gradients) {
      for (std::size_t i = 0; i < gradient.size(); ++i)
        weights[name][i] -= 0.3 * (gradient[i] + 0.1 * weights[name][i]);
    }
    const PlainStep& taken = result.steps[static_cast<std::size_t>(step - 1)];
    check_nearly_equal(taken.loss, loss);
    check_nearly_equal(taken.gradient_norm, std::sqrt(square_sum(gradients)));
    if (step < 3) continue;
    for (const auto& [name, gradient] : gradients) {
      INFO(name);
      check_nearly_equal(result.gradients.at(name), gradient);
    }
  }
  CHECK(asked == expected);
  for (const auto& [name, values] : weights) {
    INFO(name);
    check_nearly_equal(result.weights.at(name), values);
  }
}

TEST_CASE("a frozen plain parameter never changes and is not in the norm", "[reference]") {
  for (const bool tied : {false, true}) {
    DescribedModel model = every_kind(tied);
    const NamedWeights initial = any_weights(tied);
    PlainTraining training = any_training();
    training.steps = 1;
    NamedWeights rest = train_plainly(model, initial, training).gradients;
    model.frozen = {"shared.weight", "norm.weight", "embedding.weight", "never.bias"};
    const PlainResult first = train_plainly(model, initial, training);
    for (const std::string& name : model.frozen) rest.erase(name);
    CHECK(first.gradients == rest);
    check_nearly_equal(first.steps.at(0).gradient_norm, std::sqrt(square_sum(rest)));
    training.steps = 3;
    const PlainResult result = train_plainly(model, initial, training);
    for (const auto& [name, values] : initial) {
      INFO(name);
      CHECK((result.weights.at(name) == values) == model.frozen.contains(name));
      CHECK(result.gradients.contains(name) != model.frozen.contains(name));
    }
  }
}

TEST_CASE("an unused plain parameter has a gradient of zeros and decays", "[reference]") {
  const NamedWeights initial = any_weights(false);
  const PlainResult result = train_plainly(every_kind(false), initial, any_training());
  for (const std::string name : {"never.weight", "never.bias"}) {
    INFO(name);
    CHECK(all_zero(result.gradients.at(name)));
    std::vector<double> decayed = initial.at(name);
    for (double& each : decayed) each *= 0.97 * 0.97 * 0.97;  // 1 - 0.3 0.1, three times
    check_nearly_equal(result.weights.at(name), decayed);
  }
}

TEST_CASE("the plain trainer names the parameter that does not fit", "[reference]") {
  const auto complaint = [](const DescribedModel& model, const NamedWeights& weights) {
    return complaint_of([&] { train_plainly(model, weights, any_training()); });
  };
  const DescribedModel good = every_kind(false);
  const NamedWeights weights = any_weights(false);
  CHECK(complaint(good, weights) == "none");
  for (const auto& [name, size] : sizes_of_every_kind(false)) {
    NamedWeights bad = weights;
    bad.at(name).push_back(0);
    CHECK(complaint(good, bad) ==
          name + ": has " + std::to_string(size) + " elements, not " + std::to_string(size + 1));
    bad.erase(name);
    CHECK(complaint(good, bad) == name + ": has no initial value");
  }
  NamedWeights more = weights;
  more["none.weight"] = {};
  CHECK(complaint(good, more) == "none.weight: has a value, but the model has no such parameter");
  DescribedModel model = good;
  model.frozen = {"none.bias"};
  CHECK(complaint(model, weights) == "none.bias: is frozen, but the model has no such parameter");
  model = good;
  model.parts.insert(model.parts.begin(), linear_part("up", 4, 3));
  CHECK(complaint(model, weights) == "up.weight: is given two shapes");
  model = good;
  model.parts.insert(model.parts.begin(), scale_part("scale", 3, "none"));
  CHECK(complaint(model, weights) == "none.weight: is no parameter of the model");
  model = good;
  std::swap(model.parts.front(), model.parts.back());
  CHECK(complaint(model, weights) == "norm.weight: is not as wide as what it meets");
  CHECK(complaint_of([&] {
          differentiate_plainly(good, weights, 1, {0, 5}, {0, 0});
        }) == "embedding.weight: has no row for token 5");
  CHECK(complaint_of([&] {
          differentiate_plainly(good, weights, 1, {0, 1}, {0, -1});
        }) == "the logits: no target -1");
}
