#include "visualize/report/advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace zerolab::report {
namespace {

using Kind = Remark::Kind;

constexpr double kExposed = 0.1;  // of a step: below it communication is said to be hidden
constexpr double kTight = 0.9, kRoomy = 0.7;  // of the budget

double total(const log::Usage& usage) {
  return static_cast<double>(std::accumulate(usage.begin(), usage.end(), Count{0}));
}

struct Remarks {
  const RunData& run;
  std::vector<Remark> list = {};

  template <typename... Values>
  void say(Kind kind, fmt::format_string<Values...> text, Values&&... values) {
    list.push_back({kind, fmt::format(text, std::forward<Values>(values)...)});
  }

  void on_failure() {
    const auto& failure = run.folder.failure;
    if (!failure) return;
    std::string message = failure->message;
    // The rest of an out-of-memory report is drawn.
    if (run.failure.out_of_memory) message = message.substr(0, message.find('\n'));
    say(Kind::failure, "The run ended with {}: {}. Way out: {}.", failure->code, message,
        run.failure.way_out.empty() ? "none is named" : run.failure.way_out);
  }

  void on_mistake() {
    if (run.details.deliberate_mistake.empty()) return;
    say(Kind::warning, "A mistake was made on purpose: --break {}.",
        run.details.deliberate_mistake);
  }

  void on_waiting() {
    const auto shares = shares_of(run);
    if (!shares || run.folder.run.world_size == 1) return;
    if (shares->wait() < kExposed) return;
    if (run.folder.run.stage == 3 && shares->gather_wait > shares->wait() / 2) {
      return on_gathers(*shares);
    }
    say(Kind::warning,
        "{} of a step the compute thread waits for collectives ({} for gathers, {} for "
        "reductions, {} for others). {}",
        in_percent(shares->wait()), in_percent(shares->gather_wait),
        in_percent(shares->reduce_wait), in_percent(shares->other_wait), what_hides_more(*shares));
  }

  void on_gathers(const Shares& shares) {
    const Count bucket =
        run.details.count_setting("zero_optimization.stage3_prefetch_bucket_size").value_or(0);
    const Count enough = prefetch_to_hide_waits(run);
    const bool can_hide = run.details.setting("zero_optimization.overlap_comm") != "false";
    std::string way_out = what_hides_more(shares);
    if (can_hide && enough > bucket) {
      way_out = fmt::format("Raise stage3_prefetch_bucket_size to at least {} (it is {}).", enough,
                            bucket);
    }
    say(Kind::warning, "Stage 3 is slow here because {} of a step waits for gathers. {}",
        in_percent(shares.gather_wait), way_out);
  }

  std::string what_hides_more(const Shares& shares) const {
    if (run.details.setting("zero_optimization.overlap_comm") == "false") {
      return "overlap_comm is false, so every collective is waited for where it is called: set it "
             "to true.";
    }
    if (shares.transfer < 1 - shares.wait()) {
      return "The rest of the step would be long enough to hide them, but they come where there is "
             "little compute left, as at the end of backward: a larger micro-batch or a faster "
             "link "
             "helps.";
    }
    return "The collectives take as long as the compute that could hide them: a larger "
           "micro-batch, gradient accumulation or a faster link helps. Where ranks outnumber "
           "cores, "
           "they wait for a core.";
  }

  void on_memory() {
    const auto peak = highest_peak();
    if (!peak) return;
    const auto& budget = run.folder.run.device_memory;
    if (budget && *budget > 0 && !run.failure.out_of_memory) {
      const double share = total(*peak) / static_cast<double>(*budget);
      if (share > kTight) {
        say(Kind::warning,
            "The peak takes {} of the budget: a longer sequence, or one more buffer, ends the "
            "run. Activation checkpointing, a smaller micro-batch or a higher stage makes room.",
            in_percent(share));
      } else if (share < kRoomy) {
        say(Kind::hint, "The peak takes {} of the budget: there is room for a larger micro-batch.",
            in_percent(share));
      }
    }
    const auto activations =
        static_cast<double>((*peak)[static_cast<std::size_t>(log::Category::activations)]);
    if (activations > total(*peak) / 2 && !checkpoints_activations()) {
      say(Kind::hint,
          "Activations are {} of the peak, and no stage of ZeRO shards them: "
          "activation_checkpointing.enabled or a smaller micro-batch makes them smaller.",
          in_percent(activations / total(*peak)));
    }
  }

  bool checkpoints_activations() const {
    return run.details.setting("activation_checkpointing.enabled") == "true";
  }

  std::optional<log::Usage> highest_peak() const {
    std::optional<log::Usage> highest;
    for (std::size_t rank = 0; rank < run.ranks.size(); ++rank) {
      const auto peak = peak_of(run, rank);
      if (peak && (!highest || total(*peak) > total(*highest))) highest = peak;
    }
    return highest;
  }

