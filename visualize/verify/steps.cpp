#include "visualize/verify/steps.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace zerolab::verify {
namespace {

std::string text_of(const std::optional<double>& number) {
  return number ? fmt::to_string(*number) : "null";
}

/// One result of a step as a text: equal texts are equal bits.
struct Result {
  const char* name;
  std::string here, there;
};

template <typename Compare>
void first_difference(const std::vector<Result>& results, Compare compare) {
  const auto found = std::find_if(results.begin(), results.end(),
                                  [](const Result& each) { return each.here != each.there; });
  if (found != results.end()) compare(*found);
}

std::string flag(bool value) { return value ? "true" : "false"; }

}  // namespace

void Steps::see(const log::Event& event, const log::StepEvent& step) {
  steps_.push_back({event.line, step});
  const Count expected = before_ + steps_.size();
  if (event.step == expected) return;
  report_(Kind::step_order, event.line,
          fmt::format("step {} ends as number {}", event.step, expected));
}

void Steps::compare_with(const Steps& first) const {
  for (std::size_t i = 0; i < std::min(steps_.size(), first.steps_.size()); ++i) {
    const log::StepEvent& here = steps_[i].step;
    const log::StepEvent& there = first.steps_[i].step;
    first_difference({{"loss", text_of(here.loss), text_of(there.loss)},
                      {"grad_norm", text_of(here.grad_norm), text_of(there.grad_norm)},
                      {"lr", text_of(here.lr), text_of(there.lr)},
                      {"scale", text_of(here.scale), text_of(there.scale)},
                      {"skipped", flag(here.skipped), flag(there.skipped)},
                      {"hash", here.hash, there.hash}},
                     [&](const Result& result) {
                       report_(Kind::step_of_ranks, steps_[i].line,
                               fmt::format("the {} of step {} is {}, rank {} has {} (line {})",
                                           result.name, number(i), result.here, first.rank_,
                                           result.there, first.steps_[i].line));
                     });
  }
}

void Steps::compare_with(const log::Summary& summary) const {
  for (std::size_t i = 0; i < std::min(steps_.size(), summary.steps.size()); ++i) {
    const log::StepEvent& here = steps_[i].step;
    const log::Summary::Step& there = summary.steps[i];
    first_difference({{"loss", text_of(here.loss), text_of(there.loss)},
                      {"grad_norm", text_of(here.grad_norm), text_of(there.grad_norm)},
                      {"skipped", flag(here.skipped), flag(there.skipped)},
                      {"hash", here.hash, there.hash}},
                     [&](const Result& result) {
                       report_(Kind::step_summary, steps_[i].line,
                               fmt::format("the {} of step {} is {}, summary.json has {}",
                                           result.name, number(i), result.here, result.there));
                     });
  }
}

}  // namespace zerolab::verify
