#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace zerolab::log {

// The words that the log has for things (docs/log.schema.json), each list in the order of its enum.

enum class Phase { set_up, forward, backward, step, publish, evaluate, generate, save, tear_down };
enum class Status { not_available, inflight, available };
enum class Cause {
  set_up,
  fetch,
  external,
  prefetch,
  persist,
  gather_scope,
  release,
  step,
  publish
};
enum class GradientStatus { none, partial, ready, reducing, reduced, freed };
enum class Category {
  parameters,
  gradients,
  optimizer,
  activations,
  gather_buffers,
  reduce_buffers,
  workspace,
  checkpoint
};
enum class Op { all_gather, reduce_scatter, all_reduce, broadcast, barrier, control, gather };
enum class Dtype { fp32, fp16, bf16, int32, bytes };
enum class VisitKind { forward, recompute, backward, evaluate };
enum class Action { save, load, consolidate };

template <std::size_t kCount>
using Words = std::array<std::string_view, kCount>;

template <typename Enum>
inline constexpr Words<0> kWords{};
template <>
inline constexpr Words<9> kWords<Phase>{"set_up",   "forward",  "backward", "step",     "publish",
                                        "evaluate", "generate", "save",     "tear_down"};
template <>
inline constexpr Words<3> kWords<Status>{"NOT_AVAILABLE", "INFLIGHT", "AVAILABLE"};
template <>
inline constexpr Words<9> kWords<Cause>{"set_up",   "fetch",   "external",
                                        "prefetch", "persist", "gather_scope",
                                        "release",  "step",    "publish"};
template <>
inline constexpr Words<6> kWords<GradientStatus>{"none",     "partial", "ready",
                                                 "reducing", "reduced", "freed"};
template <>
inline constexpr Words<8> kWords<Category>{"parameters",  "gradients",      "optimizer",
                                           "activations", "gather_buffers", "reduce_buffers",
                                           "workspace",   "checkpoint"};
template <>
inline constexpr Words<7> kWords<Op>{"all_gather", "reduce_scatter", "all_reduce", "broadcast",
                                     "barrier",    "control",        "gather"};
template <>
inline constexpr Words<5> kWords<Dtype>{"fp32", "fp16", "bf16", "int32", "bytes"};
template <>
inline constexpr Words<4> kWords<VisitKind>{"forward", "recompute", "backward", "evaluate"};
template <>
inline constexpr Words<3> kWords<Action>{"save", "load", "consolidate"};

template <typename Enum>
constexpr std::string_view name_of(Enum value) {
  return kWords<Enum>[static_cast<std::size_t>(value)];
}

template <typename Enum>
std::optional<Enum> named(std::string_view word) {
  const auto& words = kWords<Enum>;
  const auto found = std::find(words.begin(), words.end(), word);
  if (found == words.end()) return std::nullopt;
  return static_cast<Enum>(found - words.begin());
}

/// Bytes of an element.
constexpr unsigned size_of(Dtype dtype) {
  constexpr std::array<unsigned, 5> kSizes{4, 2, 2, 4, 1};
  return kSizes[static_cast<std::size_t>(dtype)];
}

}  // namespace zerolab::log
