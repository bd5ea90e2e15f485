#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace zerolab {

/// A JSON text written by a person; comments are allowed. `name` is how messages call it, usually
/// its path. `duplicates`, if given, receives the dotted paths of keys that an object has twice;
/// the last one counts. Throws Error (Code::config_syntax) with line and column, and for more than
/// 100 levels of lists and objects.
nlohmann::json parse_json(std::string_view text, const std::string& name,
                          std::vector<std::string>* duplicates = nullptr);

/// "a string", "a number with a fraction", "null": for messages.
std::string_view type_name(const nlohmann::json& value);

/// The double that reads like this float: 0.003 for 0.003F, where a cast has more digits.
double as_written(float value);

/// Any bytes as a JSON string can hold them: each byte becomes the code point of its number (as
/// Latin-1 has it) in UTF-8, so different bytes are different texts.
std::string bytes_as_text(std::string_view bytes);

}  // namespace zerolab
