#pragma once

#include <memory>

#include "stages/model/description.hpp"
#include "stages/model/module.hpp"

namespace zerolab {

/// Which tokens a model predicts: the one behind every position of a sequence, or behind its last.
enum class Targets { every_position, last_position };

/// A network, from tokens int32 [sequences, length] to logits [rows, vocabulary] with one row for
/// every target, and its parameters.
class Model {
 public:
  virtual ~Model() = default;

  ParameterSet& parameters() { return parameters_; }
  virtual Module& root() = 0;
  virtual Targets targets() const = 0;

 private:
  ParameterSet parameters_;
};

/// A model that is one module, Root(parameters, arguments...).
template <typename Root>
class ModelOf : public Model {
 public:
  template <typename... Arguments>
  explicit ModelOf(Targets targets, const Arguments&... arguments)
      : targets_(targets), root_(parameters(), arguments...) {}

  Root& root() override { return root_; }
  Targets targets() const override { return targets_; }

 private:
  Targets targets_;
  Root root_;
};

/// Builds the model; no memory for its parameters is taken, a stage does that.
std::unique_ptr<Model> build_model(const ModelDescription& description);

}  // namespace zerolab
