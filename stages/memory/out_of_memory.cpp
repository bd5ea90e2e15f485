#include "stages/memory/out_of_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

namespace zerolab {
namespace {

// Settings of which it is known by how much they help while model states are set up.
constexpr std::string_view kRanks = "world_size";
constexpr std::string_view kStage = "zero_optimization.stage";

std::string text_of(const Holding& holding) {
  return fmt::format("{} [{}]", holding.owner, name_of(holding.category));
}

std::string report(const Shortage& shortage) {
  fmt::memory_buffer text;
  const auto add = [&text]<typename... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
  };
  const Holding& request = shortage.request;
  add("rank {} is out of {} memory: {} ({}) for {} in {}", shortage.rank, shortage.pool,
      human_bytes(request.bytes), request.bytes, text_of(request), shortage.where);
  add("\n  budget {} bytes, live {}, short by {}", shortage.budget, shortage.live.total(),
      shortage.needed() - shortage.budget);
  add("\n  live by category:");
  for (std::size_t c = 0; c < kCategories; ++c) {
    const auto category = static_cast<Category>(c);
    if (shortage.live[category] == 0) continue;
    add("\n    {:<15} {:>14}", name_of(category), shortage.live[category]);
  }
  add("\n  largest holders:");
  for (const Holding& holder : shortage.largest) {
    add("\n    {:>14}  {}", holder.bytes, text_of(holder));
  }
  add("\n  taken (+) and given back (-) before it, and live then:");
  std::size_t width = 0;
  for (const auto& change : shortage.last) width = std::max(width, text_of(change.what).size());
  for (const auto& change : shortage.last) {
    add("\n    {:>+14} {:>14}  {:<{}}  {}", change.what.bytes, change.live, text_of(change.what),
        width, change.where);
  }
  return fmt::to_string(text);
}

std::string ways_out(const Shortage& shortage) {
  std::string text =
      fmt::format("--device-memory {} or more for this allocation", shortage.needed());
  for (const auto& [setting, fits] : shortage.advice) {
    text += fmt::format("; or {} {} would have fitted (it is {})", setting.name,
                        text_of(setting, fits), text_of(setting, setting.value));
  }
  const bool names_them = std::any_of(
      shortage.advice.begin(), shortage.advice.end(), [](const Shortage::Advice& advice) {
        return advice.setting.name == kRanks || advice.setting.name == kStage;
      });
  return names_them ? text : text + "; or more ranks, or a higher stage";
}

nlohmann::ordered_json json_of(const Holding& holding) {
  return {
      {"owner", holding.owner}, {"category", name_of(holding.category)}, {"bytes", holding.bytes}};
}

nlohmann::ordered_json json_of(const Setting& setting, Index value) {
  if (setting.is_switch) return value != 0;
  return value;
}

}  // namespace

OutOfMemory::OutOfMemory(Shortage shortage)
    : Error(Code::out_of_memory, report(shortage), ways_out(shortage)),
      shortage_(std::make_shared<const Shortage>(std::move(shortage))) {}

nlohmann::ordered_json OutOfMemory::details() const {
  const Shortage& from = *shortage_;
  nlohmann::ordered_json json{{"pool", from.pool},
                              {"rank", from.rank},
                              {"requested", from.request.bytes},
                              {"owner", from.request.owner},
                              {"category", name_of(from.request.category)},
                              {"where", from.where},
                              {"budget", from.budget},
                              {"live", from.live.total()},
                              {"short_by", from.needed() - from.budget}};
  json["by_category"] = nlohmann::ordered_json::object();
  for (std::size_t c = 0; c < kCategories; ++c) {
    const auto category = static_cast<Category>(c);
    if (from.live[category] > 0) json["by_category"][name_of(category)] = from.live[category];
  }
  json["holders"] = nlohmann::ordered_json::array();
  for (const Holding& holder : from.largest) json["holders"].push_back(json_of(holder));
  json["last"] = nlohmann::ordered_json::array();
  for (const auto& change : from.last) {
    nlohmann::ordered_json entry = json_of(change.what);
    entry["where"] = change.where;
    entry["live"] = change.live;
    json["last"].push_back(entry);
  }
  json["advice"] = {
      {{"setting", "--device-memory"}, {"value", from.budget}, {"fits", from.needed()}}};
  for (const auto& [setting, fits] : from.advice) {
    json["advice"].push_back({{"setting", setting.name},
                              {"value", json_of(setting, setting.value)},
                              {"fits", json_of(setting, fits)}});
  }
  return json;
}

}  // namespace zerolab
