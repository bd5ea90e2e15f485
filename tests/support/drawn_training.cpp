#include "tests/support/drawn_training.hpp"

#include <fmt/format.h>

#include "tests/support/dice.hpp"

namespace zerolab::test {
namespace {

Training model(Index number, int stage) {
  return number == 0   ? training_of(tiny_transformer(), stage)
         : number == 1 ? training_of(tiny_mlp(), stage)
                       : training_of_odd_sizes(stage);
}

}  // namespace

DrawnTraining draw_training(std::uint64_t seed) {
  Dice dice(seed, 1);
  DrawnTraining drawn;
  drawn.ranks = 1 + static_cast<int>(dice.below(4));
  const Index which = dice.below(3);
  // stage 3 has most of the settings
  const int stage = dice.coin() ? 3 : 1 + static_cast<int>(dice.below(3));
  drawn.training = model(which, stage);
  drawn.training.steps = 3;
  Settings& settings = drawn.training.settings;
  settings.micro_batch = 1 + dice.below(3);
  settings.gradient_accumulation_steps = 1 + dice.below(2);
  ZeroSettings& zero = settings.zero;
  zero.overlap_comm = dice.coin();
  zero.reduce_scatter = dice.coin();
  zero.contiguous_gradients = dice.coin();
  zero.reduce_bucket_size = 1 + dice.limit(3000);
  zero.prefetch_bucket_size = dice.limit(3000);
  zero.param_persistence_threshold = dice.limit(400);
  zero.model_persistence_threshold = dice.limit(3000);
  zero.max_live_parameters = dice.limit(3000);
  zero.max_reuse_distance = dice.limit(6000);
  drawn.training.check_collectives = dice.below(4) == 0;
  if (dice.below(8) == 0) drawn.training.link = {1e9, 20e-6};
  drawn.text = fmt::format(
      "seed {}: {} ranks, model {}, stage {}, micro batch {}, accumulation {}, overlap {}, "
      "reduce_scatter {}, contiguous {}, reduce bucket {}, prefetch {}, persistence {} and {}, "
      "max_live {}, reuse {}",
      seed, drawn.ranks, which, stage, settings.micro_batch, settings.gradient_accumulation_steps,
      zero.overlap_comm, zero.reduce_scatter, zero.contiguous_gradients, zero.reduce_bucket_size,
      zero.prefetch_bucket_size, zero.param_persistence_threshold, zero.model_persistence_threshold,
      zero.max_live_parameters, zero.max_reuse_distance);
  return drawn;
}

}  // namespace zerolab::test
