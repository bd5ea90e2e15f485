#include "lab/deliberate_mistakes.hpp"

#include <fmt/format.h>

#include "stages/base/error.hpp"

namespace zerolab {
namespace {

constexpr const char* kUnregisteredHead = "unregistered-head";

}  // namespace

std::vector<DeliberateMistake> deliberate_mistakes() {
  return {{kUnregisteredHead,
           "the output head's tied weight is not registered as an external parameter"}};
}

void make_deliberate_mistake(const std::string& name, Model& model) {
  if (name != kUnregisteredHead) {
    throw Error(Code::usage, fmt::format("--break: there is no deliberate mistake '{}'", name),
                fmt::format("--break {}", kUnregisteredHead));
  }
  Module* head = model.root().find("head");
  if (head == nullptr) {
    throw Error(Code::usage, fmt::format("--break {}: this model has no tied head", name),
                "choose a transformer with --model, such as gpt-nano");
  }
  unregister_external_parameter(*head, model.parameters().at("token_embedding.weight"));
}

}  // namespace zerolab
