#include "stages/checkpoint/manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <tuple>
#include <utility>

#include "stages/base/error.hpp"
#include "stages/base/json_text.hpp"

namespace zerolab {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "zerolab checkpoint";
constexpr const char* kChecksum = "xxh3";
constexpr std::size_t kHexDigits = 16;
constexpr Index kMostElements = Index{1} << 56;  // of all parameters: no count of bytes overflows

std::string hex(std::uint64_t value) { return fmt::format("{:016x}", value); }

[[noreturn]] void no_manifest(const std::string& file, const std::string& why) {
  throw Error(Code::checkpoint_damaged, fmt::format("{}: {}", file, brief(why)),
              "take another checkpoint");
}

std::string compact(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// For people too: a line for each field, and for each parameter and shard.
std::string lines_of(const Json& json) {
  std::string text = "{";
  for (const auto& [key, value] : json.items()) {
    text += fmt::format("{}\n {}: ", text.size() > 1 ? "," : "", compact(key));
    if (key != "parameters" && key != "shards") {
      text += compact(value);
      continue;
    }
    text += '[';
    for (std::size_t i = 0; i < value.size(); ++i) {
      text += fmt::format("{}\n  {}", i > 0 ? "," : "", compact(value[i]));
    }
    text += ']';
  }
  return text + "\n}\n";
}

std::uint64_t checksum_of(Json json) {
  json.erase(kChecksum);
  return xxh3(compact(json));
}

/// A value of the manifest, whatever somebody has written there.
class Reader {
 public:
  Reader(const std::string& file, std::string path, const Json& json)
      : file_(file), path_(std::move(path)), json_(json) {}

  Reader at(const std::string& key) const {
    const std::string path = path_.empty() ? key : path_ + "." + key;
    const auto found = json_.is_object() ? json_.find(key) : json_.end();
    if (!json_.is_object() || found == json_.end()) {
      no_manifest(file_, fmt::format("'{}' is missing", path));
    }
    return {file_, path, *found};
  }
  std::vector<Reader> list() const {
    if (!json_.is_array()) refuse("is no list");
    std::vector<Reader> list;
    for (std::size_t i = 0; i < json_.size(); ++i) {
      list.emplace_back(file_, fmt::format("{}[{}]", path_, i), json_[i]);
    }
    return list;
  }
  std::string text() const {
    if (!json_.is_string()) refuse("is no text");
    return json_.get<std::string>();
  }
  bool flag() const {
    if (!json_.is_boolean()) refuse("is no boolean");
    return json_.get<bool>();
  }
  Index count(Index most = Index{1} << 62) const {
    const bool whole =
        json_.is_number_unsigned() || (json_.is_number_integer() && json_.get<std::int64_t>() >= 0);
    if (!whole || json_.get<std::uint64_t>() > static_cast<std::uint64_t>(most)) {
      refuse(fmt::format("is {}, no whole number from 0 to {}", json_.dump().substr(0, 40), most));
    }
    return json_.get<Index>();
  }
  double number() const {
    if (!json_.is_number()) refuse("is no number");
    return json_.get<double>();
  }
  std::uint64_t hash() const { return hash_in(text()); }
  std::vector<std::uint64_t> hashes() const {
    const std::string digits = text();
    if (digits.size() % kHexDigits != 0) refuse("is cut");
    std::vector<std::uint64_t> hashes;
    for (std::size_t i = 0; i < digits.size(); i += kHexDigits) {
      hashes.push_back(hash_in(std::string_view(digits).substr(i, kHexDigits)));
    }
    return hashes;
  }
  const Json& json() const { return json_; }
  [[noreturn]] void refuse(const std::string& why) const {
    no_manifest(file_, fmt::format("'{}' {}", path_, why));
  }

 private:
  std::uint64_t hash_in(std::string_view digits) const {
    std::uint64_t value = 0;
    const char* end = digits.data() + digits.size();
    const auto [stopped, failed] = std::from_chars(digits.data(), end, value, 16);
    if (failed != std::errc() || stopped != end || hex(value) != digits) {
      refuse(fmt::format("has '{}', no 16 hexadecimal digits", digits));
    }
    return value;
  }

  const std::string& file_;
  std::string path_;
  const Json& json_;
};

std::string joined_hex(const std::vector<std::uint64_t>& hashes) {
  std::string digits;
  for (const std::uint64_t hash : hashes) digits += hex(hash);
  return digits;
}

Json to_json(const Shard& shard, const Manifest& manifest) {
  Json slices = Json::array();
  for (const SavedSlice& slice : shard.slices) {
    slices.push_back({{"parameter", manifest.parameters[slice.parameter].name},
                      {"begin", slice.range.begin},
                      {"end", slice.range.end}});
  }
  return {{"file", shard.file},
          {"bytes", shard.digest.bytes},
          {"xxh3", hex(shard.digest.xxh3)},
          {"blocks", joined_hex(shard.digest.blocks)},
          {"slices", slices}};
}

SavedParameter parameter_of(const Reader& json) {
  SavedParameter parameter;
  parameter.name = json.at("name").text();
  Index numel = 1;
  for (const Reader& extent : json.at("shape").list()) {
    parameter.shape.push_back(extent.count());
    if (__builtin_mul_overflow(numel, parameter.shape.back(), &numel) || numel > kMostElements) {
      json.at("shape").refuse("is beyond all bounds");
    }
  }
  parameter.requires_grad = json.at("requires_grad").flag();
  return parameter;
}

Shard shard_of(const Reader& json, const std::map<std::string, std::size_t>& parameters,
               std::size_t rank) {
  Shard shard;
  shard.file = json.at("file").text();
  if (shard.file != fmt::format("rank{}.safetensors", rank)) {
    json.at("file").refuse(fmt::format("is '{}', not the file of rank {}", shard.file, rank));
  }
  shard.digest = {json.at("bytes").count(), json.at("xxh3").hash(), json.at("blocks").hashes()};
  if (static_cast<Index>(shard.digest.blocks.size()) != ceil_div(shard.digest.bytes, kBlockBytes)) {
    json.at("blocks").refuse("has not one checksum for every block");
  }
  std::set<std::size_t> seen;
  for (const Reader& slice : json.at("slices").list()) {
    const auto found = parameters.find(slice.at("parameter").text());
    if (found == parameters.end()) slice.at("parameter").refuse("is no parameter of the model");
    const Range range{slice.at("begin").count(), slice.at("end").count()};
    if (range.begin >= range.end) slice.refuse("is empty, or ends before it begins");
    if (!seen.insert(found->second).second) slice.at("parameter").refuse("comes twice");
    shard.slices.push_back({found->second, range});
  }
  return shard;
}

// Every element in exactly one shard.
void check_coverage(const Manifest& manifest, const std::string& file) {
  struct Part {
    std::size_t parameter;
    Range range;
    const Shard* shard;
  };
  std::vector<Part> parts;
  for (const Shard& shard : manifest.shards) {
    for (const SavedSlice& slice : shard.slices) {
      parts.push_back({slice.parameter, slice.range, &shard});
    }
  }
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return std::tie(a.parameter, a.range.begin) < std::tie(b.parameter, b.range.begin);
  });
  std::vector<Index> covered(manifest.parameters.size(), 0);
  for (const Part& part : parts) {
    Index& end = covered[part.parameter];
    if (part.range.begin != end) {
      no_manifest(file, fmt::format("elements {} to {} of '{}' are in {} shard",
                                    part.range.begin < end ? part.range.begin : end,
                                    part.range.begin < end ? end : part.range.begin,
                                    manifest.parameters[part.parameter].name,
                                    part.range.begin < end ? "more than one" : "no"));
    }
    end = part.range.end;
  }
  for (std::size_t i = 0; i < covered.size(); ++i) {
    const Index numel = zerolab::numel(manifest.parameters[i].shape);
    if (covered[i] == numel) continue;
    no_manifest(file, fmt::format("its shards have {} elements of '{}' {}, which has {}",
                                  covered[i], manifest.parameters[i].name,
                                  to_string(manifest.parameters[i].shape), numel));
  }
}

