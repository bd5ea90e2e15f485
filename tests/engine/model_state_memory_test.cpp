#include "stages/engine/model_state_memory.hpp"

#include <fmt/format.h>

#include <map>

#include "tests/support/attempt.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/observed.hpp"

namespace zerolab::test {
namespace {

/// What rank 0 takes memory for before the first step, in order; what takes none left out.
std::vector<Index> taken(int ranks, const Training& training) {
  return observed<std::vector<Index>>(
      ranks, training, [](std::vector<Index>& sizes, const Stamp& stamp, const Event& event) {
        const auto* alloc = std::get_if<AllocEvent>(&event);
        if (alloc == nullptr || stamp.step > 0 || alloc->bytes == 0) return;
        if (alloc->category != name_of(Category::workspace)) sizes.push_back(alloc->bytes);
      })[0];
}

std::vector<Index> expected(int ranks, const Training& training) {
  const std::unique_ptr<Model> model = training.build();
  std::vector<Index> bytes = model_state_bytes(model->parameters(), training.settings,
                                               training.settings.zero.stage, ranks);
  std::erase(bytes, 0);
  return bytes;
}

/// The advice on one setting when `budget` is not enough.
std::string advised(const Training& training, Index budget, const std::string& name) {
  const Attempt ended = attempt(3, training, 0, budget);
  for (const auto& advice : ended.end->advice) {
    if (advice.setting.name == name) return fmt::to_string(advice.fits);
  }
  return "none";
}

}  // namespace

TEST_CASE("model states are what a stage takes memory for in set-up, to the byte") {
  for (const int stage : {0, 1, 2, 3}) {
    for (const Dtype dtype : {Dtype::fp32, Dtype::bf16}) {
      for (const bool freezes : {false, true}) {
        for (const int ranks : {1, 3, 4}) {
          Training training = training_of(tiny_transformer(), stage);
          training.steps = 1;
          training.settings.dtype = dtype;
          if (dtype == Dtype::bf16) training.settings.grad_accum_dtype = Dtype::fp32;
          if (freezes) {
            training.build = [] {
              auto model = build_model(tiny_transformer());
              model->parameters().freeze("blocks.0");
              return model;
            };
          }
          INFO("stage " << stage << ", " << name_of(dtype) << ", " << ranks << " ranks, frozen "
                        << freezes);
          CHECK(taken(ranks, training) == expected(ranks, training));
        }
      }
    }
  }
}

TEST_CASE("when model states do not fit the report names the stage and the ranks that would do") {
  const Index psi = build_model(tiny_transformer())->parameters().numel();  // a multiple of 6
  REQUIRE(psi % 6 == 0);
  const Training whole = training_of(tiny_transformer(), 0);
  // Parameters and gradients fit whole; the first moment does in thirds.
  CHECK(advised(whole, 10 * psi, "zero_optimization.stage") == "1");
  CHECK(advised(whole, 9 * psi, "zero_optimization.stage") == "2");
  CHECK(advised(whole, 6 * psi, "zero_optimization.stage") == "2");
  CHECK(advised(whole, 3 * psi, "zero_optimization.stage") == "3");
  CHECK(advised(whole, psi, "zero_optimization.stage") == "none");
  // More ranks take nothing from a stage that replicates.
  CHECK(advised(whole, 10 * psi, "world_size") == "none");
  CHECK(advised(training_of(tiny_transformer(), 3), psi, "world_size") == "5");
  CHECK(advised(training_of(tiny_transformer(), 3), psi, "zero_optimization.stage") == "none");
}

}  // namespace zerolab::test
