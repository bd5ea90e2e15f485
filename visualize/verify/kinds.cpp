#include "visualize/verify/kinds.hpp"

#include <array>

namespace zerolab::verify {
namespace {

constexpr std::array<std::string_view, 7> kConcerns{"log",    "states", "uses",       "gradients",
                                                    "ledger", "steps",  "collectives"};

using enum Concern;
constexpr std::array kKinds{
    KindInfo{Kind::unreadable_line, log, "unreadable-line"},
    KindInfo{Kind::sequence, log, "sequence"},
    KindInfo{Kind::other_rank, log, "other-rank"},
    KindInfo{Kind::going_back, log, "going-back"},
    KindInfo{Kind::missing_file, log, "missing-file"},
    KindInfo{Kind::ends_early, log, "ends-early"},
    KindInfo{Kind::unknown_name, log, "unknown-name"},
    KindInfo{Kind::declared_moves, states, "declared-moves"},
    KindInfo{Kind::missing_transition, states, "missing-transition"},
    KindInfo{Kind::illegal_transition, states, "illegal-transition"},
    KindInfo{Kind::release_while_active, states, "release-while-active"},
    KindInfo{Kind::gather_without_collective, states, "gather-without-collective"},
    KindInfo{Kind::available_too_early, states, "available-too-early"},
    KindInfo{Kind::use_while_not_available, uses, "use-while-not-available"},
    KindInfo{Kind::release_while_in_use, uses, "release-while-in-use"},
    KindInfo{Kind::gather_without_release, uses, "gather-without-release"},
    KindInfo{Kind::step_ends_gathered, uses, "step-ends-gathered"},
    KindInfo{Kind::missing_gradient_transition, gradients, "missing-gradient-transition"},
    KindInfo{Kind::illegal_gradient_transition, gradients, "illegal-gradient-transition"},
    KindInfo{Kind::reduced_without_collective, gradients, "reduced-without-collective"},
    KindInfo{Kind::reduced_too_early, gradients, "reduced-too-early"},
    KindInfo{Kind::not_reduced, gradients, "not-reduced"},
    KindInfo{Kind::live_bytes, ledger, "live-bytes"},
    KindInfo{Kind::peak_bytes, ledger, "peak-bytes"},
    KindInfo{Kind::free_of_nothing, ledger, "free-of-nothing"},
    KindInfo{Kind::over_budget, ledger, "over-budget"},
    KindInfo{Kind::never_freed, ledger, "never-freed"},
    KindInfo{Kind::memory_summary, ledger, "memory-summary"},
    KindInfo{Kind::step_order, steps, "step-order"},
    KindInfo{Kind::step_of_ranks, steps, "step-of-ranks"},
    KindInfo{Kind::step_summary, steps, "step-summary"},
    KindInfo{Kind::checkpoint_of_ranks, steps, "checkpoint-of-ranks"},
    KindInfo{Kind::checkpoint_summary, steps, "checkpoint-summary"},
    KindInfo{Kind::not_resumed, steps, "not-resumed"},
    KindInfo{Kind::collective_order, collectives, "collective-order"},
    KindInfo{Kind::collective_bytes, collectives, "collective-bytes"},
    KindInfo{Kind::collective_elements, collectives, "collective-elements"},
    KindInfo{Kind::collective_times, collectives, "collective-times"},
    KindInfo{Kind::collective_of_nothing, collectives, "collective-of-nothing"},
    KindInfo{Kind::traffic_summary, collectives, "traffic-summary"},
};

// info() finds a kind at its place.
constexpr bool in_order() {
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    if (kKinds[i].kind != static_cast<Kind>(i)) return false;
  }
  return true;
}
static_assert(in_order() && kKinds.back().kind == Kind::traffic_summary);

}  // namespace

std::string_view name_of(Concern concern) { return kConcerns[static_cast<std::size_t>(concern)]; }

std::span<const KindInfo> all_kinds() { return kKinds; }

const KindInfo& info(Kind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

}  // namespace zerolab::verify
