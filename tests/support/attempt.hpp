#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "tests/support/trainings.hpp"

namespace zerolab::test {

/// How far one rank of a training came under a budget, counted in what comes in the same order
/// whatever the settings for memory are: modules that ended, gradients that were begun and
/// finished, model states, steps.
struct Attempt {
  std::optional<Shortage> end;  // none: it came through
  Index landmarks = 0;
  std::map<std::pair<std::string, std::string>, Index> taken;  // since, by owner and category
};

/// The other ranks have no budget.
Attempt attempt(int ranks, const Training& training, int rank, Index budget);

/// Whether the second one got what the first one ended without, or did not need it any more: one
/// with another setting of this name. For the size of buckets, putting a gradient in is one thing.
bool passed(const Attempt& ended, const Attempt& other, const std::string& setting);

/// A budget for every allocation of this rank that a budget can refuse: by turns the largest and
/// the smallest that does.
std::vector<Index> refusing_budgets(int ranks, const Training& training, int rank);

/// The training with a setting, by its name in the report, at another value.
Training with_setting(Training training, const std::string& name, Index value);

}  // namespace zerolab::test
