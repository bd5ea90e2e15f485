#include "stages/config/collect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "stages/base/json_text.hpp"
#include "stages/base/nearest.hpp"

namespace zerolab {
namespace {

using Json = nlohmann::json;

// Names of other libraries that people bring along, in any block, and what they are called here.
struct Misnomer {
  std::string_view written, meant;
};
constexpr std::array kMisnomers{
    Misnomer{"max_grad_norm", "gradient_clipping"},
    Misnomer{"learning_rate", "optimizer.params.lr"},
    Misnomer{"dynamic_loss_scale", "fp16.loss_scale, where 0 makes it dynamic"},
};

// "a.b.c" -> ("a.b", "c").
std::pair<std::string_view, std::string_view> split_last(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  if (dot == std::string_view::npos) return {"", path};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

// Everything that may be written: keys, and the blocks they stand in.
class Vocabulary {
 public:
  Vocabulary() {
    for (const Key& key : keys()) add(key.path, {key.kind, key.least, key.most});
    constexpr double kMost = 9e18;
    for (const ForeignKey& key : foreign_keys()) add(key.path, {key.kind, -kMost, kMost});
    for (const Spelling& spelling : spellings()) {
      add(spelling.old_path, leaves_.at(std::string(spelling.path)));
    }
  }

  struct Leaf {
    Kind kind;
    double least, most;
  };
  const Leaf* leaf(const std::string& path) const {
    const auto found = leaves_.find(path);
    return found == leaves_.end() ? nullptr : &found->second;
  }
  bool is_block(const std::string& path) const { return blocks_.count(path) > 0; }

  // What to say of a key that is in none of the lists.
  std::string advice(const std::string& path) const {
    const auto [block, name] = split_last(path);
    for (const Misnomer& misnomer : kMisnomers) {
      if (misnomer.written == name) return fmt::format("; it is called {}", misnomer.meant);
    }
    std::vector<std::string> siblings, everywhere;
    std::string home;
    for (const std::string& known : names_) {
      const auto [its_block, its_name] = split_last(known);
      everywhere.push_back(known);
      if (its_block == block) siblings.push_back(known);
      if (its_name == name && home.empty()) {
        home = its_block.empty() ? "at the top level" : fmt::format("in {}", its_block);
      }
    }
    if (!home.empty()) return fmt::format("; {} belongs {}", name, home);
    const std::string near_here = did_you_mean(path, siblings);
    return near_here.empty() ? did_you_mean(path, everywhere) : near_here;
  }

 private:
  void add(std::string_view path, Leaf leaf) {
    leaves_.emplace(path, leaf);
    names_.emplace(path);
    for (auto [block, name] = split_last(path); !block.empty();
         std::tie(block, name) = split_last(block)) {
      blocks_.emplace(block);
      names_.emplace(block);
    }
  }

  std::map<std::string, Leaf> leaves_;
  std::set<std::string> blocks_, names_;
};

class Collector {
 public:
  Collected take(const ResolveInput& input) {
    for (const Given& given : input.preset) choose(given, Origin::preset);
    for (const Given& given : input.checkpoint) choose(given, Origin::checkpoint);
    if (input.file) take_file(*input.file);
    for (const Given& given : input.flags) choose(given, Origin::flag);
    return std::move(result_);
  }

 private:
  void take_file(const ConfigFile& file) {
    std::vector<std::string> duplicates;
    const Json json = parse_json(file.text, file.name, &duplicates);
    for (const std::string& key : duplicates) {
      complain(Code::config_contradiction, file.name, key, "is given more than once");
    }
    if (!json.is_object()) {
      complain(Code::config_value, file.name, "the whole file",
               fmt::format("is {}; it must be an object, {{...}}", type_name(json)));
      return;
    }
    take_block(json, "", file.name);
  }

  void take_block(const Json& block, const std::string& prefix, const std::string& source) {
    for (const auto& [name, value] : block.items()) {
      const std::string path = prefix + name;
      if (vocabulary_.leaf(path) != nullptr) {
        choose({path, value, source}, Origin::config);
      } else if (!vocabulary_.is_block(path)) {
        complain(Code::config_unknown_key, source, path,
                 "is not a setting" + vocabulary_.advice(path));
      } else if (value.is_object()) {
        take_block(value, path + '.', source);
      } else if (path == "zero_optimization" && value.is_boolean()) {
        result_.warnings.push_back(fmt::format(
            "{}: zero_optimization is a block now: {{\"stage\": {}}}", source, value ? 1 : 0));
        choose({"zero_optimization.stage", value ? 1 : 0, source}, Origin::config);
      } else if (!value.is_null()) {
        complain(Code::config_value, source, path,
                 fmt::format("is {} ({}); it must be an object, {{...}}", value.dump(),
                             type_name(value)));
      }
    }
  }

  void choose(Given given, Origin origin) {
    std::string spelled = given.key;
    const Spelling* spelling = find_spelling(given.key);
    const Vocabulary::Leaf* leaf = vocabulary_.leaf(given.key);
    if (leaf == nullptr) {  // of a checkpoint: names in files have been looked up by now
      complain(Code::config_unknown_key, given.source, given.key,
               "is not a setting" + vocabulary_.advice(given.key));
      return;
    }
    if (spelling != nullptr) {
      if (spelling->convert != nullptr) given.value = spelling->convert(given.value);
      given.key = spelling->path;
      if (spelling->deprecated) {
        spelled = fmt::format("{} (deprecated, now {})", spelling->old_path, spelling->path);
        result_.warnings.push_back(fmt::format("{}: {} is deprecated; write {}", given.source,
                                               spelling->old_path, spelling->path));
      }
    }
    if (is_auto(given.value)) {
      result_.rejected.insert(given.key);
      complain(Code::config_value, given.source, spelled,
               "is \"auto\", and nothing resolves that here; write a value, or leave the key out "
               "to take the default");
      return;
    }
    if (const auto why = check_kind(leaf->kind, leaf->least, leaf->most, given.value)) {
      complain(Code::config_value, given.source, spelled, *why);
      result_.rejected.insert(given.key);
      return;
    }
    const auto [place, fresh] = result_.chosen.try_emplace(given.key);
    if (!fresh && place->second.origin == origin && origin == Origin::config) {
      complain(Code::config_contradiction, given.source, spelled,
               fmt::format("and {} are two names of one setting; leave the first out",
                           place->second.spelled));
      return;
    }
    place->second =
        Chosen{std::move(given.value), origin, std::move(given.source), std::move(spelled)};
  }

  static const Spelling* find_spelling(std::string_view path) {
    const auto all = spellings();
    const auto found = std::find_if(all.begin(), all.end(), [&](const Spelling& spelling) {
      return spelling.old_path == path;
    });
    return found == all.end() ? nullptr : &*found;
  }

  static bool is_auto(const Json& value) {
    if (!value.is_string()) return false;
    std::string letters;
    for (const char c : value.get<std::string>()) {
      if (c != ' ') letters += static_cast<char>(c | 0x20);  // ASCII lower case
    }
    return letters == "auto";
  }

  void complain(Code code, const std::string& source, const std::string& key,
                const std::string& why) {
    result_.problems.push_back({code, fmt::format("{}: {} {}", source, key, why)});
  }

  Vocabulary vocabulary_;
  Collected result_;
};

}  // namespace

const Chosen* Collected::given(std::string_view key) const {
  const auto found = chosen.find(key);
  return found == chosen.end() ? nullptr : &found->second;
}

const Chosen* Collected::asked_for(std::string_view key) const {
  const Chosen* found = given(key);
  if (found == nullptr) return nullptr;
  return found->origin == Origin::config || found->origin == Origin::flag ? found : nullptr;
}

Collected collect(const ResolveInput& input) { return Collector().take(input); }

}  // namespace zerolab
