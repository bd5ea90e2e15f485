#pragma once

#include <string>

#include "tests/support/described_model.hpp"
#include "tests/support/trainings.hpp"
#include "tests/support/weight_history.hpp"

namespace zerolab::test {

/// The described model in zerolab's modules. `registered`: what a part reads of another one is
/// registered when the model is built; otherwise that is left to auto_register.
std::unique_ptr<Model> build_described(const DescribedModel& model, bool registered = true);

/// Three steps of gradient descent with clipping and weight decay, sequences of three tokens.
Training training_of_described(const DescribedModel& model, int stage);

/// How far a run is from the same training in plain double arithmetic (plain_model.hpp), in losses,
/// norms and final weights. In units of what a last rounding of each initial weight to fp32 does to
/// the plain one, so that a model that magnifies errors is allowed larger ones.
double errors_beside_plain(const DescribedModel& model, const Training& training, int ranks,
                           const RankReport& report, const WeightHistory& history);

/// Trains it in all stages at 1 to 4 ranks: each time by plain arithmetic, in stage 0, and in the
/// others. Returns what is wrong, a line each: stages that differ from stage 0 by a bit, what stays
/// gathered, or a result that is not the plain one.
std::string wrong_in_any_stage(const DescribedModel& model,
                               const std::function<void(Training&)>& change = {});
/// The same at one number of ranks.
std::string wrong_at(int ranks, const DescribedModel& model,
                     const std::function<void(Training&)>& change = {});

}  // namespace zerolab::test
