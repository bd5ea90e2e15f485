#pragma once

#include <optional>
#include <string>
#include <vector>

#include "visualize/log/run_folder.hpp"
#include "visualize/verify/findings.hpp"

namespace zerolab::verify {

/// What one rank has saved and loaded, in order.
class Checkpoints {
 public:
  Checkpoints(Count rank, const Reporter& report) : rank_(rank), report_(report) {}

  void see(const log::Event& event, const log::CheckpointEvent& checkpoint);

  /// Before its first step a run that was resumed loads what run.json says.
  void expect_loaded(const log::Resumed& resumed) const;

  /// All ranks do the same, with `whole` logs equally often.
  static void compare(const std::vector<const Checkpoints*>& ranks, bool whole);
  /// What all ranks have saved together is what summary.json says.
  static void compare_with(const log::Summary& summary,
                           const std::vector<const Checkpoints*>& ranks);

 private:
  struct Told {
    Count line = 0, step = 0;
    log::Action action = log::Action::save;
    std::string path;
    Count bytes = 0;
    bool same(const Told& other) const;
    std::string text() const;
  };
  std::vector<Told> saved() const;

  Count rank_;
  const Reporter& report_;
  std::vector<Told> told_;
};

}  // namespace zerolab::verify
