#include "stages/model/description.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <utility>

#include "stages/base/error.hpp"
#include "stages/base/json_text.hpp"
#include "stages/base/nearest.hpp"
#include "stages/base/read_file.hpp"

namespace zerolab {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;

// Any one size: beyond this the products below could not be counted, and no machine holds them.
constexpr Index kLargestSize = Index{1} << 31;

// Reads one description and collects what is wrong with it, so that all is said at once.
class Reader {
 public:
  Reader(const Json& json, std::string file) : json_(json), file_(std::move(file)) {}

  ModelDescription read() {
    ModelDescription model;
    if (!json_.is_object()) {
      complain(fmt::format("must be an object, not {}", type_name(json_)));
      give_up_if_wrong();
    }
    model.type = read_type();
    const bool mlp = model.type == ModelDescription::Type::mlp;
    model.name = json_.contains("name") && json_["name"].is_string()
                     ? json_["name"].get<std::string>()
                     : fs::path(file_).stem().string();
    const std::vector<std::string> known =
        mlp ? std::vector<std::string>{"type",           "name",
                                       "vocab_size",     "sequence_length",
                                       "embedding_size", "hidden_sizes"}
            : std::vector<std::string>{"type",       "name",      "vocab_size", "sequence_length",
                                       "num_layers", "num_heads", "hidden_size"};
    refuse_unknown_keys(known, mlp);
    model.vocab_size = read_size("vocab_size");
    model.sequence_length = read_size("sequence_length");
    if (mlp) {
      model.embedding_size = read_size("embedding_size");
      model.hidden_sizes = read_sizes("hidden_sizes");
    } else {
      model.num_layers = read_size("num_layers");
      model.num_heads = read_size("num_heads");
      model.hidden_size = read_size("hidden_size");
      if (model.hidden_size % model.num_heads != 0) {
        complain(
            fmt::format("hidden_size {} is not divisible by num_heads {}: every head gets an "
                        "equal share",
                        model.hidden_size, model.num_heads));
      }
    }
    give_up_if_wrong();
    return model;
  }

  void complain(const std::string& what) {
    wrong_ += fmt::format("{}{}: {}", wrong_.empty() ? "" : "\n", file_, what);
  }

  void give_up_if_wrong() const {
    if (wrong_.empty()) return;
    throw Error(Code::model_description, wrong_,
                "correct the description; docs/configuration.md shows one of each type");
  }

 private:
  // Without a type there is no telling which keys belong, so the reading ends here.
  ModelDescription::Type read_type() {
    const Json type = json_.contains("type") ? json_["type"] : Json();
    if (type == "mlp") return ModelDescription::Type::mlp;
    if (type == "transformer") return ModelDescription::Type::transformer;
    complain(type.is_null() ? "type is missing; it is mlp or transformer"
                            : fmt::format("type is {}; it is mlp or transformer{}", type.dump(),
                                          type.is_string() ? did_you_mean(type.get<std::string>(),
                                                                          {"mlp", "transformer"})
                                                           : ""));
    give_up_if_wrong();
    return ModelDescription::Type::transformer;
  }

  void refuse_unknown_keys(const std::vector<std::string>& known, bool mlp) {
    for (const auto& [key, value] : json_.items()) {
      if (std::find(known.begin(), known.end(), key) == known.end()) {
        complain(fmt::format("unknown key {} for type {}{}", key, mlp ? "mlp" : "transformer",
                             did_you_mean(key, known)));
      }
    }
    if (json_.contains("name") && !json_["name"].is_string()) {
      complain(fmt::format("name must be a string, not {}", type_name(json_["name"])));
    }
  }

  // 1 stands in for what is missing or wrong, so that reading can go on.
  Index read_size(const std::string& key) {
    if (!json_.contains(key)) {
      complain(fmt::format("{} is missing", key));
      return 1;
    }
    return checked_size(json_[key], key);
  }