// The header of a shard follows from the manifest, so its length does, too.
void check_lengths(const Manifest& manifest, const std::string& file) {
  for (std::size_t rank = 0; rank < manifest.shards.size(); ++rank) {
    const Shard& shard = manifest.shards[rank];
    const SafetensorsWriter writer = manifest.shard_header(rank);
    const Index needed = static_cast<Index>(writer.text().size()) + writer.header().data_bytes();
    if (needed == shard.digest.bytes) continue;
    no_manifest(file, fmt::format("{} has {} bytes, and what is in it needs {}", shard.file,
                                  shard.digest.bytes, needed));
  }
}

Json parse(std::string_view text, const std::string& file) {
  std::vector<std::string> twice;
  try {
    parse_json(text, "manifest", &twice);
  } catch (const Error& error) {
    no_manifest(file, "it is no JSON: " + error.what_happened());
  }
  if (!twice.empty()) no_manifest(file, fmt::format("it has '{}' twice", twice.front()));
  return Json::parse(text, nullptr, true, true);  // the same in the order in which it is written
}

void check_version(const Reader& json, const std::string& file) {
  if (json.at("format").text() != kFormat) no_manifest(file, "it is no manifest of a checkpoint");
  const Index version = json.at("version").count();
  if (version == Manifest::kVersion) return;
  throw Error(Code::checkpoint_mismatch,
              fmt::format("{}: the checkpoint has version {}, this zerolab reads version {}", file,
                          version, Manifest::kVersion),
              "resume with the zerolab that wrote it, or a later one");
}

