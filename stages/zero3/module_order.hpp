#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stages/zero3/coordinator.hpp"

namespace zerolab {

/// Numbers for modules, in the order in which they are asked for, and back again.
class ModuleNumbers {
 public:
  Index of(const Module& module);
  /// "'head' (backward)"; "the end of the pass" for none.
  std::string describe(const std::optional<Stop>& stop) const;

 private:
  std::map<const Module*, Index> numbers_;
  std::vector<std::string> names_;
};

/// Ranks that visit different modules would gather different parameters, and wait for each other
/// for ever. All ranks call this after a pass that was recorded; throws Error (Code::module_order)
/// on all of them, naming the first visit that differs. Sends 8 bytes to every rank, and the orders
/// only if they differ.
void check_same_order(CommStream& comm, const std::vector<Stop>& order,
                      const ModuleNumbers& modules);

}  // namespace zerolab
