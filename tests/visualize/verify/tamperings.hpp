#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/support/logged_run.hpp"
#include "visualize/verify/kinds.hpp"

namespace zerolab::test {

/// Where a violation has to be found; `others` are kinds that the same change leads to.
struct Expected {
  std::size_t rank;
  std::size_t line;  // from 0, as the lists count; npos: the whole file
  std::vector<verify::Kind> others = {};
  std::string says = {};  // part of its text
};

/// One thing to change in a good run of one of these stages.
struct Tampering {
  verify::Kind kind;
  std::string what;
  std::vector<int> stages;
  std::function<Expected(LoggedRun&)> plant;
};

std::vector<Tampering> tamperings_with_lines();
std::vector<Tampering> tamperings_with_parameters();
std::vector<Tampering> tamperings_with_gradients();
std::vector<Tampering> tamperings_with_memory_and_steps();
std::vector<Tampering> tamperings_with_collectives();
std::vector<Tampering> all_tamperings();
/// For the run that was resumed.
std::vector<Tampering> tamperings_with_checkpoints();

/// What they are made for: two steps of two micro-steps at three ranks, with a validation and a
/// text; every gradient is reduced by itself.
LoggedRun run_to_tamper_with(int stage);

/// Steps 3 and 4 at three ranks behind a checkpoint of two ranks and another stage; each step is
/// saved, and all weights in the end.
LoggedRun resumed_run_to_tamper_with(int stage);

/// A parameter of 33 x 5 elements in it, that never persists; the module "layers.1" reads it.
inline const std::string kWeight = "layers.1.weight";
inline const std::vector<int> kAllStages{0, 1, 2, 3};

// Fields that a line about it has.
LoggedRun::Json gradient(const char* to);
LoggedRun::Json parameter(const char* to);
LoggedRun::Json gather();
LoggedRun::Json reduction(const LoggedRun& run);

// On every rank, the first line that has these fields.
void erase_everywhere(LoggedRun& run, const LoggedRun::Json& fields);
void change_everywhere(LoggedRun& run, const LoggedRun::Json& fields,
                       const std::function<void(LoggedRun::Json&)>& edit);

}  // namespace zerolab::test
