#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace zerolab {

/// What is known of the runs of a failure, for expressions about it. Names are paths into what the
/// runs have left:
///
///     broken.exit, fixed.exit               exit statuses
///     broken.summary.steps[last].grad_norm  summary.json; likewise run, error and compare
///     broken.stage3.summary.params          of a compare: the folders of the stages
///     fixed.events.note                     how many events of a kind rank 0 has logged
///     measured.peak                         device memory in bytes, of the rank that held most
///     advice.train_micro_batch_size_per_gpu what the latest out-of-memory report says would have
///                                           fitted (of the run "advised")
///     ranks
///
/// Texts are equal or not, and nothing else; what is null is not a number.
class Findings {
 public:
  explicit Findings(int ranks) : known_({{"ranks", ranks}}) {}

  void add(const std::string& run, nlohmann::json what) { known_[run] = std::move(what); }
  const nlohmann::json& known() const { return known_; }

  /// The value of an expression in muParser's language: + - * / ^, comparisons, && ||, abs, min...
  /// Throws Error (Code::clinic_page) for one that cannot be read or names what there is not.
  double value_of(const std::string& expression) const;

  /// The names in an expression with their values: "broken.exit = 4, ranks = 2".
  std::string values_in(const std::string& expression) const;

  /// A text with the values of the expressions between its braces in their place; whole numbers
  /// where they are.
  std::string filled_in(const std::string& text) const;

 private:
  nlohmann::json known_;
};

}  // namespace zerolab
