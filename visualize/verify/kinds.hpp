#pragma once

#include <span>
#include <string_view>

namespace zerolab::verify {

/// What a check is about.
enum class Concern { log, states, uses, gradients, ledger, steps, collectives };
std::string_view name_of(Concern concern);

/// What can be wrong with a run's logs. docs/verify.md explains each.
enum class Kind {
  unreadable_line,
  sequence,
  other_rank,
  going_back,
  missing_file,
  ends_early,
  unknown_name,
  declared_moves,
  missing_transition,
  illegal_transition,
  release_while_active,
  gather_without_collective,
  available_too_early,
  use_while_not_available,
  release_while_in_use,
  gather_without_release,
  step_ends_gathered,
  missing_gradient_transition,
  illegal_gradient_transition,
  reduced_without_collective,
  reduced_too_early,
  not_reduced,
  live_bytes,
  peak_bytes,
  free_of_nothing,
  over_budget,
  never_freed,
  memory_summary,
  step_order,
  step_of_ranks,
  step_summary,
  checkpoint_of_ranks,
  checkpoint_summary,
  not_resumed,
  collective_order,
  collective_bytes,
  collective_elements,
  collective_times,
  collective_of_nothing,
  traffic_summary,
};

struct KindInfo {
  Kind kind;
  Concern concern;
  std::string_view name;  // "missing-transition"
};
/// Every kind there is, in order.
std::span<const KindInfo> all_kinds();
const KindInfo& info(Kind kind);

}  // namespace zerolab::verify
