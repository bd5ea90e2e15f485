#include "lab/resumed.hpp"

#include <fmt/format.h>

#include "stages/base/error.hpp"

namespace zerolab {
namespace {

using Json = nlohmann::ordered_json;

Resumed read(Checkpoint checkpoint) {
  Resumed resumed{.checkpoint = std::move(checkpoint)};
  const std::string name = resumed.name();
  const Json& run = resumed.checkpoint.manifest().run;
  try {
    resumed.model = parse_model(run.at("model").dump(), name);
    for (const auto& [key, value] : run.at("settings").items()) {
      resumed.settings.push_back({key, nlohmann::json(value), name});
    }
    resumed.seed = run.at("seed").get<std::uint64_t>();
    const Json& data = run.at("data");
    if (!data.at("path").is_null()) resumed.data = data.at("path").get<std::string>();
    resumed.data_hash = std::stoull(data.at("xxh64").get<std::string>(), nullptr, 16);
    resumed.frozen = run.at("freeze").get<std::vector<std::string>>();
    resumed.train_batch_size = run.at("train_batch_size").get<Index>();
  } catch (const std::exception& error) {
    throw Error(
        Code::checkpoint_damaged,
        fmt::format("{} does not say what zerolab train needs to know: {}", name, error.what()),
        "take a checkpoint that zerolab train has saved");
  }
  return resumed;
}

}  // namespace

std::shared_ptr<const Resumed> resumed_by(const RunOptions& options) {
  if (!options.resume) return nullptr;
  std::string name = *options.resume;
  if (name == kAuto) {
    name = *options.saving.folder;
    if (!Checkpoint::exists(name)) return nullptr;
  }
  return std::make_shared<const Resumed>(read(Checkpoint::open(name)));
}

}  // namespace zerolab
