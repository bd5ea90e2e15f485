#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "lab/compare_result.hpp"
#include "lab/progress.hpp"
#include "lab/run.hpp"
#include "lab/table.hpp"
#include "stages/checkpoint/load.hpp"

namespace zerolab {

/// What a run says on standard output: on rank 0, and with --json nothing but the result.
class Printer {
 public:
  Printer(const Communicator& communicator, const RunOptions& options);

  /// What is about to run, on what, with which settings (one for each stage); notes and warnings.
  void heading(const Plan& plan, const std::vector<Effective>& effective,
               const Communicator& communicator);

  /// The progress line of one training; for Training::on_step.
  std::function<void(Index, const StepResult&, const Ledger&)> steps(const Training& training);
  /// Shows a text that the model wrote; for Training::on_text. That after the last step waits for
  /// training() below.
  std::function<void(const Generation&)> texts(const Training& training);
  /// Takes the progress line away.
  void end_of_steps();

  /// What was read of a checkpoint.
  void loaded(const LoadReport& report, const Resumed& resumed);
  /// What the user should know while it trains; nothing if it is empty.
  void warning(const std::string& text);

  void training(const RankReport& report, const Training& training,
                const std::filesystem::path& folder);
  /// What `generate` has written, and what wrote it.
  void text(const RankReport& report, const Training& training, const Plan& plan);
  void comparison(const CompareResult& result, const std::filesystem::path& folder);

 private:
  bool speaks_;  // rank 0
  bool json_;
  bool terminal_;
  Style style_;
  int ranks_;
  std::unique_ptr<ProgressLine> progress_;
};

}  // namespace zerolab
