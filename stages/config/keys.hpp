#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stages/config/resolve.hpp"

namespace zerolab {

/// What a value must be. `names` is a list of strings, or one string; `dtype` is "fp32", "bf16",
/// "fp16" or null; `block` is an object that is taken whole.
enum class Kind { boolean, whole, number, text, pair, names, dtype, block };

/// A setting that zerolab has: one row, from which reading, checking and printing follow, and
/// against which docs/configuration.md is tested.
struct Key {
  std::string_view path;
  Kind kind;
  double least, most;  // of a number
  void (*set)(Effective&, const nlohmann::json&);
  std::string (*show)(const Effective&);
  std::string_view (*idle)(const Settings&);  // why the setting has no effect; empty if it has
};
std::span<const Key> keys();

/// A setting that DeepSpeed has and zerolab has not.
struct ForeignKey {
  enum class Effect {
    quiet,        // nothing to say
    only_speed,   // any value is taken, with a warning
    must_be,      // changes placement or numbers: only the `accepted` values are taken
    needs_block,  // matters only with its block in use, which is refused by the block's switch
  };
  std::string_view path;
  Kind kind;
  Effect effect;
  std::string_view accepted;  // of must_be: a JSON list
  std::string_view reason;
};
std::span<const ForeignKey> foreign_keys();

/// Another spelling of a key: a second name that DeepSpeed accepts, or a deprecated one.
struct Spelling {
  std::string_view old_path, path;
  bool deprecated;
  nlohmann::json (*convert)(const nlohmann::json&);  // of the value; may be null
};
std::span<const Spelling> spellings();

/// Checks a value against a kind and turns whole numbers written as 5e8 into integers. Returns why
/// it cannot be taken, or nothing.
std::optional<std::string> check_kind(Kind kind, double least, double most, nlohmann::json& value);

}  // namespace zerolab