  void on_prefetching() {
    const Count hits = run.summary.prefetch_hits.value_or(0);
    const Count unused = run.summary.prefetch_unused.value_or(0);
    if (unused > 0 && unused * 10 > hits) {
      say(Kind::hint,
          "{} parameters were prefetched and let go unread, {} were read: the order of modules "
          "changes from pass to pass, and every one of them cost a gather.",
          unused, hits);
    }
  }

  void on_numbers() {
    Count skipped = 0;
    std::optional<Count> lost;
    const std::vector<StepFigures>& steps = run.ranks.front().steps;
    for (const StepFigures& step : steps) {
      skipped += step.result.skipped ? 1 : 0;
      if (!step.result.loss && !lost) lost = step.step;
    }
    if (lost) say(Kind::warning, "The loss is not a finite number from step {} on.", *lost);
    if (skipped > 0) {
      say(skipped * 2 > steps.size() ? Kind::warning : Kind::hint,
          "{} of {} steps were skipped, because a gradient was not finite: they changed nothing.",
          skipped, steps.size());
    }
    if (steps.size() > 1 && steps.front().result.loss && steps.back().result.loss &&
        *steps.back().result.loss > *steps.front().result.loss) {
      say(Kind::warning, "The loss went up, from {:.4f} to {:.4f}: a smaller learning rate helps.",
          *steps.front().result.loss, *steps.back().result.loss);
    }
  }

  void on_accumulation() {
    const Count micro_steps = run.details.count_setting("gradient_accumulation_steps").value_or(1);
    if (micro_steps == 1 || run.folder.run.stage < 2 || run.folder.run.world_size == 1) return;
    say(Kind::hint,
        "Stages 2 and 3 reduce gradients in each of the {} micro-steps; stages 0 and 1 do it once "
        "a step, and need room for whole gradients.",
        micro_steps);
  }

  void on_the_log() {
    if (!run.folder.summary && !run.folder.failure) {
      say(Kind::missing,
          "There is no summary.json: the run did not end. What is here comes from "
          "its events, as far as they go.");
    }
    Count without = 0;
    bool any_in_full = false;
    for (std::size_t rank = 0; rank < run.ranks.size(); ++rank) {
      const RankRecording& recording = run.ranks[rank];
      const std::string file = log::event_file_name(rank);
      any_in_full = any_in_full || recording.in_full;
      if (!recording.there) ++without;
      if (recording.cut_in > 0) {
        say(Kind::missing, "{} ends in the middle of line {}: what came after is lost.", file,
            recording.cut_in);
      }
      if (recording.unreadable > 0) {
        say(Kind::missing, "{}: {} line(s) cannot be read and are left out; the first, {}.", file,
            recording.unreadable, recording.first_unreadable);
      }
    }
    if (without == run.ranks.size()) {
      say(Kind::missing,
          "There are no events of this run (--log-level off): memory, timeline and "
          "parameters over a step cannot be shown.");
    } else if (!any_in_full) {
      say(Kind::missing,
          "The log has steps only (--log-level steps): memory, timeline and "
          "parameters over a step cannot be shown.");
    } else if (without > 0) {
      say(Kind::missing, "There is no log of {} of {} ranks.", without, run.ranks.size());
    }
  }
};

}  // namespace

std::vector<Remark> remarks_on(const RunData& run) {
  Remarks remarks{run};
  remarks.on_failure();
  remarks.on_mistake();
  remarks.on_waiting();
  remarks.on_numbers();
  remarks.on_memory();
  for (const std::string& warning : run.details.warnings) {
    remarks.say(Kind::warning, "{}.", warning);
  }
  remarks.on_prefetching();
  remarks.on_accumulation();
  remarks.on_the_log();
  std::stable_sort(remarks.list.begin(), remarks.list.end(),
                   [](const Remark& a, const Remark& b) { return a.kind < b.kind; });
  return remarks.list;
}

// A gather that the compute thread stood w microseconds for has to begin w earlier. The bucket has
// to reach from what was needed then to what it brings.
Count prefetch_to_hide_waits(const RunData& run) {
  Count enough = 0;
  for (const RankRecording& rank : run.ranks) {
    for (const StepView& view : rank.views) {
      if (view.step != run.shown_step) continue;
      for (const Transfer& late : view.transfers) {
        if (late.op != log::Op::all_gather || late.wait() <= 0) continue;
        Count elements = 0;
        for (const Transfer& other : view.transfers) {
          const bool between =
              other.waited >= late.waited - late.wait() && other.waited <= late.waited;
          if (other.op == log::Op::all_gather && between) elements += other.elements;
        }
        enough = std::max(enough, elements);
      }
    }
  }
  return enough;
}

std::string in_percent(double share) {
  return fmt::format("{:.{}f}%", 100 * share, share < 0.1 ? 1 : 0);
}

}  // namespace zerolab::report
