#include "stages/engine/generation.hpp"

#include <algorithm>
#include <vector>

namespace zerolab {
namespace {

constexpr Index kShapeStep = 16;

/// What a pass is made over, and the position behind which it is asked.
struct Window {
  std::vector<std::int32_t> tokens;
  Index last = 0;
};

// The end of the text. A model that predicts behind its last position only takes whole windows, so
// newlines go before a text that is shorter. Others see what is before a position and nothing
// behind it, so it does no harm to pad there; then only a few shapes occur.
Window window_at_end(const std::vector<std::int32_t>& text, Index length, Targets targets,
                     std::int32_t filler) {
  const Index count = std::min(static_cast<Index>(text.size()), length);
  Window window{{text.end() - count, text.end()}, count - 1};
  if (targets == Targets::last_position) {
    window.tokens.insert(window.tokens.begin(), static_cast<std::size_t>(length - count), filler);
    window.last = length - 1;
  } else {
    const Index padded = std::min(round_up(count, kShapeStep), length);
    window.tokens.resize(static_cast<std::size_t>(padded), filler);
  }
  return window;
}

}  // namespace

// Weights are the same bits on every rank, so logits are, so is every byte that is chosen: nobody
// has to tell the others what comes next, or when to stop, and all ranks make the same passes.
std::string generate(Engine& engine, Index vocab_size, const Sampling& sampling) {
  check_sampling(sampling, vocab_size);
  const std::int32_t filler = '\n' < vocab_size ? '\n' : 0;
  std::vector<std::int32_t> tokens;
  for (const char c : sampling.prompt) tokens.push_back(static_cast<unsigned char>(c));
  if (tokens.empty()) tokens.push_back(filler);

  std::string text;
  for (Index position = 0; position < sampling.count; ++position) {
    const Window window =
        window_at_end(tokens, engine.sequence_length(), engine.model().targets(), filler);
    const std::vector<float> logits = engine.logits_behind(window.tokens, window.last);
    const std::uint8_t byte = choose_byte(logits, sampling, position);
    tokens.push_back(byte);
    text.push_back(static_cast<char>(byte));
  }
  return text;
}

}  // namespace zerolab
