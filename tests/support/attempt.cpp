#include "tests/support/attempt.hpp"

#include <exception>
#include <stdexcept>

#include "tests/support/observed.hpp"

namespace zerolab::test {
namespace {

using Key = std::pair<std::string, std::string>;

// A gradient that begins is a buffer that every setting leaves as it is.
bool begins_a_gradient(std::string_view owner) {
  return owner.find("(whole gradient)") != std::string_view::npos ||
         owner.find("(gradient of a later use)") != std::string_view::npos;
}

bool is_model_state(std::string_view category) {
  return category == name_of(Category::parameters) || category == name_of(Category::gradients) ||
         category == name_of(Category::optimizer);
}

bool is_landmark(const Event& event) {
  if (const auto* span = std::get_if<SpanEvent>(&event)) {
    return span->kind != name_of(VisitKind::recompute);
  }
  if (const auto* grad = std::get_if<GradEvent>(&event)) return grad->to == "ready";
  if (const auto* alloc = std::get_if<AllocEvent>(&event)) {
    return begins_a_gradient(alloc->owner) || is_model_state(alloc->category);
  }
  return std::holds_alternative<StepEvent>(event);
}

// A module that an exception passes through ends, too; it is not what this one got done.
bool is_failing() { return std::current_exception() != nullptr || std::uncaught_exceptions() > 0; }

void look(Attempt& attempt, const Event& event) {
  if (is_failing()) return;
  if (is_landmark(event)) {
    ++attempt.landmarks;
    attempt.taken.clear();
  } else if (const auto* alloc = std::get_if<AllocEvent>(&event)) {
    ++attempt.taken[{std::string(alloc->owner), std::string(alloc->category)}];
  }
}

// What the settings of stage 3, and what the bucket's size decide whether it is asked for at all.
bool is_gathered(const Shortage& end) { return end.request.category == Category::gather_buffers; }
bool is_of_a_bucket(const Shortage& end) {
  return end.request.category == Category::reduce_buffers && !begins_a_gradient(end.request.owner);
}

Index count(const Attempt& attempt, const Key& key) {
  const auto found = attempt.taken.find(key);
  return found == attempt.taken.end() ? 0 : found->second;
}

}  // namespace

Attempt attempt(int ranks, const Training& training, int rank, Index budget) {
  Attempt result;  // written by the thread of `rank` only
  try {
    run_ranks(ranks, [&](Communicator& communicator) {
      Training mine = training;
      Recorder recorder(communicator.rank());
      if (communicator.rank() == rank) {
        mine.device_memory = budget;
        recorder.observe([&](const Stamp&, const Event& event) { look(result, event); });
      }
      try {
        train(communicator, recorder, mine);
      } catch (const OutOfMemory& error) {
        result.end = error.shortage();
        throw;
      }
    });
  } catch (const OutOfMemory&) {
  }
  return result;
}

bool passed(const Attempt& ended, const Attempt& other, const std::string& setting) {
  if (!other.end || other.landmarks != ended.landmarks) return other.landmarks > ended.landmarks;
  if (setting == "zero_optimization.reduce_bucket_size" && is_of_a_bucket(*ended.end)) {
    return !is_of_a_bucket(*other.end);
  }
  const Holding& request = ended.end->request;
  const Key key{request.owner, std::string(name_of(request.category))};
  if (count(other, key) > count(ended, key)) return true;
  return is_gathered(*ended.end) && !is_gathered(*other.end);
}

std::vector<Index> refusing_budgets(int ranks, const Training& training, int rank) {
  const auto highest = observed<std::vector<Index>>(
      ranks, training, [](std::vector<Index>& seen, const Stamp&, const Event& event) {
        const auto* alloc = std::get_if<AllocEvent>(&event);
        if (alloc == nullptr || (!seen.empty() && alloc->live <= seen.back())) return;
        seen.push_back(alloc->live);
      })[static_cast<std::size_t>(rank)];
  std::vector<Index> budgets;
  for (std::size_t i = 0; i < highest.size(); ++i) {
    budgets.push_back(i % 2 == 1 ? highest[i - 1] : highest[i] - 1);
  }
  return budgets;
}

Training with_setting(Training training, const std::string& name, Index value) {
  Settings& settings = training.settings;
  if (name == "train_micro_batch_size_per_gpu") {
    settings.micro_batch = value;
  } else if (name == "activation_checkpointing.enabled") {
    settings.activation_checkpointing = value != 0;
  } else if (name == "zero_optimization.stage") {
    settings.zero.stage = static_cast<int>(value);
  } else if (name == "zero_optimization.reduce_bucket_size") {
    settings.zero.reduce_bucket_size = value;
  } else if (name == "zero_optimization.stage3_max_live_parameters") {
    settings.zero.max_live_parameters = value;
  } else if (name == "zero_optimization.stage3_max_reuse_distance") {
    settings.zero.max_reuse_distance = value;
  } else if (name == "zero_optimization.stage3_model_persistence_threshold") {
    settings.zero.model_persistence_threshold = value;
  } else if (name == "zero_optimization.stage3_param_persistence_threshold") {
    settings.zero.param_persistence_threshold = value;
  } else if (name == "zero_optimization.stage3_prefetch_bucket_size") {
    settings.zero.prefetch_bucket_size = value;
  } else {
    throw std::invalid_argument(name);
  }
  return training;
}

}  // namespace zerolab::test
