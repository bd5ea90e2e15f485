#include "stages/engine/sampling.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "stages/base/philox.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/thrown.hpp"

namespace zerolab {
namespace {

Sampling sampling_of(std::string prompt, double temperature = 1) {
  return {
      .count = 0, .temperature = temperature, .top_k = 0, .seed = 5, .prompt = std::move(prompt)};
}

/// Draws at positions 0, 1, ... from the same logits: how often each byte came.
std::map<int, int> drawn(const std::vector<float>& logits, const Sampling& sampling, int draws) {
  std::map<int, int> counts;
  for (int position = 0; position < draws; ++position) {
    ++counts[choose_byte(logits, sampling, position)];
  }
  return counts;
}

TEST_CASE("bytes are drawn as often as the softmax of their logits says", "[engine]") {
  // By hand, at temperature 0.5: weights 1 : e^2 : e^-2 : 1, of which top-k 2 leaves byte 1 and the
  // lower one of 0 and 3.
  const std::vector<float> logits{0, 1, -1, 0};
  constexpr int kDraws = 100000;
  const double sum = 2 + std::exp(2.0) + std::exp(-2.0);
  Sampling sampling{.count = 0, .temperature = 0.5, .top_k = 0, .seed = 9, .prompt = ""};
  const auto check = [&](const std::map<int, double>& expected) {
    const auto counts = drawn(logits, sampling, kDraws);
    CHECK(counts.size() == expected.size());
    for (const auto& [byte, probability] : expected) {
      INFO("byte " << byte);
      const double share = static_cast<double>(counts.at(byte)) / kDraws;
      CHECK(std::abs(share - probability) <
            5 * std::sqrt(probability * (1 - probability) / kDraws));
    }
  };
  check({{0, 1 / sum}, {1, std::exp(2.0) / sum}, {2, std::exp(-2.0) / sum}, {3, 1 / sum}});
  sampling.top_k = 3;
  const double three = 2 + std::exp(2.0);
  check({{0, 1 / three}, {1, std::exp(2.0) / three}, {3, 1 / three}});
  sampling.top_k = 2;
  check({{0, 1 / (1 + std::exp(2.0))}, {1, std::exp(2.0) / (1 + std::exp(2.0))}});
  sampling = {.count = 0, .temperature = 1e300, .top_k = 0, .seed = 9, .prompt = ""};
  check({{0, 0.25}, {1, 0.25}, {2, 0.25}, {3, 0.25}});
}

TEST_CASE("the coldest temperature, one candidate and none at all take the same byte", "[engine]") {
  const std::vector<float> logits{-3, 2, 1, 2, -0.0F};
  const Sampling greedy = sampling_of("", 0);
  Sampling first = sampling_of("", 1e3);
  first.top_k = 1;
  for (const Sampling& sampling : {greedy, first}) {
    CHECK(drawn(logits, sampling, 100) == std::map<int, int>{{1, 100}});
  }
  const double coldest = std::numeric_limits<double>::denorm_min();
  const auto equals = drawn(logits, sampling_of("", coldest), 100);  // byte 3 is as likely
  CHECK(equals.size() == 2);
  CHECK(equals.at(1) + equals.at(3) == 100);
}

TEST_CASE("a draw depends on seed and position and nothing else", "[engine]") {
  const std::vector<float> logits(256, 0.0F);
  Sampling sampling = sampling_of("");
  CHECK(drawn(logits, sampling, 50) == drawn(logits, sampling, 50));
  CHECK(drawn(logits, sampling, 50).size() > 30);
  const auto other = drawn(logits, {.count = 0, .temperature = 1, .seed = 6, .prompt = ""}, 50);
  CHECK(drawn(logits, sampling, 50) != other);
  for (Index position = 0; position < 20; ++position) {
    // Of 256 equal bytes the one that the first eight bits say. Neither a parameter's number nor a
    // step's is as high as the one that stands in front of the position.
    const Philox::Block block =
        Philox(sampling.seed)(std::uint64_t{1} << 63, static_cast<std::uint64_t>(position));
    CHECK(choose_byte(logits, sampling, position) == block.word[1] >> 24);
  }
}

TEST_CASE("of a vocabulary that has more than bytes only those count", "[engine]") {
  std::vector<float> logits(50257, 5.0F);
  std::fill_n(logits.begin(), 256, -1.0F);
  logits[256] = std::numeric_limits<float>::infinity();
  logits[255] = 0;
  CHECK(choose_byte(logits, sampling_of("", 0), 0) == 255);
  const auto counts = drawn(logits, sampling_of("", 1), 10000);
  CHECK(counts.size() == 256);
}

TEST_CASE("a logit that is not finite is told with its byte and position", "[engine]") {
  const std::vector<float> logits{0, -std::numeric_limits<float>::quiet_NaN()};
  const auto error = thrown_by([&] { choose_byte(logits, sampling_of("", 0), 7); });
  REQUIRE(error);
  CHECK(contains(error->what(), "the logit of byte 1 at position 7 of the generated text is nan"));
}

TEST_CASE("a prompt outside of the vocabulary and a temperature that there is not are refused",
          "[engine]") {
  const auto refused = [](const Sampling& sampling, Index vocab_size) {
    const auto error = thrown_by([&] { check_sampling(sampling, vocab_size); });
    return error && error->code() == Code::usage ? error->what_happened() : "";
  };
  CHECK(refused(sampling_of("abc"), 99) ==
        "the prompt has the byte 99 ('c') at position 2, but the model's vocabulary has 99 tokens");
  CHECK(contains(refused(sampling_of("\xC3\xA9"), 128), "the byte 195 (\\xc3) at position 0"));
  CHECK(refused(sampling_of("abc\xFF"), 256) == "");
  CHECK(refused(sampling_of(std::string(1, '\0')), 1) == "");
  for (const double temperature : {-0.1, HUGE_VAL, std::nan("")}) {
    CHECK(contains(refused(sampling_of("", temperature), 256), "the temperature is "));
  }
}

}  // namespace
}  // namespace zerolab