std::map<std::string, std::size_t> ids_of(const std::vector<SavedParameter>& parameters) {
  std::map<std::string, std::size_t> ids;
  for (const SavedParameter& each : parameters) ids.emplace(each.name, ids.size());
  return ids;
}

Dtype dtype_of(const Reader& json) {
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16, Dtype::fp16}) {
    if (json.text() == name_of(dtype)) return dtype;
  }
  json.refuse(fmt::format("is '{}', none of fp32, bf16, fp16", json.text()));
}

}  // namespace

std::vector<std::string> moment_names(const OptimizerSettings& settings) {
  if (moments_needed(settings) == 0) return {};
  if (settings.type == OptimizerSettings::Type::sgd) return {"momentum_buffer"};
  return {"exp_avg", "exp_avg_sq"};
}

std::vector<std::string> Manifest::states() const {
  std::vector<std::string> states{std::string(kMaster)};
  states.insert(states.end(), moments.begin(), moments.end());
  states.emplace_back(kWeights);  // behind what is fp32, so that every element is aligned
  return states;
}

bool Manifest::has(std::string_view state, const SavedParameter& parameter) const {
  if (state == kWeights) return true;
  return state == kMaster ? has_master(parameter) : parameter.requires_grad;
}

SafetensorsWriter Manifest::shard_header(std::size_t rank,
                                         const std::vector<SavedSlice>& slices) const {
  SafetensorsWriter writer;
  writer.note("format", std::string(kFormat));
  writer.note("rank", fmt::to_string(rank));
  writer.note("tag", tag);
  for (const std::string& state : states()) {
    for (const SavedSlice& slice : slices) {
      const SavedParameter& parameter = parameters[slice.parameter];
      if (!has(state, parameter)) continue;
      writer.add(fmt::format("{}/{}", state, parameter.name), dtype_of(state),
                 {slice.range.size()});
    }
  }
  return writer;
}

std::size_t Manifest::find(std::string_view name) const {
  const auto found = std::find_if(parameters.begin(), parameters.end(),
                                  [name](const SavedParameter& each) { return each.name == name; });
  return static_cast<std::size_t>(found - parameters.begin());
}

