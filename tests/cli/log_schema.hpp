#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

namespace zerolab::test {

/// docs/log.schema.json.
nlohmann::json log_schema();

/// One definition of docs/log.schema.json: run, event, summary, compare or error.
class LogDefinition {
 public:
  explicit LogDefinition(const std::string& name);
  ~LogDefinition();

  /// Why the document is not as the definition says; empty if it is.
  std::string mismatch(const nlohmann::json& document) const;

 private:
  struct Schema;
  std::unique_ptr<Schema> schema_;
};

}  // namespace zerolab::test
