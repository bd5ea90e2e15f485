#include "stages/model/model.hpp"

#include "stages/model/mlp.hpp"
#include "stages/model/transformer.hpp"

namespace zerolab {
namespace {

template <typename Network, Targets kTargets>
class ModelOf : public Model {
 public:
  explicit ModelOf(const ModelDescription& description) : root_(parameters(), description) {}

  Module& root() override { return root_; }
  Targets targets() const override { return kTargets; }

 private:
  Network root_;
};

}  // namespace

std::unique_ptr<Model> build_model(const ModelDescription& description) {
  if (description.type == ModelDescription::Type::transformer) {
    return std::make_unique<ModelOf<Transformer, Targets::every_position>>(description);
  }
  return std::make_unique<ModelOf<Mlp, Targets::last_position>>(description);
}

}  // namespace zerolab
