#include "tests/cli/log_schema.hpp"

#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "tests/support/documents.hpp"

namespace zerolab::test {

using Adapter = valijson::adapters::NlohmannJsonAdapter;

struct LogDefinition::Schema {
  valijson::Schema rules;
};

nlohmann::json log_schema() { return nlohmann::json::parse(document("log.schema.json")); }

LogDefinition::LogDefinition(const std::string& name) : schema_(std::make_unique<Schema>()) {
  const nlohmann::json root{{"$ref", "#/definitions/" + name},
                            {"definitions", log_schema().at("definitions")}};
  valijson::SchemaParser(valijson::SchemaParser::kDraft7)
      .populateSchema(Adapter(root), schema_->rules);
}

LogDefinition::~LogDefinition() = default;

std::string LogDefinition::mismatch(const nlohmann::json& document) const {
  valijson::Validator validator(valijson::Validator::kStrongTypes);
  valijson::ValidationResults results;
  if (validator.validate(schema_->rules, Adapter(document), &results)) return "";
  std::string why = document.dump();
  for (const auto& error : results) {
    why += "\n  ";
    for (const std::string& part : error.context) why += part;
    why += ": " + error.description;
  }
  return why;
}

}  // namespace zerolab::test
