// Mistakes of those who look at weights, or write them, from outside of the model. All are made
// between set-up and the first step.
#include <optional>
#include <utility>

#include "lab/failures/mistakes/mistake.hpp"
#include "stages/engine/gathered_parameters.hpp"

namespace zerolab {
namespace {

constexpr int kRank = 1;  // the one that does it

/// What a piece of code of one's own has at hand.
struct Place {
  Runtime& runtime;
  Engine& engine;

  Parameter& first() { return engine.model().parameters()[0]; }
  Parameter& second() { return engine.model().parameters()[1]; }
  std::vector<float> half(const Parameter& parameter) const {
    return std::vector<float>(static_cast<std::size_t>(parameter.numel()), 0.5F);
  }
};

Mistake::Make before_the_first_step(void (*code)(Place)) {
  return [code](Training& training, int) {
    training.prepare = [code](Runtime& runtime, Engine& engine) { code({runtime, engine}); };
  };
}

void read_outside(Place place) { read_in_scope(place.runtime, place.first()); }
void read_inside(Place place) {
  const GatheredParameters scope(place.runtime, place.engine.stage(), {&place.first()});
  read_in_scope(place.runtime, place.first());
}

void write_outside(Place place) {
  write_in_scope(place.runtime, place.first(), place.half(place.first()));
}
void write_as(Place place, std::optional<int> owner) {
  const GatheredParameters scope(place.runtime, place.engine.stage(), {&place.first()}, owner);
  if (place.runtime.rank() != kRank) return;
  write_in_scope(place.runtime, place.first(), place.half(place.first()));
}
void write_without_owner(Place place) { write_as(place, std::nullopt); }
void write_with_owner(Place place) { write_as(place, kRank); }

// In a stage that keeps parameters whole: there they can be reached.
void write_own_copy(Place place) {
  if (place.runtime.rank() == kRank && place.first().data != nullptr) {
    place.runtime.device.fill(place.first().data, 1, 0.5F);
  }
}

void nest(Place place) {
  Stage& stage = place.engine.stage();
  const GatheredParameters outer(place.runtime, stage, {&place.first(), &place.second()});
  const GatheredParameters inner(place.runtime, stage, {&place.second()});
}
void one_after_the_other(Place place) {
  { const GatheredParameters scope(place.runtime, place.engine.stage(), {&place.first()}); }
  { const GatheredParameters scope(place.runtime, place.engine.stage(), {&place.second()}); }
}

void gather_in_own_order(Place place) {
  std::pair order{&place.first(), &place.second()};
  if (place.runtime.rank() == kRank) std::swap(order.first, order.second);
  { const GatheredParameters scope(place.runtime, place.engine.stage(), {order.first}); }
  { const GatheredParameters scope(place.runtime, place.engine.stage(), {order.second}); }
}

void freeze_late(Place place) { place.engine.model().parameters().freeze(place.first().name()); }
void freeze_early(Training& training, int /*rank*/) {
  training.build = [build = training.build] {
    std::unique_ptr<Model> model = build();
    model->parameters().freeze(model->parameters()[0].name());
    return model;
  };
}

}  // namespace

std::vector<Mistake> mistakes_between_steps() {
  const auto code = before_the_first_step;
  return {
      {"read-outside", "a weight is read without a gather scope", code(read_outside),
       code(read_inside)},
      {"edit-outside", "a weight is written without a gather scope", code(write_outside),
       code(write_with_owner)},
      {"edit-without-owner", "rank 1 writes a weight in a gather scope that has no owner",
       code(write_without_owner), code(write_with_owner)},
      {"own-copy-edited", "rank 1 writes into its own copy of a weight", code(write_own_copy),
       code(write_with_owner)},
      {"nested-scopes", "a gather scope asks for what an outer one holds", code(nest),
       code(one_after_the_other)},
      {"swapped-gathers", "rank 1 gathers two parameters the other way round",
       code(gather_in_own_order), code(one_after_the_other)},
      {"frozen-too-late", "a parameter is frozen after its optimizer state was made",
       code(freeze_late), freeze_early},
  };
}

}  // namespace zerolab
