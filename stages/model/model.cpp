#include "stages/model/model.hpp"

#include "stages/model/mlp.hpp"
#include "stages/model/transformer.hpp"

namespace zerolab {
std::unique_ptr<Model> build_model(const ModelDescription& description) {
  if (description.type == ModelDescription::Type::transformer) {
    return std::make_unique<ModelOf<Transformer>>(Targets::every_position, description);
  }
  return std::make_unique<ModelOf<Mlp>>(Targets::last_position, description);
}

}  // namespace zerolab