std::string to_text(const Manifest& manifest) {
  Json parameters = Json::array();
  for (const SavedParameter& each : manifest.parameters) {
    parameters.push_back(
        {{"name", each.name}, {"shape", each.shape}, {"requires_grad", each.requires_grad}});
  }
  Json shards = Json::array();
  for (const Shard& shard : manifest.shards) shards.push_back(to_json(shard, manifest));
  const LossScaler::State& scaler = manifest.progress.scaler;
  Json json{
      {"format", kFormat},
      {"version", Manifest::kVersion},
      {kChecksum, ""},
      {"tag", manifest.tag},
      {"stage", manifest.stage},
      {"world_size", manifest.world_size()},
      {"dtype", name_of(manifest.dtype)},
      {"moments", manifest.moments},
      {"steps", manifest.progress.steps_done},
      {"updates", manifest.progress.updates_done},
      {"loss_scaler",
       {{"scale", scaler.scale}, {"forgiven", scaler.forgiven}, {"good_steps", scaler.good_steps}}},
      {"state_hashes", joined_hex(manifest.hashes)},
      {"run", manifest.run},
      {"parameters", parameters},
      {"tied", Json(manifest.tied)},
      {"shards", shards}};
  json[kChecksum] = hex(checksum_of(json));
  return lines_of(json);
}

std::string shard_text(const Shard& shard, const Manifest& manifest) {
  return compact(to_json(shard, manifest));
}

Shard shard_in(std::string_view text, const Manifest& manifest, std::size_t rank) {
  const Json json = Json::parse(text);
  const std::string from = fmt::format("rank {}", rank);
  return shard_of(Reader(from, "", json), ids_of(manifest.parameters), rank);
}

Manifest parse_manifest(std::string_view text, const std::string& file) {
  const Json parsed = parse(text, file);
  const Reader json(file, "", parsed);
  check_version(json, file);
  if (json.at(kChecksum).hash() != checksum_of(parsed)) {
    no_manifest(file, "it is not what was written: its checksum differs");
  }
  Manifest manifest;
  manifest.tag = json.at("tag").text();
  manifest.stage = static_cast<int>(json.at("stage").count(3));
  manifest.dtype = dtype_of(json.at("dtype"));
  for (const Reader& moment : json.at("moments").list()) manifest.moments.push_back(moment.text());
  const std::set<std::string> moments(manifest.moments.begin(), manifest.moments.end());
  const bool reserved =
      moments.count(std::string(kWeights)) + moments.count(std::string(kMaster)) > 0;
  if (manifest.moments.size() > kMostMoments || moments.size() < manifest.moments.size() ||
      reserved) {
    json.at("moments").refuse("has what no optimizer keeps");
  }
  manifest.progress.steps_done = json.at("steps").count();
  manifest.progress.updates_done = json.at("updates").count(manifest.progress.steps_done);
  const Reader scaler = json.at("loss_scaler");
  manifest.progress.scaler = {scaler.at("scale").number(), scaler.at("forgiven").count(),
                              scaler.at("good_steps").count()};
  if (!(manifest.progress.scaler.scale > 0)) scaler.at("scale").refuse("is no scale");
  manifest.hashes = json.at("state_hashes").hashes();
  if (manifest.hashes.size() != 1 + manifest.moments.size()) {
    json.at("state_hashes").refuse("has not one hash for the weights and each of the moments");
  }
  manifest.run = json.at("run").json();
  std::map<std::string, std::size_t> ids;
  Index elements = 0;
  for (const Reader& parameter : json.at("parameters").list()) {
    manifest.parameters.push_back(parameter_of(parameter));
    if (!ids.emplace(manifest.parameters.back().name, ids.size()).second) {
      parameter.at("name").refuse("comes twice");
    }
    elements += numel(manifest.parameters.back().shape);
    if (elements > kMostElements) parameter.at("shape").refuse("is beyond all bounds");
  }
  const Json& tied = json.at("tied").json();
  if (!tied.is_object()) json.at("tied").refuse("is no object");
  for (const auto& [alias, name] : tied.items()) {
    manifest.tied[alias] = json.at("tied").at(alias).text();
    if (ids.count(manifest.tied[alias]) == 0 || ids.count(alias) > 0) {
      json.at("tied").refuse(
          fmt::format("has '{}', which is no second name of a parameter", alias));
    }
  }
  for (const Reader& shard : json.at("shards").list()) {
    manifest.shards.push_back(shard_of(shard, ids, manifest.shards.size()));
  }
  if (json.at("world_size").count() != manifest.world_size() || manifest.world_size() == 0) {
    json.at("world_size")
        .refuse(fmt::format("is not the number of shards ({})", manifest.world_size()));
  }
  check_coverage(manifest, file);
  check_lengths(manifest, file);
  return manifest;
}

}  // namespace zerolab
