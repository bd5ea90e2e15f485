#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "stages/base/types.hpp"

namespace zerolab {

/// How a text goes on. Tokens are bytes.
struct Sampling {
  Index count = 0;           // bytes to generate
  double temperature = 0.8;  // 0: always the most likely byte
  Index top_k = 0;           // draw from so many of the most likely bytes; 0: from all
  std::uint64_t seed = 0;
  std::string prompt = {};  // what the text begins with; a newline if it is empty
};

/// Throws Error (Code::usage): the prompt has a byte that is no token of this vocabulary, or there
/// is no such temperature.
void check_sampling(const Sampling& sampling, Index vocab_size);

/// The byte at this position of a text, by the logits of all tokens; only those of bytes count. It
/// depends on nothing but the arguments. Throws Error (Code::not_finite).
std::uint8_t choose_byte(std::span<const float> logits, const Sampling& sampling, Index position);

/// Everything there is to know of it, for run.json and for comparing ranks.
nlohmann::ordered_json to_json(const Sampling& sampling);

}  // namespace zerolab
