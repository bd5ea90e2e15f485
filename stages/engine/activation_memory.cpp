#include "stages/engine/activation_memory.hpp"

#include <algorithm>

namespace zerolab {

std::vector<Setting> ActivationMemory::settings() const {
  std::vector<Setting> result{
      {.name = "train_micro_batch_size_per_gpu", .value = settings_.micro_batch}};
  if (!settings_.activation_checkpointing && !model_.root().segments().empty()) {
    result.push_back({.name = "activation_checkpointing.enabled", .is_switch = true});
  }
  return result;
}

// With checkpointing a block that is through forward holds its input only, which is there anyway:
// its first layer keeps it.
Index ActivationMemory::bytes_at(std::size_t index, Index value, const Held& held) const {
  if (index == 0) return proportional_bytes(held.bytes, value, settings_.micro_batch);
  Index bytes = held.bytes;
  if (!before_blocks_run_again()) return bytes;
  for (const Module* block : model_.root().segments()) bytes -= block->kept_inside();
  return bytes;
}

// In the first backward blocks would begin to run once more, each with a peak of its own that
// nobody knows.
bool ActivationMemory::before_blocks_run_again() const {
  if (recorder_.step() > 1 || recorder_.micro_step() > 0) return false;
  const std::vector<Module*> blocks = model_.root().segments();
  return pass_ == VisitKind::forward ||
         std::all_of(blocks.begin(), blocks.end(),
                     [](const Module* block) { return block->keeps_a_forward(); });
}

}  // namespace zerolab
