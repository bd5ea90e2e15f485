#pragma once

#include <functional>
#include <string>
#include <vector>

#include "stages/engine/training.hpp"

namespace zerolab::test {

/// Small models with sizes that no number of ranks divides.
ModelDescription tiny_transformer();  // vocabulary 19, length 7, 2 layers, 3 heads, width 9
ModelDescription tiny_mlp();          // parameters of 33, 5, 3 and 1 elements among others

/// A model whose parameters have 0, 1, 3, 5 and 33 elements, the empty one in the middle.
std::unique_ptr<Model> odd_sizes_model();
inline constexpr Index kOddVocabulary = 11;

/// Tokens that differ for every step and position of the global batch, and depend on nothing else.
BatchSource patterned_batches(Index vocabulary);

/// Ten steps of micro-batch 3 with AdamW; the caller changes what it is about.
Training training_of(const ModelDescription& model, int stage);
Training training_of_odd_sizes(int stage);

/// Trainings of models that differ in kind: a transformer, an MLP, one of odd sizes.
struct NamedTraining {
  std::string name;
  std::function<Training(int stage)> training;
};
std::vector<NamedTraining> small_trainings();

/// Runs it with ranks as threads; one report for each rank.
std::vector<RankReport> run(int ranks, const Training& training);

/// "step loss-bits norm-bits hash" for every step: equal texts are equal bits.
std::vector<std::string> bits(const RankReport& report);

}  // namespace zerolab::test