  std::vector<Index> read_sizes(const std::string& key) {
    std::vector<Index> sizes;
    if (!json_.contains(key)) {
      complain(fmt::format("{} is missing", key));
    } else if (!json_[key].is_array()) {
      complain(
          fmt::format("{} must be a list of whole numbers, not {}", key, type_name(json_[key])));
    } else {
      for (const Json& size : json_[key]) {
        sizes.push_back(checked_size(size, fmt::format("{}[{}]", key, sizes.size())));
      }
    }
    return sizes;
  }

  Index checked_size(const Json& value, const std::string& key) {
    const double number = value.is_number() ? value.get<double>() : 0;
    if (!value.is_number()) {
      complain(fmt::format("{} must be a whole number, not {}", key, type_name(value)));
    } else if (number != std::floor(number) || number < 1 ||
               number > static_cast<double>(kLargestSize)) {
      complain(fmt::format("{} is {}; it must be a whole number from 1 to {}", key, value.dump(),
                           kLargestSize));
    } else {
      return static_cast<Index>(number);
    }
    return 1;
  }

  const Json& json_;
  std::string file_;
  std::string wrong_;
};

std::string listed(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string_view name_of(ModelDescription::Type type) {
  return type == ModelDescription::Type::mlp ? "mlp" : "transformer";
}

Index parameter_count(const ModelDescription& model) {
  // In floating point first: a sum that no Index can hold must be noticed, not wrapped.
  const auto count = [&model]<typename Number>(Number) {
    const auto n = [](Index value) { return static_cast<Number>(value); };
    if (model.type == ModelDescription::Type::transformer) {
      const Number c = n(model.hidden_size);
      return n(model.vocab_size) * c + n(model.sequence_length) * c +
             n(model.num_layers) * (12 * c * c + 13 * c) + 2 * c;
    }
    Number sum = n(model.vocab_size) * n(model.embedding_size);
    Number in = n(model.sequence_length) * n(model.embedding_size);
    for (const Index hidden : model.hidden_sizes) {
      sum += in * n(hidden) + n(hidden);
      in = n(hidden);
    }
    return sum + in * n(model.vocab_size) + n(model.vocab_size);
  };
  constexpr double kMost = 1e18;
  if (const double about = count(double{}); about > kMost) {
    throw Error(Code::model_description,
                fmt::format("{} would have about {:.1e} parameters; at most {:.0e} can be counted",
                            model.name, about, kMost),
                "describe a smaller model");
  }
  return count(Index{});
}

Index largest_parameter(const ModelDescription& model) {
  if (model.type == ModelDescription::Type::transformer) {
    const Index c = model.hidden_size;
    return c * std::max({model.vocab_size, model.sequence_length, 4 * c});
  }
  Index largest = model.vocab_size * model.embedding_size;
  Index in = model.sequence_length * model.embedding_size;
  for (const Index hidden : model.hidden_sizes) {
    largest = std::max(largest, in * hidden);
    in = hidden;
  }
  return std::max(largest, in * model.vocab_size);
}

ModelDescription parse_model(std::string_view json_text, const std::string& file) {
  std::vector<std::string> duplicates;
  const Json json = parse_json(json_text, file, &duplicates);
  Reader reader(json, file);
  for (const std::string& key : duplicates) {
    reader.complain(fmt::format("{} is given more than once", key));
  }
  ModelDescription model = reader.read();
  parameter_count(model);  // refuses what cannot be counted
  return model;
}

ModelDescription describe_model(const std::string& preset_or_file) {
  if (std::optional<ModelDescription> preset = find_preset(preset_or_file)) return *preset;
  std::error_code failed;
  if (!fs::is_regular_file(preset_or_file, failed)) {
    throw Error(Code::model_description,
                fmt::format("{} is neither a model preset nor a file{}", preset_or_file,
                            did_you_mean(preset_or_file, preset_names())),
                fmt::format("name one of {}, or a JSON file that describes a model",
                            listed(preset_names())));
  }
  const std::optional<std::string> text = read_file(preset_or_file);
  if (!text) {
    throw Error(Code::model_description, fmt::format("cannot read {}", preset_or_file),
                "check that the file may be read");
  }
  return parse_model(*text, preset_or_file);
}

}  // namespace zerolab
