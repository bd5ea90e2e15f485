#include "stages/engine/sampling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "stages/base/error.hpp"
#include "stages/base/json_text.hpp"
#include "stages/base/philox.hpp"

namespace zerolab {
namespace {

constexpr Index kBytes = 256;  // gpt2 has more tokens than there are bytes

// Keyed by the seed as initial weights and batches are, which count parameters and steps where this
// number stands: none of them gets as far.
constexpr std::uint64_t kStream = std::uint64_t{1} << 63;

double uniform(std::uint64_t seed, Index position) {
  const Philox::Block block = Philox(seed)(kStream, static_cast<std::uint64_t>(position));
  const std::uint64_t bits = std::uint64_t{block.word[1]} << 32 | block.word[0];
  return static_cast<double>(bits >> 11) * 0x1p-53;  // in [0, 1)
}

struct Candidate {
  std::uint8_t byte = 0;
  double logit = 0;
};

/// The most likely first; of equal ones the lower byte.
std::vector<Candidate> ranked(std::span<const float> logits, Index position) {
  std::vector<Candidate> candidates;
  for (const float logit : logits.first(std::min<std::size_t>(logits.size(), kBytes))) {
    const std::size_t byte = candidates.size();
    if (!std::isfinite(logit)) {
      throw Error(Code::not_finite,
                  fmt::format("the logit of byte {} at position {} of the generated text is {}",
                              byte, position, std::isnan(logit) ? std::abs(logit) : logit),
                  "lower the learning rate, or clip the gradient (gradient_clipping)");
    }
    candidates.push_back({static_cast<std::uint8_t>(byte), logit});
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.logit > b.logit; });
  return candidates;
}

/// Softmax, summed from the most likely candidate to the least, and one draw from it.
std::uint8_t draw(const std::vector<Candidate>& candidates, const Sampling& sampling,
                  Index position) {
  std::vector<double> sums;  // sums[i]: of the weights up to candidate i
  double sum = 0;
  for (const Candidate& candidate : candidates) {
    sum += std::exp((candidate.logit - candidates.front().logit) / sampling.temperature);
    sums.push_back(sum);
  }
  const double drawn = uniform(sampling.seed, position) * sum;
  const auto chosen = std::upper_bound(sums.begin(), sums.end(), drawn);
  return candidates[static_cast<std::size_t>(std::distance(sums.begin(), chosen))].byte;
}

}  // namespace

void check_sampling(const Sampling& sampling, Index vocab_size) {
  if (!std::isfinite(sampling.temperature) || sampling.temperature < 0) {
    throw Error(Code::usage, fmt::format("the temperature is {}", sampling.temperature),
                "a temperature is a number from 0, which takes the most likely byte every time");
  }
  for (std::size_t i = 0; i < sampling.prompt.size(); ++i) {
    const auto byte = static_cast<unsigned char>(sampling.prompt[i]);
    if (byte < vocab_size) continue;
    const bool prints = byte > ' ' && byte <= '~';
    throw Error(Code::usage,
                fmt::format("the prompt has the byte {} ({}) at position {}, but the model's "
                            "vocabulary has {} tokens",
                            byte,
                            prints ? fmt::format("'{}'", static_cast<char>(byte))
                                   : fmt::format("\\x{:02x}", byte),
                            i, vocab_size),
                "leave it out, or give the model a vocab_size of 256");
  }
}

std::uint8_t choose_byte(std::span<const float> logits, const Sampling& sampling, Index position) {
  std::vector<Candidate> candidates = ranked(logits, position);
  if (sampling.temperature == 0) return candidates.front().byte;
  if (sampling.top_k > 0 && sampling.top_k < static_cast<Index>(candidates.size())) {
    candidates.resize(static_cast<std::size_t>(sampling.top_k));
  }
  return draw(candidates, sampling, position);
}

nlohmann::ordered_json to_json(const Sampling& sampling) {
  return {{"count", sampling.count},
          {"prompt", bytes_as_text(sampling.prompt)},
          {"temperature", sampling.temperature},
          {"top_k", sampling.top_k},
          {"seed", sampling.seed}};
}

}  // namespace zerolab
