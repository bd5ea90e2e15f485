#pragma once

#include <functional>
#include <string>
#include <vector>

#include "stages/checkpoint/save.hpp"
#include "stages/engine/training.hpp"

namespace zerolab {

/// Something done wrong on purpose, to see what comes of it. It is done through the training's
/// seams: how its model is built, what happens before the first step, what wraps its stage, device
/// and communicator. So no line in stages/ knows of it.
struct Mistake {
  using Make = std::function<void(Training&, int rank)>;
  using Save = std::function<SaveReport(Runtime&, Engine&, const SaveTo&)>;

  std::string name;
  std::string what;  // in one sentence, for messages
  Make make;         // --break; none: it is made while saving
  Make mend = {};    // --mend: the same done rightly; none: there is nothing left to do
  Save save = {};    // instead of save_checkpoint; none: nothing is wrong with that
};

/// All, in the order of the groups below.
std::vector<Mistake> mistakes();

/// Throws Error (Code::usage) with the nearest name for one that there is not; `flag` is --break or
/// --mend, and what the second is about must have something to mend.
Mistake find_mistake(const std::string& name, const std::string& flag);

// By where they are made.
std::vector<Mistake> mistakes_in_models();
std::vector<Mistake> mistakes_between_steps();
std::vector<Mistake> mistakes_in_stages();
std::vector<Mistake> mistakes_in_gradients();
std::vector<Mistake> mistakes_in_ranks();
std::vector<Mistake> mistakes_in_saves();

}  // namespace zerolab
