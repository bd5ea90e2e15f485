#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lab/options.hpp"

namespace zerolab {

#ifdef ZEROLAB_CHECK_COLLECTIVES
inline constexpr bool kCheckCollectives = true;
#else
inline constexpr bool kCheckCollectives = false;
#endif

/// What CLI11 fills in; texts become values afterwards, where our own messages are better.
struct RawFlags {
  RunOptions options;
  std::string micro_batch, accumulation, learning_rate, bucket, stage, memory;
  std::string prefetch, persistence, live, reuse, link;
  std::string data, config, broken, mended, log_level = "events";
  std::string resume, weights, save, save_model;
  std::optional<Index> save_every, keep;
  std::vector<std::string> show;
  std::optional<Index> generate, generate_every, top_k;
  std::optional<std::string> prompt, temperature;
  bool bf16 = false, fp16 = false;
  bool overlap = false, no_overlap = false, checkpointing = false;
  bool check_collectives = false, no_check_collectives = false;
  int ranks = 0;
};

/// How much `generate` writes unless told.
inline constexpr Index kDefaultBytes = 400;

/// Declares the flags of a command with ranks (raw.options.command), which write into `raw`. It
/// must outlive the parsing.
void add_flags(CLI::App& app, RawFlags& raw);

}  // namespace zerolab
