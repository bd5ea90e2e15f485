#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stages/base/error.hpp"
#include "stages/memory/governor.hpp"
#include "stages/memory/usage.hpp"

namespace zerolab {

/// Bytes that somebody has, or asks for.
struct Holding {
  std::string owner;
  Category category = Category::parameters;
  Index bytes = 0;
};

/// An allocation that did not fit, and the books at that moment.
struct Shortage {
  std::string pool;
  int rank = 0;
  Holding request = {};
  std::string where = {};  // "step 3, micro-step 0, forward of 'head'"
  Index budget = 0;
  Usage live = {};
  std::vector<Holding> largest = {};  // summed by owner and category, largest first

  /// What came before, newest last: bytes taken, or given back (below 0), and the total then.
  struct Change {
    Holding what;
    std::string where;
    Index live = 0;
  };
  std::vector<Change> last = {};

  /// A setting that would have made it fit by itself, and the value nearest to what it is.
  struct Advice {
    Setting setting;
    Index fits = 0;
  };
  std::vector<Advice> advice = {};

  /// The budget that would have been enough.
  Index needed() const { return live.total() + request.bytes; }
};

/// Thrown when a pool would go over its budget. The pool is unchanged.
class OutOfMemory : public Error {
 public:
  explicit OutOfMemory(Shortage shortage);

  const Shortage& shortage() const { return *shortage_; }
  nlohmann::ordered_json details() const override;

 private:
  std::shared_ptr<const Shortage> shortage_;  // copying an exception must not throw
};

}  // namespace zerolab
